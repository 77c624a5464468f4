/**
 * The interface of mapping for the rest of the gateway: a catalogue of mappers, and a pool that maps files into
 * segments.
 */
import { extname } from "node:path";
import type { Settled } from "#core/promises.ts";
import { placeWords } from "#core/text.ts";
import type {
  BatchSlice,
  Binding,
  BoundLookup,
  MapperIdentity,
  MappingFinding,
  Place,
  Reason,
  RejectedReason,
  RejectedRow,
  TargetFacts,
} from "./model.ts";
import type { Span } from "./segment/layout.ts";

/** One file to map. All fields are plain data, since the job is sent to a worker. */
export interface MapJob {
  readonly runId: string;
  /** Drops take turns at the workers; files without one take them together. */
  readonly drop?: string | undefined;
  /** Local file with the bytes of the input. */
  readonly inputPath: string;
  /**
   * Where in that file the bytes are; the whole file when absent. A file that holds the inputs of several jobs becomes
   * the segment of those that are mapped there (`segment/layout.ts`), and gets the names of their segments as well; the
   * caller removes its own name.
   */
  readonly input?: Span | undefined;
  /** Required SHA-256 of the input, lower-case hexadecimal; not checked when absent or null. */
  readonly inputSha256?: string | null | undefined;
  /** Base name and path at the drop. */
  readonly fileName: string;
  readonly filePath: string;
  readonly binding: Pick<Binding, "mapper" | "settings" | "rows" | "rejectShare" | "limits" | "version">;
  /** The tables that the run is bound to. */
  readonly lookups?: readonly LookupFile[] | undefined;
  /**
   * The zones of the sources, for dates that have none. Null: the result is HG-MAP-019 for a file that needs them.
   * Undefined: they are not known here, and a file that needs them is refused.
   */
  readonly zones?: ZoneFile | null | undefined;
  /**
   * The segment is written beside this path, under a temporary name that ends in `.part`, synced, and renamed when it
   * is complete.
   */
  readonly segmentPath: string;
}

/** A lookup table for one file: a local copy. Its key is the first column when absent; its digest is optional. */
export type LookupFile = Omit<BoundLookup, "key" | "digest"> & {
  readonly key?: string | undefined;
  readonly digest?: string | undefined;
};

/** A table at its original path, as the configuration names it. */
export function lookupFile(lookup: Omit<LookupFile, "format">): LookupFile {
  return { ...lookup, format: extname(lookup.path).toLowerCase() === ".xlsx" ? "xlsx" : "csv" };
}

/** A local copy of a `ZoneTable`, with its SHA-256. */
export interface ZoneFile {
  readonly path: string;
  readonly digest: string;
}

/** Zones of the sources of an account of a hub, by each way to identify them; as JSON. */
export interface ZoneTable {
  /** IANA names. */
  readonly zones: readonly string[];
  readonly ids: Readonly<Record<"variableId" | "sourceId", IdZones>>;
  /** Each text with its zone; with several where sources in different zones share it. */
  readonly texts: Readonly<
    Record<"sourceSerialNumber" | "sourceEan" | "sourceName" | "meterNumber", readonly TextZones[]>
  >;
}

/** First id, last id, zone: in the order of the ids, each of which exists. Zones are positions in `zones`. */
export type IdZones = readonly (readonly [first: number, last: number, zone: number])[];
export type TextZones = readonly [text: string, ...zones: number[]];

export type MapResult = MappedFile | UnmappedFile;

/** A file that was mapped to batches. `batches` is empty when the file held no readings. */
export interface MappedFile {
  readonly status: "mapped";
  readonly batches: readonly BatchSlice[];
  /** Its segment holds the input as well, since it is the file that holds the inputs of several jobs. */
  readonly holdsInput?: true;
  /** Number of readings in the batches. */
  readonly points: number;
  /** Number of readings that do not count, since the file repeats their target, date and version. */
  readonly superseded: number;
  /** Superseded readings with another value, with the first of them in full; absent when there are none. */
  readonly conflicts?: { readonly count: number; readonly shown: readonly ReadingConflict[] } | undefined;
  readonly targets: readonly MappedTarget[];
  /** Earliest and latest date, or null when there are no readings. */
  readonly period: { readonly from: string; readonly to: string } | null;
  /** Findings that a person should know of. */
  readonly findings: readonly MappingFinding[];
  /** The end of the last line of a file that was read by lines, where it has no line end. */
  readonly openLine?: string | undefined;
  /** The first refused rows, up to a limit; only in a lenient run. */
  readonly rejected: readonly RejectedRow[];
  readonly rejectedCount: number;
  /** Most frequent reason first; absent when no row was refused. */
  readonly rejectedByReason?: readonly RejectedReason[] | undefined;
}

/** A file that goes into quarantine: nothing of it is pushed. */
export interface UnmappedFile {
  readonly status: "failed";
  readonly reason: Reason;
  /** Findings up to the fault. */
  readonly findings: readonly MappingFinding[];
  readonly rejected: readonly RejectedRow[];
  readonly rejectedCount: number;
  readonly rejectedByReason?: readonly RejectedReason[] | undefined;
}

/** Two readings of one target, date and version, of which `taken` counts. */
export interface ReadingConflict {
  /** The target as text, such as `sourceSerialNumber=M-1 mappingConfig=kWh`. */
  readonly target: string;
  readonly date: string;
  readonly version?: string | undefined;
  readonly taken: RowValue;
  readonly left: RowValue;
}

export interface RowValue {
  readonly sheet?: string | undefined;
  readonly row?: number | undefined;
  readonly value: number;
}

/** The findings that need attention before the others. */
export function byAttention(findings: readonly MappingFinding[]): readonly MappingFinding[] {
  return [...findings].sort((a, b) => Number(b.attention ?? false) - Number(a.attention ?? false));
}

/** `2 × rows were left out by \`skipRows\` (row 5 "Total January" to row 8 "Total February")`. */
export function findingWords({ message, count, first, last }: MappingFinding): string {
  const from = spotWords(first);
  const to = spotWords(last);
  const spots = from === "" ? "" : ` (${from}${count === 1 || from === to ? "" : ` to ${to}`})`;
  return `${count} × ${message}${spots}`;
}

function spotWords(place: Place | undefined): string {
  const text = place?.text === undefined ? "" : JSON.stringify(place.text);
  return placeWords(place, "", text === "" ? "" : " ") + text;
}

/** `2.5 of row 7 counts instead of 1.5 of row 3 (sourceEan=… at 2026-03-01T00:00:00Z)`. */
export function conflictWords({ target, date, version, taken, left }: ReadingConflict): string {
  const of = version === undefined ? "" : `, version ${version}`;
  return `${valueAt(taken)} counts instead of ${valueAt(left)} (${target} at ${date}${of})`;
}

function valueAt({ row, sheet, value }: RowValue): string {
  const place = row === undefined ? "" : ` of row ${row}`;
  return `${value}${place}${sheet === undefined ? "" : ` of sheet ${sheet}`}`;
}

export interface MappedTarget {
  /** Identifier kind, such as `sourceSerialNumber`. */
  readonly kind: string;
  /** The target as text, such as `sourceSerialNumber=M-1 mappingConfig=kWh`. */
  readonly target: string;
  readonly points: number;
  /** The unit as the mapper declared it. */
  readonly unit?: string | undefined;
  readonly facts: TargetFacts;
}

export interface MappingPool {
  /**
   * Announces a file for this mapper, so that slow starts may begin early. It guarantees nothing and never fails;
   * resolves once what begins has begun.
   */
  prepare(mapper: Pick<MapperIdentity, "name" | "digest">): Promise<void>;
  /**
   * Maps a list of files, and returns a result or a reason for each, in the order given. A fault of the file or of the
   * mapper is the result `failed`. The reason is a `TransientError` when mapping was cancelled, when the disk fails,
   * and with the code `HG-SPOOL-007` when the input differs from the fetched file.
   */
  map(jobs: readonly MapJob[], signal: AbortSignal): Promise<readonly Settled<MapResult>[]>;
  /**
   * Maps files whose inputs are in one file to one segment, in the order given, within a few seconds. Null for a file
   * that is to be mapped by itself, which finds the reason where it has a fault; so are all when the signal is aborted.
   */
  mapList(jobs: readonly MapJob[], signal: AbortSignal): Promise<readonly Settled<MapResult | null>[]>;
  close(): Promise<void>;
}

/**
 * The version of each mapper that new runs are bound to, and the bytes of every version that a run may still be bound
 * to.
 */
export interface MapperVersions {
  /**
   * The version for new runs: the one on disk once it has loaded and its own cases have passed, until then the previous
   * one. Null when there is no such mapper; a `ConfigError` says why none of its versions can be used.
   */
  current(name: string): Promise<MapperIdentity | null>;
  /** Removes versions that were last used before this time. Returns their number. */
  prune(beforeMs: number): Promise<number>;
}

export interface MapperCatalogue {
  /** The mapper of this name as it is on disk now, or null. */
  find(name: string): Promise<CatalogueEntry | null>;
  list(): Promise<readonly CatalogueEntry[]>;
  close(): Promise<void>;
}

export interface CatalogueEntry {
  readonly identity: MapperIdentity;
  readonly summary: string;
  /** Absolute path of the module. */
  readonly modulePath: string;
  /** Null when these settings fit the mapper, otherwise the reason, with the field. */
  checkSettings(settings: Readonly<Record<string, unknown>>): Promise<string | null>;
  /** JSON Schema of the settings. */
  readonly settingsSchema: unknown;
  /** The setting `timeZone` may be left out at a hub. */
  readonly sourceZone: boolean;
}
