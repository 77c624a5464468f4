/** The commands for held runs: push them as they are, or check them again now. */
import { z } from "zod";
import { isLeaseLost, RejectedError } from "#core/errors.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Run } from "../../model.ts";
import { runStatesThat } from "../../states.ts";
import { overtakenWords } from "../steps/later-deliveries.ts";
import { cancelNow } from "./cancel.ts";
import { type CommandParts, command, mustFindRun, whilePaused } from "./command.ts";

/** Attempts, since another run may begin to deliver during the check for later runs. */
const ATTEMPTS_MAX = 5;
/** Runs that one command checks; the scheduler checks the others by itself. */
const RECHECKED_MAX = 10_000;
/** The states of runs that wait for something that may be there now. */
const RECHECKED = runStatesThat(({ needsAttention, isAtRest }) => needsAttention && !isAtRest);

export interface ReleasedRun {
  readonly run: string;
  readonly file: string;
  /** Why it was held. */
  readonly was: string;
  /** Readings of targets that did not exist at the last check. */
  readonly discards: number;
}

const fields = {
  run: z.string(),
  overwrite: z.boolean(),
  /** Whether readings of targets that do not exist are pushed too: the service discards them. */
  discard: z.boolean().default(false),
};

/** `held → delivering`, past the guard. */
export const release = command(fields, (asked, parts) =>
  whilePaused(parts, asked.run, async () => {
    const run = await mustFindRun(asked.run, parts.ledger);
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      const released = await tryRelease(run, asked, parts);
      if (released !== null) return released;
    }
    throw notNow(run, "cannot be released now: other files of the same targets begin to be delivered again and again");
  }),
);

/** Returns null when something changed during the check. */
async function tryRelease(
  { id, path }: Run,
  { overwrite, discard, by, why }: Parameters<typeof release.perform>[0],
  { ledger, spool, isRemoved }: CommandParts,
): Promise<ReleasedRun | null> {
  const run = await mustFindHeld(id, ledger);
  // The hub may have died between the removal of the file and the end of its runs.
  if (await isRemoved(run)) {
    await cancelNow(id, by, "its stored file was removed", ledger);
    throw notNow(run, "is not released, but cancelled: its stored file was removed from the hub");
  }
  await assertFirst(run, ledger);
  const discards = run.reason?.discards ?? 0;
  if (discards > 0 && !discard)
    throw new RejectedError("HG-GUARD-009", {
      operation: "release run",
      subject: id,
      message:
        `run ${id} of ${path}: ${discards} of its ${run.points.mapped} readings would be discarded, ` +
        "since their targets do not exist",
    });
  const overtaken = await overtakenWords(run, { ledger, spool });
  if (overtaken.status === "wait") throw notNow(run, overtaken.step.reason);
  if (overtaken.status === "overtaken" && !overwrite)
    throw new RejectedError("HG-GUARD-007", {
      operation: "release run",
      subject: id,
      message: `run ${id} of ${path}: ${overtaken.words}`,
    });
  const was = run.reason?.message ?? "";
  const seen = overwrite || overtaken.status === "overtaken" ? null : overtaken.seen;
  const words = `released by ${by}${why === "" ? "" : `: ${why}`}${was === "" ? "" : ` (it was held: ${was})`}`;
  const gone = await ledger.resumeHeld(id, "delivering", seen, words);
  return gone === null ? null : { run: id, file: path, was, discards };
}

/** `RejectedError` when the run is not held. */
export async function mustFindHeld(id: string, ledger: Pick<Ledger, "run">): Promise<Run> {
  const run = await mustFindRun(id, ledger);
  if (run.state === "held") return run;
  throw notNow(run, `is ${run.state}: only a held run can be released`);
}

/** `RejectedError` while an earlier file of the same targets is in the way. */
export async function assertFirst(run: Run, ledger: Pick<Ledger, "blockedBy">): Promise<void> {
  const before = await ledger.blockedBy(run);
  if (before !== null)
    throw notNow(run, `has to wait for the earlier file ${before.path} of the same targets (${before.state})`);
}

function notNow(run: Run, words: string): RejectedError {
  return new RejectedError("HG-RUN-011", {
    operation: "release run",
    subject: run.id,
    message: `run ${run.id} of ${run.path} ${words}`,
  });
}

export const recheck = command(
  { runs: z.array(z.string()).optional() },
  async ({ runs: asked, by, why }, { ledger, live }) => {
    const found =
      asked === undefined
        ? await ledger.runsIn(RECHECKED, { limit: RECHECKED_MAX })
        : await Promise.all(asked.map(async (id) => assertRechecked(await mustFindRun(id, ledger))));
    if (asked !== undefined)
      for (const { id, arrivalId } of found)
        await ledger.addEvent({
          ...{ arrivalId, runId: id, operationId: null, what: "run.rechecked" },
          detail: `checked again by ${by}${why === "" ? "" : `: ${why}`}`,
        });
    // Includes runs that were no longer asked about: data that was lost may have been restored.
    for (const { id, state } of found)
      if (state === "unconfirmed") await ledger.noteRun(id, { settled: false }).catch(unlessOfAnother);
    live?.structureChanged();
    for (const { id } of found) live?.onRun(id);
    return { runs: found.map(({ id }) => id) };
  },
);

/** Another node that has the run asks about it by itself. */
function unlessOfAnother(thrown: unknown): void {
  if (!isLeaseLost(thrown)) throw thrown;
}

export function assertRechecked(run: Run): Run {
  if (RECHECKED.includes(run.state)) return run;
  throw notNow(run, `is ${run.state}: only held and unconfirmed runs are checked again`);
}
