/** What a process of mappers does with the files that it is given: one, or several one after another. */
import { hash } from "node:crypto";
import { type CappedLog, logText, type WriteLine } from "../mapping/capped-log.ts";
import type { MapJob, MapResult, PackedJob } from "../mapping/contract.ts";
import { mapFile, unreadableInput } from "../mapping/map-file.ts";
import type { Mapper } from "../mapping/mapper.ts";
import { PackWriter } from "../segment/pack-writer.ts";
import { type BatchSink, createSegmentPart } from "../segment/writer.ts";
import { digestOfFile } from "../support/digest.ts";
import { TransientError, wordsOf } from "../support/errors.ts";
import type { ChildAnswer, MapTogether, PartyLine } from "./messages.ts";

type Log = Pick<CappedLog, "add">;

interface Source {
  readonly inputPath: string;
  readonly content?: Buffer;
}

function mapJob(
  job: Omit<MapJob, "inputPath">,
  source: Source,
  sink: BatchSink,
  mapper: Mapper,
  signal: AbortSignal,
  log: Log,
): Promise<MapResult> {
  const { settings, rows, rejectShare, limits, version } = job.binding;
  return mapFile({
    ...source,
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
      info: (message) => log.add("info", logText([message])),
      warn: (message) => log.add("warn", logText([message])),
    },
  });
}

/** Rejects with `TransientError` when the input is not what was fetched: a disk may change bytes without a word. */
export async function mapAlone(
  job: MapJob,
  partPath: string,
  mapper: Mapper,
  signal: AbortSignal,
  log: Log,
): Promise<MapResult> {
  const { inputSha256 = null } = job;
  if (inputSha256 !== null) {
    const sha256 = await inputDigest(job);
    if (sha256 !== inputSha256) throw damagedInput(job, sha256);
  }
  return await mapJob(job, { inputPath: job.inputPath }, createSegmentPart(partPath), mapper, signal, log);
}

async function inputDigest({ inputPath, filePath }: MapJob): Promise<string> {
  try {
    return await digestOfFile(inputPath);
  } catch (cause) {
    throw unreadableInput(filePath, cause);
  }
}

function damagedInput({ filePath, inputSha256 }: MapJob, sha256: string): TransientError {
  return new TransientError("HG-SPOOL-007", {
    operation: "verify input",
    subject: filePath,
    message: `the input has the digest ${sha256.slice(0, 12)}…, but ${inputSha256?.slice(0, 12)}… was fetched`,
  });
}

/** Files that take long have nothing to gain from each other, and would keep what is mapped already waiting, in milliseconds. */
const PARTY_MS = 1_000;

/**
 * Each as if it were alone. What comes out otherwise than mapped is null and leaves no line in the log: mapped alone, it says why. So is what
 * was not come to in time, or before the process was left unclean, and all when the disk refuses.
 * `begin` makes the log of one file, which what is printed goes to as well.
 */
export async function mapTogether(
  { part, jobs }: MapTogether,
  mapper: Mapper,
  signal: AbortSignal,
  begin: (write: WriteLine) => CappedLog,
  isClean: () => boolean,
): Promise<Extract<ChildAnswer, { kind: "mapped together" }>> {
  const pack = onDisk(() => PackWriter.open(part));
  const results: (MapResult | null)[] = [];
  const lines: PartyLine[] = [];
  const begunMs = performance.now();
  for (const [nth, job] of jobs.entries()) {
    if (pack === null || performance.now() - begunMs > PARTY_MS || !isClean()) {
      results.push(null);
      continue;
    }
    const said: PartyLine[] = [];
    const log = begin((level, message) => said.push({ nth, level, message }));
    const result = await mappedOrNull(withOwnSettings(job), { pack, part }, mapper, signal, log);
    log.end();
    results.push(result);
    if (result !== null) lines.push(...said);
  }
  if (pack === null || onDisk(() => pack.write() ?? true) !== null)
    return { kind: "mapped together", results, lines };
  return { kind: "mapped together", results: jobs.map(() => null), lines: [] };
}

/** Null where it refuses. */
function onDisk<Value>(work: () => Value): Value | null {
  try {
    return work();
  } catch {
    // Each of them meets it again alone, and says it.
    return null;
  }
}

/** They came once for all, and a mapper may change what it is given. */
function withOwnSettings(job: PackedJob): PackedJob {
  return { ...job, binding: { ...job.binding, settings: structuredClone(job.binding.settings) } };
}

async function mappedOrNull(
  job: PackedJob,
  { pack, part }: { readonly pack: PackWriter; readonly part: string },
  mapper: Mapper,
  signal: AbortSignal,
  log: Log,
): Promise<MapResult | null> {
  try {
    const content = pack.input(job.input);
    const { inputSha256 = null } = job;
    // Fetched again by itself.
    if (inputSha256 !== null && hash("sha256", content) !== inputSha256) return null;
    const source = { inputPath: part, content };
    const result = await mapJob(job, source, pack.sinkOf(job), mapper, signal, log);
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
