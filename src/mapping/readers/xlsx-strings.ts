/**
 * The shared texts of the cells of a workbook, held as UTF-8: a workbook with many rows may have one text per
 * cell.
 */

import { SHARED_TEXT_BYTES_MAX } from "./limits.ts";
import { UnreadableError } from "./row-error.ts";
import { damagedPart, type PartHandler, PartParser, unescapeText } from "./xlsx-part.ts";
import { type PlainElements, PlainPart, plainTextEnd } from "./xlsx-plain.ts";

/** Decoded texts that are cached; columns of names repeat the same few. */
const DECODED_MAX = 4096;

export class SharedStrings {
  #bytes = Buffer.allocUnsafe(64 * 1024);
  #used = 0;
  /** Where each text ends. */
  #ends = new Uint32Array(1024);
  #count = 0;
  readonly #decoded: { index: number; text: string }[] = [];

  static async read(part: string, chunks: AsyncIterable<string>): Promise<SharedStrings> {
    const strings = new SharedStrings();
    const handler = new StringsHandler(strings);
    const reader = new PlainPart(new PartParser(part, handler), handler);
    let isEmpty = true;
    for await (const chunk of chunks) {
      reader.write(chunk);
      isEmpty = false;
    }
    if (!isEmpty) reader.end();
    return strings;
  }

  add(text: string): void {
    const most = text.length * 3;
    if (this.#used + most > this.#bytes.length)
      this.#bytes = Buffer.concat([this.#bytes], Math.max(this.#bytes.length * 2, this.#used + most));
    this.#used += this.#bytes.write(text, this.#used);
    if (this.#used > SHARED_TEXT_BYTES_MAX)
      throw new UnreadableError(
        `the workbook holds more than ${SHARED_TEXT_BYTES_MAX} bytes of text in its cells, ` +
          "which is too much to hold in memory",
        { hint: "Split the workbook, or save the sheet as CSV." },
      );
    if (this.#count === this.#ends.length) {
      const ends = new Uint32Array(this.#count * 2);
      ends.set(this.#ends);
      this.#ends = ends;
    }
    this.#ends[this.#count] = this.#used;
    this.#count += 1;
  }

  at(index: number): string {
    const slot = index % DECODED_MAX;
    const decoded = this.#decoded[slot];
    if (decoded?.index === index) return decoded.text;
    const end = index < this.#count ? this.#ends[index] : undefined;
    if (end === undefined) throw damagedPart("a cell", `names text ${index} of ${this.#count}`);
    const text = this.#bytes.toString("utf8", index === 0 ? 0 : this.#ends[index - 1], end);
    this.#decoded[slot] = { index, text };
    return text;
  }
}

const ITEM_END = "</si>";
const ITEM_STARTS = ["<si><t>", '<si><t xml:space="preserve">'];

/**
 * An `si` contains `t`, or runs of rich text `r` with a `t` each; `rPh` is a pronunciation guide, not part of
 * the text.
 */
class StringsHandler implements PartHandler, PlainElements {
  readonly end = ITEM_END;
  readonly #strings: SharedStrings;
  #depth = 0;
  #text = "";
  #isText = false;
  #isPhonetic = false;

  constructor(strings: SharedStrings) {
    this.#strings = strings;
  }

  get isBetween(): boolean {
    return this.#depth === 1;
  }

  read(text: string, from: number): number {
    let done = from;
    for (;;) {
      const open = ITEM_STARTS.find((start) => text.startsWith(start, done));
      if (open === undefined) return done;
      const to = plainTextEnd(text, done + open.length);
      if (to === -1 || !text.startsWith(`</t>${ITEM_END}`, to)) return done;
      this.#strings.add(unescapeText(text.slice(done + open.length, to)));
      done = to + `</t>${ITEM_END}`.length;
    }
  }

  open(name: string): void {
    this.#depth += 1;
    if (name === "si") this.#text = "";
    else if (name === "rPh") this.#isPhonetic = true;
    else if (name === "t") this.#isText = !this.#isPhonetic;
  }

  close(name: string): void {
    this.#depth -= 1;
    if (name === "si") this.#strings.add(unescapeText(this.#text));
    else if (name === "rPh") this.#isPhonetic = false;
    else if (name === "t") this.#isText = false;
  }

  text(text: string): void {
    if (this.#isText) this.#text += text;
  }
}
