/**
 * Log lines that matter to an operator: runs that need attention, services that fail and recover. Each line is
 * written once, where it is decided.
 */

import type { Logger } from "#core/log.ts";
import { placeWords } from "#core/text.ts";
import type { Run } from "../model.ts";
import { RUN_STATES } from "../states.ts";

/** Logs each run whose state changed; a run that needs a person is a warning with the reason in words. */
export function logRunState(run: Run, log: Logger): void {
  if (!RUN_STATES[run.state].needsAttention) return;
  const { reason } = run;
  log.warn(
    {
      run: run.id,
      drop: run.drop,
      file: run.path,
      trigger: run.binding.trigger,
      state: run.state,
      code: reason?.code ?? null,
      ...(reason?.place === undefined ? {} : { place: reason.place }),
      ...(reason?.hint === undefined ? {} : { hint: reason.hint }),
    },
    runWords(run),
  );
}

/** `a.csv at field is quarantined: the value is no number (row 3, column kWh)` */
export function runWords({ path, drop, state, reason }: Pick<Run, "path" | "drop" | "state" | "reason">): string {
  const why = reason === null || reason.message === "" ? "" : `: ${reason.message}`;
  return `${path} at ${drop} is ${state}${why}${placeWords(reason?.place, " (", ")")}`;
}

/** `down` and `up` alternate for each service; a service that was not used yet has no state. */
export interface ServiceState {
  readonly state: "down" | "up";
  /** Why it is down. */
  readonly reason: string | null;
  /** Why it could not be used when it was down last; null when it never was. */
  readonly lastReason: string | null;
}

/** The state of each service since the start. */
export class ServiceLog {
  readonly #log: Logger;
  readonly #states = new Map<string, ServiceState>();

  constructor(log: Logger) {
    this.#log = log;
  }

  states(): ReadonlyMap<string, ServiceState> {
    return this.#states;
  }

  /** `reason`: why the service cannot be used now; null when it was used with success. */
  note(service: string, reason: string | null): void {
    const known = this.#states.get(service);
    const before = known?.state;
    const state = reason === null ? "up" : "down";
    this.#states.set(service, { state, reason, lastReason: reason ?? known?.lastReason ?? null });
    if (state === before) return;
    if (reason !== null) this.#log.warn({ service, reason }, `the service ${service} cannot be used: ${reason}`);
    else if (before === "down") this.#log.info({ service }, `the service ${service} can be used again`);
  }
}
