/** The formulas of a calculated variable with what they read, ready to be calculated. */
import type { Calculated, Formula, FormulaVariable } from "#wire/calculated.ts";
import {
  AGGREGATES,
  type Aggregated,
  GRANULARITIES,
  type Granularity,
  ianaZone,
  type Unit,
  usualAggregate,
} from "#wire/index.ts";
import { targetUnits } from "../../data/conversion.ts";
import type { CalculatedVariable } from "../../store/calculated/calculated.ts";
import type { StoredVariable, VariableFacts } from "../../store/records.ts";
import type { CalculationStore } from "../../store/resources.ts";
import { PERIOD_RULE, readInstant } from "../../time.ts";
import { expressionIn, isExpression } from "../expression-text.ts";
import { unitOfTimeBase, type Validity } from "./parts.ts";
import type { InputPeriod, InputReach } from "./reach.ts";

export interface PlannedInput {
  readonly alias: string;
  readonly facts: VariableFacts;
  readonly stored: StoredVariable;
  readonly isCalculated: boolean;
  readonly reach: InputReach;
  /** Null: points as they are. */
  readonly aggregate: Aggregated | null;
  /** Empty: the unit of the variable. */
  readonly units: readonly Unit[];
}

export interface PlannedFormula extends Validity {
  readonly definition: Formula;
  /** Without the leading `=` of an expression. */
  readonly text: string;
  readonly isExpression: boolean;
  readonly inputs: readonly PlannedInput[];
}

export interface PlannedVariable {
  readonly facts: VariableFacts;
  readonly zone: string;
  readonly formulas: readonly PlannedFormula[];
}

/** Thrown where the definition cannot be calculated; the message is for its author. */
export class DefinitionFault extends Error {
  override readonly name = "DefinitionFault";
}

/** Finds the needs of an expression beside those that its definition says, by alias. */
export type ReachOfExpression = (
  definition: Formula,
  units: ReadonlyMap<string, number>,
) => Promise<ReadonlyMap<string, { readonly points: number; readonly granularities: readonly Granularity[] }>>;

export async function planned(
  store: CalculationStore,
  { variable, definition }: CalculatedVariable,
  reachOf: ReachOfExpression,
): Promise<PlannedVariable> {
  const zone = ianaZone(variable.sourceZoneId) ?? "UTC";
  const ids = [...new Set(inputsIn(definition).map(({ variableId }) => variableId))];
  const known = await knownInputs(store, variable.accountId, ids);
  const formulas: PlannedFormula[] = [];
  for (const formula of definition.calculatedVariableFormulas) {
    const text = formula.formula;
    // A client makes the variable first, and writes its formula later.
    if (text === undefined) continue;
    const isOne = isExpression(text);
    const inputs = (formula.variables ?? []).map((one) => plannedInput(one, known, zone));
    const units = new Map(inputs.map(({ alias, facts, units: [unit] }) => [alias, unit?.id ?? facts.unitId]));
    const reaches = isOne ? await reachOf(formula, units) : new Map();
    formulas.push({
      definition: formula,
      text: isOne ? expressionIn(text) : text,
      isExpression: isOne,
      fromMs: instantOf(formula.validFrom, zone),
      endMs: instantOf(formula.validUntil, zone),
      inputs: inputs.map((input) => {
        const more = reaches.get(input.alias);
        if (more === undefined) return input;
        const points = Math.max(input.reach.points, more.points);
        return { ...input, reach: { ...input.reach, points, collected: more.granularities } };
      }),
    });
  }
  return { facts: variable, zone, formulas };
}

function inputsIn({ calculatedVariableFormulas }: Calculated): readonly FormulaVariable[] {
  return calculatedVariableFormulas.flatMap(({ variables }) => variables ?? []);
}

type Known = ReadonlyMap<number, Pick<PlannedInput, "facts" | "stored" | "isCalculated">>;

async function knownInputs(store: CalculationStore, accountId: number, ids: readonly number[]): Promise<Known> {
  const facts = await store.points.select(accountId, { ids });
  const { rows } = await store.structure.variables(accountId, { ids }, { offset: 0, limit: null });
  const calculated = new Set((await store.calculated.list(accountId, ids)).map(({ variable }) => variable.id));
  const byId = new Map(rows.map((one) => [one.id, one]));
  return new Map(
    facts.flatMap((one) => {
      const stored = byId.get(one.id);
      return stored === undefined ? [] : [[one.id, { facts: one, stored, isCalculated: calculated.has(one.id) }]];
    }),
  );
}

function plannedInput(one: FormulaVariable, known: Known, zone: string): PlannedInput {
  const found = known.get(one.variableId);
  if (found === undefined) throw new DefinitionFault(`the input ${one.alias}: there is no variable ${one.variableId}`);
  const granularity = nameOf(GRANULARITIES, one.granularity) ?? "Raw";
  const named = nameOf(AGGREGATES, one.aggregation) ?? "None";
  const aggregate = named === "None" ? (usualAggregate(found.stored) ?? "AVG") : named;
  return {
    alias: one.alias,
    ...found,
    reach: {
      granularity,
      collected: [],
      period: periodOf(one, zone),
      points: one.periodType === LAST_POINTS ? (one.period ?? 0) : 0,
    },
    aggregate: granularity === "Raw" ? null : aggregate,
    units: targetUnits("unitId", one.unitId === undefined ? undefined : [one.unitId]),
  };
}

const RELATIVE = 1;
const ABSOLUTE = 2;
const LAST_POINTS = 3;

function periodOf(one: FormulaVariable, zone: string): InputPeriod {
  if (one.periodType === ABSOLUTE)
    return {
      kind: "absolute",
      fromMs: instantOf(one.fromAbsolutePeriod, zone),
      endMs: instantOf(one.toAbsolutePeriod, zone),
    };
  const unit = unitOfTimeBase(one.periodTimeBase ?? 0);
  if (one.periodType !== RELATIVE || unit === null || one.period === undefined) return { kind: "window" };
  return { kind: "relative", count: one.period, unit };
}

function nameOf<Name extends string>(numbers: Readonly<Record<Name, number>>, number: unknown): Name | undefined {
  const names = Object.keys(numbers) as Name[];
  return names.find((name) => numbers[name] === number || name === number);
}

/** Null: open. A date without designator is in the zone. */
function instantOf(text: string | undefined, zone: string): number | null {
  if (text === undefined) return null;
  const read = readInstant(text, zone, PERIOD_RULE);
  if (read.kind === "refused") throw new DefinitionFault(`${read.reason}: ${JSON.stringify(text)}`);
  return read.ms;
}
