/** Messages between the gateway, the mapping hosts and their threads. */

import type { MessagePort } from "node:worker_threads";
import type { ErrorCode } from "#core/errors.ts";
import type { MapJob, MapResult } from "../contract.ts";
import type { MappedRange, RangeAsk } from "../ranges/ranges.ts";
import type { Span } from "../segment/layout.ts";

/** A mapper's module, as exactly this version. */
export interface MapperModule {
  /** Absolute path. */
  readonly modulePath: string;
  readonly digest: string;
  /** Where it was copied from: packages that it imports are resolved from there. */
  readonly origin?: string | undefined;
}

/** A line that a mapper logged about one file of a list. */
export interface ListLine {
  /** Of the job, from 0. */
  readonly nth: number;
  readonly level: "info" | "warn";
  readonly message: string;
}

/** To a host, as the only word of its command line, in JSON. */
export interface HostStart {
  /** Process id of the gateway. */
  readonly parent: number;
  /** Resident bytes beyond which the host ends itself. */
  readonly bytesMax: number;
  /** Threads that map at the same time. */
  readonly threads: number;
  /** Heap of each thread, in mebibytes. */
  readonly heapMax: number;
  /** Links to what was compiled before, for the host and each of its threads; see `compiled-modules.ts`. */
  readonly caches: readonly string[];
  /** A mapper that comes with Headgate, which the threads load ahead. */
  readonly own: MapperModule | null;
}

/** The mapper of a file gave something when its result was known already. */
export interface LateWords {
  readonly kind: "late";
  readonly runId: string;
  /** Path at the drop. */
  readonly file: string;
  readonly words: string;
}

/** To each thread of a host, when it starts. */
export interface ThreadStart {
  /** The folder of the lent links, which no mapper may write in; null when nothing was lent. */
  readonly cachesFolder: string | null;
  readonly own: MapperModule | null;
}

/** A job whose input is stored in one file with those of others. */
export interface ListedJob extends MapJob {
  readonly input: Span;
}

/** Small files, one after another. `part` has their inputs, and receives their segments. */
export interface JobList {
  /** Full path. */
  readonly part: string;
  /** Values that they have in common are sent once, when they are the same object. */
  readonly jobs: readonly ListedJob[];
}

/** One task of a thread. */
export type TaskRequest =
  | ({
      readonly kind: "map";
      readonly job: MapJob;
      /** The segment is written under this name until it is complete. */
      readonly partPath: string;
      /** Bytes of a file from which on two threads map it; see `rangeOf` for the default. */
      readonly rangedBytesMin?: number | undefined;
    } & MapperModule)
  | ({ readonly kind: "map list" } & JobList & MapperModule)
  /** Asks for name, version, summary and settings of the mapper. */
  | ({ readonly kind: "describe" } & MapperModule)
  | ({
      readonly kind: "settings";
      readonly settings: Readonly<Record<string, unknown>>;
    } & MapperModule)
  /** One golden case. `casesOf` is the module beside whose cases it is stored. */
  | ({ readonly kind: "case"; readonly casesOf: string; readonly name: string } & MapperModule);

/** From the gateway to a host. */
export type ToHost =
  | { readonly kind: "task"; readonly number: number; readonly request: TaskRequest }
  | { readonly kind: "cancel"; readonly number: number };

/** From a host to the gateway. */
export type FromHost =
  /** The first thread is loaded; resident bytes before any task. */
  | { readonly kind: "ready"; readonly bytes: number }
  | { readonly kind: "said"; readonly number: number; readonly words: TaskWords }
  | { readonly kind: "ended"; readonly number: number; readonly ended: TaskEnd }
  /** Whenever a thread was started or has ended. */
  | { readonly kind: "threads"; readonly count: number }
  /** From a thread, at any time. */
  | LateWords
  /** A thread failed while it had no task. */
  | { readonly kind: "fault"; readonly words: string };

/** The reports of a thread before the end of its task. */
export type TaskWords =
  /** The time limit counts. */
  { readonly kind: "begun" } | { readonly kind: "log"; readonly level: "info" | "warn"; readonly message: string };

/** `left`: kinds of resources that the mapper left behind; a thread with any of them receives no further task. */
export interface Answered {
  readonly end: "answered";
  readonly answer: TaskAnswer;
  readonly left: readonly string[];
}

/** Something failed that the mapper did not await. */
export interface Fault {
  readonly end: "fault";
  readonly words: string;
}

export type TaskEnd =
  | Answered
  | Fault
  | { readonly end: "cancelled" | "memory" }
  /** The thread ended by itself. */
  | { readonly end: "gone"; readonly words: string }
  /** The system could not start a thread. */
  | { readonly end: "not started"; readonly words: string };

/** From a thread to its host, by a port that is made for the task. */
export type FromThread =
  | TaskWords
  | { readonly kind: "ended"; readonly ended: Answered | Fault }
  /** Asks for another thread that maps a range; its `MappedRange`, or null, comes by the port. */
  | { readonly kind: "range"; readonly range: RangeAsk; readonly meet: MessagePort };

/** To a thread that is free: a range of a file that another thread maps. */
export interface RangeRequest extends MapperModule {
  readonly job: MapJob;
  readonly range: RangeAsk;
}

/** By the port between the two threads. */
export type RangeAnswer = MappedRange | null;

export type TaskAnswer =
  | { readonly kind: "mapped"; readonly result: MapResult }
  /** Null: the pool maps the file by itself, which finds the reason. */
  | {
      readonly kind: "mapped list";
      readonly results: readonly (MapResult | null)[];
      readonly lines: readonly ListLine[];
    }
  | { readonly kind: "facts"; readonly facts: MapperFacts }
  /** Null when the settings fit, or the case came out as expected. */
  | { readonly kind: "checked"; readonly fault: string | null }
  /** The disk failed: the same may be asked later. */
  | { readonly kind: "transient"; readonly code: ErrorCode; readonly message: string }
  /** The module cannot be loaded, or differs from the one that was asked for. */
  | { readonly kind: "unusable"; readonly code: ErrorCode; readonly message: string };

/** A mapper in plain data. */
export interface MapperFacts {
  readonly name: string;
  readonly version: string;
  readonly summary: string;
  /** JSON Schema of the settings. */
  readonly settingsSchema: unknown;
  readonly sourceZone: boolean;
}
