/** Where a text stops being JSON, and what belongs there, in words: those of `JSON.parse` are its engine's own. */

interface JsonFault {
  /** Position in the text. */
  readonly at: number;
  readonly words: string;
}

const BLANKS = /[ \t\n\r]*/y;
const SCALAR = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
/** A word or a character that is not expected. */
const WORD = /[\p{L}\p{N}_.+-]{1,20}|./suy;

type Expected = "value" | "value or ]" | "name" | "name or }" | "colon" | "next" | "end";

/** Null: the text is JSON. Not recursive. */
export function jsonFault(text: string): JsonFault | null {
  const open: ("[" | "{")[] = [];
  let expected: Expected = "value";
  const afterValue = (): Expected => (open.length === 0 ? "end" : "next");
  for (let at = endOf(BLANKS, text, 0); ; at = endOf(BLANKS, text, at)) {
    const character = text[at];
    if (character === undefined) return expected === "end" ? null : { at, words: "it ends too early" };
    const close = open.at(-1) === "[" ? "]" : "}";
    const mayClose = expected === "next" || expected === `value or ${close}` || expected === `name or ${close}`;
    if (mayClose && character === close) {
      open.pop();
      expected = afterValue();
      at += 1;
    } else if (expected === "next" && character === ",") {
      expected = close === "]" ? "value" : "name";
      at += 1;
    } else if (expected === "colon" && character === ":") {
      expected = "value";
      at += 1;
    } else if (character === '"' && expected !== "next" && expected !== "colon" && expected !== "end") {
      const end = endOfText(text, at);
      if (typeof end !== "number") return end;
      expected = expected.startsWith("name") ? "colon" : afterValue();
      at = end;
    } else if (expected.startsWith("value") && (character === "[" || character === "{")) {
      open.push(character);
      expected = character === "[" ? "value or ]" : "name or }";
      at += 1;
    } else {
      const end = expected.startsWith("value") ? endOf(SCALAR, text, at) : at;
      if (end === at) return { at, words: `${wanted(expected, close)} must stand there, and not ${wordAt(text, at)}` };
      expected = afterValue();
      at = end;
    }
  }
}

/** `line 2, column 7: …`, for a text that is no JSON. */
export function jsonFaultWords(text: string): string {
  const fault = jsonFault(text);
  if (fault === null) return "it cannot be read";
  const before = text.slice(0, fault.at).split("\n");
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}: ${fault.words}`;
}

function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}

function endOfText(text: string, quote: number): number | JsonFault {
  let at = quote + 1;
  while (at < text.length && text[at] !== '"') {
    if ((text[at] ?? "") < " ") return { at, words: "a control character, such as a line break, must be escaped" };
    const end = text[at] === "\\" ? endOf(ESCAPE, text, at) : at + 1;
    if (end === at) return { at, words: "a backslash must begin an escape, such as \\n or \\\\" };
    at = end;
  }
  return at < text.length ? at + 1 : { at, words: "it ends within a text: the closing quote is missing" };
}

function wanted(expected: Expected, close: string): string {
  if (expected === "next") return `a comma or ${close}`;
  if (expected === "colon") return "a colon";
  if (expected === "end") return "nothing more";
  return expected.startsWith("name") ? 'a name in double quotes ("…")' : "a value";
}

function wordAt(text: string, at: number): string {
  WORD.lastIndex = at;
  return WORD.exec(text)?.[0] ?? "";
}
