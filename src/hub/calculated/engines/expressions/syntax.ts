/**
 * The second of two walls: the tree of math.js becomes terms, by a list of the nodes and operators that there are. The
 * parser of math.js is all that is used of it; it evaluates nothing.
 */

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

const ENDS_OPERAND = new Set<Token["kind"]>(["name", "number", "text", "close"]);
const BEGINS_OPERAND = new Set<Token["kind"]>(["name", "number", "text", "open"]);

/** Limit on terms within terms; `a + b + c` has two levels. */
const DEPTH_MAX = 500;

/** Nodes of math.js, as far as they are read; which fields there are follows from the type. */
interface TreeNode {
  readonly type: string;
  readonly name?: string;
  readonly value?: unknown;
  readonly op?: string;
  readonly args?: readonly TreeNode[];
  readonly params?: readonly TreeNode[];
  readonly content?: TreeNode;
  readonly condition?: TreeNode;
  readonly trueExpr?: TreeNode;
  readonly falseExpr?: TreeNode;
  readonly fn?: TreeNode | string;
}

/** math.js takes some 60 MB: only a hub that has an expression loads it. */
let loaded: Promise<(text: string) => TreeNode> | null = null;

async function parser(): Promise<(text: string) => TreeNode> {
  loaded ??= import("mathjs/number").then(({ parse }) => parse);
  return await loaded;
}

/** Throws UnreadableExpression. */
export async function parseExpression(formula: string): Promise<Term> {
  const { text, tokens } = tokensOf(formula);
  const parse = await parser();
  try {
    return new Translation(tokens).termOf(parse(text), 0);
  } catch (thrown) {
    if (thrown instanceof RangeError) throw new UnreadableExpression("the expression is nested too deeply", 1);
    const column: unknown = thrown instanceof SyntaxError ? Reflect.get(thrown, "char") : undefined;
    if (!(thrown instanceof SyntaxError) || typeof column !== "number") throw thrown;
    const words = thrown.message.replace(/ \(char \d+\)$/, "");
    const [first = "", ...rest] = words;
    throw new UnreadableExpression(`${first.toLowerCase()}${rest.join("")}`, column);
  }
}

/** By the operator, for one operand and for two. */
const OPERATORS = new Map<string, readonly [one: string | null, two: string | null]>([
  ["+", ["unary +", "+"]],
  ["-", ["unary -", "-"]],
  ["not", ["not", null]],
  ["^", [null, "pow"]],
  ["??", [null, "coalesce"]],
  ...["*", "/", "<", "<=", ">", ">=", "==", "!=", "and", "or"].map((op) => [op, [null, op]] as const),
]);

type Inner = (node: TreeNode | undefined) => Term;

/** Names and operators of the tree come in the sequence of the tokens, which have the columns. */
class Translation {
  readonly #tokens: readonly Token[];
  #next = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens.filter(({ kind }) => kind !== "open" && kind !== "close" && kind !== "comma");
  }

  termOf(node: TreeNode | undefined, depth: number): Term {
    if (depth > DEPTH_MAX) throw this.#refuse(`has more than ${DEPTH_MAX} levels`);
    const inner = (one: TreeNode | undefined): Term => this.termOf(one, depth + 1);
    if (node?.type === "ParenthesisNode") return this.termOf(node.content, depth);
    if (node?.type === "ConstantNode") return this.#constant(node.value);
    if (node?.type === "SymbolNode" && node.name !== undefined) {
      const { text: name, column } = this.#take(node.name);
      return { kind: "name", name, column };
    }
    if (node?.type === "OperatorNode") return this.#operator(node, inner);
    if (node?.type === "RelationalNode") return this.#chain(node, inner);
    if (node?.type === "ConditionalNode") return this.#conditional(node, inner);
    if (node?.type === "FunctionNode") return this.#call(node, inner);
    throw this.#refuse(`has a part that is not of the language (${node?.type})`);
  }

  #constant(value: unknown): Term {
    const { text, column } = this.#take(null);
    if (value === null) return { kind: "nothing", column };
    if (typeof value === "boolean") return { kind: "number", value: value ? 1 : 0, column };
    if (typeof value === "string") return { kind: "text", value, column };
    if (typeof value === "number" && Number.isFinite(value)) return { kind: "number", value, column };
    throw new UnreadableExpression(`${text} is beyond the range of numbers`, column);
  }

  #operator({ op = "", args = [] }: TreeNode, inner: Inner): Term {
    const [one, two] = OPERATORS.get(op) ?? [null, null];
    const [first, second] = args;
    if (args.length === 1 && one !== null) {
      const { column } = this.#take(op);
      return { kind: "call", name: one, shown: op, terms: [inner(first)], column };
    }
    if (args.length !== 2 || two === null) throw this.#refuse(`has an operator that it cannot have ("${op}")`);
    const left = inner(first);
    const { column } = this.#take(op);
    return { kind: "call", name: two, shown: op, terms: [left, inner(second)], column };
  }

  /** `a < b <= c`: each pair in turn. */
  #chain({ params = [] }: TreeNode, inner: Inner): Term {
    const [first, ...rest] = params;
    let left = inner(first);
    const pairs = rest.map((param): Call => {
      const { text: name, column } = this.#take(null);
      const right = inner(param);
      const pair: Call = { kind: "call", name, shown: name, terms: [left, right], column };
      left = right;
      return pair;
    });
    return pairs.reduce((all, pair) => ({ ...pair, name: "and", shown: "and", terms: [all, pair] }));
  }

  #conditional({ condition, trueExpr, falseExpr }: TreeNode, inner: Inner): Term {
    const test = inner(condition);
    const { column } = this.#take("?");
    const yes = inner(trueExpr);
    this.#take(":");
    return { kind: "call", name: "if", shown: "?", terms: [test, yes, inner(falseExpr)], column };
  }

  #call({ fn, args = [] }: TreeNode, inner: Inner): Term {
    if (typeof fn !== "object" || fn.type !== "SymbolNode" || fn.name === undefined)
      throw this.#refuse("calls something that is no function by name");
    const { kind, text: name, column } = this.#take(fn.name);
    if (kind !== "name") throw new UnreadableExpression(`"${name}" stands between its conditions`, column);
    return { kind: "call", name, shown: name, terms: args.map(inner), column };
  }

  /** The next token. `text`: what it must be; null: whatever the tree has. */
  #take(text: string | null): Token {
    const token = this.#tokens[this.#next];
    this.#next += 1;
    if (token === undefined || (text !== null && token.text !== text))
      throw new UnreadableExpression("the expression cannot be read here", token?.column ?? 1);
    return token;
  }

  #refuse(what: string): UnreadableExpression {
    return new UnreadableExpression(`the expression ${what}`, this.#tokens[this.#next]?.column ?? 1);
  }
}

// The first of two walls before math.js: only these characters and words reach its parser, so that nothing of its
// language but arithmetic, comparisons and calls by name is ever read. The second one is the
// check of the syntax above.

interface Token {
  readonly kind: "name" | "number" | "text" | "operator" | "open" | "close" | "comma";
  readonly text: string;
  /** From 1. */
  readonly column: number;
}

interface Words {
  /** The expression for math.js: without comments and line ends, each character in its place. */
  readonly text: string;
  readonly tokens: readonly Token[];
}

/** Throws for what is not of the language. A leading `=` is left out. */
function tokensOf(formula: string): Words {
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

// Faults of an expression, with their place in it.

export interface ExpressionFault {
  readonly message: string;
  /** From 1, in the formula as it is written, with its leading `=`. */
  readonly column: number;
}

/** A fault after which nothing else of the expression can be checked. */
export class UnreadableExpression extends Error {
  readonly column: number;

  constructor(message: string, column: number) {
    super(message);
    this.column = column;
  }
}

// An expression after its syntax was checked: nothing of math.js is left.

export type Term =
  | { readonly kind: "number"; readonly value: number; readonly column: number }
  /** `null`: no value. */
  | { readonly kind: "nothing"; readonly column: number }
  | { readonly kind: "text"; readonly value: string; readonly column: number }
  | { readonly kind: "name"; readonly name: string; readonly column: number }
  | Call;

export interface Call {
  readonly kind: "call";
  /** A function of the language; operators are functions too. */
  readonly name: string;
  /** As it is shown in messages: `/` for `divide`. */
  readonly shown: string;
  readonly terms: readonly Term[];
  readonly column: number;
}

/** Names of a term, each once. */
export function namesIn(term: Term): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (one: Term): void => {
    if (one.kind === "name") found.add(one.name);
    if (one.kind === "call") one.terms.forEach(visit);
  };
  visit(term);
  return found;
}
