/**
 * Rules for every mapper, whatever its format: an odd file ends in readings or in a reason that names the fault, never
 * in a crash of the mapper; the same bytes give the same batches; an abort from outside is not swallowed; nothing comes
 * when `map` has ended, which would be lost.
 */
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Mapper } from "../../mapper.ts";
import { type MapTestOptions, type MapTestResult, mapPath, mapText, withFixedClock } from "./map-text.ts";

export interface ContractSample extends Omit<MapTestOptions, "signal" | "onLate"> {
  /** A file that the mapper maps without a refused row. */
  readonly path: string;
}

export interface ContractCheck {
  /** Name as text, such as `an empty file`. */
  readonly name: string;
  /** Rejects with the finding. */
  run(): Promise<void>;
}

/** Reason of a mapper that threw an error of its own: a defect of the mapper, not of the file. */
const MAPPER_THREW = "HG-MAP-007";
const REPEATED_LINES = 20_000;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
/** After the other checks, in which most of what comes late has come already; in milliseconds. */
const LATE_MS = 50;
/** Another day, which exposes a mapper that reads the clock. */
const OTHER_DAY_MS = Date.UTC(2019, 5, 30, 12);

/**
 * The checks, separately, so that a test runner may name them: `for (const check of mapperContract(…)) it(check.name,
 * check.run)`.
 */
export function mapperContract(mapper: Mapper, given: ContractSample): readonly ContractCheck[] {
  const late: string[] = [];
  const sample = { ...given, onLate: (words: string) => void late.push(words) };
  const odd = (make: (bytes: Buffer) => Uint8Array | null) => async () => {
    const bytes = make(await readFile(sample.path));
    if (bytes !== null) mustEndWell(await mapBytes(mapper, bytes, sample));
  };
  const same = (make: (text: string) => string | Buffer) => async () => {
    const text = textOf(await readFile(sample.path));
    if (text === null) return;
    mustBeSame(await mapPath(mapper, sample.path, sample), await mapBytes(mapper, make(text), sample));
  };
  return [
    { name: "maps its sample", run: async () => mustMap(await mapPath(mapper, sample.path, sample)) },
    { name: "an empty file", run: odd(() => Buffer.alloc(0)) },
    { name: "the first line alone", run: odd((bytes) => bytes.subarray(0, lineEnd(bytes))) },
    ...[0.1, 0.5, 0.9].map((share) => ({
      name: `a file that is cut off at ${share * 100} %`,
      run: odd((bytes) => bytes.subarray(0, Math.floor(bytes.length * share))),
    })),
    { name: "a file that lacks its last byte", run: odd((bytes) => bytes.subarray(0, -1)) },
    { name: "a file of zero bytes (NUL)", run: odd((bytes) => Buffer.alloc(bytes.length)) },
    { name: "a file whose last line comes thousands of times", run: odd(repeatLastLine) },
    {
      name: "a byte order mark",
      run: same((text) => Buffer.concat([BYTE_ORDER_MARK, Buffer.from(text)])),
    },
    { name: "lines that end as on Windows", run: same((text) => text.replaceAll(/\r?\n/g, "\r\n")) },
    { name: "lines that end as on Unix", run: same((text) => text.replaceAll("\r\n", "\n")) },
    { name: "the same file twice, on different days and side by side", run: () => twice(mapper, sample) },
    { name: "mapping that is cancelled", run: () => cancelled(mapper, sample) },
    { name: "an input that cannot be read", run: () => unreadable(mapper, sample) },
    { name: "readings that come after the file", run: () => nothingLate(mapper, sample, late) },
  ];
}

async function twice(mapper: Mapper, sample: ContractSample): Promise<void> {
  const first = await mapPath(mapper, sample.path, sample);
  const [second, third] = await withFixedClock(
    () => Promise.all([mapPath(mapper, sample.path, sample), mapPath(mapper, sample.path, sample)]),
    OTHER_DAY_MS,
  );
  for (const again of [second, third])
    if (!first.bytes.equals(again.bytes))
      throw new Error(
        "the same file gave other bytes: the mapper depends on the clock, on chance or on an earlier file",
      );
}

async function cancelled(mapper: Mapper, sample: ContractSample): Promise<void> {
  const stop = new AbortController();
  const reason = new Error("stopped by the test");
  stop.abort(reason);
  const ended = await mapPath(mapper, sample.path, { ...sample, signal: stop.signal }).catch(
    (thrown: unknown) => thrown,
  );
  if (ended !== reason) throw new Error("mapping continued although it was cancelled");
}

/** A fault of the disk is not a fault of the file: the run is tried again, and nothing goes into quarantine. */
async function unreadable(mapper: Mapper, sample: ContractSample): Promise<void> {
  const ended = await mapPath(mapper, join(sample.path, "gone"), sample).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (ended === null) throw new Error("an input that cannot be read gave readings or faults");
}

/** `late`: what came after the files of all checks. */
async function nothingLate(mapper: Mapper, sample: ContractSample, late: readonly string[]): Promise<void> {
  await mapPath(mapper, sample.path, sample);
  await sleep(LATE_MS);
  const [first] = late;
  if (first === undefined) return;
  throw new Error(`${first} after the file was written, so what it gives is lost: await what \`map\` begins`);
}

function mapBytes(mapper: Mapper, bytes: string | Uint8Array, sample: ContractSample): Promise<MapTestResult> {
  return mapText(mapper, bytes, { ...sample, fileName: sample.fileName ?? basename(sample.path) });
}

function mustMap({ status, reason, rejectedCount }: MapTestResult): void {
  if (status === "failed") throw new Error(`the sample is not mapped: ${reason?.message}`);
  if (rejectedCount > 0) throw new Error(`${rejectedCount} rows of the sample are refused`);
}

function mustEndWell({ reason }: MapTestResult): void {
  if (reason?.code === MAPPER_THREW)
    throw new Error(`the mapper crashed instead of reporting the fault of the file: ${reason.message}`);
}

function mustBeSame(one: MapTestResult, other: MapTestResult): void {
  mustMap(one);
  if (other.status === "failed") throw new Error(`the file is refused: ${other.reason?.message}`);
  if (!isDeepStrictEqual(one.elements, other.elements)) throw new Error("the readings differ");
}

/** The text of a file in UTF-8 without a byte order mark; null for anything else. */
function textOf(bytes: Buffer): string | null {
  if (bytes.includes(0) || bytes.subarray(0, 3).equals(BYTE_ORDER_MARK)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (thrown) {
    if (thrown instanceof TypeError) return null;
    throw thrown;
  }
}

function lineEnd(bytes: Buffer): number {
  const at = bytes.indexOf(0x0a);
  return at === -1 ? bytes.length : at + 1;
}

function repeatLastLine(bytes: Buffer): Buffer | null {
  const text = textOf(bytes);
  if (text === null) return null;
  const line = text.trimEnd().split("\n").at(-1) ?? "";
  return Buffer.from(`${text.trimEnd()}\n${`${line}\n`.repeat(REPEATED_LINES)}`);
}
