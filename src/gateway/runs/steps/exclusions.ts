/**
 * The readings that a replay leaves out: those whose dates later runs have delivered (invariant 7), unless the command
 * overwrites them, and, where only the rest is wanted, readings that the service accepted before.
 */

import { RejectedError } from "#core/errors.ts";
import { bodiesOf, parseBody, ReadingSet, readingsOf } from "#mapping/segment/payloads.ts";
import type { Ledger, TargetKey } from "../../ledger/ledger.ts";
import { type Batch, finishedPlace, type Replay, type Run } from "../../model.ts";
import type { Spool } from "../../spool/spool.ts";

export interface ExclusionParts {
  readonly ledger: Pick<Ledger, "run" | "runOf" | "batches" | "laterRuns" | "trace">;
  readonly spool: Pick<Spool, "openSegment">;
}

/** The question that a replay asks of the past. */
export interface Question {
  /** The run that is done again. */
  readonly of: Run;
  /** Runs opened before this one count. */
  readonly before: string;
  readonly targets: readonly TargetKey[];
}

/** The chain of attempts from the run that is done again back to the first. */
export async function attemptsBefore(of: Run, ledger: Pick<Ledger, "run">): Promise<readonly Run[]> {
  const attempts = [of];
  for (let at: Run | null = of; at?.replay !== null && at?.replay !== undefined; ) {
    at = await ledger.run(at.replay.of);
    if (at !== null) attempts.push(at);
  }
  return attempts;
}

/** Whether the file is kept, or at a place as far as the ledger knows: that is seen when it is fetched. */
export async function hasInput(
  of: Run,
  parts: { readonly ledger: Pick<Ledger, "run" | "arrival" | "events">; readonly spool: Pick<Spool, "holdsInput"> },
): Promise<boolean> {
  const { ledger, spool } = parts;
  for (const { id } of await attemptsBefore(of, ledger)) if (await spool.holdsInput(id)) return true;
  const arrival = await ledger.arrival(of.arrivalId);
  if (arrival !== null && arrival.goneAt === null) return true;
  return finishedPlace(of.path, await ledger.events(of.arrivalId)) !== null;
}

/** Later runs whose readings a replay would overwrite. */
export async function laterRunsOf(
  { of, before, targets }: Question,
  { ledger }: ExclusionParts,
): Promise<readonly Run[]> {
  const first = (await attemptsBefore(of, ledger)).at(-1) ?? of;
  return ledger.laterRuns(first, targets, before);
}

/** Collects accepted readings of these runs. Returns the runs whose payload the spool no longer has. */
export async function collectAccepted(
  runs: readonly Run[],
  into: ReadingSet,
  parts: ExclusionParts,
): Promise<readonly Run[]> {
  const gone: Run[] = [];
  for (const run of runs) {
    const accepted = (await parts.ledger.batches(run.id)).filter(isAccepted);
    if (accepted.length === 0) continue;
    const segment = await parts.spool.openSegment(run.id);
    if (segment === null) {
      gone.push(run);
      continue;
    }
    let read = 0;
    for await (const { body } of bodiesOf(segment, accepted)) {
      into.add(readingsOf(parseBody(body)), run.id);
      read += 1;
    }
    if (read < accepted.length) gone.push(run);
  }
  return gone;
}

function isAccepted({ state }: Batch): boolean {
  return state === "accepted";
}

export interface Spared {
  /** Delivered by later runs. */
  readonly later: ReadingSet;
  /** Accepted of earlier attempts; empty unless only the rest is wanted. */
  readonly accepted: ReadingSet;
  close(): Promise<void>;
}

/**
 * `RejectedError` when the spool no longer has the payload that would show what to leave out. `scratch` is a path for
 * temporary files.
 */
export async function whatToSpare(
  run: Pick<Replay, "rejectedOnly">,
  later: readonly Run[],
  attempts: readonly Run[],
  scratch: string,
  parts: ExclusionParts,
): Promise<Spared> {
  const sets = {
    later: new ReadingSet(`${scratch}.later.part`),
    accepted: new ReadingSet(`${scratch}.own.part`),
  };
  const close = async () => {
    await sets.later.close();
    await sets.accepted.close();
  };
  try {
    const [gone] = await collectAccepted(later, sets.later, parts);
    if (gone !== undefined) throw unknownDates(gone);
    const [lost] = run.rejectedOnly ? await collectAccepted(attempts, sets.accepted, parts) : [];
    if (lost !== undefined)
      throw new RejectedError("HG-RUN-012", {
        operation: "replay",
        subject: lost.id,
        message: `the payload of run ${lost.id} is no longer kept, so that its accepted readings are unknown`,
      });
    return { ...sets, close };
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

function unknownDates(run: Run): RejectedError {
  return new RejectedError("HG-RUN-013", {
    operation: "replay",
    subject: run.id,
    message:
      `run ${run.id} of ${run.path} came later and delivered to the same targets, and its payload is no longer kept: ` +
      "the dates that must be left out are unknown",
  });
}
