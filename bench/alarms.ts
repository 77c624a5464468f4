/** What ten thousand alarms cost the ingestion of the points that they watch, beside a hub without any. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BenchHub, startBenchHub } from "./hub-client.ts";
import { bodyOf, pieces, prefill, STEPS_A_DAY } from "./hub-data.ts";
import { print, quantile, row } from "./hub-print.ts";

const ALARMS = Number(process.env["HEADGATE_BENCH_ALARMS"] ?? 10_000);
const ROUNDS = Number(process.env["HEADGATE_BENCH_ROUNDS"] ?? 3);
const PUSH_SIZE = 10_000;
const WANTED = 0.9;
const POLL_MS = 50;
/** Above nearly all values: `valueAt` in hub-data.ts is below 1,000. Few alarms change, as on ordinary days. */
const SET = 999.9;
/** Alarms are evaluated after the answer: the other hub must not pay for it. */
const PAUSE_MS = 3_000;

export async function benchAlarms(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-"));
  try {
    const hubs = { none: await hubIn(join(folder, "none")), alarms: await hubIn(join(folder, "alarms")) };
    await watch(hubs.alarms);
    const rates = { none: [] as number[], alarms: [] as number[] };
    const cpu = { none: [] as number[], alarms: [] as number[] };
    print(`alarms: a day of ${ALARMS} variables by quarter-hours, ${PUSH_SIZE} points a push, ${ROUNDS} rounds`);
    print(row("points/s, CPU s", "none", `${ALARMS} alarms`, "ratio"));
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const kind of round % 2 === 0 ? (["none", "alarms"] as const) : (["alarms", "none"] as const))
        await measured(hubs[kind], round, rates[kind], cpu[kind]);
      const [none = Number.NaN, alarms = Number.NaN] = [rates.none.at(-1), rates.alarms.at(-1)];
      print(row(`round ${round + 1}`, none.toFixed(0), alarms.toFixed(0), (alarms / none).toFixed(2)));
      const [own = Number.NaN, more = Number.NaN] = [cpu.none.at(-1), cpu.alarms.at(-1)];
      print(row("", own.toFixed(2), more.toFixed(2), (own / more).toFixed(2)));
    }
    const ratio = quantile(rates.alarms, 0.5) / quantile(rates.none, 0.5);
    const ofCpu = quantile(cpu.none, 0.5) / quantile(cpu.alarms, 0.5);
    print(`by the medians: ${ratio.toFixed(2)}, by CPU seconds ${ofCpu.toFixed(2)}; at least ${WANTED} is wanted`);
    const peaks = [await hubs.none.stop(), await hubs.alarms.stop()].map((peak) => peak.toFixed(0));
    print(`peaks of the hubs' memory: ${peaks.join(" and ")} MB`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function hubIn(name: string): Promise<BenchHub> {
  const path = `${name}.sqlite`;
  await prefill(path, ALARMS, 0);
  return startBenchHub({ kind: "sqlite", path });
}

/** One template has an alarm at each variable. */
async function watch(hub: BenchHub): Promise<void> {
  await hub.call("POST", "/alarms/template", {
    name: "High",
    selection: { variableTypeIds: [0] },
    condition: { kind: "Above", set: SET, reset: SET - 10 },
  });
  for (let found = 0; found < ALARMS; ) {
    const templates = JSON.parse(await hub.call("GET", "/alarms/template")) as { readonly alarms: number }[];
    found = templates[0]?.alarms ?? 0;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** A day of points. CPU seconds count what alarms do after the last outcome, too. */
async function measured(hub: BenchHub, day: number, rates: number[], cpu: number[]): Promise<void> {
  const began = await hub.cpuSeconds();
  rates.push(await pushDay(hub, day));
  cpu.push((await hub.cpuSeconds()) - began);
}

/** Points a second from the first byte sent to the last outcome. */
async function pushDay(hub: BenchHub, day: number): Promise<number> {
  const all = { firstVariable: 1, variables: ALARMS, firstStep: day * STEPS_A_DAY, steps: STEPS_A_DAY };
  const bodies = [...pieces("day", all, PUSH_SIZE)].map(bodyOf);
  const began = performance.now();
  const client = async () => {
    for (let body = bodies.shift(); body !== undefined; body = bodies.shift()) await hub.push(body);
  };
  await Promise.all([client(), client()]);
  await hub.drained();
  const rate = (ALARMS * STEPS_A_DAY) / ((performance.now() - began) / 1_000);
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  return rate;
}
