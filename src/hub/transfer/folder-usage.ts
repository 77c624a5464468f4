/** How much the folder of an account holds, beside its limits. */
import type { Stats } from "node:fs";
import { TreeFault } from "./file-tree.ts";
import { isTaken } from "./folder-entry.ts";
import type { TransferOptions } from "./options.ts";

interface Limits extends Pick<TransferOptions, "unfinishedBytes" | "entries"> {
  /** Of one file. */
  readonly bytesMax: number;
}

export class FolderUsage {
  readonly #limits: Limits;
  #unfinished = 0;
  #entries = 0;
  #taken = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** Taken files that the folder shows. */
  get taken(): number {
    return this.#taken;
  }

  set taken(count: number) {
    this.#taken = count;
  }

  /** Bytes of unfinished uploads; folders and unfinished uploads. */
  count(bytes: number, entries: number): void {
    this.#unfinished = bytes;
    this.#entries = entries;
  }

  /** Reserves bytes of a file that then has this size. */
  grow(bytes: number, size: number): void {
    const { bytesMax, unfinishedBytes } = this.#limits;
    if (size > bytesMax)
      throw new TreeFault("full", `the file is larger than ${bytesMax} bytes (\`limits.file\` of the hub)`);
    if (this.#unfinished + bytes > unfinishedBytes)
      throw new TreeFault("full", `the account has unfinished uploads of ${this.#unfinished} bytes; remove some`);
    this.#unfinished += bytes;
  }

  shrink(bytes: number): void {
    this.#unfinished -= bytes;
  }

  /** No folder and no unfinished upload may be added. */
  get isFull(): boolean {
    return this.#entries >= this.#limits.entries;
  }

  /** A folder or an unfinished upload more. */
  enter(): void {
    const { entries } = this.#limits;
    if (this.#entries >= entries)
      throw new TreeFault("full", `the account has ${entries} folders and unfinished uploads; remove some`);
    this.#entries += 1;
  }

  leave(): void {
    this.#entries -= 1;
  }

  /** An unfinished upload became a taken file. */
  take(size: number): void {
    this.#unfinished -= size;
    this.#entries -= 1;
    this.#taken += 1;
  }

  /** A file was removed or replaced. */
  forget(found: Stats): void {
    if (isTaken(found)) {
      this.#taken -= 1;
      return;
    }
    this.#unfinished -= found.size;
    this.#entries -= 1;
  }
}
