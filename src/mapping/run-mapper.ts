/** Runs the `map` of a mapper over a file or a range of it, and finds the reason when the whole file failed. */
import { AsyncLocalStorage, createHook } from "node:async_hooks";
import { statSync } from "node:fs";
import type { Reason } from "../model.ts";
import { createMapperFile, type FileNotes } from "../readers/mapper-file.ts";
import type { RowFault } from "../readers/refuse.ts";
import { type FileError, isFileError, isRowError, isUnreadable } from "../readers/row-error.ts";
import { placeOf, RowTracker } from "../readers/row-place.ts";
import { ConfigError, systemCode, TransientError, wordsOf } from "../support/errors.ts";
import { authorFrames } from "./author-frames.ts";
import { createContext } from "./context.ts";
import type { LookupFile, MapJob } from "./contract.ts";
import { thrownWords } from "./denied-access.ts";
import type { MapContext, Mapper } from "./mapper.ts";
import type { FirstRange, LaterRange } from "./ranges/ranges.ts";
import type { ReadingIndex } from "./reading-index.ts";
import { type Findings, type Rejections, reasonOf, rowFault } from "./rejections.ts";
import { SourceZones } from "./source-zones.ts";

export const NO_LOG: MapContext<unknown>["log"] = { info: () => undefined, warn: () => undefined };

export interface RunRequest {
  /** Local copy of the input, or the file that contains it. */
  readonly inputPath: string;
  /** The whole content of a small input, where it was read already. */
  readonly content?: Buffer | undefined;
  /** Base name, and path at the drop. */
  readonly fileName: string;
  readonly filePath: string;
  readonly mapper: Mapper;
  readonly settings: Readonly<Record<string, unknown>>;
  /** Version of readings that have none of their own. */
  readonly version?: string | undefined;
  readonly lookups?: readonly LookupFile[] | undefined;
  /** See `MapJob`. */
  readonly zones?: MapJob["zones"];
  readonly signal: AbortSignal;
  readonly log?: MapContext<unknown>["log"];
  /** Limit on the readings in memory; the resulting bytes do not depend on it. */
  readonly rowsInMemoryMax?: number | undefined;
}

export interface Taking {
  readonly index: ReadingIndex;
  readonly rejections: Rejections;
  readonly findings: Findings;
  /** Called with each date that is cut to the millisecond. */
  readonly onCut: (date: string) => void;
  /** Called with the size of a file that was read by lines. */
  readonly onLines?: (size: number) => void;
  readonly range: FirstRange | LaterRange | undefined;
  readonly work: MapWork;
}

const SHORT_LINE = "lines end before their columns do, as where blanks at the end were left out";

/** Null when `map` succeeded, otherwise why the whole file failed. */
export async function runMapper(
  request: RunRequest,
  settings: unknown,
  { index, rejections, findings, onCut, onLines = () => undefined, range, work }: Taking,
): Promise<Reason | null> {
  const tracker = new RowTracker();
  const size = sizeOf(request);
  const refuse = (row: object, fault: RowFault) => rejections.add(placeOf(row) ?? {}, fault);
  const notes: FileNotes = {
    isLines: false,
    onShort: (row) => findings.add({ kind: "shortLine", message: SHORT_LINE, place: { row } }),
    onComment: (comment, { row, text }) => {
      const message = `lines that begin with \`${comment}\` were left out`;
      findings.add({ kind: "comment", message, place: { row, text } });
    },
  };
  const facts = { ...request, size, cut: range?.cut, notes, watch: work };
  const file = createMapperFile(facts, tracker, refuse, request.signal);
  const { log = NO_LOG, lookups, version, signal } = request;
  const zones = new SourceZones(request.zones);
  try {
    const { context, finish } = createContext({
      ...{
        file,
        settings,
        index,
        rejections,
        findings,
        tracker,
        lookups,
        zones,
        version,
        log,
        onCut,
        signal,
        watch: range,
        work,
      },
    });
    await work.run(async () => await request.mapper.map(context));
    const left = await work.end();
    // The mapper may have caught it.
    if (zones.missing !== undefined) throw zones.missing;
    if (left !== null) return left;
    finish();
    if (notes.isLines) onLines(size);
    return null;
  } catch (thrown) {
    if (zones.missing !== undefined) return thrownReason(zones.missing, tracker, request.mapper.name);
    if (signal.aborted) throw signal.reason;
    if (isDiskFault(readable(thrown), request.inputPath)) throw unreadableInput(request.filePath, thrown);
    return thrownReason(readable(thrown), tracker, request.mapper.name);
  }
}

/** The value that a mapper threw, unless inspecting it throws. */
function readable(thrown: unknown): unknown {
  try {
    wordsOf(thrown);
    return thrown instanceof Error && `${thrown.name}${thrown.stack}` === "" ? undefined : thrown;
  } catch {
    // The value threw again, so no more is known about it.
    return new Error("a value that cannot be inspected");
  }
}

export function sizeOf(request: RunRequest): number {
  if (request.content !== undefined) return request.content.length;
  try {
    return statSync(request.inputPath).size;
  } catch (cause) {
    throw unreadableInput(request.filePath, cause);
  }
}

/** A fault of the disk under the input, not of its content. */
function isDiskFault(thrown: unknown, inputPath: string): boolean {
  return systemCode(thrown) === "EIO" || (thrown instanceof Error && "path" in thrown && thrown.path === inputPath);
}

export function unreadableInput(filePath: string, cause: unknown): TransientError {
  return new TransientError("HG-MAP-016", {
    operation: "read input",
    subject: filePath,
    message: `the input cannot be read: ${wordsOf(cause)}`,
    cause,
  });
}

function thrownReason(thrown: unknown, tracker: RowTracker, mapper: string): Reason {
  if (isRowError(thrown)) {
    const { message, hint, column, text } = rowFault(thrown, tracker.latest);
    const place = tracker.latest === undefined ? undefined : placeOf(tracker.latest);
    return reasonOf("HG-MAP-005", message, { ...place, column, text }, hint);
  }
  if (isFileError(thrown)) return fileReason(thrown, tracker);
  if (thrown instanceof ConfigError) return reasonOf(thrown.code, thrown.message, undefined, thrown.hint);
  return reasonOf("HG-MAP-007", `the mapper ${mapper} threw: ${thrownWords(thrown)}${framesWords(thrown)}`);
}

function fileReason(thrown: FileError, tracker: RowTracker): Reason {
  const { sheet, row, column, text } = thrown;
  const code = isUnreadable(thrown) ? "HG-MAP-008" : "HG-MAP-015";
  if (row === undefined && column === undefined && text === undefined)
    return reasonOf(code, thrown.message, undefined, thrown.hint);
  // A fault of the whole file that names only a column is at the row that was read last.
  const at = row === undefined && tracker.latest !== undefined ? placeOf(tracker.latest) : { sheet, row };
  return reasonOf(code, thrown.message, { ...at, column, text }, thrown.hint);
}

const FRAMES_MAX = 3;

function framesWords(thrown: unknown): string {
  const frames = authorFrames(thrown, FRAMES_MAX);
  return frames.length === 0 ? "" : ` (${frames.join(", ")})`;
}

const TIMERS: ReadonlyMap<string, string> = new Map([
  ["Timeout", "a timer"],
  ["Immediate", "setImmediate"],
]);

const present = new AsyncLocalStorage<MapWork>();
/** The functions of the thread, before a mapper can change them. */
const { nextTick } = process;

/** Timers belong to the file in whose `map` they are made, also beside other files. Promises would cost too much. */
const timers = createHook({
  init(id, kind, _, resource) {
    if (TIMERS.has(kind)) present.getStore()?.timerBegun(id, kind, resource);
  },
  destroy: (id) => timerEnded(id),
  trackPromises: false,
});

const worksOfTimers = new Map<number, MapWork>();

function timerEnded(id: number): void {
  worksOfTimers.get(id)?.timerEnded(id);
  worksOfTimers.delete(id);
}

/** The file whose mapper began what runs now. */
export function presentWork(): MapWork | undefined {
  return present.getStore();
}

interface Timer {
  readonly kind: string;
  /** The runtime's record of it. */
  readonly resource: object;
}

/**
 * The work that a `map` has begun. Readings of promises that it does not await come when the file is written already,
 * and would be lost: so work that still runs when `map` has ended refuses the file, and a later reading is reported.
 */
export class MapWork {
  /** From then on nothing that the mapper gives counts. */
  hasEnded = false;
  /** How often each part of the contract is in use, by its name. */
  readonly #uses = new Map<string, number>();
  readonly #timers = new Map<number, Timer>();
  #late: string | null = null;
  #report: ((words: string) => void) | null = null;

  /** Performs `map`. */
  async run(map: () => Promise<void>): Promise<void> {
    timers.enable();
    await present.run(this, map);
  }

  /** False, and noted, when `map` has ended. Otherwise `ended` is called later. */
  begun(use: string): boolean {
    if (this.hasEnded) this.comesLate(`${use} was called`);
    else this.#uses.set(use, (this.#uses.get(use) ?? 0) + 1);
    return !this.hasEnded;
  }

  ended(use: string): void {
    const left = (this.#uses.get(use) ?? 0) - 1;
    if (left > 0) this.#uses.set(use, left);
    else this.#uses.delete(use);
  }

  async during<Value>(use: string, work: () => Promise<Value>): Promise<Value> {
    const isInTime = this.begun(use);
    try {
      return await work();
    } finally {
      if (isInTime) this.ended(use);
    }
  }

  timerBegun(id: number, kind: string, resource: object): void {
    if (this.#report !== null) return;
    this.#timers.set(id, { kind, resource });
    worksOfTimers.set(id, this);
  }

  timerEnded(id: number): void {
    this.#timers.delete(id);
  }

  /** Called for each use of the mapper after the end of `map`. */
  comesLate(words: string): void {
    const isFirst = this.#late === null;
    this.#late ??= words;
    if (isFirst) this.#report?.(words);
  }

  /** Called when `map` has ended: why the file cannot be written, or null. */
  async end(): Promise<Reason | null> {
    const running = this.#running();
    this.hasEnded = true;
    if (running.length > 0) return leftRunning(running);
    // Promises that the mapper did not await continue now, as far as they wait for nothing else.
    await new Promise<void>((resolve) => nextTick(resolve));
    const since = this.#running();
    return since.length > 0 ? leftRunning(since) : this.lateReason();
  }

  #running(): readonly string[] {
    const running = new Set(this.#uses.keys());
    for (const { kind, resource } of this.#timers.values())
      if (Reflect.get(resource, "_destroyed") !== true) running.add(TIMERS.get(kind) ?? kind);
    return [...running];
  }

  /** Something came since `map` has ended. */
  lateReason(): Reason | null {
    if (this.#late === null) return null;
    return reasonOf("HG-MAP-040", `${this.#late} after \`map\` had ended, so what it gives would be lost`);
  }

  /** The file is written, or refused. What comes now is reported. */
  seal(report: (words: string) => void): void {
    this.hasEnded = true;
    this.#report = report;
    for (const id of this.#timers.keys()) worksOfTimers.delete(id);
    this.#timers.clear();
  }
}

function leftRunning(running: readonly string[]): Reason {
  const what = running.join(", ");
  return reasonOf("HG-MAP-040", `\`map\` ended while this still ran, so what it gives would be lost: ${what}`);
}
