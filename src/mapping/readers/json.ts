/** Items of JSON documents and of NDJSON files, streamed by the tokenizer of @streamparser/json. */

import type { JsonItem, JsonLimits, JsonOptions } from "./contract.ts";
import { type Input, utf8Chunks } from "./decode.ts";
import { type AssemblerLimits, type FoundItem, JsonAssembler, JsonFault } from "./json-assembler.ts";
import { parseSelector } from "./json-path.ts";
import { JsonTokenizer } from "./json-tokens.ts";
import { DEPTH_MAX, ITEM_BYTES_MAX } from "./limits.ts";
import { lineChunks } from "./lines.ts";
import type { RefuseRow } from "./refuse.ts";
import { UnreadableError } from "./row-error.ts";
import { stampPlace } from "./row-place.ts";

const VALID = "Is this the mapper for this kind of file, and the file JSON (RFC 8259)?";
const WHOLE = "Is the file complete? It may have been cut off, or read while it was being written.";

export async function* jsonItems(input: Input, options: JsonOptions): AsyncGenerator<JsonItem[]> {
  const paths = typeof options.path === "string" ? [options.path] : options.path;
  const selectors = paths.map(parseSelector);
  const limits = limitsOf(options);
  const assembler = new JsonAssembler(selectors, limits);
  const { tokenizer, lastToken } = connect(assembler);
  const lines = new LineFinder();
  let found = 0;
  const drain = (): JsonItem[] => {
    const items = assembler.items.map((item) => itemAt(item, lines.lineAt(item.offset)));
    assembler.items = [];
    found += items.length;
    return items;
  };
  for await (const chunk of utf8Chunks(input, options.encoding)) {
    lines.enter(chunk);
    try {
      tokenizer.write(chunk);
      if (lines.end - lastToken() > limits.itemBytesMax)
        throw new JsonFault(
          `a text or number is longer than ${limits.itemBytesMax} bytes`,
          lastToken(),
          "Is it a damaged or hostile file? A mapper for such texts raises `itemBytesMax`.",
        );
    } catch (thrown) {
      throw unreadable(thrown, lines);
    }
    const items = drain();
    if (items.length > 0) yield items;
    lines.leave();
  }
  finish(tokenizer, assembler, lines);
  const items = drain();
  if (items.length > 0) yield items;
  const missing = selectors.filter((selector) => !assembler.present.has(selector));
  if (found === 0 && missing.length === selectors.length)
    throw new UnreadableError(`the document has nothing at ${missing.map(({ path }) => path).join(" or ")}`, {
      hint: "Is this the mapper for this kind of file? The path of its items may have changed.",
    });
}

function finish(tokenizer: JsonTokenizer, assembler: JsonAssembler, lines: LineFinder): void {
  try {
    // Only the end of the document completes a number at its very end.
    tokenizer.end();
  } catch (cause) {
    throw new UnreadableError(`the document ends within ${assembler.openPath}`, {
      row: lines.line,
      hint: WHOLE,
      cause,
    });
  }
  if (!assembler.isComplete)
    throw new UnreadableError(
      lines.end === 0 ? "the file is empty, which is not JSON" : `the document ends within ${assembler.openPath}`,
      { row: lines.line, hint: WHOLE },
    );
}

/** One document per line; a line that is not JSON is refused, and reading continues with the next line. */
export async function* ndjsonItems(input: Input, options: JsonLimits, refuse: RefuseRow): AsyncGenerator<JsonItem[]> {
  const limits = limitsOf(options);
  const root = [parseSelector("$")];
  let assembler = new JsonAssembler(root, limits);
  let { tokenizer } = connect(assembler);
  for await (const lines of lineChunks(input, {
    encoding: options.encoding,
    lineCharactersMax: limits.itemBytesMax,
  })) {
    const items: JsonItem[] = [];
    for (const { row, text } of lines) {
      if (text.trim() === "") continue;
      try {
        // The line end completes a number.
        tokenizer.write(`${text}\n`);
        if (!assembler.isComplete) throw new JsonFault(`it ends within ${assembler.openPath}`, 0);
        for (const item of assembler.items) items.push(itemAt(item, row));
        assembler.reset();
      } catch (thrown) {
        const at = {};
        stampPlace(at, row);
        const { message, hint } = faultOf(thrown);
        refuse(at, { message: `the line is not valid JSON: ${message}`, text, hint });
        assembler = new JsonAssembler(root, limits);
        tokenizer = connect(assembler).tokenizer;
      }
    }
    if (items.length > 0) yield items;
  }
}

function limitsOf({ itemBytesMax, depthMax }: JsonLimits): AssemblerLimits {
  return { itemBytesMax: itemBytesMax ?? ITEM_BYTES_MAX, depthMax: depthMax ?? DEPTH_MAX };
}

function connect(assembler: JsonAssembler): { tokenizer: JsonTokenizer; lastToken: () => number } {
  const tokenizer = new JsonTokenizer();
  let last = 0;
  tokenizer.onToken = (token) => {
    last = token.offset;
    assembler.take(token);
  };
  return { tokenizer, lastToken: () => last };
}

function itemAt({ value, path }: FoundItem, row: number): JsonItem {
  const item = { value, path, row };
  stampPlace(item, row);
  return item;
}

/** Finds the lines of byte offsets, which callers must pass in ascending order. */
class LineFinder {
  /** Line of the offset that was requested last. */
  line = 1;
  /** Bytes up to the end of the chunk. */
  end = 0;
  #chunk: Buffer = Buffer.alloc(0);
  #at = 0;

  enter(chunk: Buffer): void {
    this.#chunk = chunk;
    this.#at = 0;
    this.end += chunk.length;
  }

  lineAt(offset: number): number {
    const until = Math.min(offset - (this.end - this.#chunk.length), this.#chunk.length);
    for (let next = this.#chunk.indexOf(10, this.#at); next !== -1 && next < until; ) {
      this.line += 1;
      this.#at = next + 1;
      next = this.#chunk.indexOf(10, this.#at);
    }
    return this.line;
  }

  leave(): void {
    this.lineAt(this.end);
  }
}

interface Fault {
  readonly message: string;
  readonly hint?: string | undefined;
  readonly offset?: number | undefined;
}

function faultOf(thrown: unknown): Fault {
  if (thrown instanceof JsonFault) return thrown;
  if (!(thrown instanceof Error)) throw thrown;
  // The tokenizer reports the place of a fault only in its message.
  const [, sign, offset] =
    /^Unexpected "(.*?)" at chunk position.*absolute position "(\d+)"/s.exec(thrown.message) ?? [];
  if (offset === undefined) throw thrown;
  return { message: `${JSON.stringify(sign)} is not expected here`, offset: Number(offset) };
}

function unreadable(thrown: unknown, lines: LineFinder): UnreadableError {
  const { message, hint, offset } = faultOf(thrown);
  const row = offset === undefined ? lines.line : lines.lineAt(offset);
  return new UnreadableError(`line ${row} is not valid JSON: ${message}`, {
    row,
    cause: thrown,
    hint: hint ?? VALID,
  });
}
