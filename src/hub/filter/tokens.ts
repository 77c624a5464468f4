/** Tokens of a filter expression, each with its position. */
import { invalidField } from "../http/problems.ts";

type TokenKind = "word" | "quoted" | "text" | "number" | "sign" | "end";

export interface Token {
  readonly kind: TokenKind;
  /** Without its quotes. */
  readonly text: string;
  /** Position of the first character, from 1. */
  readonly at: number;
}

const LENGTH_MAX = 8_000;
const BLANK = /\s+/y;
const NUMBER = /[+-]?\d+(?:\.\d+)?(?![\p{L}\p{N}_])/uy;
const SIGN = /<>|!=|!~|>=|<=|==|&&|\|\||[=<>().!~]/y;
const WORD = /[\p{L}_][\p{L}\p{N}_-]*/uy;

/**
 * Each is a level of a form field where a field is expected, and a value where one is expected. A quote inside is
 * doubled.
 */
const QUOTES = { "'": "text", '"': "quoted" } as const;

/** Why an expression cannot be read, the position, and the expected syntax. */
export function filterFault(parameter: string, at: number, message: string): Error {
  return invalidField(parameter, `at position ${at}: ${message}`);
}

export function tokensOf(parameter: string, expression: string): Token[] {
  if (expression.length > LENGTH_MAX)
    throw filterFault(parameter, LENGTH_MAX, `the expression is longer than ${LENGTH_MAX} characters`);
  const tokens: Token[] = [];
  let at = 0;
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(expression)?.[0];
  };
  while (at < expression.length) {
    const blank = take(BLANK);
    if (blank !== undefined) {
      at += blank.length;
      continue;
    }
    const mark = expression[at];
    if (mark === "'" || mark === '"') {
      const { text, end } = quoted(parameter, expression, at, mark);
      tokens.push({ kind: QUOTES[mark], text, at: at + 1 });
      at = end;
      continue;
    }
    const number = take(NUMBER);
    const sign = number === undefined ? take(SIGN) : undefined;
    const found = number ?? sign ?? take(WORD);
    if (found === undefined) throw filterFault(parameter, at + 1, `${mark} is not expected here`);
    const kind = number !== undefined ? "number" : sign !== undefined ? "sign" : "word";
    tokens.push({ kind, text: found, at: at + 1 });
    at += found.length;
  }
  tokens.push({ kind: "end", text: "", at: expression.length + 1 });
  return tokens;
}

function quoted(parameter: string, expression: string, from: number, mark: string): { text: string; end: number } {
  let text = "";
  for (let at = from + 1; at < expression.length; at += 1) {
    if (expression[at] !== mark) text += expression[at];
    else if (expression[at + 1] === mark) {
      text += mark;
      at += 1;
    } else return { text, end: at + 1 };
  }
  throw filterFault(parameter, from + 1, `the quote ${mark} is not closed`);
}
