/** Inputs of expressions for tests, and what becomes of them. */
import type { CalculationInput, InputVariable } from "#hub/calculated/engines/engine.ts";
import { computeExpression } from "#hub/calculated/engines/expressions/expressions.ts";
import { findUnit } from "#wire/index.ts";

export const HOUR = 3_600_000;
export const MEMORY = 512_000_000;
export const START = Date.UTC(2026, 2, 1, 12);

/** Points by hour from `START`; null: no point there. */
export function hourly(
  alias: string,
  values: readonly (number | null)[],
  more: { readonly unit?: string; readonly versions?: readonly (string | null)[]; readonly stepMs?: number } = {},
): InputVariable {
  const points = values.flatMap((value, at) => (value === null ? [] : [{ value, at }]));
  return {
    alias,
    metadata: {},
    unitId: findUnit(more.unit ?? "kWh")?.id ?? 0,
    atMs: Float64Array.from(points, ({ at }) => START + at * (more.stepMs ?? HOUR)),
    values: Float64Array.from(points, ({ value }) => value),
    versions: more.versions === undefined ? null : points.map(({ at }) => more.versions?.[at] ?? null),
    tags: null,
  };
}

export type Inputs = Partial<Omit<CalculationInput, "formula">>;

export const inputOf = (formula: string, inputs: Inputs): CalculationInput => ({
  accountId: 1,
  formula,
  defaultVersion: "2026-03-02T00:00:00",
  zone: "UTC",
  window: { fromMs: -8.64e15, toMs: 8.64e15 },
  variables: [],
  forms: [],
  constants: [],
  ...inputs,
});

export async function run(formula: string, inputs: Inputs) {
  return await computeExpression(inputOf(formula, inputs), MEMORY);
}

/** Of a computation: values by the hour from `START`, versions and warnings. */
export async function computed(formula: string, inputs: Inputs) {
  const result = await run(formula, inputs);
  if (result.kind === "failed") throw new Error(result.message);
  const at = Array.from(result.atMs, (ms) => (ms - START) / HOUR);
  return { at, values: [...result.values], versions: result.versions, warnings: result.warnings };
}

/** Values at each hour; null: none. */
export async function byHour(formula: string, ...variables: readonly InputVariable[]): Promise<(number | null)[]> {
  const { at, values } = await computed(formula, { variables });
  const last = Math.max(...variables.flatMap(({ atMs }) => [...atMs])) - START;
  return Array.from({ length: last / HOUR + 1 }, (_, hour) => values[at.indexOf(hour)] ?? null);
}
