/**
 * A list of small files that one thread maps one after another into one file, with one message and one sync
 * for all of them. Files with a fault are left to the pool, which maps each by itself.
 */

import { randomHex } from "#core/random.ts";
import type { MapJob, MappedFile, MapResult } from "../contract.ts";
import type { MapperIdentity } from "../model.ts";
import type { WorkersOptions } from "../options.ts";
import { publishSegment } from "../segment/publish.ts";
import type { JobList, ListedJob } from "./messages.ts";

/**
 * Some seconds beyond those after which the thread of a list begins no further file. A list that takes longer has a
 * file that does not end, which would hold the others back for as long as a file may take.
 */
const LIMIT_MS = 6_000;

/** Milliseconds for a list of files of which each may take as long as the options say. */
export function listLimit({ timeLimit }: Pick<WorkersOptions, "timeLimit">): number {
  return Math.min(timeLimit, LIMIT_MS);
}

/** A unique name, so that a process that is about to end cannot write into the file of the next one. */
export function partPathOf(job: MapJob): string {
  return `${job.segmentPath}.${randomHex(4)}.part`;
}

/** Jobs whose inputs are in one file; null when there are not several, or one of them is in another file. */
export function listOf(jobs: readonly MapJob[]): JobList | null {
  const [first] = jobs;
  if (first === undefined || jobs.length < 2) return null;
  const listed = jobs.filter((job): job is ListedJob => job.input !== undefined && job.inputPath === first.inputPath);
  return listed.length < jobs.length ? null : { part: first.inputPath, jobs: listed };
}

/**
 * Null for files that are left. `ask` returns the results in the order of its request, or null for none at
 * all.
 */
export async function mapJobList(
  { part, jobs }: JobList,
  version: MapperIdentity,
  ask: (jobs: readonly ListedJob[]) => Promise<readonly (MapResult | null)[] | null>,
): Promise<readonly (MapResult | null)[]> {
  const members = membersOf(jobs, version);
  const results: (MapResult | null)[] = jobs.map(() => null);
  const answered = (await ask(members.map(({ job }) => job))) ?? [];
  const written: { readonly nth: number; readonly path: string; readonly result: MappedFile }[] = [];
  for (const [at, { nth, job }] of members.entries()) {
    const result = answered[at];
    if (result?.status !== "mapped") continue;
    if (result.batches.length === 0) results[nth] = result;
    else written.push({ nth, path: job.segmentPath, result });
  }
  if (written.length === 0) return results;
  const paths = written.map(({ path }) => path);
  const published = await publishSegment({ part, paths, isShared: true });
  for (const [at, { nth, result }] of written.entries())
    if (published[at]?.status === "fulfilled") results[nth] = { ...result, holdsInput: true };
  return results;
}

interface Member {
  /** Position among the given jobs. */
  readonly nth: number;
  readonly job: ListedJob;
}

/** The jobs of this version. Equal bindings become one object, which is sent to the process once. */
function membersOf(jobs: readonly ListedJob[], { name, digest }: MapperIdentity): readonly Member[] {
  const shared = new Map<string, unknown>();
  const once = <Value>(value: Value): Value => {
    const key = JSON.stringify(value) ?? "";
    const known = shared.get(key);
    if (known !== undefined) return known as Value;
    shared.set(key, value);
    return value;
  };
  return jobs.flatMap((job, nth) => {
    const { mapper, settings, rows, rejectShare, limits, version } = job.binding;
    if (mapper.name !== name || mapper.digest !== digest) return [];
    const binding = once({ mapper, settings, rows, rejectShare, limits, version });
    return [{ nth, job: { ...job, binding, lookups: once(job.lookups) } }];
  });
}
