/** Judges one variable that a formula reads: its place, aggregation, period and unit. */
import { AGGREGATES, type FormulaVariable, GRANULARITIES, ianaZone, PERIOD_TYPES, UNITS } from "#wire/index.ts";
import { invalidField } from "../../http/problems.ts";
import type { DefinitionFacts, InputFacts } from "../../store/calculated/definitions.ts";
import { PERIOD_RULE, readInstant } from "../../time.ts";

const POINTS_MAX = 100_000;
/** Periods of a granularity, which are counted one by one; about a hundred years of the longer ones. */
const PERIODS_BACK_MAX: Readonly<Record<number, number>> = {
  [GRANULARITIES.Minute]: 20_000,
  [GRANULARITIES.Hour]: 20_000,
  [GRANULARITIES.Day]: 20_000,
  [GRANULARITIES.Week]: 5_218,
  [GRANULARITIES.Month]: 1_200,
  [GRANULARITIES.Year]: 100,
};
const TIME_BASES_MAX = 7;
/** Longest period back, by `periodTimeBase`: about a hundred years. */
const PERIODS_MAX = [0, 3_155_760_000, 52_596_000, 876_600, 36_525, 5_218, 1_200, 100];

/** Throws a 400 that names the field. */
export function judgeInput(path: string, input: FormulaVariable, { inputs, zone }: DefinitionFacts): void {
  const held = inputs.get(input.variableId);
  if (held === undefined) throw invalidField(`${path}.variableId`, `no variable ${input.variableId} in this account`);
  for (const field of ["sourceId", "siteId"] as const)
    if (input[field] !== undefined && input[field] !== held[field])
      throw invalidField(
        `${path}.${field}`,
        `the variable ${held.id} is of ${field.slice(0, -2)} ${held[field]}, not of ${input[field]}`,
      );
  judgeAggregation(path, input, held);
  judgePeriod(path, input, zone);
  judgeUnit(path, input, held);
}

function judgeAggregation(
  path: string,
  { granularity = 0, aggregation = 0 }: FormulaVariable,
  { id, usualAggregate }: InputFacts,
): void {
  if (!Object.values<number>(GRANULARITIES).includes(granularity))
    throw invalidField(`${path}.granularity`, `${granularity} is no number of GET /granularity`);
  if (!Object.values<number>(AGGREGATES).includes(aggregation))
    throw invalidField(`${path}.aggregation`, `${aggregation} is no number of GET /aggregates`);
  if (granularity === GRANULARITIES.All)
    throw invalidField(`${path}.granularity`, "must not be All, which gives one value without a date of its own");
  if (granularity !== GRANULARITIES.Raw && aggregation === AGGREGATES.None && usualAggregate === null)
    throw invalidField(
      `${path}.aggregation`,
      `is missing: a granularity needs it, and the variable ${id} has neither an aggregate nor a quantityType`,
    );
  if (granularity === GRANULARITIES.Raw && aggregation !== AGGREGATES.None)
    throw invalidField(`${path}.granularity`, "is missing: an aggregation needs one other than Raw");
}

/** Fields of periods that each type has; all of them are required. */
const FIELDS = {
  [PERIOD_TYPES.RelativeDate]: ["period", "periodTimeBase"],
  [PERIOD_TYPES.AbsoluteDate]: ["fromAbsolutePeriod", "toAbsolutePeriod"],
  [PERIOD_TYPES.LastPoints]: ["period"],
} as const;
const ALL_FIELDS = ["period", "periodTimeBase", "fromAbsolutePeriod", "toAbsolutePeriod"] as const;

function judgePeriod(path: string, input: FormulaVariable, zone: string): void {
  const { periodType, period = 1, periodTimeBase = 1 } = input;
  const names = Object.entries(PERIOD_TYPES);
  const type = names.find(([, number]) => number === periodType)?.[0];
  if (periodType !== undefined && type === undefined)
    throw invalidField(
      `${path}.periodType`,
      `must be one of ${names.map(([name, id]) => `${id} (${name})`).join(", ")}`,
    );
  const own: readonly string[] = Object.entries(FIELDS).find(([number]) => Number(number) === periodType)?.[1] ?? [];
  for (const field of ALL_FIELDS) {
    if (own.includes(field) && input[field] === undefined)
      throw invalidField(`${path}.${field}`, `is missing: the periodType is ${type}`);
    if (!own.includes(field) && input[field] !== undefined)
      throw invalidField(
        `${path}.${field}`,
        type === undefined ? "needs a periodType" : `has no meaning where the periodType is ${type}: leave it out`,
      );
  }
  if (periodType === PERIOD_TYPES.AbsoluteDate) {
    const fromMs = dateOf(`${path}.fromAbsolutePeriod`, input.fromAbsolutePeriod, zone);
    const toMs = dateOf(`${path}.toAbsolutePeriod`, input.toAbsolutePeriod, zone);
    if (fromMs >= toMs) throw invalidField(`${path}.toAbsolutePeriod`, "must be after fromAbsolutePeriod");
  }
  if (periodType === PERIOD_TYPES.LastPoints) judgeLastPoints(path, period, input.granularity ?? GRANULARITIES.Raw);
  if (periodType !== PERIOD_TYPES.RelativeDate) return;
  if (periodTimeBase < 1 || periodTimeBase > TIME_BASES_MAX)
    throw invalidField(`${path}.periodTimeBase`, `${periodTimeBase} is no number of GET /timePeriods`);
  if (period > (PERIODS_MAX[periodTimeBase] ?? 0)) throw invalidField(`${path}.period`, "must be at most 100 years");
}

/** Points, or with a granularity periods that have points. */
function judgeLastPoints(path: string, period: number, granularity: number): void {
  const most = PERIODS_BACK_MAX[granularity];
  if (period > (most ?? POINTS_MAX))
    throw invalidField(
      `${path}.period`,
      most === undefined ? `must be at most ${POINTS_MAX} points` : `must be at most ${most} with this granularity`,
    );
}

/** Without a designator it is read in the zone of the source. */
export function dateOf(path: string, text: string | undefined, zone: string): number {
  const read = readInstant(text ?? "", ianaZone(zone) ?? "UTC", PERIOD_RULE);
  if (read.kind === "refused") throw invalidField(path, `${read.reason}: ${JSON.stringify(text)}`);
  return read.ms;
}

function judgeUnit(path: string, { unitId }: FormulaVariable, held: InputFacts): void {
  if (unitId === undefined || unitId === held.unitId) return;
  const byId = (id: number) => UNITS.find((unit) => unit.id === id);
  const wanted = byId(unitId);
  if (wanted === undefined) throw invalidField(`${path}.unitId`, `${unitId} is no id of GET /units`);
  const own = byId(held.unitId);
  if (own?.unitFamilyId !== wanted.unitFamilyId)
    throw invalidField(
      `${path}.unitId`,
      `${wanted.symbol} is of another family than ${own?.symbol ?? held.unitId}, the unit of the variable ` +
        `${held.id}: values are not converted between them`,
    );
}
