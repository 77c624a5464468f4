/** Counts the bytes in the spool that its budget limits, and the free bytes of its disk (`quota.ts`). */
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import type { HeldBytes } from "./refusals.ts";
import { bytesBelow } from "./usage.ts";

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
