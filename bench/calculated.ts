/**
 * Calculated variables: the time to the answer of pushes that trigger a hundred calculations, beside pushes of the same
 * size that trigger none, and the rate at which a history is calculated, beside pushes of as many points.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BenchHub, startBenchHub } from "./hub-client.ts";
import { bodyOf, dateOf, pieces, prefill, STEPS_A_YEAR } from "./hub-data.ts";
import { print, quantile, row } from "./hub-print.ts";

/** Of `push`, `expressions` and `scripts`. */
const PARTS = process.env["HEADGATE_BENCH_PARTS"]?.split(",") ?? ["push", "expressions", "scripts"];
const ROUNDS = Number(process.env["HEADGATE_BENCH_ROUNDS"] ?? 20);
const TRIGGERED = 100;
const POINTS_EACH = 100;
const WANTED = 1.2;
const POLL_MS = 20;
const PUSH_SIZE = 10_000;

const EXPRESSION = "= a * 2 + 1";
const SCRIPT = `series <- inputVariables$a$TimeSeries
list(TimeSeries = data.frame(Dates = series$Dates, Values = series$Values * 2 + 1, stringsAsFactors = FALSE))`;

export async function benchCalculated(): Promise<void> {
  if (PARTS.includes("push")) await inFolder(pushes);
  if (PARTS.includes("expressions")) await inFolder((path) => history(path, "expression", EXPRESSION, 20));
  if (PARTS.includes("scripts")) await inFolder((path) => history(path, "R script (webR)", SCRIPT, 4));
}

async function inFolder(work: (path: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-"));
  try {
    await work(join(folder, "hub.sqlite"));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Variables 1 to 100 are read by a calculated one each; 101 to 200 by none. */
async function pushes(path: string): Promise<void> {
  await prefill(path, 2 * TRIGGERED, 0);
  const hub = await startBenchHub({ kind: "sqlite", path });
  for (let id = 1; id <= TRIGGERED; id += 1) await calculate(hub, id, EXPRESSION);
  await settled(hub);
  const times = { plain: [[], []] as number[][], triggering: [[], []] as number[][] };
  for (let round = 0; round < ROUNDS; round += 1)
    for (const kind of ["plain", "triggering"] as const) {
      const firstVariable = kind === "plain" ? TRIGGERED + 1 : 1;
      // The second comes while the calculations of the first run.
      for (const nth of [0, 1]) {
        const firstStep = (2 * round + nth) * POINTS_EACH;
        const body = bodyOf({ firstVariable, variables: TRIGGERED, firstStep, steps: POINTS_EACH });
        times[kind][nth]?.push(await hub.push(body));
      }
      await hub.drained();
      await settled(hub);
    }
  print(`calculated: pushes of ${TRIGGERED * POINTS_EACH} points; milliseconds to the answer, of ${ROUNDS}`);
  print(row("", "none", "90 %", `${TRIGGERED} calc.`, "90 %", "ratio"));
  for (const [nth, name] of ["first", "next, while they run"].entries()) {
    const [plain, triggering] = [times.plain[nth] ?? [], times.triggering[nth] ?? []];
    const medians = [quantile(plain, 0.5), quantile(triggering, 0.5)] as const;
    const cells = [medians[0], quantile(plain, 0.9), medians[1], quantile(triggering, 0.9)];
    print(row(name, ...cells.map((ms) => ms.toFixed(1)), (medians[1] / medians[0]).toFixed(2)));
  }
  print(`a ratio of at most ${WANTED} is wanted`);
  print(`peak of the hub's memory: ${(await hub.stop()).toFixed(0)} MB`);
}

/** A year of some variables, pushed into as many, and calculated from them. */
async function history(path: string, name: string, formula: string, variables: number): Promise<void> {
  await prefill(path, variables, 0);
  const hub = await startBenchHub({ kind: "sqlite", path });
  const year = { firstVariable: 1, variables, firstStep: 0, steps: STEPS_A_YEAR };
  const points = variables * STEPS_A_YEAR;
  const bodies = [...pieces("variable", year, PUSH_SIZE)].map(bodyOf);
  const pushed = await seconds(async () => {
    for (const body of bodies) await hub.push(body);
    await hub.drained();
  });
  const calculated = await seconds(async () => {
    for (let id = 1; id <= variables; id += 1) await calculate(hub, id, formula);
    await settled(hub);
  });
  const found = JSON.parse(await hub.query({ VariableId: variables + 1, Granularity: "All", Aggregation: "COUNT" }));
  if (found[0]?.countValue !== STEPS_A_YEAR) throw new Error(`calculated ${JSON.stringify(found)}`);
  print(`\nback-fill by ${name}: ${variables} variables with a year of quarter-hours`);
  print(row("points/s", "pushed", "calculated", "ratio"));
  const rates = [points / pushed, points / calculated] as const;
  print(row("", rates[0].toFixed(0), rates[1].toFixed(0), (rates[1] / rates[0]).toFixed(2)));
  print(`peak of the hub's memory: ${(await hub.stop()).toFixed(0)} MB`);
}

async function calculate(hub: BenchHub, id: number, formula: string): Promise<void> {
  const formulas = [{ formula, variables: [{ alias: "a", variableId: id }] }];
  await hub.call("POST", "/variables", {
    name: "Calculated",
    sourceId: id,
    variableTypeId: 0,
    unitId: 8,
    calculated: { calculatedVariableFormulas: formulas },
  });
}

/** Until nothing is due or calculated. */
async function settled(hub: BenchHub): Promise<void> {
  for (;;) {
    const open = JSON.parse(await hub.call("GET", "/calculations/progress")) as unknown[];
    if (open.length === 0) break;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  const failed = JSON.parse(await hub.call("GET", "/calculations?State=failed")) as unknown[];
  if (failed.length > 0) throw new Error(`failed: ${JSON.stringify(failed[0])} at ${dateOf(0)}`);
}

async function seconds(work: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1_000;
}
