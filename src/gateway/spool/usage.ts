/** Counts the bytes in the spool that its budget limits, and the free bytes of its disk (`quota.ts`). */
import type { Stats } from "node:fs";
import { lstat, opendir, statfs } from "node:fs/promises";
import { join } from "node:path";
import { type ErrorCode, systemCode, wordsOf } from "#core/errors.ts";
import { SHARED_MAX } from "#mapping/segment/layout.ts";

const BODIES = "intake";
export const INPUTS = "inputs";
/** The folders below the root of the spool that count. Files kept for replay have a limit of their own. */
const COUNTED = [INPUTS, "segments", BODIES];

export interface UsageCount {
  /** Bytes in the folders and in the ledger's database. */
  readonly bytes: number;
  /** The part of bodies that wait. */
  readonly bodies: number;
  /** The part in the ledger's database. */
  readonly shared: number;
  readonly held: HeldBytes;
  /** Free bytes of the disk, for this user. */
  readonly free: number;
}

/** `heldIds`: the runs whose bytes are counted as held. */
export async function countUsage(
  root: string,
  heldIds: ReadonlySet<string>,
  readShared: () => Promise<number>,
): Promise<UsageCount> {
  const heldRuns = new Set<string>();
  let bytes = 0;
  let bodies = 0;
  let heldBytes = 0;
  for (const folder of COUNTED) {
    const found = await bytesBelow(join(root, folder), (name, size) => {
      const [id = ""] = name.split(".", 1);
      if (!heldIds.has(id)) return;
      heldRuns.add(id);
      heldBytes += size;
    });
    bytes += found;
    if (folder === BODIES) bodies += found;
  }
  const shared = await readShared();
  const { bavail, bsize } = await statfs(root);
  return {
    bytes: bytes + shared,
    bodies: bodies + shared,
    shared,
    held: { runs: heldRuns.size, bytes: heldBytes },
    free: bavail * bsize,
  };
}

/** Databases of an intake, in which it remembers its senders, are no backlog. */
const DATABASE = /\.sqlite(-wal|-shm)?$/;
const FILES_AT_ONCE = 64;

/** Bytes of files that may have holes: larger ones have none, and a disk may keep smaller ones in part of a block. */
const HOLED_MAX = 2 * SHARED_MAX;
const HOLED_MIN = 64 * 1024;
const BLOCK_BYTES = 512;

/**
 * The share of one name in the bytes of a file: a segment with names of several runs counts once in all. Holes in a
 * segment that was copied out of one (`segment-changes.ts`) do not count. `blocks`: of 512 bytes; some file systems
 * report none until later.
 */
export function shareOf({ size, nlink, blocks }: Pick<Stats, "size" | "nlink" | "blocks">): number {
  const mayHaveHoles = size >= HOLED_MIN && size <= HOLED_MAX && blocks > 0;
  return (mayHaveHoles ? Math.min(size, blocks * BLOCK_BYTES) : size) / Math.max(1, nlink);
}

/** Files that come and go meanwhile count when they are seen; `onFile` receives the share of each name. */
export async function bytesBelow(folder: string, onFile: (name: string, bytes: number) => void): Promise<number> {
  let bytes = 0;
  let asked: { readonly name: string; readonly share: Promise<number> }[] = [];
  const add = async () => {
    for (const { name, share } of asked) {
      bytes += await share;
      onFile(name, await share);
    }
    asked = [];
  };
  try {
    for await (const item of await opendir(folder, { recursive: true })) {
      if (item.isFile() && !DATABASE.test(item.name))
        asked.push({ name: item.name, share: shareAt(join(item.parentPath, item.name)) });
      if (asked.length >= FILES_AT_ONCE) await add();
    }
  } catch (thrown) {
    if (!isGone(thrown)) throw thrown;
  }
  await add();
  return Math.round(bytes);
}

async function shareAt(path: string): Promise<number> {
  try {
    return shareOf(await lstat(path));
  } catch (thrown) {
    if (isGone(thrown)) return 0;
    throw thrown;
  }
}

function isGone(thrown: unknown): boolean {
  return systemCode(thrown) === "ENOENT";
}

// The reasons why the spool takes no file, in words.

export interface Refusal {
  readonly code: ErrorCode;
  /** Without numbers that change, so that it is one reason for as long as it lasts. */
  readonly words: string;
}

interface HeldBytes {
  readonly runs: number;
  readonly bytes: number;
}

export function overBudget(budget: number, held: HeldBytes): Refusal {
  return {
    code: "HG-SPOOL-005",
    words:
      "no files are taken: what waits to be delivered fills the budget of the spool " +
      `(\`spool.budget\`, ${budget} bytes); files stay at their drops until there is space${heldWords(held)}`,
  };
}

export function diskShort(headroom: number): Refusal {
  return {
    code: "HG-SPOOL-006",
    words:
      "no files are taken: the disk of the spool has less free space than it should keep " +
      `(\`spool.headroom\`, ${headroom} bytes); files stay at their drops until there is space`,
  };
}

export function tooLargeNow({ runs }: HeldBytes): Refusal {
  const held = runs === 0 ? "" : "; held runs take a part of it: `headgate quarantine` lists them";
  return {
    code: "HG-SPOOL-005",
    words:
      "the file is larger than what is left of the budget of the spool (`spool.budget`); " +
      `it stays at its drop until there is space${held}`,
  };
}

/** The folder has vanished, or may not be read. */
export function uncountable(thrown: unknown): Refusal {
  return {
    code: "HG-SPOOL-004",
    words: `no files are taken: the spool cannot be read (${wordsOf(thrown)}); files stay at their drops`,
  };
}

/** Empty when no run is held: only held runs need a person before their space is free again. */
function heldWords({ runs, bytes }: HeldBytes): string {
  if (runs === 0) return "";
  return (
    `; ${runs} held ${runs === 1 ? "run takes" : "runs take"} ${bytes} bytes of it: ` +
    "`headgate quarantine` says what each waits for, and how to release or cancel it"
  );
}
