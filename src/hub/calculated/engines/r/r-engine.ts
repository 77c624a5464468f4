/** The engine of R scripts that the configuration names. */
import { ConfigError } from "#core/errors.ts";
import type { CalculatedOptions } from "../../options.ts";
import type { CalculationEngine } from "../engine.ts";
import { failed } from "./output.ts";
import { RscriptEngine } from "./rscript-engine.ts";
import { WebrEngine } from "./webr-engine.ts";

/** Starts no process before the first run. */
export function createREngine(options: CalculatedOptions): CalculationEngine {
  if (options.engine === "rscript") return new RscriptEngine(options);
  if (options.engine === "none") return noEngine;
  const { memory, outputBytes, outputRows, processes, timeout, idle } = options;
  const times = { timeoutMs: timeout, idleMs: idle };
  return new WebrEngine({ memory, outputBytes, outputRows, processes, ...times, javaScript: false });
}

const noEngine: CalculationEngine = {
  run: async () => failed("this hub runs no R scripts (`calculated.engine: none`)"),
  close: async () => undefined,
};

/** A script whose value is known. */
const TRIAL = "list(TimeSeries = data.frame(Dates = 0L, Values = sqrt(1764)))";

/** Runs a trivial script as the configuration says, for `headgate check`; returns words, or throws what is wrong. */
export async function tryREngine(options: CalculatedOptions): Promise<string> {
  if (options.engine === "none") return "R scripts are refused (`calculated.engine: none`)";
  const engine = createREngine(options);
  try {
    const nothing = { variables: [], forms: [], constants: [], window: { fromMs: 0, toMs: 0 }, zone: "UTC" };
    const input = { accountId: 0, formula: TRIAL, defaultVersion: "", ...nothing };
    const result = await engine.run(input, AbortSignal.timeout(options.timeout + 120_000));
    if (result.kind === "computed" && result.values[0] === 42)
      return `the engine ${options.engine} runs R scripts${trust(options)}`;
    const message = result.kind === "failed" ? result.message : "a trivial script gave a wrong result";
    throw new ConfigError("HG-HUB-012", { operation: "try R", subject: options.engine, message });
  } finally {
    await engine.close();
  }
}

function trust({ engine, rscript }: CalculatedOptions): string {
  return engine === "rscript" && rscript.trusted ? ", without a sandbox (`calculated.rscript.trusted`)" : "";
}
