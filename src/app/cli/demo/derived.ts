/** The part of the demo in which the hub itself adds to the points: a calculated variable, and an alarm on it. */
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { call, type SentTo } from "./devices.ts";
import type { Derived } from "./scenario.ts";

type Hub = Pick<SentTo, "hubUrl" | "token">;

/** A line of the summary. */
export interface Outcome {
  readonly what: "calculated" | "alarm";
  readonly name: string;
  readonly found: string;
  readonly detail: string;
  readonly fault: string | null;
}

const named = z.array(z.object({ id: z.int(), name: z.string(), mappingConfig: z.string().nullish() }));
const counted = z.array(z.object({ countValue: z.int() }));
const alarms = z.array(z.object({ state: z.string(), since: z.string().nullable(), value: z.number().nullable() }));
const POLL_MS = 200;
/** Sums have a rounding error in the last of their 17. */
const DIGITS = 6;

/** Adds variable and alarm, where they are not there yet. Returns the id of the variable. */
export async function buildDerived(hub: Hub, { calculated, alarm }: Derived): Promise<number> {
  const { source, variable, formula, mappingConfig, inputs } = calculated;
  const sourceId = await sourceOf(hub, source);
  const known = (await variablesOf(hub, sourceId)).find(({ name }) => name === variable.name);
  if (known !== undefined) return known.id;
  const variables: object[] = [];
  for (const [alias, serialNumber] of Object.entries(inputs)) {
    const own = await variablesOf(hub, await sourceOf(hub, serialNumber));
    const variableId = own.find((one) => one.mappingConfig === mappingConfig)?.id;
    variables.push({ alias, variableId });
  }
  const body = { ...variable, sourceId, calculated: { calculatedVariableFormulas: [{ formula, variables }] } };
  const id = z.int().parse(await (await call(hub, "/variables", body)).json());
  const { ends: _, ...template } = alarm;
  await call(hub, "/alarms/template", { ...template, selection: { variableIds: [id] } });
  return id;
}

async function sourceOf(hub: Hub, serialNumber: string): Promise<number> {
  const [found] = named.parse(await (await call(hub, `/sources?SerialNumber=${serialNumber}`)).json());
  if (found === undefined) throw new Error(`the hub has no source ${serialNumber}`);
  return found.id;
}

async function variablesOf(hub: Hub, sourceId: number): Promise<z.output<typeof named>> {
  return named.parse(await (await call(hub, `/variables?SourceId=${sourceId}`)).json());
}

/** Resolves when nothing is due and all is as expected, or with the signal. */
export async function derivedOutcomes(
  hub: Hub,
  variableId: number,
  derived: Derived,
  signal: AbortSignal,
): Promise<readonly Outcome[]> {
  for (;;) {
    const outcomes = [await calculatedOutcome(hub, variableId, derived), await alarmOutcome(hub, variableId, derived)];
    if (signal.aborted || outcomes.every(({ fault }) => fault === null)) return outcomes;
    await sleep(POLL_MS, undefined, { signal }).catch(() => undefined); // The signal ends the loop.
  }
}

async function calculatedOutcome(hub: Hub, id: number, { calculated }: Derived): Promise<Outcome> {
  const open = z.array(z.unknown()).parse(await (await call(hub, `/calculations/progress?VariableIds=${id}`)).json());
  const query = `VariableIds=${id}&Granularity=All&Aggregation=COUNT`;
  const [row] = counted.parse(await (await call(hub, `/data?${query}`)).json());
  const points = row?.countValue ?? 0;
  const fault =
    open.length > 0 ? "is still due" : points === calculated.points ? null : `should have ${calculated.points} points`;
  const found = open.length > 0 ? "due" : "calculated";
  const { name } = calculated.variable;
  return { what: "calculated", name, found, detail: `${points} points, ${calculated.formula}`, fault };
}

async function alarmOutcome(hub: Hub, id: number, { alarm }: Derived): Promise<Outcome> {
  const [row] = alarms.parse(await (await call(hub, `/alarms?variableIds=${id}`)).json());
  const found = row?.state ?? "missing";
  const value = row?.value == null ? "" : `${Number(row.value.toPrecision(DIGITS))} at ${row.since}`;
  const fault = found === alarm.ends ? null : `should have ended ${alarm.ends}`;
  return { what: "alarm", name: alarm.name, found, detail: value, fault };
}
