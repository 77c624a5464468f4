/** Files that one poll did not pick up, for operators. The number is limited; the overdue come first. */
import type { UntakenFile } from "../model.ts";

const SHOWN = 100;

export class UntakenFiles {
  readonly #files: UntakenFile[] = [];

  get list(): readonly UntakenFile[] {
    return this.#files;
  }

  add(file: UntakenFile): void {
    if (this.#files.length < SHOWN) {
      this.#files.push(file);
      return;
    }
    if (!file.overdue) return;
    const at = this.#files.findIndex((one) => !one.overdue);
    if (at >= 0) this.#files[at] = file;
  }
}
