/** Done-files: a second file by which a sender says that a file is complete. */
import { posix } from "node:path";

export class DoneFiles {
  readonly #template: string;
  readonly #pattern: RegExp;

  /** `template` holds `{name}` or `{stem}` once, such as `{name}.done`. */
  constructor(template: string) {
    this.#template = template;
    const [before = "", after = ""] = template.split(/\{(?:name|stem)\}/);
    this.#pattern = new RegExp(`^${RegExp.escape(before)}.+${RegExp.escape(after)}$`, "s");
  }

  /** Whether a file is a done-file by its name. */
  isDoneFile(path: string): boolean {
    return this.#pattern.test(posix.basename(path));
  }

  /** Path of the done-file of a file. */
  of(path: string): string {
    const { dir, base, name } = posix.parse(path);
    // Not by a replacement text, in which a dollar sign would mean something.
    return posix.join(
      dir,
      this.#template.replace(/\{(name|stem)\}/, (_, which) => (which === "name" ? base : name)),
    );
  }
}
