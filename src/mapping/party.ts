/**
 * Small files that one process maps one after another, so that a process is asked once for all of them, and the disk is waited for once. Only
 * what goes well is done here: the rest is left as it was, to be mapped alone.
 */

import type { MapperIdentity } from "../model.ts";
import { randomHex } from "../support/random.ts";
import type { MapJob, MapResult } from "./mapping.ts";
import type { PartyJob } from "./messages.ts";
import type { SegmentPart } from "./segment-layout.ts";
import { discardPart, type NameSegments, publishTogether } from "./segment-writer.ts";

/** A name of its own: what a process that is about to end still writes does not get in the way of the next. */
export function partPathOf(job: MapJob): string {
  return `${job.segmentPath}.${randomHex(4)}.part`;
}

interface Member {
  /** Among the jobs that were given. */
  readonly nth: number;
  readonly job: PartyJob;
}

/** `ask` gives the results in the order of what it is asked for, null for none at all, and rejects when cancelled. `name` publishes. */
export async function mapParty(
  jobs: readonly MapJob[],
  version: MapperIdentity,
  ask: (jobs: readonly PartyJob[]) => Promise<readonly (MapResult | null)[] | null>,
  name?: NameSegments,
): Promise<readonly (MapResult | null)[]> {
  const members = membersOf(jobs, version);
  const results: (MapResult | null)[] = jobs.map(() => null);
  const discardAll = (some: readonly Member[]) =>
    // What cannot be removed now is swept when the gateway starts.
    Promise.all(some.map(({ job }) => discardPart(job.partPath).catch(() => undefined)));
  const answered = await ask(members.map(({ job }) => job)).catch(async (thrown) => {
    await discardAll(members);
    throw thrown;
  });
  const left: Member[] = [];
  const written: (Member & SegmentPart & { readonly result: MapResult })[] = [];
  for (const [at, member] of members.entries()) {
    const { nth, job } = member;
    const result = answered?.[at] ?? null;
    if (result?.status !== "mapped") left.push(member);
    else if (result.batches.length === 0) results[nth] = result;
    else written.push({ ...member, part: job.partPath, path: job.segmentPath, result });
  }
  const published = await publishTogether(written, name);
  for (const [at, member] of written.entries())
    if (published[at] === true) results[member.nth] = member.result;
    else left.push(member);
  await discardAll(left);
  return results;
}

/** Those of this version. Equal bindings become one object, which crosses to the process once. */
function membersOf(jobs: readonly MapJob[], { name, digest }: MapperIdentity): readonly Member[] {
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
    return [{ nth, job: { ...job, binding, lookups: once(job.lookups), partPath: partPathOf(job) } }];
  });
}
