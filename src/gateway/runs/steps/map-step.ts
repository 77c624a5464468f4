/**
 * `fetched → mapping → mapped`, or aside to `empty` or `quarantined`, for a list of runs of one version of a mapper. A
 * run whose input came into the segment of its list passes all states from `claimed` in one transaction.
 */
import { basename } from "node:path/posix";
import { TransientError } from "#core/errors.ts";
import { faultPoint } from "#core/faults.ts";
import { onlyOne, resultOf, type Settled } from "#core/promises.ts";
import { findingWords, type MapJob, type MapResult } from "#mapping/contract.ts";
import type { Span } from "#mapping/segment/layout.ts";
import type { RunAdvance } from "../../ledger/ledger.ts";
import type { Run } from "../../model.ts";
import { excludeDelivered, waitForEarlier } from "../replay.ts";
import { duplicatesRule, type FetchedInput, fetchedPassage, recordAnyway, recordFetched } from "./fetch-step.ts";
import { afterKnownContent } from "./known-content.ts";
import type { ListWork } from "./list-results.ts";
import { mapperWords, outcomeOf, withLineEnd } from "./mapping-record.ts";
import { bindMapper, NEXT, type RunSteps, rebindFor, type StepResult } from "./steps.ts";

/** A run with its input, in the segment of its list or in a file of its own. */
interface Input {
  readonly run: Run;
  readonly sha256: string | null;
  readonly shared: FetchedInput | null;
}

interface Mapped extends Input {
  readonly result: MapResult;
}

/**
 * Maps runs whose inputs were fetched into the segment of their list. A run that is to be mapped by itself is recorded
 * as fetched, so that the others do not wait for it.
 */
export async function mapFetched(fetched: readonly FetchedInput[], step: ListWork): Promise<void> {
  const { results, steps, signal } = step;
  const inputs = fetched.map((shared) => ({ run: shared.run, sha256: shared.file.sha256, shared }));
  const left = await mapInputs(inputs, step, async (jobs) => {
    const mapped = steps.pool.mapList(jobs, signal);
    steps.prepareDelivery();
    return await mapped;
  });
  if (signal.aborted) return;
  const cut = await results.each(
    left,
    ({ run }) => run,
    async ({ run, shared }) => {
      if (shared === null) return null;
      await steps.spool.cutInput(run.id, shared.path, spanOf(shared));
      return shared;
    },
  );
  if (cut.length > 0) await recordFetched(cut, step);
}

/** Maps fetched runs with inputs of their own. */
export async function mapRuns(runs: readonly Run[], step: ListWork): Promise<void> {
  const { results, steps, signal } = step;
  const due = await results.each(
    runs,
    (run) => run,
    (run) => beginMapping(run, step),
  );
  await mapInputs(due, step, async (jobs) => {
    const mapped = steps.pool.map(jobs, signal);
    steps.prepareDelivery();
    return await mapped;
  });
}

async function beginMapping(run: Run, { results, steps }: ListWork): Promise<Input | null> {
  const { id, sha256 } = run;
  if (!(await steps.spool.hasInput(id)) && !(await steps.spool.restoreInput(id, id, sha256)))
    return results.end(run, await fetchAgain(run, "fetched", "the spool lost the input", steps));
  const wait = run.replay === null ? null : await waitForEarlier(run, steps);
  if (wait !== null) return results.end(run, wait);
  if (run.binding.mapper.digest === "") return results.end(run, await bindMapper(run, steps));
  await steps.ledger.advanceRun(id, "fetched", "mapping", { detail: mapperWords(run) });
  return { run, sha256, shared: null };
}

type MapJobs = (jobs: readonly MapJob[]) => Promise<readonly Settled<MapResult | null>[]>;

/** Returns the inputs that are to be mapped by themselves. */
async function mapInputs(inputs: readonly Input[], step: ListWork, map: MapJobs): Promise<readonly Input[]> {
  const { results, steps, signal } = step;
  const ready = await results.each(
    inputs,
    ({ run }) => run,
    (input) => orAfterFault(input, step, async () => ({ input, job: await jobOf(input, steps) })),
  );
  if (ready.length === 0) return [];
  const settled = await mapAll(
    ready.map(({ job }) => job),
    map,
  );
  const left: Input[] = [];
  const mapped = await results.each(
    ready,
    ({ input: { run } }) => run,
    ({ input }, at) =>
      orAfterFault(input, step, async () => {
        const result = resultOf(settled[at]);
        if (result === null) left.push(input);
        return result === null ? null : await afterMapping(input, result, step);
      }),
  );
  if (mapped.length > 0) faultPoint("run.map.segment");
  // Runs of a list that was stopped are fetched again.
  await recordMapped(signal.aborted ? mapped.filter(({ shared }) => shared === null) : mapped, step);
  return left;
}

async function mapAll(jobs: readonly MapJob[], map: MapJobs): Promise<readonly Settled<MapResult | null>[]> {
  const [all] = await Promise.allSettled([map(jobs)]);
  return all.status === "fulfilled" ? all.value : jobs.map(() => all);
}

async function orAfterFault<Value>(
  input: Input,
  step: ListWork,
  work: () => Promise<Value | null>,
): Promise<Value | null> {
  try {
    return await work();
  } catch (thrown) {
    return await afterFault(input, thrown, step);
  }
}

async function jobOf({ run, sha256, shared }: Input, { lookups, spool }: RunSteps): Promise<MapJob> {
  const { id, drop, path, binding } = run;
  return {
    runId: id,
    drop,
    inputPath: shared?.path ?? spool.inputPath(id),
    ...(shared === null ? {} : { input: spanOf(shared) }),
    inputSha256: sha256,
    fileName: basename(path),
    filePath: path,
    binding,
    lookups: binding.lookups === undefined ? [] : await lookups.filesFor(binding),
    ...(binding.zones === undefined ? {} : { zones: await lookups.zonesFor(binding) }),
    segmentPath: spool.segmentPath(id),
  };
}

function spanOf({ file: { offset, bytes } }: FetchedInput): Span {
  return { offset, length: bytes };
}

async function afterMapping(input: Input, mapped: MapResult, { results, steps }: ListWork): Promise<Mapped | null> {
  const { run, shared } = input;
  const delivered = await withoutDelivered(run, mapped, steps.spool.segmentPath(run.id), steps);
  const result = await withLineEnd(run, delivered, steps.ledger);
  for (const finding of result.findings) {
    const fields = { run: run.id, file: run.path, finding: finding.kind };
    steps.log[finding.attention ? "warn" : "info"](fields, findingWords(finding));
  }
  steps.quota.mapped(run.id);
  if (await rebindFor(result, run, steps)) {
    const detail = "to be mapped as the run is bound now";
    if (shared === null) await steps.ledger.advanceRun(run.id, "mapping", "fetched", { detail });
    return results.end(run, NEXT);
  }
  if (shared !== null) await keepOwnInput(shared, result, steps);
  return { ...input, result };
}

/** A run without a part in the segment of its list has its input in a file of its own. */
async function keepOwnInput(shared: FetchedInput, result: MapResult, { spool }: RunSteps): Promise<void> {
  const { run, path } = shared;
  if (result.status === "mapped" && result.holdsInput === true) return;
  // A file that a crash left under this name is not the segment of this attempt.
  if (result.status === "failed" || result.batches.length === 0) await spool.discard(run.id, "segment");
  await spool.cutInput(run.id, path, spanOf(shared));
}

/** A run with an input of its own is mapped again; one of a list is fetched again. */
async function afterFault({ run, shared }: Input, thrown: unknown, { results, steps }: ListWork): Promise<null> {
  if (shared !== null) throw thrown;
  if (isDamagedInput(thrown)) return results.end(run, await replaceInput(run, thrown, steps));
  await steps.ledger.advanceRun(run.id, "mapping", "fetched", {
    detail: "mapping was interrupted and is done again",
  });
  throw thrown;
}

/** In one transaction. */
async function recordMapped(mapped: readonly Mapped[], { results, steps }: ListWork): Promise<void> {
  const advances = mapped.map((one) => advanceOf(one, steps));
  const advanced = await steps.ledger.advanceRuns(advances);
  await results.each(
    mapped,
    ({ run }) => run,
    async (one, at) => {
      const answer = advanced[at];
      if (answer?.run === null && answer.why === "fault") throw answer.thrown;
      const result = answer?.run ? moveOf(answer.run) : await afterKnown(one, advances[at], steps);
      return results.end(one.run, result);
    },
  );
}

function advanceOf({ run, shared, result }: Mapped, steps: RunSteps): RunAdvance {
  const { passage, mapped } = outcomeOf(run, result);
  const record = mapped === undefined ? {} : { mapped };
  if (shared === null) return { id: run.id, from: "mapping", through: [passage], ...record };
  const mapping = { to: "mapping" as const, change: { detail: mapperWords(run) } };
  return {
    ...{ id: run.id, from: "claimed" },
    through: [fetchedPassage(shared.file), mapping, passage],
    ...duplicatesRule(run, steps),
    ...record,
  };
}

/** The bytes came before, or may have: the rule of the drop decides whether the readings are delivered. */
async function afterKnown(
  { run, shared }: Mapped,
  advance: RunAdvance | undefined,
  steps: RunSteps,
): Promise<StepResult> {
  if (shared === null) return NEXT;
  const known = await afterKnownContent(run, shared.file.sha256, steps);
  const recorded = known === null ? await recordAnyway(advance, steps) : null;
  if (recorded !== null) return moveOf(recorded);
  await steps.spool.cutInput(run.id, shared.path, spanOf(shared));
  // Kept with the run, it would be found as batches that were sent.
  await steps.spool.discard(run.id, "segment");
  return known ?? NEXT;
}

function moveOf(run: Run): StepResult {
  return run.state === "mapped" ? { move: "next", run } : { move: "rest", run };
}

async function fetchAgain(run: Run, from: "fetched" | "mapping", why: string, steps: RunSteps): Promise<StepResult> {
  // The run may be mapped in a list next: files beside its name are not of that segment.
  await steps.spool.discard(run.id, "segment");
  await steps.ledger.advanceRun(run.id, from, "claimed", { detail: `${why}; it is fetched again` });
  return NEXT;
}

/** The input in the spool is not the fetched file: the kept copy takes its place, or the run is fetched again. */
async function replaceInput(run: Run, damage: TransientError, steps: RunSteps): Promise<StepResult> {
  if (await discardDamaged(run, damage, steps)) {
    const detail = `${damage.message}; the copy that the spool kept takes its place`;
    await steps.ledger.advanceRun(run.id, "mapping", "fetched", { detail });
    return NEXT;
  }
  return await fetchAgain(run, "mapping", damage.message, steps);
}

/** Returns whether the spool had another copy that is whole. */
export async function discardDamaged(
  { id, path, sha256 }: Run,
  damage: TransientError,
  { spool, log }: RunSteps,
): Promise<boolean> {
  log.warn({ run: id, file: path, code: damage.code, reason: damage.message }, "an input in the spool is damaged");
  await spool.discard(id, "input");
  return await spool.restoreInput(id, id, sha256);
}

/** Mapping found that the input is not the file that was fetched. */
export function isDamagedInput(thrown: unknown): thrown is TransientError {
  return thrown instanceof TransientError && thrown.code === "HG-SPOOL-007";
}

/** Maps the input of a run to a segment at another path, without readings that a replay leaves out. */
export async function mapToSegment(
  run: Run,
  segmentPath: string,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<MapResult> {
  const job = await jobOf({ run, sha256: run.sha256, shared: null }, steps);
  const result = await onlyOne(steps.pool.map([{ ...job, segmentPath }], signal));
  return await withoutDelivered(run, result, segmentPath, steps);
}

async function withoutDelivered(run: Run, result: MapResult, segmentPath: string, steps: RunSteps): Promise<MapResult> {
  if (run.replay === null || result.status === "failed") return result;
  return await excludeDelivered(run, run.replay, result, segmentPath, steps);
}
