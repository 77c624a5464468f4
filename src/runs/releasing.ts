/** What a person orders about held runs: push them as they are, or look at them again now. */
import type { Run } from "../model.ts";
import { RejectedError } from "../support/errors.ts";
import { mustFindRun, type OrderParts } from "./ordering.ts";
import type { Order, RecheckedRuns, ReleasedRun } from "./orders.ts";
import { overtakenWords } from "./overtaking.ts";

/** Held runs that one order looks at; the others follow by themselves. */
const RECHECKED_MAX = 10_000;

export function release(
  asked: Extract<Order, { order: "release" }>,
  parts: OrderParts,
): Promise<ReleasedRun> {
  const work = () => releaseNow(asked, parts);
  return parts.live === undefined ? work() : parts.live.withoutHands(asked.run, work);
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
  { overwrite, by, why }: Extract<Order, { order: "release" }>,
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
  return gone === null ? null : { run: id, file: path, was };
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
  const runs =
    asked === undefined
      ? (await ledger.runsIn(["held"], { limit: RECHECKED_MAX })).map(({ id }) => id)
      : await Promise.all(asked.map(async (id) => assertHeld(await mustFindRun(id, ledger))));
  live?.structureChanged();
  for (const id of runs) live?.onRun(id);
  return { runs };
}

function assertHeld(run: Run): string {
  if (run.state === "held") return run.id;
  throw notNow(run, `is ${run.state}: only what is held is looked at again`);
}
