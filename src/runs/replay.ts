/** The steps of a run that a person ordered again: its input comes from the spool, and what must not be sent is taken out of its segment. */
import { createHash } from "node:crypto";
import { open, rm } from "node:fs/promises";
import type { MappedFile } from "../mapping/contract.ts";
import type { BatchSlice, PushElement, Replay, Run } from "../model.ts";
import { ROWS } from "../segment/layout.ts";
import { bodiesOf, parseBody, readingOf, targetOf } from "../segment/payloads.ts";
import { openKept, sizeOf } from "../spool/kept-files.ts";
import { PART } from "../spool/paths.ts";
import { linesOf, segmentFiles } from "../spool/segment-files.ts";
import { digestOfFile } from "../support/digest.ts";
import { publishDurably, syncFile } from "../support/durable.ts";
import { fetchSource, waitForDrop } from "./source.ts";
import { attemptsBefore, laterRunsOf, type Spared, whatToSpare } from "./steps/exclusions.ts";
import { entryOf, NEXT, REST, type RunSteps, type StepResult } from "./steps/steps.ts";

/** Longest time until a replay that waits for another run is looked at again. */
const BLOCKED_WAIT_MS = 5_000;

/** `claimed → fetched`: from the copy that the spool keeps, or else from the drop while the same version lies there. */
export async function fetchReplayed(
  run: Run,
  replay: Replay,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<StepResult> {
  const sha256 = (await fromSpool(run, replay, steps)) ?? (await fromDrop(run, steps, signal));
  if (sha256 === null) {
    const message = "the input is not kept any more, and this version of the file is not at its drop";
    const reason = { code: "HG-RUN-009", message };
    await steps.ledger.advanceRun(run.id, "claimed", "quarantined", { reason, detail: message });
    return REST;
  }
  if (typeof sha256 !== "string") return sha256;
  await steps.ledger.advanceRun(run.id, "claimed", "fetched", {
    sha256,
    reason: null,
    detail: `sha256 ${sha256}`,
  });
  return NEXT;
}

async function fromSpool(run: Run, replay: Replay, { ledger, spool }: RunSteps): Promise<string | null> {
  const of = await ledger.run(replay.of);
  for (const { id } of of === null ? [] : await attemptsBefore(of, ledger)) {
    if (!(await spool.restoreInput(run.id, id))) continue;
    const sha256 = await digestOfFile(spool.inputPath(run.id));
    // One that was given up before its bytes had come left as many as there were.
    const isWhole =
      run.sha256 === null ? sizeOf(spool.inputPath(run.id)) === run.size : sha256 === run.sha256;
    if (isWhole) return sha256;
    await rm(spool.inputPath(run.id), { force: true });
  }
  return null;
}

async function fromDrop(run: Run, steps: RunSteps, signal: AbortSignal): Promise<string | StepResult | null> {
  const post = steps.dropEntry(run.drop);
  if (post === undefined) return await waitForDrop(run, steps);
  const arrival = await steps.ledger.arrival(run.arrivalId);
  if (arrival?.parentId === null) {
    const there = await post.drop.stat(run.path, signal);
    const { size, mtime } = entryOf(run);
    if (there === null || there.size !== size || there.mtime !== mtime) return null;
  }
  const { sha256 } = await fetchSource(run, steps.spool.inputPath(run.id), steps, signal);
  return run.sha256 === null || sha256 === run.sha256 ? sha256 : null;
}

/** What came between has to be at rest: only then is it known which dates were delivered later. Null when nothing is in the way. */
export async function waitForEarlier(run: Run, { ledger }: RunSteps): Promise<StepResult | null> {
  const before = await ledger.blockedBy(run);
  if (before === null) return null;
  const reason = `the replay waits for ${before.path} (${before.state}), which may deliver the same dates`;
  return { move: "wait", ms: BLOCKED_WAIT_MS, reason, blockedBy: before.id };
}

/** The file as it is to be sent: what must be spared is out of the segment at this path and its row index. */
export async function excludeDelivered(
  run: Run,
  replay: Replay,
  mapped: MappedFile,
  path: string,
  steps: RunSteps,
): Promise<MappedFile> {
  const of = await steps.ledger.run(replay.of);
  if (of === null || mapped.batches.length === 0) return mapped;
  const question = { of, before: run.id, targets: mapped.targets };
  const later = replay.overwrite ? [] : await runsToSpare(replay, question, steps);
  if (!replay.overwrite && replay.spared === undefined)
    await steps.ledger.noteRun(run.id, { replay: { ...replay, spared: later.map(({ id }) => id) } });
  if (later.length === 0 && !replay.rejectedOnly) return mapped;
  const spared = await whatToSpare(replay, later, await attemptsBefore(of, steps.ledger), path, steps);
  try {
    const { batches, left, targets } = await rewriteSegment(path, mapped.batches, (element) =>
      sparing(element, spared),
    );
    const points = batches.reduce((sum, batch) => sum + batch.points, 0);
    const inWhich = later.length === 0 ? "" : ` (${later.map(({ id }) => id).join(", ")})`;
    await steps.ledger.noteRun(run.id, {
      event: "run.spared",
      detail: `${left.later} readings are left out since later runs have delivered their dates${inWhich}, ${left.accepted} since they were accepted before`,
    });
    // Of a file of which nothing is left it is still said what it held.
    const stays = mapped.targets.filter(
      ({ facts }) => batches.length === 0 || targets.has(targetOf(facts.target)),
    );
    return { ...mapped, batches, points, targets: stays };
  } finally {
    await spared.close();
  }
}

/** A replay that is mapped again spares what it spared before. */
async function runsToSpare(
  replay: Replay,
  question: Parameters<typeof laterRunsOf>[0],
  steps: RunSteps,
): Promise<readonly Run[]> {
  if (replay.spared === undefined) return laterRunsOf(question, steps);
  const runs = await Promise.all(replay.spared.map((id) => steps.ledger.run(id)));
  return runs.filter((run) => run !== null);
}

export interface LeftOut {
  later: number;
  accepted: number;
}

/** Why a reading stays out, for each of an element. */
export type Judge = (element: PushElement) => readonly (keyof LeftOut | null)[];

export function sparing(
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

interface RowLine extends Readonly<Record<string, unknown>> {
  readonly rows: readonly number[];
  readonly sheetOf?: readonly number[];
}

/** Writes the segment and its row index anew, without what the judge leaves out. */
async function rewriteSegment(
  path: string,
  slices: readonly BatchSlice[],
  judge: Judge,
): Promise<{
  readonly batches: readonly BatchSlice[];
  readonly left: LeftOut;
  /** Of which something stays; see `targetOf`. */
  readonly targets: ReadonlySet<string>;
}> {
  const batches: BatchSlice[] = [];
  const left: LeftOut = { later: 0, accepted: 0 };
  const targets = new Set<string>();
  const segment = await open(`${path}${PART}`, "w");
  const rows = await open(`${path}${ROWS}${PART}`, "w");
  const lines = linesOf(segmentFiles(path).rows ?? { path: `${path}${ROWS}` });
  try {
    let offset = 0;
    for await (const { body } of bodiesOf((span) => openKept(path, span), slices)) {
      const line = JSON.parse((await lines.next()).value ?? "{}") as RowLine;
      const { elements, kept } = without(parseBody(body), judge, left);
      if (elements.length === 0) continue;
      for (const element of elements) targets.add(targetOf(element));
      const bytes = Buffer.from(JSON.stringify(elements), "utf8");
      const sequence = String(batches.length + 1);
      const points = elements.reduce((sum, element) => sum + element.data.length, 0);
      const digest = createHash("sha256").update(bytes).digest("hex");
      batches.push({ sequence, offset, length: bytes.length, points, digest });
      offset += bytes.length;
      await segment.write(bytes);
      await rows.write(`${JSON.stringify(rowsWithout(line, kept, { sequence, length: bytes.length }))}\n`);
    }
  } finally {
    await Promise.all([segment.close(), rows.close(), lines.return(undefined)]);
  }
  await syncFile(`${path}${PART}`);
  await syncFile(`${path}${ROWS}${PART}`);
  await publishDurably(`${path}${ROWS}${PART}`, `${path}${ROWS}`);
  await publishDurably(`${path}${PART}`, path);
  return { batches, left, targets };
}

/** What stays, and for each reading of the body whether it does. */
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

function rowsWithout(
  line: RowLine,
  kept: readonly boolean[],
  facts: { readonly sequence: string; readonly length: number },
): RowLine {
  const stays = (_: unknown, index: number) => kept[index] === true;
  const { sheetOf } = line;
  return {
    ...line,
    ...facts,
    rows: line.rows.filter(stays),
    ...(sheetOf === undefined ? {} : { sheetOf: sheetOf.filter(stays) }),
  };
}
