/**
 * Whether an expression can be computed from the inputs of its formula, and how much of them it needs. For the moment
 * in which it is saved, for the windows of recalculation, and before each run.
 */
import { nearestName } from "#core/nearest-name.ts";
import { findUnit, UNITS, unitFamily } from "#wire/index.ts";
import { EQUALITIES, ROW_FUNCTIONS } from "./row-functions.ts";
import {
  NO_REACH,
  type Parameter,
  type Reach,
  SERIES_FUNCTIONS,
  type SeriesFunction,
  widest,
} from "./series-functions.ts";
import {
  type Call,
  type ExpressionFault,
  namesIn,
  parseExpression,
  type Term,
  UnreadableExpression,
} from "./syntax.ts";

/** An alias of the formula. */
export interface ExpressionSymbol {
  readonly name: string;
  readonly kind: "variable" | "form" | "constant";
  /** Of a variable's values as the formula gets them. Unknown: `convert` is checked when it runs. */
  readonly unitId?: number;
}

export interface ExpressionCheck {
  /** Empty: the expression can be computed. In the sequence of the expression. */
  readonly faults: readonly ExpressionFault[];
  /** Aliases that the expression names. */
  readonly uses: ReadonlySet<string>;
  /** By alias, of each variable that the expression uses. */
  readonly reach: ReadonlyMap<string, Reach>;
}

export interface ReadExpression extends ExpressionCheck {
  /** Null where there are faults. */
  readonly term: Term | null;
}

/** `formula`: as it is written, with or without its leading `=`. */
export async function checkExpression(formula: string, symbols: readonly ExpressionSymbol[]): Promise<ExpressionCheck> {
  const { faults, uses, reach } = await readExpression(formula, symbols);
  return { faults, uses, reach };
}

export async function readExpression(formula: string, symbols: readonly ExpressionSymbol[]): Promise<ReadExpression> {
  try {
    const term = await parseExpression(formula);
    const check = new Check(symbols);
    const reach = check.reachOf(term);
    const uses = namesIn(term);
    if (check.faults.length === 0 && reach.size === 0)
      check.refuse(term, "the expression uses no input variable, so that its results would have no dates");
    const faults = check.faults.toSorted((one, other) => one.column - other.column);
    return { term: faults.length === 0 ? term : null, faults, uses, reach };
  } catch (thrown) {
    if (!(thrown instanceof UnreadableExpression)) throw thrown;
    const { message, column } = thrown;
    return { term: null, faults: [{ message, column }], uses: new Set(), reach: new Map() };
  }
}

type ReachByAlias = ReadonlyMap<string, Reach>;

/** Without operators. */
export const FUNCTION_NAMES: readonly string[] = [...ROW_FUNCTIONS.keys(), ...SERIES_FUNCTIONS.keys()].filter(
  (name) => /^[a-z]\w+$/.test(name) && !["and", "or", "not"].includes(name),
);

class Check {
  readonly faults: ExpressionFault[] = [];
  readonly #symbols: ReadonlyMap<string, ExpressionSymbol>;

  constructor(symbols: readonly ExpressionSymbol[]) {
    this.#symbols = new Map(symbols.map((symbol) => [symbol.name, symbol]));
  }

  refuse({ column }: Pick<Term, "column">, message: string): ReachByAlias {
    this.faults.push({ message, column });
    return new Map();
  }

  reachOf(term: Term): ReachByAlias {
    if (term.kind === "text") return this.refuse(term, `"${term.value}" is a text where a number is needed`);
    if (term.kind === "name") return this.#name(term);
    if (term.kind !== "call") return new Map();
    const series = SERIES_FUNCTIONS.get(term.name);
    return series === undefined ? this.#rowCall(term) : this.#seriesCall(term, series);
  }

  #name(term: Term & { readonly kind: "name" }): ReachByAlias {
    const symbol = this.#symbols.get(term.name);
    if (symbol !== undefined) return symbol.kind === "variable" ? new Map([[term.name, NO_REACH]]) : new Map();
    const nearest = nearestName(term.name, [...this.#symbols.keys()]);
    const known = [...this.#symbols.keys()].join(", ");
    const hint = nearest === undefined ? `the formula has ${known || "none"}` : `is "${nearest}" meant?`;
    return this.refuse(term, `"${term.name}" is no alias of this formula; ${hint}`);
  }

  #rowCall(call: Call): ReachByAlias {
    const found = ROW_FUNCTIONS.get(call.name);
    if (found === undefined) {
      const nearest = nearestName(call.name, FUNCTION_NAMES);
      const hint = nearest === undefined ? `there are ${FUNCTION_NAMES.join(", ")}` : `is "${nearest}" meant?`;
      return this.refuse(call, `"${call.name}" is no function; ${hint}`);
    }
    const fault = wrongCount(call, found.least, found.most);
    if (fault !== null) return this.refuse(call, fault);
    if (comparesTexts(call)) return this.#texts(call);
    return joined(call.terms.map((term) => this.reachOf(term)));
  }

  /** Of `tariff == "A"`. */
  #texts(call: Call): ReachByAlias {
    for (const term of call.terms) {
      if (term.kind === "text") continue;
      const kind = term.kind === "name" ? this.#symbols.get(term.name)?.kind : "variable";
      if (kind === undefined) this.reachOf(term);
      else if (kind === "variable") this.refuse(term, "only a form's value or a constant can be compared with a text");
    }
    return new Map();
  }

  #seriesCall(call: Call, of: SeriesFunction): ReachByAlias {
    const fault = wrongCount(call, of.least, of.parameters.length);
    if (fault !== null) return this.refuse(call, fault);
    const reaches = call.terms.map((term, at) => this.#argument(call, term, of.parameters[at] ?? "points"));
    const [inner = new Map<string, Reach>()] = reaches;
    const words = wordsOf(call, of);
    return new Map([...inner].map(([alias, reach]) => [alias, of.reach(reach, words)]));
  }

  #argument(call: Call, term: Term, parameter: Parameter): ReachByAlias {
    if (parameter === "unit") return this.#unit(call, term);
    if (parameter === "input") {
      const kind = term.kind === "name" ? (this.#symbols.get(term.name)?.kind ?? "variable") : undefined;
      if (kind === "variable") return this.reachOf(term);
      return this.refuse(term, `${call.name} takes the alias of an input variable, whose unit is known`);
    }
    if (parameter === "points" || parameter === "number") {
      const reach = this.reachOf(term);
      if (parameter === "number" && reach.size > 0)
        return this.refuse(term, `${call.name} takes a number here, a constant or a form's value, and no variable`);
      const isUnknown = [...namesIn(term)].some((name) => !this.#symbols.has(name));
      if (parameter === "points" && reach.size !== 1 && !isUnknown)
        return this.refuse(
          term,
          `${call.name} takes one input variable, and here are ${reach.size}; a calculated variable can join them`,
        );
      return reach;
    }
    if (wordOf(term, parameter) !== undefined) return new Map();
    return this.refuse(term, `${call.name} takes one of these texts here: ${quoted(parameter)}`);
  }

  #unit(call: Call, term: Term): ReachByAlias {
    if (term.kind !== "text") return this.refuse(term, `${call.name} takes a unit as a text here, such as "kWh"`);
    const unit = findUnit(term.value);
    if (unit === undefined) {
      const nearest = nearestName(
        term.value,
        UNITS.map(({ symbol }) => symbol),
      );
      return this.refuse(term, `"${term.value}" is no unit${nearest === undefined ? "" : `; is "${nearest}" meant?`}`);
    }
    const [input] = call.terms;
    const unitId = input?.kind === "name" ? this.#symbols.get(input.name)?.unitId : undefined;
    const from = UNITS.find(({ id }) => id === unitId);
    if (from === undefined || from.unitFamilyId === unit.unitFamilyId) return new Map();
    const families = [from, unit].map((one) => `${one.symbol} (${unitFamily(one)?.name ?? "no family"})`);
    return this.refuse(term, `${families[0]} cannot be converted to ${families[1]}`);
  }
}

function joined(reaches: readonly ReachByAlias[]): ReachByAlias {
  const all = new Map<string, Reach>();
  for (const [alias, reach] of reaches.flatMap((one) => [...one])) {
    const known = all.get(alias);
    all.set(alias, known === undefined ? reach : widest(known, reach));
  }
  return all;
}

function wrongCount({ shown, terms }: Call, least: number, most: number): string | null {
  if (terms.length >= least && terms.length <= most) return null;
  const wanted =
    least === most ? `${least}` : most === Number.POSITIVE_INFINITY ? `${least} or more` : `${least} to ${most}`;
  return `${shown} takes ${wanted} argument${wanted === "1" ? "" : "s"}, and has ${terms.length}`;
}

const quoted = (words: readonly string[]): string => words.map((word) => `"${word}"`).join(", ");

/** A comparison of which one side is a text. */
export function comparesTexts({ name, terms }: Call): boolean {
  return EQUALITIES.has(name) && terms.some(({ kind }) => kind === "text");
}

/** The word as the function knows it. */
function wordOf(term: Term | undefined, words: readonly string[]): string | undefined {
  if (term?.kind !== "text") return undefined;
  return words.find((word) => word.toLowerCase() === term.value.toLowerCase());
}

/** By the position of the parameter; undefined: no word, or left out. */
export function wordsOf({ terms }: Call, { parameters }: SeriesFunction): readonly (string | undefined)[] {
  return parameters.map((parameter, at) => (typeof parameter === "string" ? undefined : wordOf(terms[at], parameter)));
}
