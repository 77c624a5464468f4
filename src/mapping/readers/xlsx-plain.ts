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
/** A part in which so many more characters went to the parser than were read directly is left to the parser. */
const LOSS_MAX = 256 * 1024;

export class PlainPart {
  readonly #parser: PartParser;
  readonly #elements: PlainElements;
  /** The beginning of an element. */
  #held = "";
  /** Characters that were read directly, less those of elements that had to go to the parser after all. */
  #gain = 0;

  constructor(parser: PartParser, elements: PlainElements) {
    this.#parser = parser;
    this.#elements = elements;
  }

  write(chunk: string): void {
    const text = this.#held + chunk;
    const whole = this.#wholeEnd(text);
    this.#held = "";
    for (let at = 0; at < text.length; ) {
      const isPlain = this.#isPlain;
      if (isPlain && at < whole) at = this.#read(text, at);
      if (isPlain && at >= whole && text.length - at < HELD_MAX) {
        this.#held = text.slice(at);
        return;
      }
      const to = this.#isWorthwhile && at < whole ? this.#endOf(text, at) : text.length;
      this.#parser.write(text.slice(at, to));
      if (isPlain) this.#gain -= to - at;
      at = to;
    }
  }

  get #isWorthwhile(): boolean {
    return this.#gain > -LOSS_MAX;
  }

  get #isPlain(): boolean {
    return this.#isWorthwhile && this.#elements.isBetween && this.#parser.isBetweenTags;
  }

  #read(text: string, from: number): number {
    const to = this.#elements.read(text, from);
    this.#gain += to - from;
    return to;
  }

  #endOf(text: string, from: number): number {
    const { end } = this.#elements;
    return text.indexOf(end, from) + end.length;
  }

  /** Where the last whole element ends; 0 for none. What is held has no end of an element. */
  #wholeEnd(text: string): number {
    const { end } = this.#elements;
    const from = Math.max(0, this.#held.length - end.length + 1);
    const last = text.slice(from).lastIndexOf(end);
    return last === -1 ? 0 : from + last + end.length;
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
