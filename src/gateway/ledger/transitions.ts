/**
 * The permitted transitions between states, asserted before a record is written, and the fault points beside
 * each commit.
 */

import { InvariantError } from "#core/errors.ts";
import { faultPoint, isFaultArmed } from "#core/faults.ts";
import type { Settled } from "#core/promises.ts";
import type { ArrivalState, BatchState, RunState } from "../model.ts";
import { ARRIVAL_STATES, BATCH_STATES, RUN_STATES } from "../states.ts";

const TABLES = { arrival: ARRIVAL_STATES, run: RUN_STATES, batch: BATCH_STATES } as const;

interface StateOf {
  arrival: ArrivalState;
  run: RunState;
  batch: BatchState;
}

/** Throws `InvariantError` when `to` may not follow `from`. */
export function assertTransition<Kind extends keyof StateOf>(
  kind: Kind,
  subject: string | number,
  from: StateOf[Kind],
  to: StateOf[Kind],
): void {
  const table: Readonly<Record<string, { readonly next: readonly string[] }>> = TABLES[kind];
  if (table[from]?.next.includes(to) === true) return;
  throw brokenInvariant(`advance ${kind}`, String(subject), `${kind} ${subject} may not go from ${from} to ${to}`);
}

export function brokenInvariant(operation: string, subject: string, message: string): InvariantError {
  return new InvariantError("HG-BUG-001", { operation, subject, message });
}

/** Passes the fault points of those of the writes that succeeded. */
export function reach(
  side: "before" | "after",
  writes: readonly { readonly what: readonly string[] }[],
  done: readonly Settled<unknown>[],
): void {
  if (!isFaultArmed()) return;
  for (const [at, { what }] of writes.entries())
    if (done[at]?.status === "fulfilled") for (const one of what) faultPoint(`ledger.${one}.${side}`);
}

const COMMITS = [
  ...Object.entries(TABLES).flatMap(([kind, states]) => Object.keys(states).map((state) => `${kind}.${state}`)),
  "run.noted",
  "outcome.recorded",
  "event.added",
  "poll.recorded",
  "poll.completed",
  "arrivals.pruned",
  "arrivals.forgotten",
  "pause.changed",
  "finished.changed",
] as const;

/**
 * Every fault point of the ledger: `ledger.<what>.before` the commit, when nothing is durable yet, and
 * `.after` it.
 */
export const FAULT_POINTS: readonly string[] = COMMITS.flatMap((what) => [
  `ledger.${what}.before`,
  `ledger.${what}.after`,
]);
