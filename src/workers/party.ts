/**
 * Small files that one process maps one after another into one file, so that a process is asked once for all of them, and the disk is waited for once. Only
 * what goes well is done here: the rest is left as it was, to be mapped alone.
 */

import type { MapJob, MapResult, PackedJob } from "../mapping/contract.ts";
import type { MapperIdentity } from "../model.ts";
import type { PackPart } from "../segment/layout.ts";
import { publishPackNow } from "../segment/publish-pack.ts";
import { randomHex } from "../support/random.ts";
import type { MapTogether } from "./messages.ts";

/** Syncs a pack and gives it its names, for good. Answers for each whether it was done. */
export type PublishPack = (pack: PackPart) => Promise<readonly boolean[]>;

/** A name of its own: what a process that is about to end still writes does not get in the way of the next. */
export function partPathOf(job: MapJob): string {
  return `${job.segmentPath}.${randomHex(4)}.part`;
}

/** `ask` gives the results in the order of what it is asked for, null for none at all, and rejects when cancelled. */
export async function mapParty(
  { part, jobs }: MapTogether,
  version: MapperIdentity,
  ask: (jobs: readonly PackedJob[]) => Promise<readonly (MapResult | null)[] | null>,
  publish: PublishPack = (pack) => Promise.resolve(publishPackNow(pack)),
): Promise<readonly (MapResult | null)[]> {
  const members = membersOf(jobs, version);
  const results: (MapResult | null)[] = jobs.map(() => null);
  const answered = (await ask(members.map(({ job }) => job))) ?? [];
  const written: { readonly nth: number; readonly path: string; readonly result: MapResult }[] = [];
  for (const [at, { nth, job }] of members.entries()) {
    const result = answered[at];
    if (result?.status !== "mapped") continue;
    if (result.batches.length === 0) results[nth] = result;
    else written.push({ nth, path: job.segmentPath, result });
  }
  if (written.length === 0) return results;
  const published = await publish({ part, paths: written.map(({ path }) => path) });
  for (const [at, { nth, result }] of written.entries()) if (published[at] === true) results[nth] = result;
  return results;
}

interface Member {
  /** Among the jobs that were given. */
  readonly nth: number;
  readonly job: PackedJob;
}

/** Those of this version. Equal bindings become one object, which crosses to the process once. */
function membersOf(jobs: readonly PackedJob[], { name, digest }: MapperIdentity): readonly Member[] {
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
