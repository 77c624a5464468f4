/** The nouns that mapping and its callers hand to each other, without behaviour. */
import type { PushElement, PushReading, PushTarget } from "#wire/push.ts";

export type { PushElement, PushReading, PushTarget };

/** Where in a file something is wrong. Rows count from 1 as an editor or a spreadsheet shows them. */
export interface Place {
  readonly sheet?: string | undefined;
  readonly row?: number | undefined;
  readonly column?: string | undefined;
  /** The offending text, shortened. */
  readonly text?: string | undefined;
}

/** The reason for the state of a run, for a person. */
export interface Reason {
  /** Stable code from the register of errors, such as `HG-MAP-004`. */
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
  readonly place?: Place | undefined;
  /** Counts of refused rows by reason, when rows were refused. */
  readonly rejectedByReason?: readonly RejectedReason[] | undefined;
  /** The first of the targets that hold a run, when targets hold it. */
  readonly targets?: readonly TargetFinding[] | undefined;
  /** Readings of targets that do not exist: pushed as they are, the service would discard them. Absent: none. */
  readonly discards?: number | undefined;
}

/** How often rows were refused for one reason. */
export interface RejectedReason {
  /** Parts that differ from row to row are replaced by `…`. */
  readonly message: string;
  readonly column?: string | undefined;
  readonly count: number;
}

/** Something about a mapped file that a person should know, counted over the places where it was found. */
export interface MappingFinding {
  /** A stable word, such as `skipRows`. */
  readonly kind: string;
  readonly message: string;
  readonly count: number;
  readonly first?: Place | undefined;
  readonly last?: Place | undefined;
  /** A person should check it; otherwise it is for information. */
  readonly attention?: true | undefined;
}

/** One row that a mapper refused. */
export interface RejectedRow extends Reason {
  readonly place: Place;
}

/** The versions and settings that made a run; later attempts use exactly these, also on other nodes (invariant 10). */
export interface Binding {
  readonly trigger: string;
  readonly service: string;
  readonly mapper: MapperIdentity;
  /** The trigger's metadata: the settings that the mapper was given. */
  readonly settings: Readonly<Record<string, unknown>>;
  readonly rows: "strict" | "lenient";
  /** For a lenient run: the share of refused rows, from 0 to 1, above which nothing is pushed. No limit when absent. */
  readonly rejectShare?: number | undefined;
  /** Files whose rows are all left out are usual, and need no attention. */
  readonly empty?: "expected" | undefined;
  readonly limits: BatchLimits;
  /** The tables of the configuration, with the content that they had when the run was claimed. */
  readonly lookups?: readonly BoundLookup[] | undefined;
  /**
   * SHA-256 of the table of the zones of the sources, for dates without a zone. Null: no date of the file was known to
   * need it. Absent outside of a hub.
   */
  readonly zones?: string | null | undefined;
  /** The version of readings that have none of their own: `run`, the id of the run, or a tag. */
  readonly version?: "run" | { readonly tag: string } | undefined;
  /** The sender of the file and its way, in words, where the drop knows. */
  readonly sender?: string | undefined;
  /** Prefix of the operation ids, from the trigger or the command line. */
  readonly operationPrefix?: string | undefined;
  /** After the prefix the operation ids have `trigger-<id>`, the id of the service's trigger. */
  readonly namesTrigger?: true | undefined;
  /**
   * The address of the drop, by which keys of deliveries are made that a lost ledger makes again. Absent: each
   * delivery has keys of its own.
   */
  readonly address?: string | undefined;
  /** The arrival is a container, which is opened instead of mapped. */
  readonly unpack?: UnpackLimits | undefined;
  /** The arrival is master data: it brings structure instead of readings, and is applied instead of mapped. */
  readonly structure?: true | undefined;
}

/** A lookup table that a run maps with. */
export interface BoundLookup {
  readonly name: string;
  /** Path of the table when the run was claimed. */
  readonly path: string;
  readonly format: "csv" | "xlsx";
  /** Column of the keys. */
  readonly key: string;
  readonly delimiter?: string | undefined;
  readonly encoding?: string | undefined;
  readonly sheet?: string | number | undefined;
  /** SHA-256 of its bytes, lower-case hexadecimal; null when it could not be read. */
  readonly digest: string | null;
  /** The reason why it could not be read. */
  readonly fault?: string | undefined;
}

export interface MapperIdentity {
  readonly name: string;
  readonly version: string;
  /** SHA-256 over the mapper's file(s), lower-case hexadecimal. */
  readonly digest: string;
}

export interface BatchLimits {
  readonly pointsMax: number;
  readonly bytesMax: number;
}

/** A slice of a run's segment, fixed and durable before its first send (invariant 3). */
export interface BatchSlice {
  /** `1`, `2`, … and, after a split, `7.1`, `7.2`. */
  readonly sequence: string;
  /** Bytes from the start of the segment. */
  readonly offset: number;
  /** Bytes. */
  readonly length: number;
  readonly points: number;
  /** SHA-256 of the bytes, lower-case hexadecimal. */
  readonly digest: string;
}

/** Summary of the readings of a run for one target: for the guard, kept beside the segment and never sent. */
export interface TargetFacts {
  readonly target: PushTarget;
  /** Number of readings. */
  readonly points: number;
  /** Earliest and latest date, in milliseconds since 1970 in UTC. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Number of readings without a version. */
  readonly untagged: number;
  /** The unit as the mapper declared it. */
  readonly unit?: string | undefined;
}

/** One finding of the guard about one target before the first push. */
export interface TargetFinding {
  /** `missing` and `ambiguous` are about the variable, the others about its readings. */
  readonly what: "missing" | "ambiguous" | "unit" | "date" | "version";
  /** In words, such as `sourceSerialNumber=M-1 mappingConfig=kWh`. */
  readonly target: string;
  /** Number of readings. */
  readonly points: number;
  readonly words: string;
}

/** Limits on the contents of a container; a container beyond a limit is quarantined. */
export interface UnpackLimits {
  readonly entriesMax: number;
  /** Bytes of all its entries together. */
  readonly sizeMax: number;
  /** Bytes of all its entries for each byte of the container. */
  readonly ratioMax: number;
  /** Patterns of entries that hold no data, such as those that macOS adds. */
  readonly ignore: readonly string[];
  /** Encoding of names that the archive does not mark as UTF-8 (`core/zip.ts`). */
  readonly names: "utf-8" | "latin-1";
}
