/** What crosses between the gateway and the processes that mappers run in, by the channel between parent and child. */

import type { MapJob, MapResult } from "../mapping/contract.ts";
import type { Span } from "../segment/layout.ts";
import type { ErrorCode } from "../support/errors.ts";

/** A mapper's module, as exactly this version. */
export interface MapperModule {
  /** Absolute path. */
  readonly modulePath: string;
  readonly digest: string;
  /** Where it was copied from: packages that it imports are looked for from there. */
  readonly origin?: string | undefined;
}

/** What a mapper logged about one file of a list. */
export interface ListLine {
  /** Of the job, from 0. */
  readonly nth: number;
  readonly level: "info" | "warn";
  readonly message: string;
}

/** To a child, as the only word of its command line, in JSON. */
export interface ChildStart {
  /** Process id. */
  readonly parent: number;
  /** Resident bytes beyond which it ends itself. */
  readonly bytesMax: number;
  /** Link to what was compiled before, see `compiled-modules.ts`. */
  readonly cache: string | null;
  /** A mapper that comes with Headgate and will be asked for. */
  readonly own: MapperModule | null;
}

/** A job whose input lies in one file with those of others. */
export interface ListedJob extends MapJob {
  readonly input: Span;
}

/** Small files, one after another, of which `part` has the inputs, and gets what comes of them. */
export interface JobList {
  /** Full path. */
  readonly part: string;
  /** What they have in common crosses once, when it is the same object. */
  readonly jobs: readonly ListedJob[];
}

/** To a child: one thing to do. The next is sent after the answer. */
export type ChildRequest =
  | ({
      readonly kind: "map";
      readonly job: MapJob;
      /** The segment is written under this name until it is complete. */
      readonly partPath: string;
    } & MapperModule)
  | ({ readonly kind: "map list" } & JobList & MapperModule)
  /** What the mapper says of itself. */
  | ({ readonly kind: "describe" } & MapperModule)
  | ({
      readonly kind: "settings";
      readonly settings: Readonly<Record<string, unknown>>;
    } & MapperModule)
  /** One golden case. `casesOf` is the module beside whose cases it lies. */
  | ({ readonly kind: "case"; readonly casesOf: string; readonly name: string } & MapperModule);

/** To a child, meanwhile: leave off. What does not is ended. */
export interface ChildCancel {
  readonly kind: "cancel";
}

export type ChildMessage =
  /** It can be asked, and the time limit counts; what it holds resident before any mapper, in bytes. */
  | { readonly kind: "ready"; readonly bytes: number }
  | { readonly kind: "log"; readonly level: "info" | "warn"; readonly message: string }
  | { readonly kind: "answer"; readonly answer: ChildAnswer; readonly left: readonly string[] }
  /** Something failed that nobody awaits: the process cannot be trusted any more, and ends. */
  | { readonly kind: "fault"; readonly words: string };

export type ChildAnswer =
  | { readonly kind: "mapped"; readonly result: MapResult }
  /** Null: the pool maps it by itself, which finds the reason. */
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
  /** The module cannot be loaded, or is another than was asked for. */
  | { readonly kind: "unusable"; readonly code: ErrorCode; readonly message: string };

/** A mapper in plain data. */
export interface MapperFacts {
  readonly name: string;
  readonly version: string;
  readonly summary: string;
  /** JSON Schema of the settings. */
  readonly settingsSchema: unknown;
}
