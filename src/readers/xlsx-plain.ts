/**
 * Reads the elements of a part of a workbook that repeat, such as rows, directly where they have the form in which
 * programs write nearly all of them. Anything else goes to the parser of XML, which alone defines what is well-formed.
 */
import type { PartParser } from "./xlsx-part.ts";

export interface PlainElements {
  /** End tag of such an element. */
  readonly end: string;
  /** Whether the parser is where such an element may begin. */
  readonly isBetween: boolean;
  /** Reads whole elements from a place on. Returns the place after the last one that it could read. */
  read(text: string, from: number): number;
}

/** Longest element that is read directly, in characters. */
const HELD_MAX = 256 * 1024;

export class PlainPart {
  readonly #parser: PartParser;
  readonly #elements: PlainElements;
  /** The beginning of an element. */
  #held = "";

  constructor(parser: PartParser, elements: PlainElements) {
    this.#parser = parser;
    this.#elements = elements;
  }

  write(chunk: string): void {
    const { end } = this.#elements;
    const text = this.#held + chunk;
    this.#held = "";
    for (let at = 0; at < text.length; ) {
      const isPlain = this.#elements.isBetween && this.#parser.isBetweenTags;
      if (isPlain) at = this.#elements.read(text, at);
      const found = text.indexOf(end, at);
      if (found === -1 && isPlain && text.length - at < HELD_MAX) {
        this.#held = text.slice(at);
        return;
      }
      const to = found === -1 ? text.length : found + end.length;
      if (to > at) this.#parser.write(text.slice(at, to));
      at = to;
    }
  }

  end(): void {
    if (this.#held !== "") this.#parser.write(this.#held);
    this.#parser.end();
  }
}

const [AMPERSAND, LESS, BRACKET, BLANK, DELETE, NO_BREAK, LINE_SEPARATOR, SURROGATE] = [
  0x26, 0x3c, 0x5d, 0x20, 0x7f, 0xa0, 0x2028, 0xd800,
];

/** The end of a text that stands for itself, or -1 where characters need the parser of XML. */
export function plainTextEnd(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === LESS) return at;
    if (code < BLANK || code === AMPERSAND || code === BRACKET || code >= SURROGATE) return -1;
    if (code >= DELETE && (code < NO_BREAK || code === LINE_SEPARATOR)) return -1;
  }
  return -1;
}
