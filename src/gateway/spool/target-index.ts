/**
 * Reads target indexes: a line for the period of a run, one for each target, and the digest of these lines. The guard
 * reads the index before the first push, and a search for a reading opens by it the few segments that may hold it.
 */
import { createHash } from "node:crypto";
import { systemCode } from "#core/errors.ts";
import { parsedJson } from "#core/text.ts";
import { targetOf } from "#mapping/segment/payloads.ts";
import type { TargetFacts } from "../model.ts";
import { type FilePart, linesOf } from "./segment-files.ts";

interface FirstLine {
  readonly from: string;
  readonly to: string;
  /** Of the targets that follow, before the last line. */
  readonly count: number;
}

interface Seal {
  readonly sha256: string;
}

/** Hands out the facts of the targets, a number of them at a time. False when the file is damaged or incomplete. */
export async function readFacts(
  about: FilePart,
  perPart: number,
  take: (part: readonly TargetFacts[]) => Promise<void>,
): Promise<boolean> {
  const digest = createHash("sha256");
  let awaited: number | null = null;
  let part: TargetFacts[] = [];
  for await (const line of linesIn(about)) {
    if (awaited === null) {
      const first = firstOf(line);
      if (first === null) return false;
      awaited = first.count;
    } else if (awaited === 0) {
      if (part.length > 0) await take(part);
      return ((parsedJson(line) ?? null) as Seal | null)?.sha256 === digest.digest("hex");
    } else {
      const facts = (parsedJson(line) ?? null) as TargetFacts | null;
      if (facts === null) return false;
      part.push(facts);
      awaited -= 1;
    }
    digest.update(`${line}\n`);
    if (part.length < perPart) continue;
    await take(part);
    part = [];
  }
  if (part.length > 0) await take(part);
  return false;
}

export interface ReadingQuery {
  /** Of the target. */
  readonly fields: Readonly<Record<string, string | number>>;
  /** Milliseconds since 1970 in UTC. */
  readonly atMs: number;
}

/** Whether the run may hold a reading of the target at that time. A damaged index excludes nothing. */
export async function isAbout(about: FilePart, { fields, atMs }: ReadingQuery): Promise<boolean> {
  const wanted = targetOf(fields);
  const digest = createHash("sha256");
  let first: FirstLine | null = null;
  for await (const line of linesIn(about)) {
    if (first === null) {
      first = firstOf(line);
      if (first === null) return true;
      digest.update(`${line}\n`);
      continue;
    }
    const value = (parsedJson(line) ?? null) as (TargetFacts & Partial<Seal>) | null;
    if (value?.sha256 !== undefined) return value.sha256 !== digest.digest("hex");
    if (value !== null && isWithin(first, atMs) && targetOf(value.target) === wanted) return true;
    digest.update(`${line}\n`);
  }
  return first !== null;
}

function isWithin({ from, to }: FirstLine, atMs: number): boolean {
  return Date.parse(from) <= atMs && atMs <= Date.parse(to);
}

const firstOf = (line: string) => (parsedJson(line) ?? null) as FirstLine | null;

/** None when the file is missing. */
async function* linesIn(about: FilePart): AsyncGenerator<string> {
  try {
    yield* linesOf(about);
  } catch (thrown) {
    if (systemCode(thrown) !== "ENOENT") throw thrown;
  }
}
