/** What a person orders about held runs: push them as they are, or look at them again now. */
import type { Run } from "../model.ts";
import { runStatesThat } from "../states.ts";
import { isLeaseLost, RejectedError } from "../support/errors.ts";
import { mustFindRun, type OrderParts } from "./command-handlers.ts";
import type { Order, RecheckedRuns, ReleasedRun } from "./commands.ts";
import { overtakenWords } from "./steps/later-deliveries.ts";

/** Runs that one order looks at; the others follow by themselves. */
const RECHECKED_MAX = 10_000;
/** What is waited for may be there now. */
const RECHECKED = runStatesThat(({ needsAttention, isAtRest }) => needsAttention && !isAtRest);

export function release(
  asked: Extract<Order, { order: "release" }>,
  parts: OrderParts,
): Promise<ReleasedRun> {
  const work = () => releaseNow(asked, parts);
  return parts.live === undefined ? work() : parts.live.withRunPaused(asked.run, work);
}

/** Others may begin to deliver while it is looked at who went by. */
const LOOKS_MAX = 5;

/** `held → delivering`: the guard stands before that. */
async function releaseNow(
  asked: Extract<Order, { order: "release" }>,
  parts: OrderParts,
): Promise<ReleasedRun> {
  const run = await mustFindRun(asked.run, parts.ledger);
  for (let look = 1; look <= LOOKS_MAX; look += 1) {
    const released = await tryRelease(run, asked, parts);
    if (released !== null) return released;
  }
  throw notNow(
    run,
    "cannot be released now: other files of the same targets begin to be delivered again and again",
  );
}

/** Null when something changed while it was looked at. */
async function tryRelease(
  { id, path }: Run,
  { overwrite, discard, by, why }: Extract<Order, { order: "release" }>,
  { ledger, spool }: OrderParts,
): Promise<ReleasedRun | null> {
  const run = await mustFindRun(id, ledger);
  if (run.state !== "held") throw notNow(run, `is ${run.state}: only what is held can be released`);
  const before = await ledger.blockedBy(run);
  if (before !== null)
    throw notNow(
      run,
      `has to wait for the earlier file ${before.path} of the same targets (${before.state})`,
    );
  const discards = discardsOf(run);
  if (discards > 0 && !discard)
    throw new RejectedError("HG-GUARD-009", {
      operation: "release run",
      subject: id,
      message: `run ${id} of ${path}: ${discards} of its ${run.points.mapped} readings would be discarded, since their targets do not exist`,
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

/** As the guard found it last; earlier versions noted it for each target alone, and of the first of them. */
function discardsOf({ reason }: Run): number {
  const missing = (reason?.targets ?? []).filter(({ what }) => what === "missing");
  return reason?.discards ?? missing.reduce((sum, { points }) => sum + points, 0);
}

function notNow(run: Run, words: string): RejectedError {
  return new RejectedError("HG-RUN-011", {
    operation: "release run",
    subject: run.id,
    message: `run ${run.id} of ${run.path} ${words}`,
  });
}

export async function recheck(
  { runs: asked }: Extract<Order, { order: "recheck" }>,
  { ledger, live }: OrderParts,
): Promise<RecheckedRuns> {
  const found =
    asked === undefined
      ? await ledger.runsIn(RECHECKED, { limit: RECHECKED_MAX })
      : await Promise.all(asked.map(async (id) => assertRechecked(await mustFindRun(id, ledger))));
  // Also those that nobody asked about any more: what was lost may have been put back.
  for (const { id, state } of found)
    if (state === "unconfirmed") await ledger.noteRun(id, { settled: false }).catch(unlessOfAnother);
  live?.structureChanged();
  for (const { id } of found) live?.onRun(id);
  return { runs: found.map(({ id }) => id) };
}

/** The node that has the run asks about it by itself. */
function unlessOfAnother(thrown: unknown): void {
  if (!isLeaseLost(thrown)) throw thrown;
}

function assertRechecked(run: Run): Run {
  if (RECHECKED.includes(run.state)) return run;
  throw notNow(run, `is ${run.state}: only what is held or unconfirmed is looked at again`);
}
