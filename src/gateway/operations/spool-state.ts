/** How full the spool is, for health and metrics. */

import { Gauge, type Registry } from "prom-client";
import type { SpoolState } from "../model.ts";
import type { HealthPart } from "./state-of-work.ts";

export function spoolHealth(state: SpoolState): HealthPart {
  return { part: "spool", ready: state.full === null, reason: state.full ?? usedWords(state) };
}

/**
 * Such as `80 % of its budget is in use, 10 % in the ledger's database, 62 % by 3 held runs (`headgate
 * quarantine` lists them)`.
 */
export function usedWords({ usedBytes, sharedBytes, budgetBytes, held }: SpoolState): string {
  const share = (bytes: number) => `${Math.round((bytes / budgetBytes) * 100)} %`;
  const shared = sharedBytes === 0 ? "" : `, ${share(sharedBytes)} in the ledger's database`;
  const words = `${share(usedBytes)} of its budget is in use${shared}`;
  if (held.runs === 0) return words;
  const runs = `${held.runs} held ${held.runs === 1 ? "run" : "runs"}`;
  return `${words}, ${share(held.bytes)} by ${runs} (\`headgate quarantine\` lists them)`;
}

export function measureSpool(registry: Registry, quota: { state(): Promise<SpoolState> }): void {
  const measure = (name: string, help: string, value: (state: SpoolState) => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        this.set(value(await quota.state()));
      },
    });
  measure("headgate_spool_bytes", "Bytes of files in the spool", (state) => state.usedBytes);
  measure(
    "headgate_spool_shared_bytes",
    "The part of these that is bodies of HTTP intakes that wait in the ledger's database, where all nodes have them",
    (state) => state.sharedBytes,
  );
  measure(
    "headgate_spool_held_bytes",
    "The part of these that belongs to held runs; 0 while little of the budget is in use",
    (state) => state.held.bytes,
  );
  measure("headgate_spool_budget_bytes", "`spool.budget`", (state) => state.budgetBytes);
  measure("headgate_spool_free_bytes", "Free space of the spool's disk", (state) => state.freeBytes);
  measure("headgate_spool_full", "1 while no files are taken, since the spool is full", (state) =>
    state.full === null ? 0 : 1,
  );
}
