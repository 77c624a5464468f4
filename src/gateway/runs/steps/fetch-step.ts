/**
 * `claimed → fetched`: the bytes come into the spool, and their digest shows whether they are a duplicate. The inputs
 * of several runs of small files come into one segment, with which they are recorded when they were mapped; another
 * input has a file of its own and is recorded before it is mapped.
 */

import { RejectedError, TransientError } from "#core/errors.ts";
import { faultPoint } from "#core/faults.ts";
import { resultOf, type Settled, settleEach } from "#core/promises.ts";
import { counted } from "#core/text.ts";
import type { FetchedPart } from "../../drops/drop.ts";
import type { RunAdvance } from "../../ledger/ledger.ts";
import type { FileEntry, Run } from "../../model.ts";
import { fetchReplayed } from "../replay.ts";
import { containerOf, fetchSource, waitForDrop } from "../source.ts";
import { afterEarlier, afterKnownContent } from "./known-content.ts";
import type { ListWork } from "./list-results.ts";
import { entryOf, NEXT, REST, type RunSteps, reasonOf, type StepResult, waitFor } from "./steps.ts";

/** A file that is listed and then missing so often in a row is not offered again, as the ledger would grow. */
const MISSING_MAX = 5;

/** Longest wait for space: processes outside of the gateway do not report that they freed some. */
const FULL_WAIT_MS = 2_000;

/** An input in the segment at the path. */
export interface FetchedInput {
  readonly run: Run;
  readonly path: string;
  readonly file: FetchedPart;
}

/**
 * Fetches the inputs of runs of one drop; `segment`: the full path of the segment that they come into, or null. Returns
 * the inputs in the segment; runs with an input of their own have their results.
 */
export async function fetchInputs(
  runs: readonly Run[],
  segment: string | null,
  step: ListWork,
): Promise<readonly FetchedInput[]> {
  const { results, steps } = step;
  const reserved: Run[] = [];
  // One after another, so that each finds the space that the others left.
  for (const run of runs) reserved.push(...(await results.each([run], same, (one) => reserve(one, step))));
  const done = new Map<string, FetchedPart>();
  try {
    const due = await results.each(reserved, same, (run) => beforeFetch(run, segment, step));
    const files = await fetchAll(due, segment, step);
    const fetched = await results.each(due, same, async (run, at) => {
      const file = await fileOf(run, files[at], step);
      if (file !== null) done.set(run.id, file);
      return file === null ? null : { run, file };
    });
    if (fetched.length > 0) faultPoint("run.fetch.stored");
    if (segment === null) return await recordFetched(fetched, step);
    return await results.each(
      fetched,
      ({ run }) => run,
      async (one) => {
        await discardOwnInput(one.run, steps);
        return { ...one, path: segment };
      },
    );
  } finally {
    for (const run of reserved) steps.quota.fetched(run.id, done.has(run.id) ? run.size : null);
  }
}

const same = (run: Run) => run;

/** While the spool is full the file stays at its drop. */
async function reserve(run: Run, { results, steps }: ListWork): Promise<Run | null> {
  const isBody = steps.dropEntry(run.drop)?.drop.kind === "http";
  const refused = await steps.quota.reserve(run.id, run.size, await isEntry(run, steps), isBody);
  if (refused === null) return run;
  // A node that has the drop may have space.
  if (run.replay === null && steps.dropEntry(run.drop) === undefined)
    return results.end(run, await waitForDrop(run, steps));
  return results.end(run, await waitForSpace(run, refused, steps));
}

/** Only the path of an entry of a container has the mark, though a file at a drop may have such a name. */
async function isEntry({ path, arrivalId }: Run, { ledger }: RunSteps): Promise<boolean> {
  return path.includes("!/") && ((await ledger.arrival(arrivalId))?.parentId ?? null) !== null;
}

async function waitForSpace(
  run: Run,
  { code, words }: { readonly code: string; readonly words: string },
  { ledger }: RunSteps,
): Promise<StepResult> {
  if (run.reason?.message !== words)
    await ledger.noteRun(run.id, { reason: { code, message: words }, event: "run.waiting", detail: words });
  return waitFor(FULL_WAIT_MS, words);
}

/** The run when its input is to be fetched. */
async function beforeFetch(run: Run, segment: string | null, { results, steps }: ListWork): Promise<Run | null> {
  if (run.replay !== null) return run;
  // A small file costs less to fetch than to check; its record checks it.
  const arrival = segment === null ? await steps.ledger.arrival(run.arrivalId) : null;
  const before = arrival === null ? null : await afterEarlier(run, arrival, steps);
  if (before !== null) return results.end(run, before);
  if (steps.dropEntry(run.drop) === undefined) return results.end(run, await waitForDrop(run, steps));
  if (run.binding.unpack === undefined && run.binding.structure === undefined)
    void steps.pool.prepare(run.binding.mapper);
  return run;
}

/** Null in place of a file for a replay that has its result. */
async function fetchAll(
  runs: readonly Run[],
  segment: string | null,
  { results, steps, signal }: ListWork,
): Promise<readonly Settled<FetchedPart | null>[]> {
  const drop = steps.dropEntry(runs[0]?.drop ?? "")?.drop;
  if (segment !== null && drop !== undefined) return await drop.fetch(runs.map(entryOf), segment, signal);
  return await settleEach(runs, async (run) => {
    if (run.replay === null)
      return { offset: 0, ...(await fetchSource(run, steps.spool.inputPath(run.id), steps, signal)) };
    const fetched = await fetchReplayed(run, run.replay, steps, signal);
    return "move" in fetched ? results.end(run, fetched) : { offset: 0, ...fetched };
  });
}

async function fileOf(
  run: Run,
  settled: Settled<FetchedPart | null> | undefined,
  { results, steps, signal }: ListWork,
): Promise<FetchedPart | null> {
  if (settled?.status === "rejected" && run.replay === null)
    return results.end(run, await afterFailedFetch(run, settled.reason, steps, signal));
  return resultOf(settled);
}

/** An input of an earlier attempt, perhaps a part of it, would be taken for the input of the run. */
async function discardOwnInput({ id }: Run, { spool }: RunSteps): Promise<void> {
  if (await spool.hasInput(id)) await spool.discard(id, "input");
}

/** Each run continues by itself, with an input of its own. */
export async function recordFetched(
  fetched: readonly { readonly run: Run; readonly file: FetchedPart }[],
  { results, steps }: ListWork,
): Promise<readonly []> {
  const advances = fetched.map(({ run, file }) => ({
    ...{ id: run.id, from: "claimed" as const, through: [fetchedPassage(file)] },
    ...(run.replay === null ? duplicatesRule(run, steps) : {}),
  }));
  const advanced = await steps.ledger.advanceRuns(advances);
  await results.each(
    fetched,
    ({ run }) => run,
    async ({ run, file }, at) => {
      const answer = advanced[at];
      if (answer?.run === null && answer.why === "fault") throw answer.thrown;
      const known = answer?.run === null ? await afterKnownContent(run, file.sha256, steps) : null;
      if (known === null && answer?.run === null) await recordAnyway(advances[at], steps);
      const after = answer?.run ?? undefined;
      return results.end(run, known ?? (after === undefined ? NEXT : { move: "next", run: after }));
    },
  );
  return [];
}

export function fetchedPassage({ bytes, sha256 }: FetchedPart): RunAdvance["through"][number] {
  return { to: "fetched", change: { sha256, reason: null, detail: `${counted(bytes, "byte")}, sha256 ${sha256}` } };
}

/** The rule of the drop for bytes that came before, which the ledger applies in the transaction. */
export function duplicatesRule(run: Run, { dropEntry }: RunSteps): Pick<RunAdvance, "duplicates"> {
  return { duplicates: dropEntry(run.drop)?.duplicates ?? "skip" };
}

/** Bytes that came before, whose readings are delivered again. */
export async function recordAnyway(advance: RunAdvance | undefined, { ledger }: RunSteps): Promise<Run | null> {
  if (advance === undefined) return null;
  const { duplicates: _, ...anyway } = advance;
  const [answer] = await ledger.advanceRuns([anyway]);
  if (answer?.run === null && answer.why === "fault") throw answer.thrown;
  return answer?.run ?? null;
}

// Decides about a file that could not be fetched.

/**
 * Ends a run whose fetch threw because its file vanished or was replaced, which is no longer this arrival. Throws when
 * the fetch is to be repeated.
 */
async function afterFailedFetch(run: Run, thrown: unknown, steps: RunSteps, signal: AbortSignal): Promise<StepResult> {
  if (signal.aborted || !(thrown instanceof TransientError || thrown instanceof RejectedError)) throw thrown;
  const drop = steps.dropEntry(run.drop)?.drop;
  if (drop === undefined || (await containerOf(run, steps)) !== null) throw thrown;
  const entry = entryOf(run);
  const there = await drop.stat(entry.path, signal);
  if (there !== null && there.size === entry.size && there.mtime === entry.mtime) throw passing(run, thrown);
  // The fetched bytes may be of two versions.
  await steps.spool.discard(run.id, "input");
  return await leaveDrop(run, there, thrown, steps);
}

/** The file was missing when it was fetched, and is there by now. */
function passing(run: Run, thrown: TransientError | RejectedError): TransientError | RejectedError {
  if (thrown.code !== "HG-DROP-006") return thrown;
  const message = `${run.path} was missing at drop ${run.drop} for a moment`;
  return new TransientError("HG-DROP-006", {
    ...{ operation: "fetch file", subject: `${run.drop}: ${run.path}`, message, cause: thrown },
    hint: "It is fetched again in a moment.",
  });
}

/** The arrival has gone, so that a listing with the file offers it again; `there`: the file that is at its path now. */
async function leaveDrop(
  run: Run,
  there: FileEntry | null,
  thrown: TransientError | RejectedError,
  steps: RunSteps,
): Promise<StepResult> {
  const times = there === null ? await timesMissing(run, steps) : 0;
  if (times >= MISSING_MAX) {
    const message = `the drop lists the file, but it was missing each of the ${times + 1} times that a run fetched it`;
    const reason = { ...reasonOf(thrown), code: "HG-RUN-017", message, hint: undefined };
    await steps.ledger.advanceRun(run.id, run.state, "quarantined", { reason, detail: message });
    return NEXT;
  }
  const message =
    there === null
      ? "the file vanished from the drop before it was fetched; it is taken when it is listed again"
      : `the file was replaced at the drop before it was fetched (${there.size} bytes now); what is listed next is ` +
        "an arrival of its own";
  const reason = { ...reasonOf(thrown), code: "HG-RUN-002", message };
  await steps.ledger.advanceRun(run.id, run.state, "cancelled", { reason, detail: message, gone: true });
  if (there !== null) steps.log.warn({ run: run.id, drop: run.drop }, `${run.path} at ${run.drop}: ${message}`);
  return REST;
}

/** How often in a row, until now, this version of the file was listed and then missing. */
async function timesMissing(run: Run, { ledger }: RunSteps): Promise<number> {
  const arrivals = (await ledger.arrivalsAt(run.path, run.drop)).filter(({ id }) => id < run.arrivalId);
  let times = 0;
  for (const { id, size, mtime } of arrivals.toReversed()) {
    if (times >= MISSING_MAX || size !== run.size || mtime !== run.mtime) break;
    const earlier = await ledger.runOf(id);
    if (earlier?.reason?.code !== "HG-RUN-002") break;
    times += 1;
  }
  return times;
}
