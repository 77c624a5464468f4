/**
 * Streams elements of XML documents (XML 1.0 with namespaces) with saxes. Nothing outside the file is read,
 * and no entity of the document is expanded.
 */
import { SaxesParser, type SaxesTagNS } from "saxes";
import type { XmlElement, XmlOptions } from "./contract.ts";
import { type Input, utf8Chunks } from "./decode.ts";
import { fileHead } from "./file-head.ts";
import { DEPTH_MAX, ELEMENT_CHARACTERS_MAX, ELEMENT_NODES_MAX } from "./limits.ts";
import { UnreadableError } from "./row-error.ts";
import { stampPlace } from "./row-place.ts";

const NO_CHILDREN: readonly XmlElement[] = Object.freeze([]);
const NO_ATTRIBUTES: Readonly<Record<string, string>> = Object.freeze(Object.create(null) as Record<string, string>);

/** Bytes within which the XML declaration must be. */
const DECLARATION_BYTES = 1024;

export async function* xmlElements(input: Input, options: XmlOptions): AsyncGenerator<XmlElement[]> {
  const reader = new XmlReader(options);
  const encoding = await xmlEncoding(input, options.encoding);
  for await (const chunk of utf8Chunks(input, encoding)) {
    reader.write(chunk.toString("utf8"));
    const found = reader.drain();
    if (found.length > 0) yield found;
  }
  reader.end();
  const found = reader.drain();
  if (found.length > 0) yield found;
}

/** Follows the document, and builds the selected elements. */
class XmlReader {
  readonly #parser = new SaxesParser({ xmlns: true });
  readonly #wanted: ReadonlySet<string>;
  readonly #charactersMax: number;
  readonly #depthMax: number;
  /** Names of the open elements from the root. */
  readonly #open: string[] = [];
  /** Open elements of the element that is being built, from its root; empty outside. */
  readonly #held: ReadElement[] = [];
  #found: ReadElement[] = [];
  #nodes = 0;
  #row = 1;
  /** Characters written to the parser. */
  #written = 0;
  #heldFrom = 0;
  /** Where the last tag or text ended, to detect one that does not end. */
  #eventAt = 0;
  #fault: UnreadableError | undefined;

  constructor({ elements, elementCharactersMax, depthMax }: XmlOptions) {
    this.#wanted = new Set(typeof elements === "string" ? [elements] : elements);
    this.#charactersMax = elementCharactersMax ?? ELEMENT_CHARACTERS_MAX;
    this.#depthMax = depthMax ?? DEPTH_MAX;
    const parser = this.#parser;
    const passed = () => {
      this.#eventAt = parser.position;
    };
    parser.on("error", (fault) => this.#fail(wordsOfParser(fault)));
    parser.on("doctype", (text) => this.#checkDoctype(text));
    parser.on("opentagstart", () => {
      this.#row = parser.line;
    });
    parser.on("attribute", () => this.#count());
    parser.on("opentag", (tag) => {
      passed();
      this.#enter(tag);
    });
    parser.on("closetag", () => {
      passed();
      this.#leave();
    });
    const addText = (text: string) => {
      passed();
      const element = this.#held.at(-1);
      if (element !== undefined) element.text += text;
    };
    parser.on("text", addText);
    parser.on("cdata", addText);
    parser.on("comment", passed);
    parser.on("processinginstruction", passed);
  }

  write(text: string): void {
    const [begin] = this.#written === 0 ? (/\S/.exec(text) ?? []) : [];
    if (begin !== undefined && begin !== "<")
      throw new UnreadableError("the file does not begin with <, so it is not XML", {
        row: 1,
        text: text.slice(0, 80),
      });
    this.#parser.write(text);
    this.#throwFault();
    this.#written += text.length;
    if (this.#written - this.#eventAt > this.#charactersMax)
      this.#fail(`a tag or text is longer than ${this.#charactersMax} characters`, LARGE);
    const [root] = this.#held;
    if (root !== undefined && this.#written - this.#heldFrom > this.#charactersMax)
      this.#fail(`the element ${root.name} is larger than ${this.#charactersMax} characters`, LARGE, root.row);
    this.#throwFault();
  }

  end(): void {
    this.#parser.close();
    this.#throwFault();
  }

  drain(): ReadElement[] {
    const found = this.#found;
    this.#found = [];
    return found;
  }

  #enter(tag: SaxesTagNS): void {
    if (this.#open.length >= this.#depthMax)
      this.#fail(
        `it is nested deeper than ${this.#depthMax} levels`,
        "No export of measurement data is that deep: is it a damaged or hostile file? A mapper may raise `depthMax`.",
      );
    const isHeld = this.#held.length > 0 || this.#wanted.has(tag.local);
    if (isHeld && this.#fault === undefined) {
      if (this.#held.length === 0) {
        this.#heldFrom = this.#parser.position;
        this.#nodes = 0;
      }
      this.#count();
      const element = new ReadElement(tag.local, tag.uri, this.#row);
      const attributes = attributesOf(tag);
      if (attributes !== undefined) element.attributes = attributes;
      const parent = this.#held.at(-1);
      if (parent === undefined) element.ancestors = [...this.#open];
      else parent.append(element);
      this.#held.push(element);
    }
    this.#open.push(tag.local);
  }

  #leave(): void {
    this.#open.pop();
    const element = this.#held.pop();
    if (element === undefined) return;
    element.text = element.text.trim();
    if (this.#held.length === 0) this.#found.push(element);
  }

  /** Small elements and attributes take more memory than their characters. */
  #count(): void {
    this.#nodes += 1;
    if (this.#nodes > ELEMENT_NODES_MAX && (this.#held.length > 0 || this.#nodes > 2 * ELEMENT_NODES_MAX))
      this.#fail(`an element holds more than ${ELEMENT_NODES_MAX} elements and attributes`, LARGE);
  }

  #checkDoctype(text: string): void {
    this.#eventAt = this.#parser.position;
    if (/<!ENTITY/i.test(text))
      this.#fail(
        "the document declares entities of its own (DOCTYPE), which are not expanded",
        "Remove the DOCTYPE; such declarations can make a small file endlessly large.",
      );
  }

  /** The first fault counts; the parser continues to the end of the chunk. */
  #fail(message: string, hint = "Is the file complete, and well-formed XML?", row = this.#parser.line): void {
    this.#fault ??= new UnreadableError(`line ${row} is not readable XML: ${message}`, { row, hint });
  }

  #throwFault(): void {
    if (this.#fault !== undefined) throw this.#fault;
  }
}

const LARGE =
  "A mapper for such files selects smaller elements, or raises `elementCharactersMax`; " +
  "an element of measurement data is rarely that large.";

function attributesOf({ attributes }: SaxesTagNS): Record<string, string> | undefined {
  let own: Record<string, string> | undefined;
  for (const { name, prefix, value } of Object.values(attributes)) {
    if (prefix === "xmlns" || name === "xmlns") continue;
    own ??= Object.create(null) as Record<string, string>;
    own[name] = value;
  }
  return own;
}

/** Message of the parser without its line and column and its final full stop. */
function wordsOfParser({ message }: Error): string {
  return message.replace(/^\d+:\d+: /, "").replace(/\.$/, "");
}

// The encoding of an XML document without a byte order mark (XML 1.0, appendix F).

/**
 * Returns the encoding that the mapper declares, otherwise that of the document. A byte order mark overrides
 * both; the decoder handles it.
 */
async function xmlEncoding(input: Input, declared?: string): Promise<string> {
  if (declared !== undefined) return declared;
  const head = input.small?.subarray(0, DECLARATION_BYTES) ?? (await fileHead(input.path, DECLARATION_BYTES));
  if (head.length >= 4 && head.readUInt32BE(0) === 0x003c003f) return "utf-16be";
  if (head.length >= 4 && head.readUInt32BE(0) === 0x3c003f00) return "utf-16le";
  const [, named] =
    /^(?:\ufeff|\xef\xbb\xbf)?<\?xml\s[^>]*?encoding\s*=\s*["']([A-Za-z][\w.:-]*)["']/.exec(head.toString("latin1")) ??
    [];
  // A declaration that is readable as bytes is not UTF-16: some programs name their encoding in memory, and
  // not that of the file.
  return named === undefined || /^(?:utf-?16|ucs-?[24]|utf-?32)/i.test(named) ? "utf-8" : named;
}

/** An element that is returned, or a part of one. */
class ReadElement implements XmlElement {
  readonly name: string;
  readonly namespace: string;
  readonly row: number;
  attributes: Readonly<Record<string, string>> = NO_ATTRIBUTES;
  text = "";
  ancestors: readonly string[] | undefined;
  #children: ReadElement[] | undefined;

  constructor(name: string, namespace: string, row: number) {
    this.name = name;
    this.namespace = namespace;
    this.row = row;
    stampPlace(this, row);
  }

  get children(): readonly XmlElement[] {
    return this.#children ?? NO_CHILDREN;
  }

  append(child: ReadElement): void {
    this.#children ??= [];
    this.#children.push(child);
  }

  child(name: string): XmlElement | undefined {
    return this.children.find((child) => child.name === name);
  }

  all(name: string): readonly XmlElement[] {
    return this.children.filter((child) => child.name === name);
  }

  textOf(name: string): string | undefined {
    return this.child(name)?.text;
  }
}
