/**
 * The first of two walls before math.js: only these characters and words reach its parser, so that nothing of its
 * language but arithmetic, comparisons and calls by name is ever read. The second one is `syntax.ts`.
 */
import { UnreadableExpression } from "./faults.ts";

export interface Token {
  readonly kind: "name" | "number" | "text" | "operator" | "open" | "close" | "comma";
  readonly text: string;
  /** From 1. */
  readonly column: number;
}

/** Limit on the characters of an expression. */
const LENGTH_MAX = 4_000;
/** Limit on parentheses within parentheses. */
const PARENTHESES_MAX = 50;

/** Letters as math.js takes them in names: Latin, Greek, Cyrillic and the scripts below U+1FFF among them. */
const NAME = /[a-zA-Z_$\u00C0-\u02AF\u0370-\u1FFF][a-zA-Z0-9_$\u00C0-\u02AF\u0370-\u1FFF]*/y;
const NUMBER = /(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?/y;
const TEXT = /"[^"\\\n]*"|'[^'\\\n]*'/y;
const OPERATOR = /<=|>=|==|!=|\?\?|[+\-*/^<>?:]/y;

const WORD_OPERATORS = new Set(["and", "or", "not"]);
/** Words of math.js that are neither names nor of this language, with what is written in their place. */
const OTHER_WORDS = new Map([
  ["mod", "modulo(a, b)"],
  ["xor", "a != b"],
  ["to", 'convert(a, "kWh")'],
  ["in", 'convert(a, "kWh")'],
  ["undefined", "null"],
  ["NaN", "null"],
  ["Infinity", "null"],
]);
const VALUES = new Set(["true", "false", "null"]);

/** Signs of other languages, with what is written in their place. */
const OTHER_SIGNS: readonly (readonly [sign: string, hint: string])[] = [
  ["&&", '"and" joins conditions'],
  ["||", '"or" joins conditions'],
  ["&", '"and" joins conditions'],
  ["|", '"or" joins conditions'],
  ["===", '"==" compares'],
  ["=", '"==" compares; nothing can be assigned'],
  ["!", '"not" negates a condition'],
  ["%", "modulo(a, b) is the remainder; a percentage is divided by 100"],
  [";", "an expression is one formula; a comma separates arguments"],
  [".", "there are no properties; a number begins with a digit"],
  ["[", "there are no lists"],
  ["{", "there are no objects"],
  ['"', "a text ends on its line, with the sign that it began with, and has no backslash"],
  ["'", "a text ends on its line, with the sign that it began with, and has no backslash"],
];

export interface Words {
  /** The expression for math.js: without comments and line ends, each character in its place. */
  readonly text: string;
  readonly tokens: readonly Token[];
}

/** Throws for what is not of the language. A leading `=` is left out. */
export function tokensOf(formula: string): Words {
  if (formula.length > LENGTH_MAX)
    throw new UnreadableExpression(`the expression has more than ${LENGTH_MAX} characters`, LENGTH_MAX + 1);
  const text = formula.replace(/^\s*=/, (found) => " ".repeat(found.length));
  const plain = blanked(text);
  const tokens: Token[] = [];
  for (let at = nextOf(plain, 0); at < plain.length; at = nextOf(plain, at)) {
    const token = tokenAt(plain, at);
    tokens.push(token);
    at += token.text.length;
  }
  if (tokens.length === 0) throw new UnreadableExpression("the expression is empty", 1);
  checkNeighbours(tokens);
  return { text: plain, tokens };
}

/** Comments and line ends become spaces. */
function blanked(text: string): string {
  return text
    .replace(/"[^"\n]*"|'[^'\n]*'|#[^\n]*/g, (found) => (found.startsWith("#") ? " ".repeat(found.length) : found))
    .replace(/\s/g, " ");
}

function nextOf(text: string, from: number): number {
  let at = from;
  while (text[at] === " ") at += 1;
  return at;
}

function tokenAt(text: string, at: number): Token {
  const column = at + 1;
  const found = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0];
  };
  const quoted = found(TEXT);
  if (quoted !== undefined) return { kind: "text", text: quoted, column };
  const number = found(NUMBER);
  if (number !== undefined) return { kind: "number", text: number, column };
  const name = found(NAME);
  if (name !== undefined) return wordAt(name, column);
  const operator = text.startsWith("===", at) ? undefined : found(OPERATOR);
  if (operator !== undefined) return { kind: "operator", text: operator, column };
  const sign = text[at] ?? "";
  if (sign === "(") return { kind: "open", text: sign, column };
  if (sign === ")") return { kind: "close", text: sign, column };
  if (sign === ",") return { kind: "comma", text: sign, column };
  const hint = OTHER_SIGNS.find(([other]) => text.startsWith(other, at));
  const shown = hint?.[0] ?? String.fromCodePoint(text.codePointAt(at) ?? 0);
  throw new UnreadableExpression(`"${shown}" is not of the language${hint ? `: ${hint[1]}` : ""}`, column);
}

function wordAt(name: string, column: number): Token {
  const instead = OTHER_WORDS.get(name);
  if (instead !== undefined)
    throw new UnreadableExpression(`"${name}" is not of the language; write ${instead}`, column);
  return { kind: WORD_OPERATORS.has(name) ? "operator" : "name", text: name, column };
}

const ENDS_OPERAND = new Set<Token["kind"]>(["name", "number", "text", "close"]);
const BEGINS_OPERAND = new Set<Token["kind"]>(["name", "number", "text", "open"]);

/** math.js multiplies what stands side by side; here an operator is missing. Also limits nesting. */
function checkNeighbours(tokens: readonly Token[]): void {
  let depth = 0;
  for (const [index, token] of tokens.entries()) {
    const before = tokens[index - 1];
    if (token.kind === "open") depth += 1;
    if (token.kind === "close") depth -= 1;
    if (depth > PARENTHESES_MAX)
      throw new UnreadableExpression(`parentheses are nested more than ${PARENTHESES_MAX} deep`, token.column);
    if (before === undefined || !ENDS_OPERAND.has(before.kind) || !BEGINS_OPERAND.has(token.kind)) continue;
    const isCall = before.kind === "name" && token.kind === "open" && !VALUES.has(before.text);
    if (!isCall)
      throw new UnreadableExpression(
        `an operator or a comma is missing between "${before.text}" and "${token.text}"`,
        token.column,
      );
  }
}
