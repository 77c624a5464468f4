/**
 * The step that comes next for runs: each takes a list and returns a result or a reason for each run. A step that gains
 * nothing by a list takes its runs one by one.
 */
import { basename } from "node:path/posix";
import { type Clock, isoInstant } from "#core/clock.ts";
import { RejectedError, wordsOf } from "#core/errors.ts";
import { onlyOne, resultOf, type Settled, settleEach } from "#core/promises.ts";
import { compareNames } from "#core/text.ts";
import { isDone } from "#core/threads/disk-work.ts";
import { discardPart } from "#mapping/segment/publish.ts";
import { type SetAside, setAside } from "../../drops/drop.ts";
import type { EntriesState, RunChange } from "../../ledger/ledger.ts";
import type { Arrival, End, FinishPlan, FinishResult, Run } from "../../model.ts";
import { RUN_STATES } from "../../states.ts";
import { asideEvent, beginWatch } from "../finish-watch.ts";
import { containerOf, waitForDrop } from "../source.ts";
import { tracedList, tracedStep } from "../spans.ts";
import type { Stage } from "../stages.ts";
import { listContents } from "../unpacking/container.ts";
import { limitsOf } from "../unpacking/copies.ts";
import { confirmOutcome } from "./confirm-step.ts";
import { deliverBatches } from "./deliver-step.ts";
import { fetchInputs } from "./fetch-step.ts";
import { recheckHeld } from "./guard-step.ts";
import { isReturn } from "./known-content.ts";
import { type ListResults, type ListWork, resultsOf } from "./list-results.ts";
import { mapFetched, mapRuns } from "./map-step.ts";
import {
  type DropEntry,
  entryOf,
  NEXT,
  REST,
  type RunSteps,
  type StepResult,
  type StructureApplied,
  unlessRemoved,
} from "./steps.ts";

type OneStep = (run: Run, steps: RunSteps, signal: AbortSignal) => Promise<StepResult>;
type ListStep = (runs: readonly Run[], steps: RunSteps, signal: AbortSignal) => Promise<readonly Settled<StepResult>[]>;

const PAST = { leave: "left", delete: "deleted", archive: "archived" } as const;

/** A delivered entry is awaited for its confirmation, which is not reported to its container. */
const CONFIRMING_MS = 500;
const CLAIMED_AT_ONCE = 64;
const NAMED_MAX = 3;

const STANDING: Readonly<Partial<Record<EntriesState["staying"][number]["state"], string>>> = {
  accepted: "accepted and not confirmed",
  unconfirmed: "accepted and not confirmed",
  opened: "not delivered as a whole",
};

/**
 * Longest time until a run is checked again, while an earlier one of its lane is open or, of a container, should no
 * entry report that it has moved on.
 */
const LOOK_AGAIN_MS = 2_000;

/** In the given order. Does not reject. After `signal` no further work begins. */
export async function takeSteps(
  runs: readonly Run[],
  stage: Stage,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<readonly Settled<StepResult>[]> {
  const leased = await settleEach(runs, (run) => steps.ledger.fleet.holdRun(run));
  const taken = new Map<string, Settled<StepResult>>();
  const due = leased.flatMap((one, at) => {
    const [run, now] = [runs[at], one.status === "fulfilled" ? one.value : null];
    if (one.status === "rejected") taken.set(run?.id ?? "", one);
    // Another node was faster, or the run has moved on since it was read.
    else if (now?.state !== run?.state)
      taken.set(run?.id ?? "", { status: "fulfilled", value: now === null ? REST : NEXT });
    return now === null || taken.has(now.id) ? [] : [now];
  });
  for (const [step, some] of Map.groupBy(due, (run) => stepOf(run, stage))) {
    const [all] = await Promise.allSettled([step(some, steps, signal)]);
    for (const [at, { id }] of some.entries()) {
      const one = all.status === "fulfilled" ? all.value[at] : all;
      if (one !== undefined) taken.set(id, one);
    }
  }
  return runs.map(({ id }) => taken.get(id) ?? { status: "fulfilled", value: NEXT });
}

/** A state without a line of its own counts as at rest: the source of its runs is finished. */
function stepOf(run: Run, stage: Stage): ListStep {
  if (run.state === "claimed") return takeIn;
  if (run.state === "fetched") return fetchedStep(run);
  if (run.state === "opened") return TEND;
  if (stage.name === "delivery") return DELIVER;
  if (run.state === "held") return RECHECK;
  if (!RUN_STATES[run.state].isAwaited) return finishSources;
  return run.finishedAt === null ? finishOrConfirm : CONFIRM;
}

function fetchedStep({ binding }: Run): ListStep {
  if (binding.structure === true) return APPLY;
  return binding.unpack === undefined ? mapOwn : OPEN;
}

function oneByOne(name: string | null, step: OneStep): ListStep {
  return (runs, steps, signal) =>
    settleEach(runs, (run) =>
      name === null ? step(run, steps, signal) : tracedStep(name, run, steps, () => step(run, steps, signal)),
    );
}

const OPEN = oneByOne("open", openContainer);
const APPLY = oneByOne("apply", unlessRemoved(applyMasterData));
const TEND = oneByOne(null, tendContainer);
const DELIVER = oneByOne("deliver", unlessRemoved(deliverBatches));
const RECHECK = oneByOne(null, unlessRemoved(recheckHeld));
const CONFIRM = oneByOne(null, confirm);

async function confirm(run: Run, steps: RunSteps, signal: AbortSignal): Promise<StepResult> {
  const result = await tracedStep("confirm", run, steps, () => confirmOutcome(run, steps, signal));
  if (result.move === "rest") await onlyOne(steps.spool.retire([run.id]));
  return result;
}

/**
 * Accepted or unconfirmed runs: their sources are finished first. Where the rule of the drop waits for the
 * confirmation, or the drop is missing, the outcome is awaited before.
 */
async function finishOrConfirm(
  runs: readonly Run[],
  steps: RunSteps,
  signal: AbortSignal,
): Promise<readonly Settled<StepResult>[]> {
  const finished = await finishSources(runs, steps, signal);
  return await settleEach(runs, async (run, at) => {
    const result = resultOf(finished[at]);
    const isFinished = result.move !== "wait" && result.run !== undefined;
    return isFinished ? result : await confirm(run, steps, signal);
  });
}

// `claimed → fetched → mapping → mapped`, or aside, for a list of runs. Several runs of small files of one drop and one
// version of a mapper have one segment, which begins with their inputs; the states of all of them are recorded in one
// transaction. A run alone is fetched to a file of its own, and mapped by the next step.

export async function takeIn(
  runs: readonly Run[],
  steps: RunSteps,
  signal: AbortSignal,
): Promise<readonly Settled<StepResult>[]> {
  const [first] = runs;
  const segment = first === undefined || runs.length === 1 ? null : steps.spool.newSegment(first.id);
  try {
    return await resultsOf(runs, steps, signal, async (step) => {
      const fetched = await tracedList("fetch", runs, step, () => fetchInputs(runs, segment, step));
      const taken = fetched.map(({ run }) => run);
      if (!signal.aborted) await tracedList("map", taken, step, () => mapFetched(fetched, step));
    });
  } finally {
    // A file that cannot be removed now is swept when the gateway starts.
    if (segment !== null) isDone(() => discardPart(segment));
  }
}

/** Maps runs that were fetched to files of their own. */
function mapOwn(runs: readonly Run[], steps: RunSteps, signal: AbortSignal): Promise<readonly Settled<StepResult>[]> {
  return resultsOf(runs, steps, signal, (step) => tracedList("map", runs, step, () => mapRuns(runs, step)));
}

/** `fetched → empty`, or aside to `quarantined`: a file of master data is applied, and brings no readings. */
async function applyMasterData(run: Run, steps: RunSteps, signal: AbortSignal): Promise<StepResult> {
  const { ledger, spool, applyStructure } = steps;
  if (!(await spool.hasWholeInput(run.id, run.sha256)) && !(await spool.restoreInput(run.id, run.id, run.sha256))) {
    const detail = "the spool lost the input; it is fetched again";
    await ledger.advanceRun(run.id, "fetched", "claimed", { detail });
    return NEXT;
  }
  // A later file may change what an earlier one creates.
  const before = await ledger.blockedBy(run);
  if (before !== null) {
    const reason = `waits for the earlier file ${before.path} (${before.state})`;
    return { move: "wait", ms: LOOK_AGAIN_MS, reason, blockedBy: before.id };
  }
  steps.quota.mapped(run.id);
  const { id, drop, path, binding } = run;
  const inputPath = spool.inputPath(id);
  const applied =
    applyStructure === null
      ? refusedBy("this gateway is not inside a hub")
      : await applyStructure({ run: id, drop, path, inputPath, settings: binding.settings }, signal).catch(refusalOf);
  const { words } = applied;
  if (applied.kind === "applied") {
    const reason = { code: "HG-HUB-009", message: words };
    await ledger.advanceRun(id, "fetched", "empty", { reason, detail: words });
  } else {
    const reason = { code: "HG-HUB-008", message: words, place: applied.place };
    await ledger.advanceRun(id, "fetched", "quarantined", { reason, detail: words });
  }
  return REST;
}

function refusalOf(thrown: unknown): StructureApplied {
  if (thrown instanceof RejectedError) return refusedBy(wordsOf(thrown));
  throw thrown;
}

function refusedBy(words: string): StructureApplied {
  return { kind: "refused", words, place: {} };
}

// `fetched → opened`: the entries of a container become arrivals. While it is opened they are claimed, and it is
// finished after them.

async function openContainer(run: Run, steps: RunSteps, signal: AbortSignal): Promise<StepResult> {
  if (!(await isContainerHere(run, steps))) {
    await steps.ledger.advanceRun(run.id, "fetched", "claimed", {
      detail: "the spool lost the container; it is fetched again",
    });
    return NEXT;
  }
  // Entries are arrivals in the order in which their containers came.
  const before = await steps.ledger.blockedBy(run);
  if (before !== null) {
    const reason = `waits for the earlier container ${before.path} (${before.state})`;
    return { move: "wait", ms: LOOK_AGAIN_MS, reason, blockedBy: before.id };
  }
  steps.quota.mapped(run.id);
  const path = steps.spool.inputPath(run.id);
  const { entries, ignored } = await listContents(path, basename(run.path), limitsOf(run), signal);
  const besides = ignored === 0 ? "" : `, ${ignored} ignored`;
  if (entries.length === 0) {
    const message = `the container holds no files${besides}`;
    await steps.ledger.advanceRun(run.id, "fetched", "empty", {
      reason: { code: "HG-RUN-003", message },
      detail: message,
    });
    return REST;
  }
  const inOrder =
    steps.dropEntry(run.drop)?.order === "name" ? entries.toSorted((a, b) => compareNames(a.path, b.path)) : entries;
  await steps.ledger.recordOpened(run.id, inOrder, `${entries.length} entries${besides}`);
  return NEXT;
}

/** A copy that is not what was fetched is removed. */
async function isContainerHere({ id, sha256 }: Run, { spool }: RunSteps): Promise<boolean> {
  if (await spool.hasWholeInput(id, sha256)) return true;
  return await spool.restoreInput(id, id, sha256);
}

/** Also when one of its entries has changed. */
async function tendContainer(run: Run, steps: RunSteps, signal: AbortSignal): Promise<StepResult> {
  const entries = await steps.ledger.entries(run.arrivalId);
  if (entries.unclaimed.length > 0) {
    for (let at = 0; at < entries.unclaimed.length && !signal.aborted; at += CLAIMED_AT_ONCE)
      await Promise.all(entries.unclaimed.slice(at, at + CLAIMED_AT_ONCE).map((entry) => steps.claim(entry)));
    return NEXT;
  }
  if (entries.inProgress !== null) {
    const { id, path, state } = entries.inProgress;
    const reason = `waits for its entry ${path} (${state})`;
    return RUN_STATES[state].isOpen
      ? { move: "wait", ms: LOOK_AGAIN_MS, reason, blockedBy: id }
      : { move: "wait", ms: CONFIRMING_MS, reason };
  }
  if (entries.staying.length > 0) return stay(run, entries, steps);
  if (run.finishedAt === null) {
    const result = await onlyOne(finishSources([run], steps, signal));
    if (result.move === "wait") return result;
  }
  await steps.ledger.noteRun(run.id, { settled: true, reason: null });
  return REST;
}

/** It rests at its drop, and says why. */
async function stay(run: Run, entries: EntriesState, steps: RunSteps): Promise<StepResult> {
  await onlyOne(steps.spool.retire([run.id]));
  const reason = { code: "HG-PACK-008", message: stayingWords(entries) };
  return (await steps.ledger.restContainer(run.id, entries, reason)) ? REST : NEXT;
}

/** `1 of 3 entries is not delivered: b.csv is quarantined` */
function stayingWords({ done, staying }: EntriesState): string {
  const named = staying
    .slice(0, NAMED_MAX)
    .map(({ path, state }) => `${path.slice(path.lastIndexOf("!/") + 2)} is ${STANDING[state] ?? state}`);
  const more = staying.length > NAMED_MAX ? `, and ${staying.length - NAMED_MAX} more` : "";
  const counts = `${staying.length} of ${staying.length + done} entries ${staying.length === 1 ? "is" : "are"}`;
  return `the container stays: ${counts} not delivered (${named.join(", ")}${more})`;
}

// Finishes the source files of runs that have come to an end (invariant 1): they are archived, deleted or left, as a
// list for each drop, and the runs' files in the spool are retired.

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
function finishSources(
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
