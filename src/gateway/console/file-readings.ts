/** The result of a mapper, from the segment that the spool keeps: readings with their rows, and batches. */

import { bodiesOf } from "#mapping/segment/payloads.ts";
import { targetWords } from "#wire/target.ts";
import type { Arrival, Run, TargetFacts } from "../model.ts";
import type { AnswerOf, QueryOf } from "../operations/api/endpoint.ts";
import type { FileReadings, fileEndpoints } from "../operations/api/files.ts";
import { unknownSubject } from "../operations/problems.ts";
import { placedReadings } from "../spool/placed-readings.ts";
import { readFacts } from "../spool/target-index.ts";
import type { ContentParts } from "./file-content.ts";

type Endpoints = typeof fileEndpoints;

const TARGETS_MAX = 1_000;
/** Characters of a payload; a batch has a few megabytes at most. */
const PAYLOAD_MAX = 1_000_000;

export async function readingsOf(
  arrival: Arrival,
  { run: asked, target, limit }: QueryOf<Endpoints["fileReadings"]>,
  parts: ContentParts,
): Promise<FileReadings> {
  const run = await findRun(arrival, asked, parts);
  const files = parts.spool.filesOf(run.id);
  if (files.segment === null || files.rows === null) throw notKept(run);
  const targets: TargetFacts[] = [];
  if (files.about !== null)
    await readFacts(files.about, TARGETS_MAX, async (part) => {
      if (targets.length < TARGETS_MAX) targets.push(...part);
    });
  const readings: FileReadings["readings"] = [];
  let isCut = false;
  for await (const { element, reading, row, sheet } of placedReadings(files)) {
    const words = targetWords(element);
    if (target !== undefined && words !== target) continue;
    isCut = readings.length === limit;
    if (isCut) break;
    const version = reading.version ?? element.version ?? null;
    readings.push({ target: words, date: reading.date, value: reading.value, version, sheet, row });
  }
  return { run: run.id, targets: targets.slice(0, TARGETS_MAX).map(shownTarget), readings, isCut };
}

function shownTarget({ target, points, fromMs, toMs, unit }: TargetFacts): FileReadings["targets"][number] {
  const instant = (ms: number) => (points === 0 ? null : Temporal.Instant.fromEpochMilliseconds(ms).toString());
  return { target: targetWords(target), points, from: instant(fromMs), to: instant(toMs), unit: unit ?? null };
}

export async function payloadOf(
  arrival: Arrival,
  { run: asked, batch: name }: QueryOf<Endpoints["filePayload"]>,
  parts: ContentParts,
): Promise<AnswerOf<Endpoints["filePayload"]>> {
  const run = await findRun(arrival, asked, parts);
  const batches = await parts.ledger.batches(run.id);
  const batch = batches.find(({ sequence, operationId }) => sequence === name || operationId === name);
  if (batch === undefined)
    throw unknownSubject({
      operation: "show payload",
      subject: name,
      message: `run ${run.id} has no batch ${name}; it has ${batches.length}`,
    });
  const segment = await parts.spool.openSegment(run.id);
  if (segment === null) throw notKept(run);
  for await (const { body } of bodiesOf(segment, [batch])) {
    const text = body.toString("utf8");
    return {
      ...{ run: run.id, operationId: batch.operationId, sequence: batch.sequence, bytes: body.length },
      ...{ text: text.slice(0, PAYLOAD_MAX), isCut: text.length > PAYLOAD_MAX },
    };
  }
  throw notKept(run);
}

/** The named run, or the latest that the spool has readings of. */
async function findRun(arrival: Arrival, asked: string | undefined, parts: ContentParts): Promise<Run> {
  const { ledger, spool } = parts;
  const runs = ((await ledger.files.life(arrival.id))?.runs ?? []).map(({ run }) => run);
  if (asked !== undefined) {
    const named = runs.find(({ id }) => id === asked);
    if (named !== undefined) return named;
    throw unknownSubject({
      operation: "find run",
      subject: asked,
      message: `${arrival.path} has no run ${asked}`,
    });
  }
  const found = runs.findLast(({ id }) => spool.filesOf(id).segment !== null) ?? runs.at(-1);
  if (found !== undefined) return found;
  throw unknownSubject({
    operation: "find run",
    subject: arrival.path,
    message: "no trigger has claimed the file, so that it has no readings",
    hint: "`headgate trigger test NAME` and the page of triggers say which rules do not hold.",
  });
}

function notKept(run: Run): Error {
  return unknownSubject({
    operation: "show readings",
    subject: run.id,
    message:
      run.points.mapped === 0
        ? `run ${run.id} of ${run.path} has no readings: it is ${run.state}`
        : `the readings of run ${run.id} are no longer kept`,
    hint: "`spool.keepInputs` says how long inputs and readings are kept. A replay maps the file again.",
  });
}
