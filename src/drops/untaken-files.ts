/** Files that one poll did not pick up, for operators. The number is limited; the overdue come first. */
import type { WaitingFile } from "./pickup-contract.ts";

const SHOWN = 100;

export class UntakenFiles {
  readonly #files: WaitingFile[] = [];

  get list(): readonly WaitingFile[] {
    return this.#files;
  }

  add(file: WaitingFile): void {
    if (this.#files.length < SHOWN) {
      this.#files.push(file);
      return;
    }
    if (!file.overdue) return;
    const at = this.#files.findIndex((one) => !one.overdue);
    if (at >= 0) this.#files[at] = file;
  }
}
