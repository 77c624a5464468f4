/** `fetched → mapping → mapped`, or aside to `empty` or `quarantined`; and the segment made again when the spool lost it. */

import { basename } from "node:path/posix";
import type { MappedRecord, RunPassage } from "../../ledger/ledger.ts";
import { conflictWords, cutWords, type MappedFile, type MapResult } from "../../mapping/contract.ts";
import type { Batch, Reason, Run } from "../../model.ts";
import { AGAIN, discardAgain, publishAgain } from "../../spool/segment-again.ts";
import { TransientError } from "../../support/errors.ts";
import { faultPoint } from "../../support/faults.ts";
import { onlyOne } from "../../support/settled.ts";
import { excludeDelivered, waitForEarlier } from "../replay.ts";
import { fetchSource, leaveToOthers, whyLost } from "../source.ts";
import { NEXT, REST, type RunSteps, type StepResult } from "./steps.ts";

/** Reasons for refused rows that an event names. */
const REASONS_SAID = 3;

/** The mapper is not the one that the run is bound to. */
const MAPPER_CHANGED = "HG-MAP-002";

export async function mapInput(run: Run, steps: RunSteps, signal: AbortSignal): Promise<StepResult> {
  const { id, sha256 } = run;
  if (!(await steps.spool.hasInput(id)) && !(await steps.spool.restoreInput(id, id, sha256)))
    return await fetchAgain(run, "fetched", "the spool lost the input", steps);
  if (run.replay !== null) {
    const wait = await waitForEarlier(run, steps);
    if (wait !== null) return wait;
  }
  if (run.binding.mapper.digest === "") return await bindMapper(run, steps);
  await steps.ledger.advanceRun(run.id, "fetched", "mapping", { detail: mapperWords(run) });
  let result: MapResult;
  try {
    result = await mapAndSpare(run, steps.spool.segmentPath(run.id), steps, signal);
  } catch (thrown) {
    if (isDamagedInput(thrown)) return await replaceInput(run, thrown, steps);
    await steps.ledger.advanceRun(run.id, "mapping", "fetched", {
      detail: "mapping was interrupted and is done again",
    });
    throw thrown;
  }
  steps.room.mapped(run.id);
  faultPoint("run.map.segment");
  return await recordResult(run, result, steps);
}

async function fetchAgain(
  run: Run,
  from: "fetched" | "mapping",
  why: string,
  steps: RunSteps,
): Promise<StepResult> {
  // A small file may be mapped with others next, into one segment: what an attempt left beside that segment is not its own.
  await steps.spool.discard(run.id, "segment");
  await steps.ledger.advanceRun(run.id, from, "claimed", { detail: `${why}; it is fetched again` });
  return NEXT;
}

/** The copy in the spool is not what was fetched: the kept copy takes its place, or the run is fetched again. */
async function replaceInput(run: Run, damage: TransientError, steps: RunSteps): Promise<StepResult> {
  if (await discardDamaged(run, damage, steps)) {
    const detail = `${damage.message}; the copy that the spool kept takes its place`;
    await steps.ledger.advanceRun(run.id, "mapping", "fetched", { detail });
    return NEXT;
  }
  return await fetchAgain(run, "mapping", damage.message, steps);
}

/** Answers whether the spool had another copy that is whole. */
async function discardDamaged(
  { id, path, sha256 }: Run,
  damage: TransientError,
  { spool, log }: RunSteps,
): Promise<boolean> {
  log.warn(
    { run: id, file: path, code: damage.code, reason: damage.message },
    "an input in the spool is damaged",
  );
  await spool.discard(id, "input");
  return await spool.restoreInput(id, id, sha256);
}

/** Of a mapping: the input is not what was fetched. */
function isDamagedInput(thrown: unknown): thrown is TransientError {
  return thrown instanceof TransientError && thrown.code === "HG-SPOOL-007";
}

/** A run that a person ordered takes the version of the mapper that there is when its turn comes. */
async function bindMapper(run: Run, steps: RunSteps): Promise<StepResult> {
  if (await rebind(run, steps)) return NEXT;
  const message = `the mapper ${run.binding.mapper.name} does not exist, or cannot be loaded`;
  const reason = { code: "HG-MAP-001", message };
  await steps.ledger.advanceRun(run.id, "fetched", "quarantined", { reason, detail: message });
  return REST;
}

async function mapAndSpare(
  run: Run,
  segmentPath: string,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<MapResult> {
  const result = await mapOnce(run, segmentPath, steps, signal);
  const sparing = run.replay !== null && result.status === "mapped";
  return sparing ? await excludeDelivered(run, run.replay, result, segmentPath, steps) : result;
}

/** Until a run has batches, nothing depends on which version of the mapper it was claimed for. */
export async function rebind(run: Run, steps: RunSteps): Promise<boolean> {
  const mapper = await steps.currentMapper(run.binding.mapper.name);
  if (mapper === null || mapper.digest === run.binding.mapper.digest) return false;
  const before = run.binding.mapper;
  await steps.ledger.noteRun(run.id, {
    mapper,
    event: "run.rebound",
    detail:
      before.digest === ""
        ? `to the mapper ${mapper.name} ${mapper.version} (${mapper.digest.slice(0, 12)})`
        : `the mapper ${mapper.name} is ${mapper.version} (${mapper.digest.slice(0, 12)}) now; it was ${before.version} (${before.digest.slice(0, 12)}) when the file was claimed`,
  });
  return true;
}

export function isMapperChanged(result: MapResult): boolean {
  return result.status === "failed" && result.reason.code === MAPPER_CHANGED;
}

async function recordResult(run: Run, result: MapResult, steps: RunSteps): Promise<StepResult> {
  if (isMapperChanged(result) && (await rebind(run, steps))) {
    await steps.ledger.advanceRun(run.id, "mapping", "fetched", {
      detail: "to be mapped by the mapper as it is now",
    });
    return NEXT;
  }
  const { passage, mapped } = outcomeOf(run, result);
  if (mapped === undefined || result.status === "failed") {
    await steps.ledger.advanceRun(run.id, "mapping", passage.to, passage.change);
    return REST;
  }
  return { move: "next", run: await steps.ledger.recordMapped(run.id, mapped) };
}

/** The state that a run passes to by its mapping, with what is recorded of it. */
export function outcomeOf(
  run: Run,
  result: MapResult,
): { readonly passage: RunPassage; readonly mapped?: MappedRecord } {
  if (result.status === "failed") {
    const { rejectedByReason } = result;
    const change = {
      reason: rejectedByReason === undefined ? result.reason : { ...result.reason, rejectedByReason },
      rejected: result.rejected,
      points: { rejected: result.rejectedCount },
      detail: `${placeWords(result.reason.message, result.reason.place)}${refusedWords(result)}`,
    };
    return { passage: { to: "quarantined", change } };
  }
  if (result.batches.length > 0) return { passage: { to: "mapped" }, mapped: mappedRecord(result) };
  const message =
    run.replay !== null && result.targets.length > 0
      ? "nothing is left to deliver: every reading was delivered later, or accepted before"
      : "the file holds no readings";
  return { passage: { to: "empty", change: { reason: { code: "HG-RUN-003", message }, detail: message } } };
}

/** As the ledger takes it. */
function mappedRecord(result: MappedFile): MappedRecord {
  return {
    batches: result.batches,
    points: result.points,
    rejected: result.rejected,
    rejectedCount: result.rejectedCount,
    targets: result.targets.map(({ kind, target }) => ({ kind, target })),
    detail: mappedWords(result),
  };
}

async function isInputHere({ id, replay, sha256 }: Run, { spool }: RunSteps): Promise<boolean> {
  if ((await spool.hasInput(id)) || (await spool.restoreInput(id, id, sha256))) return true;
  return replay !== null && (await spool.restoreInput(id, replay.of, sha256));
}

/** Why a segment cannot be made again. */
export type RebuildFault = Pick<Reason, "code" | "message">;

/** As `mapAndSpare`, where a damaged input is replaced once. */
async function mapWholeInput(
  run: Run,
  segmentPath: string,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<MapResult | { readonly status: "lost"; readonly fault: RebuildFault }> {
  try {
    return await mapAndSpare(run, segmentPath, steps, signal);
  } catch (thrown) {
    if (!isDamagedInput(thrown)) throw thrown;
    await discardDamaged(run, thrown, steps);
    const fault = await bringInput(run, steps, signal);
    if (fault !== null) return { status: "lost", fault };
    return await mapAndSpare(run, segmentPath, steps, signal);
  }
}

/** The input of a run whose segment is lost or damaged, from wherever it can be had. Null, or why not. */
async function bringInput(run: Run, steps: RunSteps, signal: AbortSignal): Promise<RebuildFault | null> {
  if (await isInputHere(run, steps)) return null;
  if (steps.dropEntry(run.drop) === undefined)
    await leaveToOthers(run, "the spool does not have the segment", steps);
  return await fetchInputAgain(run, steps, signal);
}

/** Maps again into the same segment; the batches must come out as the ledger has them (invariant 10). Null, or why that cannot be. */
export async function rebuildSegment(
  run: Run,
  batches: readonly Batch[],
  steps: RunSteps,
  signal: AbortSignal,
): Promise<RebuildFault | null> {
  const missing = await bringInput(run, steps, signal);
  if (missing !== null) return missing;
  // Under another name until the batches lie where the ledger has them, which for a run that shared its file is not at the beginning.
  const segment = steps.spool.segmentPath(run.id);
  const again = `${segment}${AGAIN}`;
  try {
    const result = await mapWholeInput(run, again, steps, signal);
    if (result.status === "lost") return result.fault;
    if (result.status === "failed")
      return unmade(`the segment cannot be made again: ${result.reason.message}`);
    // What a split had appended is put back by delivery, which verifies it.
    const roots = batches.filter((batch) => !batch.sequence.includes("."));
    const moves = result.batches.flatMap((from, index) => {
      const to = roots[index];
      return to?.digest === from.digest ? [{ from, to }] : [];
    });
    if (moves.length === roots.length && result.batches.length === roots.length) {
      await publishAgain(again, segment, moves);
      return null;
    }
  } finally {
    await discardAgain(again);
  }
  await steps.spool.discard(run.id, "segment");
  return unmade("mapped again, the file gives other bytes than the ledger has; nothing of it is sent");
}

function unmade(message: string): RebuildFault {
  return { code: "HG-SPOOL-002", message };
}

/** Null when the spool has it. */
async function fetchInputAgain(run: Run, steps: RunSteps, signal: AbortSignal): Promise<RebuildFault | null> {
  // Under another name until it is known to be the same: a crash here must not leave a part of it as the input.
  const part = `${steps.spool.inputPath(run.id)}.part`;
  try {
    const fetched = await fetchSource(run, part, steps, signal);
    if (fetched.sha256 !== run.sha256)
      return unmade("the spool lost the segment, and the file at the drop has other content now");
  } catch (thrown) {
    const lost = await whyLost(run, thrown, steps, signal);
    if (lost === null) throw thrown;
    return { code: "HG-RUN-014", message: `the spool lost what the file was mapped to, and ${lost}` };
  }
  await steps.spool.takeInput(run.id, part);
  return null;
}

async function mapOnce(
  run: Run,
  segmentPath: string,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<MapResult> {
  return await onlyOne(
    steps.pool.map(
      [
        {
          runId: run.id,
          inputPath: steps.spool.inputPath(run.id),
          inputSha256: run.sha256,
          fileName: basename(run.path),
          filePath: run.path,
          binding: run.binding,
          lookups: await steps.lookups.filesFor(run.binding),
          segmentPath,
        },
      ],
      signal,
    ),
  );
}

/** Which mapper, trigger and tables a run is mapped with. */
export function mapperWords(run: Run): string {
  const { mapper, trigger, lookups = [] } = run.binding;
  const tables = lookups.map(
    ({ name, digest }) => `, lookup ${name} (${digest?.slice(0, 12) ?? "unreadable"})`,
  );
  return `mapper ${mapper.name} ${mapper.version} (${mapper.digest.slice(0, 12)}), trigger ${trigger}${tables.join("")}`;
}

function mappedWords(result: MappedFile): string {
  const period = result.period === null ? "" : `, ${result.period.from} to ${result.period.to}`;
  const { conflicts, cutDate } = result;
  const cut = cutDate === undefined ? "" : `; ${cutWords(cutDate)}`;
  const repeated = result.superseded - (conflicts?.count ?? 0);
  const superseded = `${repeated === 0 ? "" : `, ${repeated} superseded rows`}${replacedWords(conflicts)}`;
  return `${result.points} points of ${result.targets.length} targets in ${result.batches.length} batches${period}${superseded}${refusedWords(result)}${cut}`;
}

/** Rows with another value than one that counts instead, the first of them in full. */
function replacedWords(conflicts: MappedFile["conflicts"]): string {
  if (conflicts === undefined) return "";
  const { count, shown } = conflicts;
  const said = shown.slice(0, REASONS_SAID).map(conflictWords).join("; ");
  return `, ${count} rows replaced by others of their date with another value: ${said}${count > REASONS_SAID ? " …" : ""}`;
}

/** The most frequent reasons why rows were refused, with their counts. */
function refusedWords({ rejectedCount, rejectedByReason = [] }: MapResult): string {
  if (rejectedByReason.length === 0) return "";
  const reasons = rejectedByReason
    .slice(0, REASONS_SAID)
    .map(
      ({ message, column, count }) =>
        `${count} × ${message}${column === undefined ? "" : ` (column ${column})`}`,
    );
  const more = rejectedByReason.length - reasons.length;
  return `; ${rejectedCount} refused: ${reasons.join(", ")}${more > 0 ? ` and ${more} more reasons` : ""}`;
}

function placeWords(
  message: string,
  place: { sheet?: string | undefined; row?: number | undefined; column?: string | undefined } | undefined,
): string {
  if (place === undefined) return message;
  const parts = [
    place.sheet === undefined ? undefined : `sheet ${place.sheet}`,
    place.row === undefined ? undefined : `row ${place.row}`,
    place.column === undefined ? undefined : `column ${place.column}`,
  ].filter((part) => part !== undefined);
  return parts.length === 0 ? message : `${parts.join(", ")}: ${message}`;
}
