/** Done-files: second files by which a sender marks a file as complete. */
import { posix } from "node:path";

export class DoneFiles {
  readonly #template: string;
  readonly #pattern: RegExp;

  /** `template` contains `{name}` or `{stem}` once, such as `{name}.done`. */
  constructor(template: string) {
    this.#template = template;
    const [before = "", after = ""] = template.split(/\{(?:name|stem)\}/);
    this.#pattern = new RegExp(`^${RegExp.escape(before)}.+${RegExp.escape(after)}$`, "s");
  }

  /** Whether the name of a file is that of a done-file. */
  isDoneFile(path: string): boolean {
    return this.#pattern.test(posix.basename(path));
  }

  /** Path of the done-file of a file. */
  of(path: string): string {
    const { dir, base, name } = posix.parse(path);
    // By a function, since a dollar sign has a meaning in a replacement text.
    return posix.join(
      dir,
      this.#template.replace(/\{(name|stem)\}/, (_, which) => (which === "name" ? base : name)),
    );
  }
}
