/**
 * What is known of the undoing of a migration: `undo.jsonl` in its folder, a line for each call that removed something, between one that it was
 * begun and one that it ended. While it stands begun the ledger does not say any more what is stored, so that nothing else may be done.
 * Once it has ended, ledger, spool and report go into `undone/<n>`, and the same order is a new migration.
 */
import { existsSync } from "node:fs";
import { type FileHandle, mkdir, open, readdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { syncDirectory } from "../support/durable.ts";
import type { RemovalRange } from "./removal-ranges.ts";

const RECORD = "undo.jsonl";
const ASIDE = "undone";
/** What belongs to the migration however often it is undone. The lock of the ledger is held meanwhile. */
const STAYS: ReadonlySet<string> = new Set([
  "migration.json",
  "migration.log",
  "structure.jsonl",
  "ledger.sqlite.lock",
  RECORD,
  ASIDE,
]);

export interface Undone {
  readonly begunAt: string;
  /** Null: it was begun, and did not come to its end. */
  readonly endedAt: string | null;
  /** The user who ordered it. */
  readonly by: string;
  /** Dates, and versions of them, as the service counted what it removed. */
  readonly points: number;
  readonly versions: number;
  /** Where ledger and report of what was undone are; null before the end. */
  readonly folder: string | null;
}

type Line =
  | { readonly what: "begun"; readonly at: string; readonly by: string }
  | ({ readonly what: "removed" } & RemovalRange)
  | { readonly what: "ended"; readonly at: string; readonly into: string };

/** Of the undoing that has begun and was not put aside. */
export function undoUnderWay(folder: string): Promise<Undone | null> {
  return readRecord(folder, folder);
}

/** Those that came to their end, oldest first. */
export async function pastUndos(folder: string): Promise<readonly Undone[]> {
  if (!existsSync(join(folder, ASIDE))) return [];
  const names = (await readdir(join(folder, ASIDE))).sort((one, other) => Number(one) - Number(other));
  const found = await Promise.all(names.map((name) => readRecord(join(folder, ASIDE, name), folder)));
  return found.filter((one) => one !== null);
}

async function readRecord(place: string, folder: string): Promise<Undone | null> {
  const path = join(place, RECORD);
  if (!existsSync(path)) return null;
  const lines = linesOf(await readFile(path, "utf8"));
  const begun = lines.find((line) => line.what === "begun");
  if (begun === undefined) return null;
  const removed = lines.filter((line) => line.what === "removed");
  const ended = lines.find((line) => line.what === "ended");
  return {
    begunAt: begun.at,
    endedAt: ended?.at ?? null,
    by: begun.by,
    points: removed.reduce((sum, { points }) => sum + points, 0),
    versions: removed.reduce((sum, { versions }) => sum + versions, 0),
    folder: ended === undefined ? null : join(folder, ended.into),
  };
}

/** A line that a crash cut off says nothing. */
function linesOf(text: string): readonly Line[] {
  return text
    .split("\n")
    .slice(0, -1)
    .filter(isWhole)
    .map((line) => JSON.parse(line) as Line);
}

function isWhole(line: string): boolean {
  return line.startsWith("{") && line.endsWith("}");
}

export class UndoRecord {
  readonly #handle: FileHandle;
  readonly #folder: string;

  private constructor(handle: FileHandle, folder: string) {
    this.#handle = handle;
    this.#folder = folder;
  }

  /** Durable before anything is removed. Goes on with the one that was begun before. */
  static async begin(folder: string, at: string, by: string): Promise<UndoRecord> {
    const isNew = !existsSync(join(folder, RECORD));
    const handle = await open(join(folder, RECORD), "a");
    const record = new UndoRecord(handle, folder);
    try {
      // The line before may have been cut off by a crash.
      await record.#write({ what: "begun", at, by }, isNew ? "" : "\n");
      await handle.sync();
      await syncDirectory(folder);
      return record;
    } catch (thrown) {
      await handle.close();
      throw thrown;
    }
  }

  removed(range: RemovalRange): Promise<void> {
    return this.#write({ what: "removed", ...range });
  }

  async end(at: string): Promise<void> {
    const past = existsSync(join(this.#folder, ASIDE)) ? await readdir(join(this.#folder, ASIDE)) : [];
    await this.#write({ what: "ended", at, into: join(ASIDE, String(past.length + 1)) });
    await this.#handle.sync();
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  async #write(line: Line, before = ""): Promise<void> {
    await this.#handle.write(`${before}${JSON.stringify(line)}\n`);
  }
}

/** After the end; also after a crash in the middle of it. Nobody else may have the ledger meanwhile. */
export async function putAside(folder: string, { folder: into }: Undone): Promise<void> {
  if (into === null) return;
  await mkdir(into, { recursive: true });
  for (const name of await readdir(folder))
    if (!STAYS.has(name)) await rename(join(folder, name), join(into, name));
  // Last: until then it is known that something is left to be moved.
  await rename(join(folder, RECORD), join(into, RECORD));
  await syncDirectory(into);
  await syncDirectory(folder);
}
