/**
 * The second of two walls: the tree of math.js becomes terms, by a list of the nodes and operators that there are. The
 * parser of math.js is all that is used of it; it evaluates nothing.
 */
import { UnreadableExpression } from "./faults.ts";
import type { Call, Term } from "./terms.ts";
import { type Token, tokensOf } from "./tokens.ts";

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
