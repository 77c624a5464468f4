/**
 * Reads `CustomFilter` and `OdmSqlFilter` (specification, *Conventions of collection endpoints*, 5 and 6;
 * `docs/hub/structure.md` where it says "not shown"):
 *
 *     expression := conjunction { OR conjunction }
 *     conjunction := test { AND test }
 *     test := [ NOT ] ( "(" expression ")" | field IS [ NOT ] EMPTY | field [ NOT ] operator value )
 *     field := Name | Site.Name | [ Site. ] "form"."group"."field"
 *
 * Levels that are plain words need no quotes.
 */
import type { FilterEntity, FilterField, FilterNode, FilterOperator } from "../store/filter.ts";
import type { HubStore } from "../store/store.ts";
import { entityNamed, type FieldType, fieldNamed, nearestFields } from "./fields.ts";
import { datedNode, dateNode, type FilterForms, formField, formsFor, NO_FORMS, typedValue } from "./forms.ts";
import { filterFault, type Token, tokensOf } from "./tokens.ts";

const DEPTH_MAX = 100;
/** A pattern is compared with each text of the account. */
const PATTERN_CHARACTERS_MAX = 500;
const SIGNS: ReadonlyMap<string, readonly [FilterOperator, negated: boolean]> = new Map([
  ["=", ["=", false]],
  ["==", ["=", false]],
  ["<>", ["=", true]],
  ["!=", ["=", true]],
  [">", [">", false]],
  [">=", [">=", false]],
  ["<", ["<", false]],
  ["<=", ["<=", false]],
  ["~", ["contains", false]],
  ["!~", ["contains", true]],
  ["contains", ["contains", false]],
  ["like", ["like", false]],
  ["startswith", ["startswith", false]],
  ["endswith", ["endswith", false]],
  ["notlike", ["like", true]],
  ["notstartswith", ["startswith", true]],
  ["notendswith", ["endswith", true]],
]);
const OPERATORS = "=, <>, >, >=, <, <=, like, startswith, endswith (each also after not), is empty, is not empty";
const LEVELS_HINT = 'a form field has three levels, "form"."group"."field"';
const TEXT_OPERATORS: ReadonlySet<FilterOperator> = new Set(["like", "contains", "startswith", "endswith"]);

interface NamedField {
  readonly field: FilterField;
  /** Null: any type, for a form field. */
  readonly type: FieldType | null;
  readonly words: string;
}

/** Throws a 400 that names the parameter and the position. */
export function parseFilter(
  parameter: string,
  expression: string,
  entity: FilterEntity,
  forms: FilterForms = NO_FORMS,
): FilterNode {
  const parser = new Parser(parameter, tokensOf(parameter, expression), entity, forms);
  return parser.whole();
}

class Parser {
  readonly #parameter: string;
  readonly #tokens: readonly Token[];
  readonly #entity: FilterEntity;
  readonly #forms: FilterForms;
  #next = 0;
  #depth = 0;

  constructor(parameter: string, tokens: readonly Token[], entity: FilterEntity, forms: FilterForms) {
    this.#forms = forms;
    this.#parameter = parameter;
    this.#tokens = tokens;
    this.#entity = entity;
  }

  whole(): FilterNode {
    if (this.#peek().kind === "end") throw this.#fault(this.#peek(), "the expression is empty");
    const node = this.#alternatives();
    const rest = this.#peek();
    if (rest.kind !== "end") throw this.#fault(rest, `"and", "or" or the end is expected, not ${shown(rest)}`);
    return node;
  }

  #alternatives(): FilterNode {
    const nodes = [this.#conjunction()];
    while (this.#takeWord("or", "||")) nodes.push(this.#conjunction());
    return joined("or", nodes);
  }

  #conjunction(): FilterNode {
    const nodes = [this.#test()];
    while (this.#takeWord("and", "&&")) nodes.push(this.#test());
    return joined("and", nodes);
  }

  #test(): FilterNode {
    this.#depth += 1;
    try {
      if (this.#depth > DEPTH_MAX)
        throw this.#fault(this.#peek(), `the expression is nested deeper than ${DEPTH_MAX} levels`);
      if (this.#takeWord("not", "!")) return { kind: "not", node: this.#test() };
      if (this.#takeWord("(")) {
        const node = this.#alternatives();
        if (!this.#takeWord(")")) throw this.#fault(this.#peek(), `")" is expected, not ${shown(this.#peek())}`);
        return node;
      }
      return this.#comparison();
    } finally {
      this.#depth -= 1;
    }
  }

  #comparison(): FilterNode {
    const named = this.#field();
    const at = this.#peek();
    if (this.#takeWord("is")) return this.#emptyTest(named);
    if (this.#takeWord("isempty")) return { kind: "empty", field: named.field };
    const before = this.#takeWord("not");
    const sign = this.#peek();
    const known = sign.kind === "sign" || sign.kind === "word" ? SIGNS.get(sign.text.toLowerCase()) : undefined;
    if (known === undefined)
      throw this.#fault(at, `an operator is expected after ${named.words}, not ${shown(at)}; there are ${OPERATORS}`);
    this.#next += 1;
    const [operator, negated] = known;
    const node = this.#against(named, operator, sign);
    return negated !== before ? { kind: "not", node } : node;
  }

  #emptyTest({ field, words }: NamedField): FilterNode {
    const negated = this.#takeWord("not");
    const at = this.#peek();
    if (!this.#takeWord("empty", "null"))
      throw this.#fault(at, `"empty" or "not empty" is expected after ${words} is, not ${shown(at)}`);
    return negated ? { kind: "not", node: { kind: "empty", field } } : { kind: "empty", field };
  }

  #against({ field, type, words }: NamedField, operator: FilterOperator, sign: Token): FilterNode {
    const token = this.#peek();
    this.#next += 1;
    const value = literalOf(token);
    if (value === undefined) throw this.#fault(token, `a value is expected after ${sign.text}, not ${shown(token)}`);
    // An empty text is the value of a field without a value.
    if (value === "" && operator === "=") return { kind: "empty", field };
    if (type === "date" && !TEXT_OPERATORS.has(operator)) {
      const node = dateNode(field, operator, token.text);
      if (node !== null) return node;
      throw this.#fault(token, `${words} is a date, such as '2026', '2026-03' or '2026-03-01', not ${shown(token)}`);
    }
    if (TEXT_OPERATORS.has(operator)) {
      if (type === "number" || type === "boolean")
        throw this.#fault(sign, `${sign.text} compares texts, and ${words} is a ${type}`);
      if (token.text.length > PATTERN_CHARACTERS_MAX) throw this.#fault(token, tooLong(sign.text, token.text.length));
      // Without a wildcard, `like` finds what contains the text.
      const isPlain = operator === "like" && !/[%_]/.test(token.text);
      return { kind: "compare", field, operator: isPlain ? "contains" : operator, value: token.text };
    }
    const typed = field.kind === "form" && type !== null ? typedValue(type, token.text) : value;
    if (type === "number" && typeof typed !== "number")
      throw this.#fault(token, `${words} is a number, and ${shown(token)} is none`);
    if (type === "boolean" && typeof typed !== "boolean")
      throw this.#fault(token, `${words} is true or false, and not ${shown(token)}`);
    if (type === "labels" && operator !== "=")
      throw this.#fault(sign, `${words} are labels: they take =, <>, like, startswith and endswith`);
    // An identifier may look like a number without being one.
    const isText = type === "text" || type === "labels";
    const plain: FilterNode = { kind: "compare", field, operator, value: isText ? token.text : typed };
    return field.kind === "form" && (isText || type === null) ? datedNode(field, operator, token.text, plain) : plain;
  }

  /** One or two levels are a standard field, three those of a form, before which the entity may stand. */
  #field(): NamedField {
    const levels: Token[] = [];
    do {
      const token = this.#peek();
      if (token.kind !== "word" && !isQuoted(token))
        throw this.#fault(token, `the name of a field is expected, not ${shown(token)}`);
      levels.push(token);
      this.#next += 1;
    } while (this.#takeWord("."));
    const [first, ...others] = levels;
    if (first === undefined) throw new Error("a field without a level");
    const [second, ...deeper] = others;
    if (second === undefined && !isQuoted(first)) return this.#standardField(this.#entity, first);
    const entity = isQuoted(first) ? undefined : entityNamed(first.text);
    if (second !== undefined && deeper.length === 0 && !isQuoted(first) && !isQuoted(second)) {
      if (entity !== undefined) return this.#standardField(entity, second);
      throw this.#fault(first, `${first.text} is none of Site, Source and Variable, and ${LEVELS_HINT}`);
    }
    const isNamed = entity !== undefined && entity !== "variable" && levels.length !== 3;
    return isNamed ? this.#formField(entity, others) : this.#formField(null, levels);
  }

  #standardField(entity: FilterEntity, token: Token): NamedField {
    const found = fieldNamed(entity, token.text);
    if (found === undefined)
      throw this.#fault(token, `a ${entity} has no field ${token.text}; ${nearestFields(entity, token.text)}`);
    return {
      field: { kind: "standard", entity, name: found.name },
      type: found.type,
      words: entity === this.#entity ? found.name : `${entity}.${found.name}`,
    };
  }

  /** `entity`: null where the expression leaves it out. */
  #formField(entity: "site" | "source" | null, levels: readonly Token[]): NamedField {
    const [form, group, field, ...more] = levels;
    const [first] = levels;
    if (first === undefined || form === undefined || group === undefined || field === undefined || more.length > 0)
      throw this.#fault(first ?? this.#peek(), `${LEVELS_HINT}, and this one has ${levels.length}`);
    for (const level of levels)
      if (/["\\]/.test(level.text))
        throw this.#fault(level, "a level of a form field holds neither quotes nor backslashes");
    const found = formField(this.#forms, entity, this.#entity, [form.text, group.text, field.text]);
    if (typeof found === "string") throw this.#fault(first, found);
    return { ...found, words: `"${levels.map(({ text }) => text).join('"."')}"` };
  }

  #peek(): Token {
    const token = this.#tokens[Math.min(this.#next, this.#tokens.length - 1)];
    if (token === undefined) throw new Error("an expression without tokens");
    return token;
  }

  #takeWord(...words: readonly string[]): boolean {
    const token = this.#peek();
    if ((token.kind !== "word" && token.kind !== "sign") || !words.includes(token.text.toLowerCase())) return false;
    this.#next += 1;
    return true;
  }

  #fault(token: Token, message: string): Error {
    return filterFault(this.#parameter, token.at, message);
  }
}

function joined(kind: "and" | "or", nodes: readonly FilterNode[]): FilterNode {
  const [only] = nodes;
  return nodes.length === 1 && only !== undefined ? only : { kind, nodes };
}

function tooLong(operator: string, characters: number): string {
  return `a text for ${operator} has ${PATTERN_CHARACTERS_MAX} characters at most, and this one has ${characters}`;
}

const KEYWORDS: ReadonlySet<string> = new Set(["and", "or", "not", "is"]);

/** Clients write the levels of a form field, and values, with quotes of either kind. */
function isQuoted({ kind }: Token): boolean {
  return kind === "quoted" || kind === "text";
}

function literalOf(token: Token): string | number | boolean | undefined {
  if (token.kind === "number") return Number(token.text);
  if (token.kind === "text" || token.kind === "quoted") return token.text;
  if (token.kind !== "word" || KEYWORDS.has(token.text.toLowerCase())) return undefined;
  const word = token.text.toLowerCase();
  return word === "true" ? true : word === "false" ? false : token.text;
}

function shown(token: Token): string {
  return token.kind === "end" ? "the end of the expression" : token.kind === "text" ? `'${token.text}'` : token.text;
}

// The expressions of a query: `CustomFilter`, and `OdmSqlFilter`, which accepts the same syntax over the documented
// model.

interface ExpressionQuery {
  readonly CustomFilter?: string | undefined;
  readonly OdmSqlFilter?: string | undefined;
}

/**
 * All of the tests must hold; time-sliced values are those of the moment. Throws a 400 that names the parameter and the
 * position.
 */
export async function expressions(
  store: HubStore,
  accountId: number,
  entity: FilterEntity,
  query: ExpressionQuery,
  atMs: number,
): Promise<FilterNode[]> {
  const forms = await formsFor(store, accountId, [query.CustomFilter, query.OdmSqlFilter], atMs);
  return (["CustomFilter", "OdmSqlFilter"] as const).flatMap((parameter) => {
    const expression = query[parameter];
    return expression === undefined ? [] : [parseFilter(parameter, expression, entity, forms)];
  });
}
