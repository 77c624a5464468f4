/** Calculated variables of a hub, for tests. */
import { createChain, type HubCalls, until } from "../fixture.ts";

export interface FormulaOfTest {
  readonly formula: string;
  readonly variables?: readonly Readonly<Record<string, unknown>>[];
  readonly [field: string]: unknown;
}

export interface Scene {
  readonly sourceId: number;
  /** A variable that points are pushed to. */
  readonly inputs: readonly number[];
}

export async function openScene(hub: HubCalls, inputs = 1, variable: object = {}): Promise<Scene> {
  const variables = Array.from({ length: inputs }, () => variable);
  const { sourceId, variableIds } = await createChain(hub, { zone: "Europe/Paris", variables });
  return { sourceId, inputs: variableIds };
}

/** `inputs`: variables by their aliases. Returns the id. */
export function calculate(
  hub: HubCalls,
  { sourceId }: Scene,
  formula: string,
  inputs: Readonly<Record<string, number>>,
  more: { readonly variable?: object; readonly input?: object; readonly formula?: object } = {},
): Promise<number> {
  const variables = Object.entries(inputs).map(([alias, variableId]) => ({ alias, variableId, ...more.input }));
  return hub.post("/variables", {
    ...{ name: "Calculated", sourceId, variableTypeId: 0, unitId: 8, ...more.variable },
    calculated: { calculatedVariableFormulas: [{ formula, variables, ...more.formula }] },
  });
}

/** Dates with values: `2026-03-01T00:00Z` is a date of the push as it is. */
export function pushValues(hub: HubCalls, variableId: number, values: Readonly<Record<string, number>>) {
  const data = Object.entries(values).map(([date, value]) => ({ date, value }));
  return hub.push([{ variableId, data }]);
}

/** Resolves when nothing is due and nothing runs. */
export async function untilCalculated(hub: HubCalls): Promise<void> {
  await until(async () => ((await hub.get("/calculations/progress")).length === 0 ? true : undefined));
}

/** Latest values by their dates in UTC. */
export async function valuesOf(hub: HubCalls, variableId: number): Promise<Record<string, number>> {
  const rows: { date: string; rawValue: number }[] = await hub.get("/data", {
    VariableIds: [variableId],
    DisplayLevel: "ValueVariableDate",
    TimeZoneId: "UTC",
  });
  return Object.fromEntries(rows.map(({ date, rawValue }) => [date.replace("+00:00", "Z"), rawValue]));
}

/** Version and value of each version of each point. */
export async function versionsOf(hub: HubCalls, variableId: number): Promise<readonly [string | null, number][]> {
  const rows: { version: string | null; rawValue: number }[] = await hub.get("/data", {
    VariableIds: [variableId],
    DisplayLevel: "ValueVariableDate",
    AllVersions: true,
  });
  return rows.map(({ version, rawValue }) => [version, rawValue]);
}

export interface ShownCalculation {
  readonly id: number;
  readonly variableId: number;
  readonly state: string;
  readonly outputs: number;
  readonly stored: number;
  readonly discarded: number;
  readonly message: string | null;
  readonly progress: number;
  readonly defaultVersion: string;
}

/** The oldest first. */
export async function calculationsOf(hub: HubCalls, ...variableIds: number[]): Promise<readonly ShownCalculation[]> {
  const found: ShownCalculation[] = await hub.get("/calculations", { VariableIds: variableIds });
  return found.toReversed();
}
