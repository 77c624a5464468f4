/** Reads what a formula sees of its inputs for one window. */
import { FORM_ENTITIES, UNITS } from "#wire/index.ts";
import { conversionOf } from "../../data/conversion.ts";
import { fieldValues } from "../../forms/slices.ts";
import type { PointRange, VariableFacts } from "../../store/records.ts";
import type { CalculationStore } from "../../store/resources.ts";
import type { InputForm, InputVariable } from "../engines/engine.ts";
import { DefinitionFault, type PlannedFormula, type PlannedInput } from "./formulas.ts";
import type { InputReader } from "./input-reader.ts";
import { type DirectedSteps, type Interval, type PointSteps, seenDates, union } from "./reach.ts";

const LATEST = { order: "ASC", view: { kind: "latest" } } as const;
const WHOLE = { offset: 0, limit: null } as const;

/** Steps from point to point of an input. */
export function stepsOf(store: CalculationStore, facts: VariableFacts): PointSteps {
  const after = (ms: number) => ({ fromMs: ms + 1, lastMs: null, order: "ASC" }) as const;
  const before = (ms: number) => ({ fromMs: null, lastMs: ms - 1, order: "DESC" }) as const;
  const directed = (beyond: (ms: number) => Dates): DirectedSteps => ({
    nth: (ms, count) => dateOf(store, facts, beyond(ms), count),
    next: (ms, limit) => datesOf(store, facts, beyond(ms), { offset: 0, limit }),
  });
  return { after: directed(after), before: directed(before) };
}

type Dates = Pick<PointRange, "fromMs" | "lastMs" | "order">;

/** The date of the n-th point, counted from 1; null: there are fewer. */
export async function dateOf(
  store: CalculationStore,
  facts: VariableFacts,
  dates: Dates,
  nth: number,
): Promise<number | null> {
  const [found] = await datesOf(store, facts, dates, { offset: nth - 1, limit: 1 });
  return found ?? null;
}

async function datesOf(
  { points }: CalculationStore,
  facts: VariableFacts,
  dates: Dates,
  page: PointRange["page"],
): Promise<readonly number[]> {
  const found: number[] = [];
  for await (const chunk of points.read(facts, { ...LATEST, ...dates, page, labels: false }))
    for (const { atMs } of chunk) found.push(atMs);
  return found;
}

/** From the first to the last point of the inputs; null: there is none. */
export async function extentOf(
  store: CalculationStore,
  inputs: readonly Pick<PlannedInput, "facts">[],
): Promise<Interval | null> {
  const variables = new Map(inputs.map(({ facts }) => [facts.id, facts]));
  const extents: Interval[] = [];
  for (const facts of variables.values()) {
    const fromMs = await dateOf(store, facts, { fromMs: null, lastMs: null, order: "ASC" }, 1);
    const toMs = await dateOf(store, facts, { fromMs: null, lastMs: null, order: "DESC" }, 1);
    if (fromMs !== null && toMs !== null) extents.push({ fromMs, toMs });
  }
  return extents.length === 0 ? null : extents.reduce(union);
}

export interface SeenParts {
  readonly store: CalculationStore;
  readonly reader: InputReader;
  readonly zone: string;
}

export async function readVariable(
  { store, reader, zone }: SeenParts,
  input: PlannedInput,
  window: Interval,
): Promise<InputVariable> {
  const { alias, facts, reach, units } = input;
  const seen = await seenDates(reach, window, zone, stepsOf(store, facts));
  const { unitId, convert } = conversionOf(facts, units);
  const bound = (ms: number | null) => (ms === null || !Number.isFinite(ms) ? null : ms);
  const isRaw = reach.granularity === "Raw" || input.aggregate === null;
  const dates = { fromMs: bound(seen.fromMs), lastMs: bound(seen.toMs), page: WHOLE };
  const range: PointRange = { ...LATEST, ...dates, ...(isRaw ? {} : { labels: false }) };
  const columns = await reader.columns({ input, unitId, convert, range, zone });
  return { alias, metadata: metadataOf(input), unitId, ...columns };
}

function metadataOf({ stored, facts, isCalculated }: PlannedInput): InputVariable["metadata"] {
  const { id, name, sourceId, variableTypeId, unitId, isVersioned } = stored;
  const { granularity = null, granularityTimeBase = null, quantityType = null } = stored;
  const { aggregate = null, mappingConfig = null, divider = null } = stored;
  const unit = UNITS.find((one) => one.id === unitId)?.name ?? null;
  const known = { id, name, sourceId, variableTypeId, unitId, unit, granularity, granularityTimeBase, quantityType };
  const zones = { timeZoneId: facts.sourceZoneId, siteTimeZoneId: facts.siteZoneId };
  return { ...known, aggregate, mappingConfig, divider, isVersioned: isVersioned === true, isCalculated, ...zones };
}

/** Values of the fields of forms that the formula names. */
export async function readForms(
  store: CalculationStore,
  accountId: number,
  { definition }: PlannedFormula,
): Promise<readonly InputForm[]> {
  const forms: InputForm[] = [];
  for (const { alias, entityType, siteId, sourceId, propId } of definition.entities ?? []) {
    const entity = entityType === FORM_ENTITIES.Site ? "site" : "source";
    const id = entity === "site" ? siteId : sourceId;
    const found = id === undefined ? null : await fieldValues(store, accountId, { entity, id, fieldId: propId });
    if (found === null)
      throw new DefinitionFault(`the entity ${alias}: there is no field ${propId} of ${entity} ${id}`);
    const timeSliced = found.slices.every(({ fromMs }) => Number.isFinite(fromMs));
    const held = found.slices.filter(({ value }) => value !== null);
    forms.push({
      alias,
      timeSliced,
      fromMs: timeSliced ? held.map(({ fromMs }) => fromMs) : [],
      untilMs: timeSliced ? held.map(({ endMs }) => (endMs >= FAR_END_MS ? null : endMs)) : [],
      values: held.map(({ value }) => plainValue(value)),
    });
  }
  return forms;
}

const FAR_END_MS = Date.UTC(9999, 11, 31);

/** Lists of references become text. */
function plainValue(value: unknown): string | number | boolean | null {
  if (value === null || typeof value === "string" || typeof value === "number" || typeof value === "boolean")
    return value;
  return JSON.stringify(value);
}
