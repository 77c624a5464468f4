/**
 * The record of undoing a migration: `undo.jsonl` in its folder, with a line for its begin, a line for each call that
 * removed something, and one for its end. Before its end the ledger no longer describes what is stored, so that
 * nothing else may be done. After its end, ledger, spool and report move into `undone/<n>`, and the same request is a
 * new migration.
 */
import { existsSync } from "node:fs";
import { type FileHandle, mkdir, open, readdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { syncDirectory } from "#core/durable.ts";
import type { RemovalRange } from "./removal-ranges.ts";

const RECORD = "undo.jsonl";
const ASIDE = "undone";
/** Files that stay with the migration however often it is undone. The lock of the ledger is held meanwhile. */
const STAYS: ReadonlySet<string> = new Set([
  "migration.json",
  "migration.log",
  "structure.jsonl",
  "actions.jsonl",
  "ledger.sqlite.lock",
  RECORD,
  ASIDE,
]);

export interface Undone {
  readonly begunAt: string;
  /** Null: it was begun, and has not finished. */
  readonly endedAt: string | null;
  /** The user who ran it. */
  readonly by: string;
  /** Dates, and versions of them, as the service counted the removed ones. */
  readonly points: number;
  readonly versions: number;
  /** The folder of the undone ledger and report; null before the end. */
  readonly folder: string | null;
}

type Line =
  | { readonly what: "begun"; readonly at: string; readonly by: string }
  | ({ readonly what: "removed" } & RemovalRange)
  | { readonly what: "ended"; readonly at: string; readonly into: string };

/** The undo that has begun and was not archived. */
export function runningUndo(folder: string): Promise<Undone | null> {
  return readRecord(folder, folder);
}

/** Finished undos, oldest first. */
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

/** A line that a crash cut off is ignored. */
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

  /** Durable before anything is removed. Resumes an undo that was begun before. */
  static async begin(folder: string, at: string, by: string): Promise<UndoRecord> {
    const isNew = !existsSync(join(folder, RECORD));
    const handle = await open(join(folder, RECORD), "a");
    const record = new UndoRecord(handle, folder);
    try {
      // A crash may have cut off the line before.
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

/** Called after the end; also after a crash in the middle of it. No other process may use the ledger meanwhile. */
export async function archiveUndo(folder: string, { folder: into }: Undone): Promise<void> {
  if (into === null) return;
  await mkdir(into, { recursive: true });
  for (const name of await readdir(folder)) if (!STAYS.has(name)) await rename(join(folder, name), join(into, name));
  // The last move: until then the record shows that files are left to be moved.
  await rename(join(folder, RECORD), join(into, RECORD));
  await syncDirectory(into);
  await syncDirectory(folder);
}
