/** A thread that starts a script without an end, and posts the id of its process. */
import { parentPort, workerData } from "node:worker_threads";
import { WebrEngine } from "#hub/calculated/engines/r/r-engine.ts";
import { calculatedOptions } from "#hub/calculated/options.ts";

const limits = calculatedOptions.parse({});
const engine = new WebrEngine({
  ...{ memory: 400e6, outputBytes: limits.outputBytes, outputRows: limits.outputRows },
  ...{ processes: 1, idleMs: 60_000, timeoutMs: 600_000, javaScript: false },
});
const common = { accountId: 1, defaultVersion: "", zone: "UTC", window: { fromMs: 0, toMs: 0 } };
const run = (formula: string) =>
  engine.run({ ...common, formula, variables: [], forms: [], constants: [] }, new AbortController().signal);

await run("list(TimeSeries = data.frame(Dates = 0L, Values = 1))");
void run(String(workerData));
parentPort?.postMessage(engine.pids[0]);
