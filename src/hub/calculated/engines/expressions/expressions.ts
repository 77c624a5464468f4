/** Computes a formula that begins with `=` (docs/expressions.md), from its inputs to its rows. */
import type { CalculationInput, CalculationResult, InputVariable } from "../engine.ts";
import { type ExpressionSymbol, readExpression } from "./check.ts";
import { Evaluation, FormulaFault, type Source } from "./evaluation.ts";
import { inSequence, type Series } from "./series.ts";

/** Default version of a calculation: the hour of a run, and no tag of a client. */
const DEFAULT_VERSION = /^\d{4}-\d\d-\d\dT\d\d:00:00$/;

/** `memory`: most bytes of the columns of its terms. */
export async function computeExpression(input: CalculationInput, memory: number): Promise<CalculationResult> {
  const { term, faults } = await readExpression(input.formula, symbolsOf(input));
  if (term === null) {
    const words = faults.map(({ message, column }) => `column ${column}: ${message}`);
    return { kind: "failed", message: `the expression cannot be computed: ${words.join("; ")}` };
  }
  const tags = new VersionTags();
  const evaluation = new Evaluation(sourcesOf(input, tags), input.zone, memory);
  try {
    const rows = windowOf(evaluation.seriesOf(term), input.window);
    const { versions } = rows;
    return {
      kind: "computed",
      atMs: rows.atMs,
      values: rows.values,
      versions: versions?.some((tag) => tag !== 0) ? Array.from(versions, (tag) => tags.textOf(tag)) : null,
      tags: null,
      errors: [],
      warnings: evaluation.warnings(),
    };
  } catch (thrown) {
    if (!(thrown instanceof FormulaFault)) throw thrown;
    return { kind: "failed", message: thrown.message };
  }
}

function symbolsOf({ variables, forms, constants }: CalculationInput): ExpressionSymbol[] {
  return [
    ...constants.map(({ alias }) => ({ name: alias, kind: "constant" as const })),
    ...forms.map(({ alias }) => ({ name: alias, kind: "form" as const })),
    ...variables.map(({ alias, unitId }) => ({ name: alias, kind: "variable" as const, unitId })),
  ];
}

function sourcesOf({ variables, forms, constants }: CalculationInput, tags: VersionTags): Map<string, Source> {
  return new Map<string, Source>([
    ...constants.map(({ alias, value }): [string, Source] => [alias, { kind: "constant", value }]),
    ...forms.map((form): [string, Source] => [form.alias, { kind: "form", form }]),
    ...variables.map((variable): [string, Source] => {
      const { alias, unitId } = variable;
      return [alias, { kind: "variable", unitId, series: seriesOf(variable, tags) }];
    }),
  ]);
}

function seriesOf({ atMs, values, versions, metadata }: InputVariable, tags: VersionTags): Series {
  const isCalculated = metadata["isCalculated"] === true;
  const indexes = versions === null ? null : Int32Array.from(versions, (text) => tags.indexOf(text, isCalculated));
  return inSequence({ atMs, values, versions: indexes });
}

/** Points with a value, within the window. */
function windowOf({ atMs, values, versions }: Series, { fromMs, toMs }: CalculationInput["window"]): Series {
  const wanted = (at: number): boolean =>
    (atMs[at] ?? 0) >= fromMs && (atMs[at] ?? 0) <= toMs && !Number.isNaN(values[at] ?? Number.NaN);
  return {
    atMs: atMs.filter((_, at) => wanted(at)),
    values: values.filter((_, at) => wanted(at)),
    versions: versions?.filter((_, at) => wanted(at)) ?? null,
  };
}

/** Tags of clients as numbers; 0: none. */
class VersionTags {
  readonly #texts: (string | null)[] = [null];
  readonly #indexes = new Map<string, number>();

  /** `isCalculated`: whether default versions are among them. */
  indexOf(text: string | null, isCalculated: boolean): number {
    if (text === null || text === "" || (isCalculated && DEFAULT_VERSION.test(text))) return 0;
    const known = this.#indexes.get(text);
    if (known !== undefined) return known;
    const index = this.#texts.push(text) - 1;
    this.#indexes.set(text, index);
    return index;
  }

  textOf(index: number): string | null {
    return this.#texts[index] ?? null;
  }
}
