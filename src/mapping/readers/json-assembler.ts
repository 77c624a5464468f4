/**
 * Builds only the selected items of a JSON document (RFC 8259) from its tokens. Each token moves the document
 * to one of these states: a value is due (at the start, after a colon or a comma, or as the first of an
 * array, where the array may end instead), a key is due (or the end of the object), a colon is due, a comma
 * or the end of the container is due, or the document is complete.
 */
import { type ParsedTokenInfo, TokenType } from "./json-tokens.ts";
import { ITEM_VALUES_MAX, KEYS_MAX } from "./limits.ts";

const SEGMENT = /\.\*|\[\*\]|\.([^.[\]*"'\s]+)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|\['([^']*)'\]/y;

/** A fault of a document, with its place. */
export class JsonFault extends Error {
  /** Byte from the start. */
  readonly offset: number;
  readonly hint: string | undefined;

  constructor(message: string, offset: number, hint?: string) {
    super(message);
    this.offset = offset;
    this.hint = hint;
  }
}

type Due = "value" | "firstValue" | "key" | "firstKey" | "colon" | "comma" | "nothing";

/** An array or object that is open. */
interface Frame {
  readonly isArray: boolean;
  key: string | number;
  /** Keys so far; null for an array. */
  readonly keys: Set<string> | null;
  /** Selectors whose path leads here or deeper; none within an item. */
  readonly alive: readonly Selector[];
  /** The value that is being built; undefined outside items. */
  readonly held: unknown[] | Record<string, unknown> | undefined;
}

export interface FoundItem {
  readonly value: unknown;
  readonly path: string;
  /** Byte at which it begins. */
  readonly offset: number;
}

export interface AssemblerLimits {
  readonly itemBytesMax: number;
  readonly depthMax: number;
}

interface OpenItem {
  readonly depth: number;
  readonly offset: number;
  readonly path: string;
  values: number;
}

export class JsonAssembler {
  items: FoundItem[] = [];
  /** Selectors whose path exists in the document, even if no items are there. */
  readonly present = new Set<Selector>();
  readonly #selectors: readonly Selector[];
  readonly #limits: AssemblerLimits;
  readonly #frames: Frame[] = [];
  #due: Due = "value";
  #item: OpenItem | undefined;

  constructor(selectors: readonly Selector[], limits: AssemblerLimits) {
    this.#selectors = selectors;
    this.#limits = limits;
  }

  get isComplete(): boolean {
    return this.#due === "nothing";
  }

  /** Path of the innermost open container, for a document that ends too early. */
  get openPath(): string {
    return writePath(this.#frames.map(({ key }) => key));
  }

  /** Prepares for the next document. */
  reset(): void {
    this.items = [];
    this.#due = "value";
  }

  take({ token, value, offset }: ParsedTokenInfo): void {
    if (this.#item !== undefined && offset - this.#item.offset > this.#limits.itemBytesMax)
      throw this.#tooLarge(this.#item);
    const frame = this.#frames.at(-1);
    const due = this.#due;
    if (token === TokenType.STRING && !String(value).isWellFormed())
      throw new JsonFault("half of a surrogate pair stands alone in a text", offset);
    if (value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY)
      throw new JsonFault("a number is beyond what can be read, which is about 1.8e308", offset);
    if (due === "value" || due === "firstValue") {
      if (token >= TokenType.TRUE) this.#scalar(frame, value, offset);
      else if (token === TokenType.LEFT_BRACE || token === TokenType.LEFT_BRACKET)
        this.#open(frame, token === TokenType.LEFT_BRACKET, offset);
      else if (due === "firstValue" && token === TokenType.RIGHT_BRACKET) this.#close();
      else throw this.#unexpected(value, offset);
    } else if (frame === undefined) throw this.#unexpected(value, offset);
    else if (token === TokenType.STRING && (due === "key" || due === "firstKey"))
      this.#enterKey(frame, String(value), offset);
    else if (token === TokenType.COLON && due === "colon") this.#due = "value";
    else if (token === TokenType.COMMA && due === "comma") this.#next(frame);
    else if (token === (frame.isArray ? TokenType.RIGHT_BRACKET : TokenType.RIGHT_BRACE) && isEndDue(due))
      this.#close();
    else throw this.#unexpected(value, offset);
  }

  #open(frame: Frame | undefined, isArray: boolean, offset: number): void {
    if (this.#frames.length >= this.#limits.depthMax)
      throw new JsonFault(
        `it is nested deeper than ${this.#limits.depthMax} levels`,
        offset,
        "No export of measurement data is that deep: is it a damaged or hostile file? A mapper may raise `depthMax`.",
      );
    const alive = this.#aliveAt(frame);
    this.#begin(alive, offset, true);
    const held = this.#item === undefined ? undefined : isArray ? [] : {};
    if (held !== undefined) this.#put(frame, held, offset);
    this.#frames.push({
      isArray,
      key: isArray ? 0 : "",
      keys: isArray ? null : new Set(),
      alive: this.#item === undefined ? alive : [],
      held,
    });
    this.#due = isArray ? "firstValue" : "firstKey";
  }

  #scalar(frame: Frame | undefined, value: unknown, offset: number): void {
    this.#begin(this.#aliveAt(frame), offset, false);
    if (this.#item !== undefined) this.#put(frame, value, offset);
    this.#ended(value);
  }

  /** Begins an item if a selector ends at this value. */
  #begin(alive: readonly Selector[], offset: number, isContainer: boolean): void {
    if (alive.length === 0) return;
    const depth = this.#frames.length;
    for (const selector of alive) {
      const { segments } = selector;
      if (segments.length === depth || (isContainer && isWildFrom(segments, depth))) this.present.add(selector);
      if (segments.length === depth && this.#item === undefined)
        this.#item = { depth, offset, path: this.openPath, values: 0 };
    }
  }

  #aliveAt(frame: Frame | undefined): readonly Selector[] {
    if (frame === undefined) return this.#selectors;
    if (frame.alive.length === 0) return frame.alive;
    const nth = this.#frames.length - 1;
    const key = String(frame.key);
    return frame.alive.filter(
      ({ segments }) => nth < segments.length && (segments[nth] === null || segments[nth] === key),
    );
  }

  #put(frame: Frame | undefined, value: unknown, offset: number): void {
    if (this.#item === undefined) return;
    this.#item.values += 1;
    if (this.#item.values > ITEM_VALUES_MAX)
      throw new JsonFault(`${this.#item.path} holds more than ${ITEM_VALUES_MAX} values`, offset, SMALLER);
    const held = frame?.held;
    if (held === undefined || frame === undefined) return;
    if (Array.isArray(held)) held.push(value);
    else if (frame.key === "__proto__")
      Object.defineProperty(held, frame.key, { value, writable: true, enumerable: true, configurable: true });
    else held[frame.key] = value;
  }

  #close(): void {
    this.#ended(this.#frames.pop()?.held);
  }

  #ended(value: unknown): void {
    if (this.#item?.depth === this.#frames.length) {
      this.items.push({ value, path: this.#item.path, offset: this.#item.offset });
      this.#item = undefined;
    }
    this.#due = this.#frames.length === 0 ? "nothing" : "comma";
  }

  #next(frame: Frame): void {
    if (frame.isArray) {
      frame.key = Number(frame.key) + 1;
      this.#due = "value";
    } else this.#due = "key";
  }

  #enterKey(frame: Frame, key: string, offset: number): void {
    if (frame.keys?.has(key))
      throw new JsonFault(
        `the key "${key}" occurs twice in one object`,
        offset,
        "It is unknown which of the two counts: the program that wrote the file must use different keys.",
      );
    if ((frame.keys?.size ?? 0) >= KEYS_MAX)
      throw new JsonFault(`an object has more than ${KEYS_MAX} keys`, offset, "Split the file.");
    frame.keys?.add(key);
    frame.key = key;
    this.#due = "colon";
  }

  #tooLarge({ path, offset }: OpenItem): JsonFault {
    return new JsonFault(`${path} is larger than ${this.#limits.itemBytesMax} bytes`, offset, SMALLER);
  }

  #unexpected(value: unknown, offset: number): JsonFault {
    const text = JSON.stringify(String(value).slice(0, 40));
    return new JsonFault(`${text} is not expected here: ${DUE[this.#due]}`, offset);
  }
}

const SMALLER = "A mapper for such files selects smaller items, by a longer path, or raises `itemBytesMax`.";

const DUE: Readonly<Record<Due, string>> = {
  value: "a value is due",
  firstValue: "a value or the end of the array is due",
  key: "a key is due",
  firstKey: "a key or the end of the object is due",
  colon: "a colon is due",
  comma: "a comma or the end of the array or object is due",
  nothing: "the document is complete",
};

function isEndDue(due: Due): boolean {
  return due === "comma" || due === "firstKey";
}

/** Whether the selector matches every value of this container. */
function isWildFrom(segments: readonly (string | null)[], depth: number): boolean {
  return segments.indexOf(null) === depth;
}

// Paths into JSON documents: the subset of JSONPath (RFC 9535) of names, indexes and wildcards.

interface Selector {
  readonly path: string;
  /** Names and indexes as text; null for a wildcard. */
  readonly segments: readonly (string | null)[];
}

/** Throws a `TypeError` for an invalid path, which is a fault of the mapper, not of the file. */
export function parseSelector(path: string): Selector {
  const segments: (string | null)[] = [];
  let at = 1;
  while (path.startsWith("$") && at < path.length) {
    SEGMENT.lastIndex = at;
    const match = SEGMENT.exec(path);
    if (match === null) break;
    const [, name, index, quoted, single] = match;
    segments.push(name ?? index ?? single ?? (quoted === undefined ? null : (JSON.parse(`"${quoted}"`) as string)));
    at = SEGMENT.lastIndex;
  }
  if (!path.startsWith("$") || at < path.length)
    throw new TypeError(
      `"${path}" is no path of items: paths begin at the root $, ` +
        `as in $.data.* or $.meters[*].readings[*] or $["a.b"].*`,
    );
  return { path, segments };
}

/** Writes a path in the syntax of the selectors. */
function writePath(keys: readonly (string | number)[]): string {
  let path = "$";
  for (const key of keys)
    path += typeof key === "number" ? `[${key}]` : /^[^.[\]*"'\s]+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
  return path;
}
