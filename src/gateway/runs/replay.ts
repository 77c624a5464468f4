/**
 * The steps of a replay: its input comes from the spool, and readings that must not be sent are left out of
 * its segment.
 */
import { rm } from "node:fs/promises";
import { digestOfFile } from "#core/digest.ts";
import { TransientError } from "#core/errors.ts";
import type { MappedFile } from "#mapping/contract.ts";
import type { RowIndexLine } from "#mapping/segment/layout.ts";
import { bodiesOf, parseBody, readingOf, targetOf } from "#mapping/segment/payloads.ts";
import { type BatchBody, createSegment } from "#mapping/segment/writer.ts";
import type { BatchSlice, FetchedFile, PushElement, Replay, Run } from "../model.ts";
import { openKept, sizeOf } from "../spool/kept-files.ts";
import { isWhole, rowsOf } from "../spool/row-index.ts";
import { segmentFiles } from "../spool/segment-files.ts";
import { currentEntry, fetchSource, waitForDrop } from "./source.ts";
import { attemptsBefore, laterRunsOf, type Spared, whatToSpare } from "./steps/exclusions.ts";
import { REST, type RunSteps, type StepResult } from "./steps/steps.ts";

/** Longest time until a replay that waits for another run is checked again. */
const BLOCKED_WAIT_MS = 5_000;

/**
 * From the copy that the spool keeps, or from the drop while the same version is there; otherwise the run
 * ends.
 */
export async function fetchReplayed(
  run: Run,
  replay: Replay,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<FetchedFile | StepResult> {
  const fetched = (await fromSpool(run, replay, steps)) ?? (await fromDrop(run, steps, signal));
  if (fetched !== null)
    return typeof fetched === "string"
      ? { sha256: fetched, bytes: sizeOf(steps.spool.inputPath(run.id)) ?? run.size }
      : fetched;
  const message =
    "the input is no longer available, and this version of the file is neither at its drop nor in its archive";
  const reason = { code: "HG-RUN-009", message };
  await steps.ledger.advanceRun(run.id, "claimed", "quarantined", { reason, detail: message });
  return REST;
}

async function fromSpool(run: Run, replay: Replay, { ledger, spool }: RunSteps): Promise<string | null> {
  const of = await ledger.run(replay.of);
  for (const { id } of of === null ? [] : await attemptsBefore(of, ledger)) {
    if (!(await spool.restoreInput(run.id, id))) continue;
    const sha256 = await digestOfFile(spool.inputPath(run.id));
    // A run that was cancelled during its fetch left a part of the bytes.
    const isWhole = run.sha256 === null ? sizeOf(spool.inputPath(run.id)) === run.size : sha256 === run.sha256;
    if (isWhole) return sha256;
    await rm(spool.inputPath(run.id), { force: true });
  }
  return null;
}

async function fromDrop(run: Run, steps: RunSteps, signal: AbortSignal): Promise<string | StepResult | null> {
  const dropEntry = steps.dropEntry(run.drop);
  if (dropEntry === undefined) return await waitForDrop(run, steps);
  const arrival = await steps.ledger.arrival(run.arrivalId);
  if (arrival?.parentId === null) {
    const { path, size, mtime } = await currentEntry(run, steps);
    const there = await dropEntry.drop.stat(path, signal);
    if (there === null || there.size !== size || there.mtime !== mtime) return null;
  }
  const { sha256 } = await fetchSource(run, steps.spool.inputPath(run.id), steps, signal);
  return run.sha256 === null || sha256 === run.sha256 ? sha256 : null;
}

/**
 * Runs between the replay and its original must be at rest: only then is it known which dates were delivered
 * later. Null when none is in the way.
 */
export async function waitForEarlier(run: Run, { ledger }: RunSteps): Promise<StepResult | null> {
  const before = await ledger.blockedBy(run);
  if (before === null) return null;
  const reason = `the replay waits for ${before.path} (${before.state}), which may deliver the same dates`;
  return { move: "wait", ms: BLOCKED_WAIT_MS, reason, blockedBy: before.id };
}

/**
 * Leaves readings that later runs delivered, or that were accepted before, out of the segment at this path
 * and its row index.
 */
export async function excludeDelivered(
  run: Run,
  replay: Replay,
  mapped: MappedFile,
  path: string,
  steps: RunSteps,
): Promise<MappedFile> {
  const of = await steps.ledger.run(replay.of);
  if (of === null || mapped.batches.length === 0) return mapped;
  const query = { of, before: run.id, targets: mapped.targets };
  const later = replay.overwrite ? [] : await laterRuns(replay, query, steps);
  if (!replay.overwrite && replay.spared === undefined)
    await steps.ledger.noteRun(run.id, { replay: { ...replay, spared: later.map(({ id }) => id) } });
  if (later.length === 0 && !replay.rejectedOnly) return mapped;
  const spared = await whatToSpare(replay, later, await attemptsBefore(of, steps.ledger), path, steps);
  try {
    const { left, ...rewritten } = await rewriteSegment(path, mapped, (element) => exclusionsOf(element, spared));
    const { batches } = rewritten;
    const points = batches.reduce((sum, batch) => sum + batch.points, 0);
    const inWhich = later.length === 0 ? "" : ` (${later.map(({ id }) => id).join(", ")})`;
    await steps.ledger.noteRun(run.id, {
      event: "run.spared",
      detail:
        `${left.later} readings are left out since later runs have delivered their dates${inWhich}, ` +
        `${left.accepted} since they were accepted before`,
    });
    // The targets of the file are reported also when nothing of it is left.
    const targets = batches.length === 0 ? mapped.targets : rewritten.targets;
    return { ...mapped, batches, points, targets };
  } finally {
    await spared.close();
  }
}

/** A replay that is mapped again leaves out the same as before. */
async function laterRuns(
  replay: Replay,
  query: Parameters<typeof laterRunsOf>[0],
  steps: RunSteps,
): Promise<readonly Run[]> {
  if (replay.spared === undefined) return laterRunsOf(query, steps);
  const runs = await Promise.all(replay.spared.map((id) => steps.ledger.run(id)));
  return runs.filter((run) => run !== null);
}

interface LeftOut {
  later: number;
  accepted: number;
}

/** Why a reading of an element is left out, for each; null for one that stays. */
type Judge = (element: PushElement) => readonly (keyof LeftOut | null)[];

function exclusionsOf(
  element: PushElement,
  { later, accepted }: Pick<Spared, "later" | "accepted">,
): readonly (keyof LeftOut | null)[] {
  const target = targetOf(element);
  return element.data.map((one) => {
    const reading = readingOf(element, target, one);
    if (later.runOf(reading) !== undefined) return "later";
    return accepted.valueOf(reading) === undefined ? null : "accepted";
  });
}

interface Rewritten extends Pick<MappedFile, "batches" | "targets"> {
  readonly left: LeftOut;
}

/** Writes the segment again, without the readings that `judge` leaves out. */
async function rewriteSegment(path: string, mapped: MappedFile, judge: Judge): Promise<Rewritten> {
  const left: LeftOut = { later: 0, accepted: 0 };
  const batches: BatchSlice[] = [];
  const stays = new Set<string>();
  const { rows } = segmentFiles(path);
  if (rows === null || !(await isWhole(rows))) throw damagedSegment(path);
  const sink = createSegment(path);
  const lines = rowsOf(rows);
  try {
    let count = 0;
    for await (const { body } of bodiesOf((span) => openKept(path, span), mapped.batches)) {
      count += 1;
      const { value: line } = await lines.next();
      if (line === undefined) throw damagedSegment(path);
      const { elements, kept } = without(parseBody(body), judge, left);
      if (elements.length === 0) continue;
      for (const element of elements) stays.add(targetOf(element));
      const points = elements.reduce((sum, element) => sum + element.data.length, 0);
      const bytes = Buffer.from(JSON.stringify(elements), "utf8");
      batches.push(await sink.append({ bytes, points, ...rowsWithout(line, kept) }, sheetNames(line)));
    }
    if (count < mapped.batches.length) throw damagedSegment(path);
    const targets = mapped.targets.filter(({ facts }) => stays.has(targetOf(facts.target)));
    if (batches.length > 0) await sink.publish({ period: mapped.period, targets });
    else await rm(path, { force: true });
    return { batches, targets, left };
  } catch (thrown) {
    await sink.discard();
    throw thrown;
  } finally {
    await lines.return(undefined);
  }
}

/** The file is mapped again. */
function damagedSegment(path: string): TransientError {
  return new TransientError("HG-SPOOL-008", { operation: "read segment", subject: path });
}

/** The elements that stay, and for each reading of the body whether it does. */
function without(
  elements: readonly PushElement[],
  judge: Judge,
  left: LeftOut,
): { readonly elements: readonly PushElement[]; readonly kept: readonly boolean[] } {
  const kept: boolean[] = [];
  const remaining = elements.flatMap((element) => {
    const verdicts = judge(element);
    for (const verdict of verdicts) {
      kept.push(verdict === null);
      if (verdict !== null) left[verdict] += 1;
    }
    const data = element.data.filter((_, index) => verdicts[index] === null);
    return data.length === 0 ? [] : [{ ...element, data }];
  });
  return { elements: remaining, kept };
}

function rowsWithout({ rows, sheetOf }: RowIndexLine, kept: readonly boolean[]): Pick<BatchBody, "rows" | "sheets"> {
  const stays = (_: unknown, index: number) => kept[index] === true;
  return {
    rows: Uint32Array.from(rows.filter(stays)),
    sheets: sheetOf === undefined ? null : Uint32Array.from(sheetOf.filter(stays)),
  };
}

function sheetNames({ sheets }: RowIndexLine): (index: number) => string | undefined {
  return (index) => sheets?.[String(index)];
}
