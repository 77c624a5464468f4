/**
 * Finishes the source files of runs that have come to an end (invariant 1): they are archived, deleted or left, as a
 * list for each drop, and the runs' files in the spool are retired.
 */

import { type Clock, isoInstant } from "#core/clock.ts";
import { resultOf, type Settled } from "#core/settled.ts";
import { type SetAside, setAside } from "../../drops/drop.ts";
import type { RunChange } from "../../ledger/ledger.ts";
import type { Arrival, End, FinishPlan, FinishResult, Run } from "../../model.ts";
import { RUN_STATES } from "../../states.ts";
import { asideEvent, beginWatch } from "../finish-watch.ts";
import { containerOf, waitForDrop } from "../source.ts";
import { tracedList } from "../spans.ts";
import { isReturn } from "./known-content.ts";
import { type ListResults, type ListWork, resultsOf } from "./list-results.ts";
import { type DropEntry, entryOf, REST, type RunSteps, type StepResult } from "./steps.ts";

interface Planned {
  readonly run: Run;
  readonly entry: DropEntry;
  readonly plan: FinishPlan;
  /** An entry has no source of its own: its container is finished after all its entries. */
  readonly container: Run | null;
}

interface Finished extends Planned {
  readonly result: FinishResult | SetAside;
}

/** A run whose source was finished has its new record in its result. */
export function finishSources(
  runs: readonly Run[],
  steps: RunSteps,
  signal: AbortSignal,
): Promise<readonly Settled<StepResult>[]> {
  return resultsOf(runs, steps, signal, (step) => tracedList("finish", runs, step, () => finishAll(runs, step)));
}

async function finishAll(runs: readonly Run[], { results, steps, signal }: ListWork): Promise<void> {
  const planned = await results.each(
    runs,
    (run) => run,
    (run) => planOf(run, results, steps),
  );
  const ended = await finishAtDrops(planned, signal);
  const finished = await results.each(
    planned,
    ({ run }) => run,
    async (one, at) => {
      const result = ended[at];
      const subject = { drop: one.run.drop, path: one.run.path, runId: one.run.id };
      steps.finishFaults.note(subject, result?.status === "rejected" ? result.reason : null);
      return await noteFinished({ ...one, result: resultOf(result) }, steps);
    },
  );
  const ending = finished.filter((run) => run.state !== "accepted" || isUnconfirmed(run, steps));
  for (const run of finished) results.end(run, { move: isAsked(run, steps) ? "next" : "rest", run });
  const retired = await steps.spool.retire(ending.map(({ id }) => id));
  await results.each(
    ending,
    (run) => run,
    async (_, at) => resultOf(retired[at]) ?? null,
  );
}

/** The durable decision about the source; null when the source is not finished now. */
async function planOf(run: Run, results: ListResults, steps: RunSteps): Promise<Planned | null> {
  const { ledger, planFinish } = steps;
  const end = await endOf(run, steps);
  const entry = steps.dropEntry(run.drop);
  if (entry === undefined) return results.end(run, await waitForDrop(run, steps));
  const left = run.replay !== null && (await ledger.arrival(run.arrivalId))?.goneAt !== null;
  const rule = end === null || left ? ({ action: "leave" } as const) : entry.finish[end];
  if (RUN_STATES[run.state].isAwaited && steps.finishAfter(run, rule) === "confirmed") return results.end(run, REST);
  const container = await containerOf(run, steps);
  const leave = { action: "leave" } as const;
  const plan = container === null ? (run.finishPlan ?? planFinish(rule, entryOf(run), run.id)) : leave;
  if (plan.action !== "leave") {
    if (run.finishPlan === null) await ledger.noteRun(run.id, { finishPlan: plan });
    // The next step cannot be undone; the drop itself checks that the same file is still there.
    await ledger.fleet.assertRun(run.id);
  }
  await discardUnsent(run, steps);
  return { run, entry, plan, container };
}

/**
 * A segment that a list had mapped before it was stopped, and that was not recorded, was not sent: kept with a run that
 * ended otherwise, it would be found as if it were.
 */
async function discardUnsent({ id, state }: Run, { spool, ledger }: RunSteps): Promise<void> {
  if (state === "accepted" || !(await spool.hasSegment(id)) || (await ledger.batches(id)).length > 0) return;
  await spool.discard(id, "segment");
}

/** In lists of one drop; by the first half alone where the files are watched afterwards. */
async function finishAtDrops(
  planned: readonly Planned[],
  signal: AbortSignal,
): Promise<readonly Settled<FinishResult | SetAside>[]> {
  const leaving = planned.filter(({ plan }) => plan.action !== "leave");
  const results = new Map<string, Settled<FinishResult | SetAside> | undefined>();
  for (const [{ drop, guardMs }, some] of Map.groupBy(leaving, ({ entry }) => entry)) {
    const files = some.map(({ run, plan }) => ({ entry: entryOf(run), plan }));
    const ended: readonly Settled<FinishResult | SetAside>[] =
      guardMs > 0 ? await setAside(drop, files, signal) : await drop.finish(files, signal);
    for (const [at, { run }] of some.entries()) results.set(run.id, ended[at]);
  }
  return planned.map(({ run }) => results.get(run.id) ?? { status: "fulfilled", value: "done" });
}

function noteFinished({ run, entry, plan, container, result }: Finished, steps: RunSteps): Promise<Run> {
  const words = sourceWords(run, plan, result, entry.guardMs, steps.clock);
  if (words.event === "source.changed")
    steps.log.warn(
      { run: run.id, drop: run.drop, file: run.path },
      `${run.path} at ${run.drop} was replaced by other content before it was finished; what was fetched was delivered`,
    );
  const inContainer =
    container === null ? {} : { detail: `in ${container.path}, which is finished after all its entries` };
  return steps.ledger.noteRun(run.id, {
    ...(run.finishPlan === null ? { finishPlan: plan } : {}),
    ...words,
    ...inContainer,
    ...(run.state === "accepted" && isUnconfirmed(run, steps) ? { settled: true } : {}),
  });
}

/** The outcome of the run is awaited. */
function isAsked(run: Run, steps: RunSteps): boolean {
  return RUN_STATES[run.state].isAwaited && !(run.state === "accepted" && isUnconfirmed(run, steps));
}

/** The service does not report whether it was stored. */
function isUnconfirmed(run: Run, steps: RunSteps): boolean {
  return steps.serviceEntry(run.binding.service)?.confirm.by === "none";
}

/** The record of a source that was finished. */
function sourceWords(
  run: Run,
  plan: FinishPlan,
  finished: FinishResult | SetAside,
  guardMs: number,
  clock: Clock,
): RunChange {
  const at = isoInstant(clock.now());
  if (typeof finished !== "string" && (finished.result === "done" || finished.result === "waits")) {
    const watched = beginWatch(finished, guardMs, clock);
    const { what, detail } =
      finished.result === "done"
        ? asideEvent(run.path, finished, watched.endsAt)
        : { what: "source.waits", detail: `${run.path} stays for now: ${finished.why}` };
    return { finished: { at, left: finished.result === "done" }, watched, event: what, detail };
  }
  const result = typeof finished === "string" ? finished : finished.result;
  const leaves = plan.action !== "leave" && result !== "changed";
  return {
    finished: { at, left: leaves },
    event: `source.${result === "done" ? PAST[plan.action] : result}`,
    detail:
      result === "changed"
        ? "there is other content at the drop now; it was left, and is an arrival of its own"
        : plan.action === "archive" && result === "done"
          ? `${run.path} → ${plan.to}`
          : run.path,
  };
}

const PAST = { leave: "left", delete: "deleted", archive: "archived" } as const;

async function endOf(run: Run, steps: RunSteps): Promise<End | null> {
  if (run.state !== "cancelled") return RUN_STATES[run.state].end;
  const arrival = await steps.ledger.arrival(run.arrivalId);
  if (arrival?.state !== "duplicate") return null;
  return (await isFinishedAsDelivered(arrival, steps)) ? "delivered" : "duplicate";
}

/**
 * The file of a delivered run was missing when it was to be finished, and is back: it is no second upload, so that it
 * ends as delivered files do. Where that waits for the confirmation, the file stays as other duplicates do.
 */
async function isFinishedAsDelivered(arrival: Arrival, steps: RunSteps): Promise<boolean> {
  const earlier = await steps.ledger.duplicateOf(arrival, arrival.sha256 ?? "");
  if (earlier === null || !(await isReturn(earlier, arrival, steps))) return false;
  const before = await steps.ledger.runOf(earlier.id);
  const rule = steps.dropEntry(arrival.drop)?.finish.delivered;
  if (before === null || rule === undefined || RUN_STATES[before.state].end !== "delivered") return false;
  return !(RUN_STATES[before.state].isAwaited && steps.finishAfter(before, rule) === "confirmed");
}
