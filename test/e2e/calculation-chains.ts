/**
 * Chains of five calculated variables, each of which reads the one before it and an input of its own. What they come to
 * is calculated by `calculation-oracle.py`.
 */
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect } from "vitest";
import { findUnit } from "#wire/index.ts";
import { createChain, type HubCalls } from "../hub/fixture.ts";
import { until } from "./wait.ts";

const ORACLE = fileURLToPath(new URL("./calculation-oracle.py", import.meta.url));
const ZONE = "Europe/Brussels";
const QUARTER_MS = 900_000;
export const DAY_MS = 96 * QUARTER_MS;
const LEVELS = 5;

/** Formulas by level: `c` is the level before, `i` the input. */
export const FORMULAS = [
  [
    "= consumption(i, 100000)",
    "= c * 0.25 + i",
    "= if(c > i, c, null)",
    "= previous(c) + coalesce(i, 0)",
    '= aggregate(c, "Day", "SUM") - hold(i)',
  ],
  ['= convert(i, "kWh")', "= c - i", "= delta(c) / i", "= max(c, i) ^ 2", '= cumulative(c, "Month") + i'],
  [
    "= sum(i, 1, 2)",
    "= hold(i) * c",
    '= aggregate(c, "Hour", "AVG") + i',
    "= rate(c) + i",
    '= hold(aggregate(c, "Day", "MAX")) - min(c, i)',
  ],
  [
    "= mean(i, 10)",
    "= c / (c + i)",
    "= round(c * 1000, 2) - i",
    "= abs(c - i) > 1 ? sqrt(abs(c)) : c * factor",
    "= coalesce(c, -1) * (1 + exists(i))",
  ],
] as const;
const KINDS = FORMULAS.length;

/** The value of an input; null: no point at that date. Numbers with few digits, so that sums are the same anywhere. */
function numberOf(chain: number, level: number, nth: number): number | null {
  const mixed = Math.imul(nth + 1, 2_654_435_761) ^ Math.imul(chain * LEVELS + level + 1, 40_503);
  const some = ((mixed >>> 8) % 4_000) / 8;
  const kind = chain % KINDS;
  // A counter with a range of 100,000.
  if (kind === 0 && level === 0) return (nth * 250 + (mixed >>> 25)) % 100_000;
  if (kind === 0 && level === 3) return mixed % 3 === 0 ? null : some;
  if (kind === 0 && level === 4) return nth % 40 === 0 ? some : null;
  if (kind === 1 && level === 2) return mixed % 5 === 0 ? 0 : some;
  if (kind === 2 && level === 1) return nth % 4 === 1 ? some : null;
  if (kind === 3 && level === 1) return some + 1;
  if (kind === 3 && level === 4) return mixed % 2 === 0 ? some : null;
  return some;
}

export interface Points {
  readonly at: number[];
  readonly values: number[];
}

export interface ScenePlan {
  readonly chains: number;
  /** The first date; midnight in Brussels. */
  readonly startMs: number;
}

/** Chains in a hub, with all that was pushed to their inputs. */
export class ChainScene {
  readonly #plan: ScenePlan;
  /** By chain and level. */
  inputIds: number[][] = [];
  calculatedIds: number[][] = [];
  #pushed = new Map<number, Map<number, number>>();

  constructor(plan: ScenePlan) {
    this.#plan = plan;
  }

  async createInputs(hub: HubCalls): Promise<void> {
    const wh = findUnit("Wh")?.id;
    const kwh = findUnit("kWh")?.id;
    for (let chain = 0; chain < this.#plan.chains; chain += 1) {
      const variables = Array.from({ length: LEVELS }, (_, level) => ({
        name: `input ${chain}.${level}`,
        unitId: chain % KINDS === 1 && level === 0 ? wh : kwh,
      }));
      const { variableIds } = await createChain(hub, { zone: ZONE, variables, source: { name: `Source ${chain}` } });
      this.inputIds.push(variableIds);
    }
    for (const id of this.inputIds.flat()) this.#pushed.set(id, new Map());
  }

  async createCalculated(hub: HubCalls): Promise<void> {
    for (const [chain, inputs] of this.inputIds.entries()) {
      const [{ sourceId }] = await hub.get("/variables", { Ids: inputs[0] ?? 0 });
      const ids: number[] = [];
      for (const [level, formula] of (FORMULAS[chain % KINDS] ?? []).entries()) {
        const variables = [
          { alias: "i", variableId: inputs[level] },
          ...(level === 0 ? [] : [{ alias: "c", variableId: ids[level - 1] }]),
        ];
        const formulas = [{ formula, variables, constants: [{ alias: "factor", value: 1.5 }] }];
        const body = { sourceId, name: `calculated ${chain}.${level}`, variableTypeId: 0, unitId: findUnit("kWh")?.id };
        const calculated = { calculatedVariableFormulas: formulas };
        ids.push(await hub.post("/variables", { ...body, isVersioned: true, calculated }));
      }
      this.calculatedIds.push(ids);
    }
  }

  /** Elements of a push: quarters of an hour by their number, of all inputs or those of some chains. */
  elements(from: number, until: number, chains = this.inputIds.keys().toArray(), change = 0): object[] {
    return chains.flatMap((chain) =>
      (this.inputIds[chain] ?? []).map((variableId, level) => {
        const data = [];
        for (let nth = from; nth < until; nth += 1) {
          const value = numberOf(chain, level, nth);
          if (value === null) continue;
          data.push({ date: new Date(this.#plan.startMs + nth * QUARTER_MS).toISOString(), value: value + change });
          this.#pushed.get(variableId)?.set(this.#plan.startMs + nth * QUARTER_MS, value + change);
        }
        return { variableId, data };
      }),
    );
  }

  /** Chains whose formulas have a value wherever their inputs have one, so that a change takes none away. */
  changeable(): number[] {
    return this.inputIds
      .keys()
      .filter((chain) => chain % KINDS >= 2)
      .toArray();
  }

  /** By chain and level, in the sequence of dates. */
  async expected(directory: string): Promise<Points[][]> {
    const [scene, result] = [join(directory, "scene.json"), join(directory, "result.json")];
    const chains = this.inputIds.map((ids) =>
      ids.map((id) => {
        const points = [...(this.#pushed.get(id) ?? [])].sort(([one], [other]) => one - other);
        return { at: points.map(([ms]) => ms), values: points.map(([, value]) => value) };
      }),
    );
    await writeFile(scene, JSON.stringify({ zone: ZONE, chains }));
    await promisify(execFile)("python3", [ORACLE, scene, result]);
    const read = JSON.parse(await readFile(result, "utf8")) as [number, number][][][];
    return read.map((levels) =>
      levels.map((points) => ({ at: points.map(([ms]) => ms), values: points.map(([, value]) => value) })),
    );
  }
}

/** Waits until nothing is due, nothing is calculated, and no operation waits. */
export async function idle(hub: HubCalls): Promise<void> {
  const isIdle = async (): Promise<boolean> => {
    const { pendingOperations } = await hub.ok("GET", "/health");
    return pendingOperations === 0 && (await hub.get("/calculations/progress")).length === 0;
  };
  await until("the end of all calculations", isIdle, IDLE_WAIT_MS);
}

const IDLE_WAIT_MS = 1_800_000;

interface ShownCalculation {
  readonly defaultVersion: string;
  readonly operationIds: readonly string[];
}

/** Every value as calculated apart, each once for each version, and every output in one operation. */
export async function expectCalculated(hub: HubCalls, scene: ChainScene, directory: string): Promise<void> {
  const expected = await scene.expected(directory);
  const ids = scene.calculatedIds;
  const calculations: ShownCalculation[] = await hub.get("/calculations", { "Paging.ItemsPerPage": 100_000 });
  for (const one of calculations) {
    const operations = await Promise.all(one.operationIds.map((id) => hub.get(`/operations/${id}`)));
    const stored = operations.reduce((sum, operation: { readonly stored: number }) => sum + operation.stored, 0);
    expect(one, "each operation stored once").toMatchObject({ state: "done", discarded: 0, stored });
  }
  const operationIds = calculations.flatMap((one) => one.operationIds);
  expect(new Set(operationIds).size).toBe(operationIds.length);
  expect(await hub.get("/operations", { State: "failed" })).toEqual([]);
  const versions = new Set(calculations.map(({ defaultVersion }) => defaultVersion));
  for (const [chain, levels] of expected.entries())
    for (const [level, points] of levels.entries())
      await expectPoints(hub, ids[chain]?.[level] ?? 0, points, versions, `chain ${chain}, level ${level}`);
}

interface ShownPoint {
  readonly date: string;
  readonly rawValue: number;
  readonly version: string | null;
}

async function expectPoints(
  hub: HubCalls,
  variableId: number,
  { at, values }: Points,
  versions: ReadonlySet<string>,
  where: string,
): Promise<void> {
  const asked = { VariableId: variableId, DisplayLevel: "ValueVariableDate", TimeZoneId: "UTC" };
  const latest: ShownPoint[] = await hub.get("/data", asked);
  expect(
    latest.map(({ date }) => Date.parse(date)),
    `${where}: dates`,
  ).toEqual(at);
  const wrong = latest.flatMap(({ date, rawValue }, nth) => {
    const value = values[nth] ?? Number.NaN;
    const near = Math.abs(rawValue - value) <= 1e-9 * Math.max(1, Math.abs(value));
    return near ? [] : [`${date}: ${rawValue}, and not ${value}`];
  });
  expect(wrong.slice(0, 5), `${where}: ${wrong.length} wrong values`).toEqual([]);
  const all: ShownPoint[] = await hub.get("/data", { ...asked, AllVersions: true });
  const keys = all.map(({ date, version }) => `${date} ${version}`);
  expect(new Set(keys).size, `${where}: each date once for each version`).toBe(keys.length);
  const strange = all.filter(({ version }) => version === null || !versions.has(version));
  expect(strange.slice(0, 5), `${where}: versions of no calculation`).toEqual([]);
}
