/** Runs the `map` of a mapper over a file or a range of it, and finds the reason when the whole file failed. */
import { AsyncLocalStorage } from "node:async_hooks";
import { statSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers";
import promised from "node:timers/promises";
import { promisify } from "node:util";
import { ConfigError, systemCode, TransientError, wordsOf } from "#core/errors.ts";
import { authorFrames } from "./author-frames.ts";
import { createContext } from "./context.ts";
import type { LookupFile, MapJob } from "./contract.ts";
import type { MapContext, Mapper } from "./mapper.ts";
import type { Reason } from "./model.ts";
import type { FirstRange, LaterRange } from "./ranges/ranges.ts";
import { createMapperFile, type FileNotes } from "./readers/mapper-file.ts";
import { type FileError, isFileError, isRowError, isUnreadable, type RowFault } from "./readers/row-error.ts";
import { placeOf, RowTracker } from "./readers/row-place.ts";
import type { ReadingIndex } from "./reading-index.ts";
import { type Findings, type Rejections, reasonOf, rowFault } from "./rejections.ts";
import { SourceZones } from "./source-zones.ts";

/**
 * Keyed by the switch of the runtime that would allow the access; the runtime's message always names it, a field of the
 * error does not.
 */
const REACHED: Readonly<Record<string, string>> = {
  net: "the network",
  "fs-read": "files",
  "fs-write": "files to write",
  "child-process": "other programs",
  worker: "threads of its own",
  addons: "native modules",
  wasi: "WASI",
};

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

const present = new AsyncLocalStorage<MapWork>();
/** The functions of the thread, before a mapper can change them. */
const { nextTick } = process;

/** Timers that a mapper makes, and their words. */
const TIMERS = { setTimeout: "a timer", setInterval: "a timer", setImmediate: "setImmediate" } as const;
const WATCHED = Symbol.for("headgate.watched");
type Call = (...given: readonly unknown[]) => unknown;
let areTimersWatched = false;

/**
 * Timers belong to the file in whose `map` they are made, also beside other files. Hooks of the runtime would report
 * them too, but end the process where they are enabled within a callback. Called before each `map`.
 */
function watchTimers(): void {
  if (areTimersWatched) return;
  areTimersWatched = true;
  for (const [name, kind] of Object.entries(TIMERS)) {
    // As an iterator, an interval is read in a loop.
    const wait = name === "setInterval" ? null : watched(promised, name, (plain) => watchedWait(plain, kind));
    for (const module of [globalThis, timers])
      watched(module, name, (plain) => {
        const make = watchedTimer(plain, kind);
        if (wait !== null) Object.defineProperty(make, promisify.custom, { value: wait });
        return make;
      });
  }
  syncBuiltinESMExports();
}

/** Puts a function in the place of one of a module; not around one of an earlier load of this file. */
function watched(module: object, name: string, around: (plain: Call) => Call): Call {
  const found = Reflect.get(module, name) as Call;
  const plain: Call = Reflect.get(found, WATCHED) ?? found;
  const made = around(plain);
  Object.defineProperty(made, WATCHED, { value: plain });
  Reflect.set(module, name, made);
  return made;
}

function watchedWait(plain: Call, kind: string): Call {
  return (...given) => {
    const work = present.getStore();
    return work === undefined ? plain(...given) : work.waiting(kind, plain(...given));
  };
}

function watchedTimer(plain: Call, kind: string): Call {
  return (callback, ...rest) => {
    const work = present.getStore();
    if (work === undefined || typeof callback !== "function") return plain(callback, ...rest);
    const timer = Object(
      plain(
        function (this: unknown, ...given: readonly unknown[]) {
          try {
            return Reflect.apply(callback, this, given);
          } finally {
            if (!isRepeated(timer)) work.timerEnded(timer);
          }
        },
        ...rest,
      ),
    ) as object;
    work.timerBegun(timer, kind);
    return timer;
  };
}

function isRepeated(timer: object): boolean {
  return typeof Reflect.get(timer, "_repeat") === "number";
}

/** The file whose mapper began what runs now. */
export function presentWork(): MapWork | undefined {
  return present.getStore();
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
  /** Each with its words. */
  readonly #timers = new Map<object, string>();
  #late: string | null = null;
  #report: ((words: string) => void) | null = null;

  /** Performs `map`. */
  async run(map: () => Promise<void>): Promise<void> {
    watchTimers();
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

  timerBegun(timer: object, kind: string): void {
    if (this.#report === null) this.#timers.set(timer, kind);
  }

  timerEnded(timer: object): void {
    this.#timers.delete(timer);
  }

  /** A timer as a promise. */
  async waiting(kind: string, end: unknown): Promise<unknown> {
    const timer = {};
    this.timerBegun(timer, kind);
    try {
      return await end;
    } finally {
      this.timerEnded(timer);
    }
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
    for (const [timer, kind] of this.#timers) if (Reflect.get(timer, "_destroyed") !== true) running.add(kind);
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
    this.#timers.clear();
  }
}

function leftRunning(running: readonly string[]): Reason {
  const what = running.join(", ");
  return reasonOf("HG-MAP-040", `\`map\` ended while this still ran, so what it gives would be lost: ${what}`);
}

// Messages for accesses that the permissions of the mapping process deny: the runtime's own message names switches that
// no user can set here.

/** The message of a value that a mapper threw. May throw when a hostile value is inspected. */
function thrownWords(thrown: unknown): string {
  const denied = deniedIn(thrown);
  if (denied === null) return wordsOf(thrown);
  const { allowed, resource } = denied;
  const what = REACHED[allowed] ?? "something";
  const which = resource === "" ? "" : ` (${resource})`;
  return (
    `it tried to access ${what}${which}: a mapper gets its file and its lookup tables from Headgate, and has no ` +
    "network, no other programs and no folder of its own"
  );
}

function deniedIn(thrown: unknown): { readonly allowed: string; readonly resource: string } | null {
  for (let at = thrown; at instanceof Error; at = at.cause) {
    const { code, resource, message } = at as Error & Readonly<Record<string, unknown>>;
    if (code !== "ERR_ACCESS_DENIED") continue;
    const [, allowed = ""] = /--allow-([a-z-]+)/.exec(message) ?? [];
    return { allowed, resource: typeof resource === "string" ? resource : "" };
  }
  return null;
}
