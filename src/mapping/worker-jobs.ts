/** What a process of mappers does with the files that it is given: one, or several one after another. */
import { wordsOf } from "../support/errors.ts";
import type { CappedLog, WriteLine } from "./capped-log.ts";
import { mapFile } from "./map-file.ts";
import type { Mapper } from "./mapper.ts";
import type { MapJob, MapResult } from "./mapping.ts";
import type { ChildAnswer, PartyJob, PartyLine } from "./messages.ts";
import { type BatchSink, createSegmentPart, createWholeSegmentPart } from "./segment-writer.ts";

type Log = Pick<CappedLog, "add">;

export function mapJob(
  job: MapJob,
  sink: BatchSink,
  mapper: Mapper,
  signal: AbortSignal,
  log: Log,
): Promise<MapResult> {
  const { settings, rows, rejectShare, limits, version } = job.binding;
  return mapFile({
    inputPath: job.inputPath,
    fileName: job.fileName,
    filePath: job.filePath,
    mapper,
    settings,
    rows,
    rejectShare,
    limits,
    version: version === "run" ? job.runId : version?.tag,
    lookups: job.lookups,
    sink,
    signal,
    log: {
      info: (message) => log.add("info", printable(message)),
      warn: (message) => log.add("warn", printable(message)),
    },
  });
}

export function mapAlone(
  job: MapJob,
  partPath: string,
  mapper: Mapper,
  signal: AbortSignal,
  log: Log,
): Promise<MapResult> {
  return mapJob(job, createSegmentPart(partPath), mapper, signal, log);
}

/** Files that take long have nothing to gain from each other, and would keep what is mapped already waiting, in milliseconds. */
const PARTY_MS = 1_000;

/**
 * Each as if it were alone. What comes out otherwise than mapped is null and leaves no line in the log: mapped alone, it says why. So is what
 * was not come to in time, or before the process was left unclean.
 * `begin` makes the log of one file, which what is printed goes to as well.
 */
export async function mapTogether(
  jobs: readonly PartyJob[],
  mapper: Mapper,
  signal: AbortSignal,
  begin: (write: WriteLine) => CappedLog,
  isClean: () => boolean,
): Promise<Extract<ChildAnswer, { kind: "mapped together" }>> {
  const results: (MapResult | null)[] = [];
  const lines: PartyLine[] = [];
  const begunMs = performance.now();
  for (const [nth, job] of jobs.entries()) {
    if (performance.now() - begunMs > PARTY_MS || !isClean()) {
      results.push(null);
      continue;
    }
    const said: PartyLine[] = [];
    const log = begin((level, message) => said.push({ nth, level, message }));
    const result = await mappedOrNull(withOwnSettings(job), mapper, signal, log);
    log.end();
    results.push(result);
    if (result !== null) lines.push(...said);
  }
  return { kind: "mapped together", results, lines };
}

/** They came once for all, and a mapper may change what it is given. */
function withOwnSettings(job: PartyJob): PartyJob {
  return { ...job, binding: { ...job.binding, settings: structuredClone(job.binding.settings) } };
}

async function mappedOrNull(
  job: PartyJob,
  mapper: Mapper,
  signal: AbortSignal,
  log: Log,
): Promise<MapResult | null> {
  try {
    const result = await mapJob(job, createWholeSegmentPart(job.partPath), mapper, signal, log);
    return result.status === "mapped" ? result : null;
  } catch (thrown) {
    // The next one would be left off as well.
    if (signal.aborted) throw thrown;
    return null; // Whatever it was is told when it is mapped alone.
  }
}

/** Words of whatever was given; a value may even throw when it is looked at. */
export function printable(value: unknown): string {
  try {
    return typeof value === "string" ? value : wordsOf(value);
  } catch {
    return "a value that cannot be shown";
  }
}
