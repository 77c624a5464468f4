/** How full the spool is, as health and metrics tell it. */
import { Gauge, type Registry } from "prom-client";
import type { HealthPart } from "./state-of-work.ts";

export interface SpoolState {
  readonly usedBytes: number;
  readonly budgetBytes: number;
  readonly freeBytes: number;
  /** Why no files are taken, in words; null while they are. */
  readonly full: string | null;
}

export function spoolHealth({ usedBytes, budgetBytes, full }: SpoolState): HealthPart {
  const share = Math.round((usedBytes / budgetBytes) * 100);
  return { part: "spool", ready: full === null, reason: full ?? `${share} % of its budget is in use` };
}

export function measureSpool(registry: Registry, room: { state(): Promise<SpoolState> }): void {
  const measure = (name: string, help: string, value: (state: SpoolState) => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        this.set(value(await room.state()));
      },
    });
  measure("headgate_spool_bytes", "Bytes of files under way in the spool", (state) => state.usedBytes);
  measure("headgate_spool_budget_bytes", "`spool.budget`", (state) => state.budgetBytes);
  measure("headgate_spool_free_bytes", "Free space of the spool's disk", (state) => state.freeBytes);
  measure("headgate_spool_full", "1 while no files are taken, since the spool is full", (state) =>
    state.full === null ? 0 : 1,
  );
}
