/**
 * What the batches of a run are about: kept with its segment. A line for the period, and one for each target.
 * The guard reads it before the first push, and a search for a reading opens by it the few payloads that may hold it.
 */

import { writeFile } from "node:fs/promises";
import { aboutLines, type RunAbout } from "../mapping/segment-layout.ts";
import type { TargetFacts } from "../model.ts";
import { systemCode } from "../support/errors.ts";
import { targetOf } from "./payloads.ts";
import { type FilePart, linesOf } from "./segment-files.ts";

/** Not synced: after a power cut the run is mapped again for it. */
export async function writeAbout(path: string, about: RunAbout): Promise<void> {
  await writeFile(path, aboutLines(about));
}

interface FirstLine {
  readonly from: string;
  readonly to: string;
  /** Of the lines that follow. */
  readonly count?: number;
  /** Of an earlier version of Headgate: targets in words, and no lines follow. */
  readonly targets?: readonly string[];
}

/** Hands out the facts of the targets, so many at a time. False when the file is not here as a whole, or is of an earlier version. */
export async function readFacts(
  about: FilePart,
  perPart: number,
  take: (part: readonly TargetFacts[]) => Promise<void>,
): Promise<boolean> {
  let awaited = -1;
  let part: TargetFacts[] = [];
  for await (const line of linesIn(about)) {
    if (awaited === -1) {
      const count = firstOf(line)?.count;
      if (count === undefined) return false;
      awaited = count;
      continue;
    }
    const facts = parsedLine<TargetFacts>(line);
    if (facts === null) return false;
    part.push(facts);
    awaited -= 1;
    if (part.length < perPart) continue;
    await take(part);
    part = [];
  }
  if (part.length > 0) await take(part);
  return awaited === 0;
}

export interface AboutQuery {
  /** Of the target, such as `sourceSerialNumber=M-1 mappingConfig=kWh`. */
  readonly words: string;
  /** The same, field by field. */
  readonly fields: Readonly<Record<string, string | number>>;
  /** Milliseconds since 1970 in UTC. */
  readonly atMs: number;
}

/** Whether the run may hold a reading of the target at that time. */
export async function isAbout(about: FilePart, { words, fields, atMs }: AboutQuery): Promise<boolean> {
  const wanted = targetOf(fields);
  let isFirst = true;
  for await (const line of linesIn(about)) {
    if (!isFirst) {
      const facts = parsedLine<TargetFacts>(line);
      if (facts !== null && targetOf(facts.target) === wanted) return true;
      continue;
    }
    isFirst = false;
    const first = firstOf(line);
    if (first === null || atMs < Date.parse(first.from) || Date.parse(first.to) < atMs) return false;
    if (first.targets !== undefined) return first.targets.includes(words);
  }
  return false;
}

const firstOf = (line: string): FirstLine | null => parsedLine<FirstLine>(line);

/** Null for a line that a power cut has torn. */
function parsedLine<Line>(line: string): Line | null {
  try {
    return JSON.parse(line) as Line;
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown;
    return null;
  }
}

/** None when the file is not here. */
async function* linesIn(about: FilePart): AsyncGenerator<string> {
  try {
    yield* linesOf(about);
  } catch (thrown) {
    if (systemCode(thrown) !== "ENOENT") throw thrown;
  }
}
