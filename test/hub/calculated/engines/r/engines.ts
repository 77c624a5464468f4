/** Both engines of R scripts, for suites that hold on each. Debian's R must be there in CI. */
import { existsSync } from "node:fs";
import type { CalculationEngine, CalculationInput, CalculationResult } from "#hub/calculated/engines/engine.ts";
import { createREngine } from "#hub/calculated/engines/r/r-engine.ts";
import { calculatedOptions } from "#hub/calculated/options.ts";

const NEEDED = ["/usr/bin/Rscript", "/usr/bin/bwrap"];

/** The engines of this machine: `rscript` may be absent outside of CI. */
export function engineNames(): readonly ("webr" | "rscript")[] {
  const missing = NEEDED.filter((path) => !existsSync(path));
  if (missing.length === 0) return ["webr", "rscript"];
  const words = `${missing.join(" and ")} not installed; .ci/install-servers.sh does that on Debian`;
  if ((process.env["CI"] ?? "") !== "") throw new Error(`${words}, and CI leaves nothing out`);
  console.info(`skipped: the engine rscript: ${words}`);
  return ["webr"];
}

export function openEngine(engine: "webr" | "rscript", more: object = {}): CalculationEngine {
  return createREngine(calculatedOptions.parse({ engine, processes: 1, ...more }));
}

export const input = (formula: string, more: Partial<CalculationInput> = {}): CalculationInput => ({
  accountId: 1,
  formula,
  defaultVersion: "2026-03-01T10:00:00",
  zone: "Europe/Brussels",
  window: { fromMs: 0, toMs: 1_800_000 },
  variables: [],
  forms: [],
  constants: [],
  ...more,
});

export function run(engine: CalculationEngine, formula: string, more: Partial<CalculationInput> = {}) {
  return engine.run(input(formula, more), new AbortController().signal);
}

export async function messageOf(result: Promise<CalculationResult>): Promise<string> {
  const found = await result;
  return found.kind === "failed" ? found.message : `computed ${found.values.length} rows`;
}
