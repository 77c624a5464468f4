/** The stretches of time that one calculation calculates, each with its formula, in order of time. */
import type { Calculation } from "../../store/calculated/calculation-rows.ts";
import type { DueCause } from "../../store/calculated/marks.ts";
import { FAR_MS } from "../../store/point-rows.ts";
import type { VariableFacts } from "../../store/records.ts";
import type { CalculationStore } from "../../store/resources.ts";
import type { PlannedFormula, PlannedInput, PlannedVariable } from "./formulas.ts";
import { dateOf, extentOf, stepsOf } from "./inputs.ts";
import { endOfPart, PART_POINTS, type Stretch, stretchesOf } from "./parts.ts";
import { affectedBy, type Interval, merged, wholePeriods } from "./reach.ts";

export interface PlannedStretch extends Stretch<PlannedFormula> {
  /** Of the inputs of the formula. */
  readonly extent: Interval;
}

/** A part of an input has fewer points where a formula reads many inputs. */
const PLAIN_INPUTS = 4;

export async function stretchesToCalculate(
  store: CalculationStore,
  { facts, zone, formulas }: PlannedVariable,
  { due }: Calculation,
  nowMs: number,
): Promise<readonly PlannedStretch[]> {
  const all: PlannedStretch[] = [];
  for (const formula of formulas) {
    const extent = (await extentOf(store, formula.inputs)) ?? (await extentWithout(store, facts, formula, nowMs));
    if (extent === null) continue;
    const affected: Interval[] = [];
    for (const [inputId, fromMs, toMs, cause] of due) {
      const change = {
        fromMs: fromMs <= -FAR_MS ? extent.fromMs : fromMs,
        toMs: toMs >= FAR_MS ? extent.toMs : toMs,
      };
      if (change.fromMs > change.toMs) continue;
      affected.push(...(await outputsOf(store, formula, { inputId, cause, change, extent, zone })));
    }
    const days = affected.map((one) => (formula.isExpression ? one : wholePeriods(one, "Day", zone)));
    for (const interval of merged(days))
      for (const stretch of stretchesOf([formula], interval)) all.push({ ...stretch, extent });
  }
  return all.toSorted((one, other) => one.fromMs - other.fromMs);
}

/**
 * A formula without inputs gives its rows for the dates since its beginning. Where the inputs no longer have points,
 * the dates are those of the outputs that are left, so that the calculation says how many these are.
 */
async function extentWithout(
  store: CalculationStore,
  facts: VariableFacts,
  { inputs, fromMs }: PlannedFormula,
  nowMs: number,
): Promise<Interval | null> {
  if (inputs.length > 0) return extentOf(store, [{ facts }]);
  return fromMs === null || fromMs > nowMs ? null : { fromMs, toMs: nowMs };
}

interface Change {
  /** Null: the dates are those of the outputs. */
  readonly inputId: number | null;
  readonly cause: DueCause | undefined;
  readonly change: Interval;
  readonly extent: Interval;
  readonly zone: string;
}

async function outputsOf(
  store: CalculationStore,
  { inputs }: PlannedFormula,
  { inputId, cause, change, extent, zone }: Change,
): Promise<readonly Interval[]> {
  const affected: Interval[] = [];
  // Outputs of a granularity have the date of their period's beginning.
  if (inputId === null)
    for (const { reach } of inputs)
      affected.push(...[reach.granularity, ...reach.collected].map((one) => wholePeriods(change, one, zone)));
  if (inputId === null) affected.push(change);
  // A value of a form meets the points of its dates, and outputs further on look back at both.
  const seen = cause === "slice" ? inputs : inputs.filter(({ facts: { id } }) => id === inputId);
  for (const { facts, reach } of seen) {
    const found = await affectedBy(reach, change, { zone, extent, steps: stepsOf(store, facts) });
    if (found !== null) affected.push(found);
  }
  return affected;
}

/** The end of the part that begins with the stretch. */
export async function endOfNextPart(
  store: CalculationStore,
  { formula, fromMs, toMs }: PlannedStretch,
  zone: string,
): Promise<number> {
  const inputs: readonly PlannedInput[] = formula.inputs;
  const points = Math.max(1, Math.floor((PART_POINTS * PLAIN_INPUTS) / Math.max(inputs.length, PLAIN_INPUTS)));
  const full: number[] = [];
  for (const facts of new Map(inputs.map((input) => [input.facts.id, input.facts])).values()) {
    const atMs = await dateOf(store, facts, { fromMs, lastMs: toMs, order: "ASC" }, points);
    if (atMs !== null) full.push(atMs);
  }
  const granularities = inputs.flatMap(({ reach }) => [reach.granularity, ...reach.collected]);
  return endOfPart({ fromMs, toMs }, full.length === 0 ? null : Math.min(...full), granularities, zone);
}
