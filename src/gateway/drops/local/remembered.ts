/**
 * The large folders of a local drop as its latest listing read them, in the parts in which the thread answers. A part
 * with the same names needs no new paths, and one with the same statuses no new entries: `list` returns the same group.
 */
import type { FileEntry } from "../../model.ts";
import { FileBudget } from "../known-files.ts";
import type { FileStatuses } from "./disk-work.ts";

export interface ListedPart {
  /** The names of the files, as the thread answered them. */
  readonly names: string;
  /** Of the files that belong to the drop, where the path leads to the file as text. */
  readonly paths: readonly string[];
  /** The same, as the thread is asked for their statuses. */
  readonly asked: string;
  /** The other paths; the status of each is read by itself. */
  readonly others: readonly string[];
  /** Null when the thread has not read all of them. */
  statuses: FileStatuses | null;
  entries: readonly FileEntry[];
}

/** Files of all local drops of a process, at some 280 bytes each, and more where names are long. */
const BUDGET = new FileBudget(200_000);

export class RememberedParts {
  #folders = new Map<string, (ListedPart | undefined)[]>();
  readonly #budget: Pick<FileBudget, "take" | "giveBack">;
  /** Folders that the present listing has read. */
  #read = new Set<string>();

  constructor(budget: Pick<FileBudget, "take" | "giveBack"> = BUDGET) {
    this.#budget = budget;
  }

  begin(): void {
    this.#read = new Set();
  }

  /** The part at this place of the folder, when it had the same names. */
  find(folder: string, at: number, names: string): ListedPart | undefined {
    const part = this.#folders.get(folder)?.[at];
    return part?.names === names ? part : undefined;
  }

  keep(folder: string, at: number, part: ListedPart): void {
    const parts = this.#folders.get(folder) ?? [];
    this.#release(parts[at]);
    delete parts[at];
    if (!this.#budget.take(part.paths.length)) return;
    parts[at] = part;
    this.#folders.set(folder, parts);
  }

  /** The folder had so many parts. */
  folderRead(folder: string, count: number): void {
    this.#read.add(folder);
    for (const part of this.#folders.get(folder)?.splice(count) ?? []) this.#release(part);
  }

  /** The listing was complete: folders that it did not read are forgotten. */
  complete(): void {
    for (const [folder, parts] of this.#folders) {
      if (this.#read.has(folder)) continue;
      for (const part of parts) this.#release(part);
      this.#folders.delete(folder);
    }
  }

  forgetAll(): void {
    this.begin();
    this.complete();
  }

  #release(part: ListedPart | undefined): void {
    if (part !== undefined) this.#budget.giveBack(part.paths.length);
  }
}

export function areSame(one: FileStatuses, other: FileStatuses): boolean {
  return bytesOf(one.sizes).equals(bytesOf(other.sizes)) && bytesOf(one.times).equals(bytesOf(other.times));
}

function bytesOf({ buffer, byteOffset, byteLength }: Float64Array | BigInt64Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
