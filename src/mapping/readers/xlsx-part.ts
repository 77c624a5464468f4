/** Parses the XML of one part of a workbook (ECMA-376) with saxes, within limits. */
import { SaxesParser } from "saxes";
import { TAG_CHARACTERS_MAX } from "./limits.ts";
import { UnreadableError } from "./row-error.ts";

export const SAVE_AGAIN = "Open it in a spreadsheet program and save it as .xlsx; the older .xls is another format.";

/**
 * Receives the elements of a part. Names come without the prefix of the root; names of other prefixes, which
 * are extensions, keep them.
 */
export interface PartHandler {
  open(name: string, attributes: Readonly<Record<string, string>>): void;
  close(name: string): void;
  text(text: string): void;
}

export class PartParser {
  readonly #parser = new SaxesParser<{ xmlns: false; position: false }>({ xmlns: false, position: false });
  readonly #part: string;
  #fault: UnreadableError | undefined;
  /** Prefix of the root, with its colon. */
  #prefix: string | undefined;
  /** Characters up to the end of the written text, and up to the last complete tag or text. */
  #written = 0;
  #eventAt = 0;
  /** Characters up to the end of the last tag. */
  #tagAt = 0;

  constructor(part: string, handler: PartHandler) {
    this.#part = part;
    const parser = this.#parser;
    const checked = <Given>(handle: (given: Given) => void, isTag: boolean) => {
      return (given: Given) => {
        this.#eventAt = parser.position;
        if (isTag) this.#tagAt = this.#eventAt;
        // After a fault the parser continues to the end of the chunk, and its further events are ignored.
        if (this.#fault === undefined) handle(given);
      };
    };
    parser.on("error", ({ message }) => {
      this.#fault ??= damagedPart(part, message);
    });
    parser.on("doctype", () => {
      this.#fault ??= damagedPart(part, "it has a DOCTYPE, which no workbook has");
    });
    parser.on(
      "opentag",
      checked(({ name, attributes }) => {
        this.#prefix ??= name.slice(0, name.indexOf(":") + 1);
        handler.open(this.#plain(name), attributes);
      }, true),
    );
    parser.on(
      "closetag",
      checked(({ name }) => handler.close(this.#plain(name)), true),
    );
    const text = checked((given: string) => handler.text(given), false);
    parser.on("text", text);
    parser.on("cdata", text);
  }

  /** Whether a tag ends where the written text ends. A text ends after the `<` of the next tag. */
  get isBetweenTags(): boolean {
    return this.#tagAt === this.#written;
  }

  write(text: string): void {
    this.#parser.write(text);
    this.#written += text.length;
    if (this.#written - this.#eventAt > TAG_CHARACTERS_MAX)
      this.#fault ??= damagedPart(this.#part, `a tag or text is longer than ${TAG_CHARACTERS_MAX} characters`);
    if (this.#fault !== undefined) throw this.#fault;
  }

  #plain(name: string): string {
    const { length } = this.#prefix ?? "";
    return length > 0 && name.startsWith(this.#prefix ?? "") ? name.slice(length) : name;
  }

  end(): void {
    this.#parser.close();
    if (this.#fault !== undefined) throw this.#fault;
  }
}

export function damagedPart(part: string, why: string): UnreadableError {
  return new UnreadableError(`the file cannot be read as a workbook (.xlsx): ${part}: ${why}`, {
    hint: SAVE_AGAIN,
  });
}

/** Decodes the escapes of characters that XML cannot hold (ECMA-376, part 1, 22.9.2.19). */
export function unescapeText(text: string): string {
  if (!text.includes("_x")) return text;
  return text.replace(/_x([0-9A-Fa-f]{4})_/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
}
