/** `claimed → fetched → mapping → mapped` for the runs of a party: of one drop, and for one version of a mapper. */
import { rm } from "node:fs/promises";
import { basename } from "node:path/posix";
import type { FetchedPart } from "../drops/drop.ts";
import type { RunAdvance } from "../ledger/ledger.ts";
import type { MappedFile, PackedJob } from "../mapping/contract.ts";
import type { Run } from "../model.ts";
import { faultPoint } from "../support/faults.ts";
import { mappedRecord, mapperWords } from "./map-step.ts";
import { tracedParty } from "./spans.ts";
import { entryOf, type RunSteps, type StepResult } from "./steps.ts";

interface Fetched {
  readonly run: Run;
  readonly file: FetchedPart;
}

interface Mapped extends Fetched {
  readonly result: MappedFile;
}

export async function takeInTogether(
  runs: readonly Run[],
  steps: RunSteps,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, StepResult>> {
  const [first] = runs;
  if (first === undefined) return new Map();
  steps.pool.prepare(first.binding.mapper);
  const held = await holdAll(runs, steps);
  const pack = steps.spool.newPack(first.id);
  try {
    return await takeIn(held, pack, steps, signal);
  } finally {
    // What cannot be removed now is swept when the gateway starts.
    await rm(pack, { force: true }).catch(() => undefined);
  }
}

/** `pack`: full path for the one file that all of them come to. */
async function takeIn(
  runs: readonly Run[],
  pack: string,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, StepResult>> {
  const fetched = await tracedParty("fetch", runs, steps, () => fetchAll(runs, pack, steps, signal));
  if (signal.aborted || fetched.length === 0) return new Map();
  faultPoint("run.fetch.stored");
  const taken = fetched.map(({ run }) => run);
  const mapped = await tracedParty("map", taken, steps, () => mapAll(fetched, pack, steps, signal));
  faultPoint("run.map.segment");
  if (signal.aborted) return new Map();
  return await recordAll(mapped, steps);
}

/** Those that this node may work on, and that stand as they were read. */
async function holdAll(runs: readonly Run[], { ledger }: RunSteps): Promise<readonly Run[]> {
  const held = await Promise.all(runs.map((run) => ledger.fleet.holdRun(run)));
  return held.flatMap((run) => (run?.state === "claimed" ? [run] : []));
}

/** Those for which there is room, and whose bytes came as they were listed. */
async function fetchAll(
  runs: readonly Run[],
  pack: string,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<readonly Fetched[]> {
  const { room, spool, dropEntry } = steps;
  const roomy: Run[] = [];
  for (const run of runs) if ((await room.reserve(run.id, run.size, false)) === null) roomy.push(run);
  const drop = dropEntry(roomy[0]?.drop ?? "")?.drop;
  const fetched: Fetched[] = [];
  try {
    const files = (await drop?.fetch(roomy.map(entryOf), pack, signal)) ?? [];
    for (const [index, run] of roomy.entries()) {
      const settled = files[index];
      if (settled?.status !== "fulfilled") continue;
      const file = settled.value;
      // What an attempt by itself had brought of it, perhaps a part, would be taken for its input.
      if (await spool.hasInput(run.id)) await spool.discard(run.id, "input");
      fetched.push({ run, file });
    }
    return fetched;
  } finally {
    const ids = new Set(fetched.map(({ run }) => run.id));
    for (const run of roomy) room.fetched(run.id, ids.has(run.id) ? run.size : null);
  }
}

/** Those that became batches, with their segments in the spool. */
async function mapAll(
  fetched: readonly Fetched[],
  pack: string,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<readonly Mapped[]> {
  const { pool, room } = steps;
  const jobs = await Promise.all(fetched.map((one) => jobOf(one, steps)));
  const results = await pool.mapTogether(pack, jobs, signal);
  const mapped: Mapped[] = [];
  for (const [index, one] of fetched.entries()) {
    const result = results[index] ?? null;
    if (result?.status === "mapped" && result.batches.length > 0) mapped.push({ ...one, result });
  }
  for (const { run } of mapped) room.mapped(run.id);
  return mapped;
}

async function jobOf({ run, file }: Fetched, { lookups, spool }: RunSteps): Promise<PackedJob> {
  const { id, path, binding } = run;
  return {
    runId: id,
    input: { offset: file.offset, length: file.bytes },
    inputSha256: file.sha256,
    fileName: basename(path),
    filePath: path,
    binding,
    lookups: binding.lookups === undefined ? [] : await lookups.filesFor(binding),
    segmentPath: spool.segmentPath(id),
  };
}

/** In one transaction. What came before, or is another's by now, is left to the single step. */
async function recordAll(
  mapped: readonly Mapped[],
  steps: RunSteps,
): Promise<ReadonlyMap<string, StepResult>> {
  const results = new Map<string, StepResult>();
  const advanced = await steps.ledger.advanceRuns(mapped.map((one) => advanceOf(one, steps)));
  for (const [at, { run }] of mapped.entries()) {
    const one = advanced[at];
    if (one === undefined) continue;
    if (one.run !== null) results.set(run.id, { move: "next", run: one.run });
    // Put away with the run, it would be found as what was sent, also of one that is never mapped, such as a duplicate.
    else if (one.why !== "fault") await steps.spool.discard(run.id, "segment");
    // What failed is tried again by itself.
  }
  return results;
}

function advanceOf({ run, file: { bytes, sha256 }, result }: Mapped, steps: RunSteps): RunAdvance {
  return {
    id: run.id,
    from: "claimed",
    through: [
      { to: "fetched", change: { sha256, reason: null, detail: `${bytes} bytes, sha256 ${sha256}` } },
      { to: "mapping", change: { detail: mapperWords(run) } },
      { to: "mapped" },
    ],
    duplicates: steps.dropEntry(run.drop)?.duplicates ?? "skip",
    mapped: mappedRecord(result),
  };
}
