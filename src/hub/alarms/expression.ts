/** Expressions of alarms: the language of calculated variables, over the points of the watched variable (`value`). */
import { type AlarmCondition, ianaZone } from "#wire/index.ts";
import { readExpression } from "../calculated/engines/expressions/check.ts";
import { Evaluation, FormulaFault } from "../calculated/engines/expressions/evaluation.ts";
import type { Series } from "../calculated/engines/expressions/series.ts";
import type { Term } from "../calculated/engines/expressions/syntax.ts";
import { invalidField } from "../http/problems.ts";
import type { VariableFacts } from "../store/records.ts";
import type { AlarmPoint, Expression } from "./conditions.ts";

/** For one variable: the expression over these points, in order of date. */
export type Compiled = (points: readonly AlarmPoint[]) => Expression;

const ALIAS = "value";

/** Without any point where the expression is at fault for these. */
function computed(evaluation: Evaluation, term: Term): Pick<Series, "atMs" | "values"> {
  try {
    return evaluation.seriesOf(term);
  } catch (thrown) {
    if (!(thrown instanceof FormulaFault)) throw thrown;
    return { atMs: new Float64Array(), values: new Float64Array() };
  }
}

const CHARACTERS_OF_ONE = 20;

/** How many points without an expression take as long as one with it. */
export function costOfPoint({ expression = "" }: Pick<AlarmCondition, "expression">): number {
  return 1 + expression.length / CHARACTERS_OF_ONE;
}

/** Throws a 400 that says where the expression is wrong. */
export async function requireExpression(formula: string): Promise<void> {
  const { faults, reach } = await readExpression(formula, [{ name: ALIAS, kind: "variable" }]);
  const [fault] = faults;
  if (fault !== undefined)
    throw invalidField(
      "condition.expression",
      `column ${fault.column}: ${fault.message} (the variable is \`${ALIAS}\`)`,
    );
  const { points, granularities } = reach.get(ALIAS) ?? { points: 0, granularities: [] };
  if (points > 1 || granularities.length > 0)
    throw invalidField(
      "condition.expression",
      "looks further back than one point; calculate a variable, and watch that",
    );
}

export async function expressionOf(
  { expression }: AlarmCondition,
  facts: VariableFacts | null,
): Promise<Compiled | null> {
  if (expression === undefined || facts === null) return null;
  const { unitId, siteZoneId } = facts;
  const { term } = await readExpression(expression, [{ name: ALIAS, kind: "variable", unitId }]);
  if (term === null) return null;
  const zone = ianaZone(siteZoneId) ?? "UTC";
  return (points) => {
    const series = {
      atMs: Float64Array.from(points, ({ atMs }) => atMs),
      values: Float64Array.from(points, ({ value }) => value),
      versions: null,
    };
    const source = { kind: "variable" as const, unitId, series };
    const { atMs, values } = computed(new Evaluation(new Map([[ALIAS, source]]), zone, Number.POSITIVE_INFINITY), term);
    const byDate = new Map(Array.from(atMs, (at, index) => [at, values[index] ?? Number.NaN]));
    return ({ atMs: at }) => {
      const value = byDate.get(at) ?? Number.NaN;
      return Number.isNaN(value) ? null : value !== 0;
    };
  };
}
