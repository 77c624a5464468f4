/**
 * Segments of an EDIFACT interchange (ISO 9735), streamed, with the separators that its service string advice declares.
 */
import { FileError } from "headgate/mapper";

/** Errors name `row`, `column` and `text` as its place. */
export interface Segment {
  readonly tag: string;
  /** Data elements after the tag, each as its components. */
  readonly elements: readonly (readonly string[])[];
  /** Line at which it begins; an interchange may be a single line. */
  readonly row: number;
  /** Tag and position, such as `QTY, segment 17`. */
  readonly column: string;
  /** The text as written. */
  readonly text: string;
}

/** A component; both positions from 0, elements without the tag. */
export function component(segment: Segment, element: number, at = 0): string {
  return segment.elements[element]?.[at]?.trim() ?? "";
}

export interface Separators {
  readonly component: string;
  readonly element: string;
  readonly decimal: "." | ",";
  /** Empty when none is used. */
  readonly release: string;
  readonly terminator: string;
}

const STANDARD: Separators = { component: ":", element: "+", decimal: ".", release: "?", terminator: "'" };
const ADVICE_CHARACTERS = 9;
/** Limit on the length of a segment; a missing terminator would swallow the file. */
const SEGMENT_CHARACTERS_MAX = 256 * 1024;
const SEGMENTS_A_CHUNK = 512;
const HEAD_BYTES = 256;

/** Character sets by the syntax identifier of the UNB segment. */
const CHARACTER_SETS: Readonly<Record<string, string>> = {
  UNOA: "windows-1252",
  UNOB: "windows-1252",
  UNOC: "windows-1252",
  UNOD: "iso-8859-2",
  UNOE: "iso-8859-5",
  UNOF: "iso-8859-7",
  UNOW: "utf-8",
  UNOY: "utf-8",
};

export interface Segments {
  /** Known after the first segment. */
  readonly separators: Separators;
  readonly chunks: AsyncIterable<readonly Segment[]>;
}

export function readSegments(bytes: AsyncIterable<Uint8Array>): Segments {
  const reader = new SegmentReader();
  return {
    get separators() {
      return reader.separators;
    },
    chunks: reader.read(bytes),
  };
}

class SegmentReader {
  separators: Separators = STANDARD;
  #decoder: TextDecoder | undefined;
  #text = "";
  #row = 1;
  #count = 0;

  async *read(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<readonly Segment[]> {
    for await (const read of withHead(bytes)) {
      // A byte order mark is not part of the interchange, whatever character set it declares.
      const chunk = this.#decoder === undefined ? withoutMark(read) : read;
      this.#decoder ??= this.#begin(chunk);
      this.#text += this.#decode(chunk, true);
      yield* this.#drain();
      if (this.#text.length > SEGMENT_CHARACTERS_MAX) throw this.#endless();
    }
    if (this.#decoder === undefined) throw new FileError("the file is empty");
    this.#text += this.#decode(new Uint8Array(), false);
    yield* this.#drain();
    const rest = this.#text.trim();
    if (rest !== "")
      throw new FileError(`the file ends within a segment at line ${this.#row}`, {
        row: this.#row,
        column: `segment ${this.#count + 1}`,
        text: rest,
        hint: "Was the file cut off? Ask for it again.",
      });
  }

  /** The service string advice, if there is one, and the character set of the UNB segment. */
  #begin(chunk: Uint8Array): TextDecoder {
    const text = new TextDecoder("windows-1252").decode(chunk.subarray(0, 2048)).replace(/^(?:ï»¿|\s)+/, "");
    if (text.startsWith("UNA")) this.separators = this.#advice(text.slice(0, ADVICE_CHARACTERS));
    else if (!text.startsWith("UNB"))
      throw new FileError("the file begins with neither UNA nor UNB, so it is no EDIFACT interchange", {
        row: 1,
        text: text.slice(0, 80),
      });
    const syntax = /UNB.(UNO[A-Z])/s.exec(text)?.[1] ?? "UNOC";
    return new TextDecoder(CHARACTER_SETS[syntax] ?? "windows-1252", { fatal: true });
  }

  #advice(text: string): Separators {
    const [component = "", element = "", decimal = "", release = "", , terminator = ""] = text.slice(3);
    const marks = [component, element, terminator];
    if (terminator === "" || new Set(marks).size < 3 || /[A-Za-z0-9]/.test(marks.join("")))
      throw new FileError("the service string advice (UNA) declares no usable separators", {
        row: 1,
        column: "UNA",
        text,
        hint:
          "After UNA come the separators of components and elements, the decimal mark, the release " +
          "character, a blank and the end of a segment.",
      });
    return {
      component,
      element,
      decimal: decimal === "," ? "," : ".",
      release: release.trim(),
      terminator,
    };
  }

  #decode(bytes: Uint8Array, more: boolean): string {
    try {
      return this.#decoder?.decode(bytes, { stream: more }) ?? "";
    } catch (cause) {
      throw new FileError("the file holds bytes that are not of the character set that its UNB segment declares", {
        row: this.#row,
        cause,
      });
    }
  }

  *#drain(): Generator<readonly Segment[]> {
    let found: Segment[] = [];
    let from = 0;
    for (;;) {
      const end = this.#terminatorAfter(from);
      if (end === -1) break;
      const segment = this.#take(this.#text.slice(from, end));
      from = end + 1;
      if (segment !== undefined) found.push(segment);
      if (found.length < SEGMENTS_A_CHUNK) continue;
      yield found;
      found = [];
    }
    this.#text = this.#text.slice(from);
    if (found.length > 0) yield found;
  }

  /** Position of the next terminator without a release character before it; -1 when there is none yet. */
  #terminatorAfter(from: number): number {
    const { terminator, release } = this.separators;
    // The advice itself holds every separator.
    const start = this.#count === 0 && from === 0 ? this.#adviceEnd() : from;
    if (start === -1) return -1;
    for (let at = this.#text.indexOf(terminator, start); at !== -1; at = this.#text.indexOf(terminator, at + 1)) {
      let released = 0;
      while (release !== "" && this.#text[at - 1 - released] === release) released += 1;
      if (released % 2 === 0) return at;
    }
    return -1;
  }

  #adviceEnd(): number {
    const lead = /^[\s\ufeff]*/.exec(this.#text)?.[0].length ?? 0;
    if (!this.#text.startsWith("UNA", lead)) return lead;
    const end = lead + ADVICE_CHARACTERS - 1;
    return this.#text.length > end ? end : -1;
  }

  #take(raw: string): Segment | undefined {
    const lead = /^[\s\ufeff]*/.exec(raw)?.[0] ?? "";
    this.#row += lines(lead);
    const text = raw.slice(lead.length);
    const row = this.#row;
    this.#row += lines(text);
    if (this.separators.terminator === "\n") this.#row += 1;
    this.#count += 1;
    if (text === "") return undefined;
    if (text.startsWith("UNA") && this.#count === 1) return undefined;
    // Some systems break lines after a number of characters; where a line end ends the segment, it is not such a break.
    const joined = this.separators.terminator === "\n" ? text.replace(/\r$/, "") : text.replace(/[\r\n]+/g, "");
    const [first = [], ...elements] = this.#split(joined);
    const tag = (first[0] ?? "").trim();
    return { tag, elements, row, column: `${tag}, segment ${this.#count}`, text };
  }

  #split(text: string): string[][] {
    const { element, component: mark, release } = this.separators;
    if (release === "" || !text.includes(release)) return text.split(element).map((part) => part.split(mark));
    const elements: string[][] = [[]];
    let part = "";
    for (let at = 0; at < text.length; at += 1) {
      const sign = text[at] ?? "";
      if (sign === release) part += text[++at] ?? "";
      else if (sign === mark || sign === element) {
        elements.at(-1)?.push(part);
        part = "";
        if (sign === element) elements.push([]);
      } else part += sign;
    }
    elements.at(-1)?.push(part);
    return elements;
  }

  #endless(): FileError {
    return new FileError(`the segment that begins at line ${this.#row} has no end`, {
      row: this.#row,
      text: this.#text.slice(0, 80),
      hint: `Segments end with "${this.separators.terminator}"; does the file declare its separators by UNA?`,
    });
  }
}

/** The first chunk holds at least the service string advice and the syntax identifier, however the bytes arrive. */
async function* withHead(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let head: Uint8Array | undefined = new Uint8Array();
  for await (const chunk of bytes) {
    if (head === undefined) {
      yield chunk;
      continue;
    }
    head = Buffer.concat([head, chunk]);
    if (head.length < HEAD_BYTES) continue;
    yield head;
    head = undefined;
  }
  if (head !== undefined && head.length > 0) yield head;
}

function lines(text: string): number {
  return text.includes("\n") || text.includes("\r") ? text.split(/\r\n|\n|\r/).length - 1 : 0;
}

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

function withoutMark(bytes: Uint8Array): Uint8Array {
  return BYTE_ORDER_MARK.every((byte, at) => bytes[at] === byte) ? bytes.subarray(BYTE_ORDER_MARK.length) : bytes;
}
