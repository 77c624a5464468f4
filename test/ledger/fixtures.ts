import type { Clock } from "#core/clock.ts";
import type { Ledger, MappedRecord, Sighting } from "#gateway/ledger/ledger.ts";
import type { BatchSlice, Binding, FileEntry, Outcome, Run } from "#gateway/model.ts";

/** A clock that goes on by a second at each look, so that times tell the order of what happened. */
export function steppingClock(): Clock {
  let at = Temporal.Instant.from("2026-03-01T00:00:00Z");
  return {
    now: () => {
      at = at.add({ seconds: 1 });
      return at;
    },
    monotonicMs: () => at.epochMilliseconds,
    sleep: async () => true,
  };
}

export const BINDING: Binding = {
  trigger: "monthly",
  service: "main",
  mapper: { name: "standard", version: "1.0.0", digest: "d1" },
  settings: { timeZone: "Europe/Brussels" },
  rows: "strict",
  limits: { pointsMax: 1000, bytesMax: 1_000_000 },
};

export function entry(path: string, size = 100, mtime = "1"): FileEntry {
  return { path, size, mtime };
}

/**
 * Two complete polls that show the same, since nothing has gone after one alone; told is what the first one
 * sighted.
 */
export async function list(ledger: Ledger, drop: string, entries: readonly FileEntry[]) {
  const { sightings, gone } = await listOnce(ledger, drop, entries);
  const again = await listOnce(ledger, drop, entries);
  return { sightings, gone: [...gone, ...again.gone] };
}

/** One complete poll. */
export async function listOnce(ledger: Ledger, drop: string, entries: readonly FileEntry[]) {
  const poll = await ledger.beginPoll(drop);
  const sightings = await poll.record(entries);
  return { sightings, ...(await poll.complete()) };
}

export async function sight(ledger: Ledger, path: string, drop = "field"): Promise<Sighting> {
  const poll = await ledger.beginPoll(drop);
  const [sighting] = await poll.record([entry(path)]);
  await poll.abandon();
  if (sighting === undefined) throw new Error("nothing was sighted");
  return sighting;
}

export async function claimed(ledger: Ledger, path: string, lane = "lane", binding: Binding = BINDING): Promise<Run> {
  const { arrival } = await sight(ledger, path);
  return ledger.openRun(arrival.id, binding, lane);
}

export function slice(sequence: string, points = 10, digest = `digest-${sequence}`): BatchSlice {
  return { sequence, offset: 0, length: 100, points, digest };
}

export function record(
  targets: readonly string[],
  slices: readonly BatchSlice[] = [slice("1")],
  kind = "sourceEan",
): MappedRecord {
  return {
    batches: slices,
    points: slices.reduce((sum, one) => sum + one.points, 0),
    rejected: [],
    rejectedCount: 0,
    findings: [],
    targets: targets.map((target) => ({ kind, target })),
    detail: "mapped",
  };
}

export async function mapped(
  ledger: Ledger,
  path: string,
  what: MappedRecord = record(["A"]),
  sha256 = `sha-${path}`,
): Promise<Run> {
  const run = await claimed(ledger, path);
  await ledger.advanceRun(run.id, "claimed", "fetched", { sha256 });
  await ledger.advanceRun(run.id, "fetched", "mapping");
  return ledger.recordMapped(run.id, what);
}

/** Delivers every batch, up to `accepted`. */
export async function deliver(ledger: Ledger, run: Run): Promise<Run> {
  await ledger.advanceRun(run.id, "mapped", "delivering");
  for (const batch of await ledger.batches(run.id)) {
    await ledger.advanceBatch(batch.operationId, "ready", "sending", { attempted: true });
    await ledger.advanceBatch(batch.operationId, "sending", "accepted", { answer: "200" });
  }
  return ledger.advanceRun(run.id, "delivering", "accepted");
}

export function outcome(operationId: string, stored: number, discarded = 0, by: Outcome["by"] = "webhook"): Outcome {
  return {
    operationId,
    by,
    received: stored + discarded,
    stored,
    discarded: discarded === 0 ? [] : [{ target: "sourceEan=A", reason: "unknown variable", points: discarded }],
    at: "2026-03-01T00:00:00.000Z",
  };
}
