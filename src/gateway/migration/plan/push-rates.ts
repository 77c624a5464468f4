/** The rate of earlier pushes to the service, from the ledgers of migrations. */
import { existsSync } from "node:fs";
import { systemClock } from "#core/clock.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { openLedger } from "../../ledger/open.ts";
import { SENT_STATES } from "../../states.ts";
import type { KnownMigration } from "../report/reports.ts";
import { migrationLedger } from "../request.ts";
import type { Sending } from "./estimate.ts";

/**
 * A longer pause between two batches means that nothing was being sent: the migration was stopped, or waited for its
 * hours.
 */
const IDLE_MS = 5_000;
const RUNS_SAMPLED = 200;
/** A shorter time is too uncertain. */
const MEASURED_MS = 1_000;

/** The rate of the first ledger that has one. */
export async function measuredBefore(
  migrations: readonly Pick<KnownMigration, "id" | "folder">[],
): Promise<Sending["measured"]> {
  for (const { id, folder } of migrations) {
    const place = migrationLedger(folder);
    if (!existsSync(place.path)) continue;
    const ledger = await openLedger(place, { clock: systemClock, readOnly: true });
    try {
      const pointsPerSecond = await pushRateOf(ledger);
      if (pointsPerSecond !== null) return { pointsPerSecond, migration: id };
    } finally {
      await ledger.close();
    }
  }
  return null;
}

// The rate at which an earlier migration was sent, from the batches in its ledger.

/** Readings a second of the newest runs; null when too little was sent to measure. */
export async function pushRateOf(ledger: Pick<Ledger, "recentRuns" | "batches">): Promise<number | null> {
  const answers: { readonly atMs: number; readonly points: number }[] = [];
  for (const run of await ledger.recentRuns(RUNS_SAMPLED, SENT_STATES))
    for (const { acceptedAt, points } of await ledger.batches(run.id))
      if (acceptedAt !== null) answers.push({ atMs: Date.parse(acceptedAt), points });
  answers.sort((one, other) => one.atMs - other.atMs);
  let [busyMs, points] = [0, 0];
  for (const [at, answer] of answers.entries()) {
    const sinceMs = answer.atMs - (answers[at - 1]?.atMs ?? Number.NEGATIVE_INFINITY);
    if (sinceMs > IDLE_MS) continue;
    busyMs += sinceMs;
    points += answer.points;
  }
  return busyMs < MEASURED_MS ? null : (points * 1000) / busyMs;
}
