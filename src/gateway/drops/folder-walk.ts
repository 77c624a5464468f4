/**
 * The walk of a listing through the folders of a server: which are still to be read, and which of their items
 * belong to the drop.
 */
import type { Logger } from "#core/log.ts";
import type { OnFolder } from "./drop.ts";
import { isPlainName, type ListingFilter } from "./paths.ts";

/** One name in a folder, as the server lists it. */
export interface FolderItem {
  readonly name: string;
  readonly kind: "file" | "folder" | "link" | "other";
}

export interface WalkParts {
  readonly drop: { readonly name: string; readonly log: Logger };
  /** Relative to the root, which is "". */
  readonly from: string;
  readonly filter: ListingFilter;
  readonly onFolder?: OnFolder | undefined;
}

export class FolderWalk {
  readonly #parts: WalkParts;
  readonly #waiting: string[];
  #folder = "";
  /** How many folders were waiting when the current one was begun. */
  #waitingBefore = 0;
  #linksCount = 0;

  constructor(parts: WalkParts) {
    this.#parts = parts;
    this.#waiting = [parts.from];
  }

  /** False for the listing of a part of it, such as an archive. */
  get isWholeDrop(): boolean {
    return this.#parts.from === "";
  }

  /** Symbolic links seen so far; they are not followed. */
  get linksCount(): number {
    return this.#linksCount;
  }

  /** The folder to read next, or undefined when all were read. */
  next(): string | undefined {
    const folder = this.#waiting.pop();
    this.#folder = folder ?? "";
    this.#waitingBefore = this.#waiting.length;
    return folder;
  }

  /** All files of the folder were returned. */
  complete(): void {
    this.#parts.onFolder?.(this.#folder, this.#waiting.slice(this.#waitingBefore));
  }

  /** The path of a file that belongs to the drop, or null. A folder is remembered, and read later. */
  take({ name, kind }: FolderItem): string | null {
    if (name === "." || name === "..") return null;
    const { drop, filter } = this.#parts;
    if (!isPlainName(name)) {
      drop.log.warn({ drop: drop.name, name }, "a file with an impossible name is ignored");
      return null;
    }
    const path = this.#folder === "" ? name : `${this.#folder}/${name}`;
    if (kind === "folder" && filter.entersFolder(path)) this.#waiting.push(path);
    if (kind === "link") this.#linksCount += 1;
    return kind === "file" && filter.takesFile(path) ? path : null;
  }
}
