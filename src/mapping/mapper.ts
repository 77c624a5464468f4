/**
 * The public contract of mappers: `import { defineMapper, z } from "headgate/mapper"`. The only thing that a mapper
 * imports.
 *
 * A mapper is a module whose default export is `defineMapper({ … })`. For each file its `map` is called once, in a
 * process apart, with readers for the file and functions to emit readings. It never sends, never waits for a service,
 * and has no clock: the same bytes and settings give the same readings.
 */
import type { z as zod } from "zod";
import type { PushTarget } from "#wire/push.ts";
import type { MapperFile, TextRow } from "./readers/contract.ts";
import type { RowPlan } from "./row-plan.ts";

export { z } from "zod";
export type * from "./readers/contract.ts";
export { FileError, hasTypedDigits, RowError } from "./readers/row-error.ts";
export type { RowPlan } from "./row-plan.ts";

/**
 * As a zone: that of the source to which the target of the reading belongs. Only a hub knows it, for the files that it
 * takes itself (`sourceZone` of `defineMapper`).
 */
export const SOURCE_ZONE = "source";

interface TargetValues {
  /** Id of the variable itself; stands alone. */
  readonly variableId: number;
  readonly sourceId: number;
  readonly sourceSerialNumber: string;
  readonly sourceEan: string;
  readonly sourceName: string;
  readonly meterNumber: string;
  /** The key that the variable has in its source. */
  readonly mappingConfig: string;
  /** The type that only one variable of the source has. */
  readonly variableTypeId: number;
}

type SourceIdentifier = "sourceId" | "sourceSerialNumber" | "sourceEan" | "sourceName" | "meterNumber";

/** These fields and no others. */
type Only<Names extends keyof TargetValues> = Pick<TargetValues, Names> & {
  readonly [Other in Exclude<keyof TargetValues, Names>]?: undefined;
};

/**
 * Identification of a variable: `variableId` alone, or exactly one identifier of its source with `mappingConfig` or
 * `variableTypeId`. Ids are whole numbers, texts are not empty. Readings of equal targets belong together; a frozen
 * target is recognised without a further check.
 */
export type Target =
  | Only<"variableId">
  | {
      readonly [Identifier in SourceIdentifier]:
        | Only<Identifier | "mappingConfig">
        | Only<Identifier | "variableTypeId">;
    }[SourceIdentifier];

/** Every field that a target may have; `Target` is the subset that names a variable completely. */
export type TargetFields = PushTarget;

export interface Reading {
  readonly target: Target;
  /**
   * An instant from 1901 to 2199, to the millisecond: from `time`, a `Date`, or ISO 8601 text with a designator. Text
   * without one is refused: the shift would be silent.
   */
  readonly date: Temporal.Instant | Date | string;
  /** Finite; in the unit of the variable, since the service converts nothing. */
  readonly value: number;
  /**
   * VersionTag of this reading (*Data versioning*). Of the same target and date the file may hold one reading for each
   * version; of one version, the later row wins, or what `conflicts` says.
   */
  readonly version?: string | undefined;
  /** Tags of this reading: texts by name, such as the quality flags of the sender. */
  readonly tags?: Readonly<Record<string, string>> | undefined;
  /**
   * Tags of the push element that carries this reading; the service keeps them apart from the reading's own (*Data
   * versioning*, 6).
   */
  readonly batchTags?: Readonly<Record<string, string>> | undefined;
  /**
   * Symbol or name of the unit of `value`, the same for all readings of a target; checked against the variable's unit
   * before the push, never sent.
   */
  readonly unit?: string | undefined;
  /**
   * Place of the reading in the file, so that a stored reading can be traced back and an invalid one is reported with
   * its place. Default: the current row of a `for … of` over a reader's rows, or of `eachRow`.
   */
  readonly at?: Where | undefined;
}

/** A place for `reject`: a row from a reader (the reader remembers its place), or a place as an object. */
export type Where =
  | object
  | { readonly row: number; readonly column?: string; readonly sheet?: string; readonly text?: string };

/** Something about a file that a person should know, although it is mapped. */
export interface Finding {
  /** A stable word in camelCase, such as `skipRows`. */
  readonly kind: string;
  /** Words without counts and quotations: findings of one kind and message are counted together. */
  readonly message: string;
  /** Place; of equal findings the first and the last are kept. */
  readonly where?: Where | undefined;
  /** Text at that place. */
  readonly text?: string | undefined;
  /** How often it was found. Default 1. */
  readonly count?: number | undefined;
  /** A person should check it. Default: it is for information. */
  readonly attention?: boolean | undefined;
}

/**
 * The rule for a local time that occurs twice or not at all because of daylight saving.
 *
 * - `reject` (default): a `RowError` for both
 * - `earlier`, `later`: the first or the second pass of a repeated time; a missing time is read with the offset that
 *   gives the earlier or the later instant
 * - `byOrder`: the order of the calls distinguishes the passes, whether the file runs forwards or backwards, and
 *   whether one pass follows the other or both passes of each time are adjacent. An instant in the repeated hour is
 *   known only when its series has left the hour: hand it to `emit`, `addMinutes` or `addDays` as it is; reading its
 *   value throws a `RowError`. A missing time is refused, and so are all readings of a series in an hour with an
 *   ambiguous order, such as one row of each time. When several series alternate, name the series: `{ byOrder: meter }`
 */
export type DstPolicy = "reject" | "earlier" | "later" | "byOrder" | { readonly byOrder: string };

/**
 * Texts to instants. A zone is an IANA name (`Europe/Brussels`), a Windows name (`Romance Standard Time`), `UTC`, or a
 * fixed offset (`+10:00`); it is always named, since assuming one is a silent shift. An unknown zone or letter of a
 * format refuses the whole file.
 *
 * Formats are in Unicode letters (UTS #35): `yyyy` or `yy`, `MM` or `M`, `dd` or `d`, `HH` or `H` (or `hh`, `h` with
 * `a`), `mm` or `m`, `ss` or `s`, `S` to `SSS`, `MMM` for English months (`Jan`, `January`), `D` or `DDD` for the day
 * of the year; other text stands for itself, letters in single quotes (`dd/MM/yyyy 'at' HH:mm`). One letter takes one
 * or two digits, `D` up to three. `24:00` is the end of the day. Parts of the time that a format leaves out are zero.
 * Nothing is finer than a millisecond.
 */
export interface TimeTools {
  /**
   * Wall time of the zone to the instant. Throws a `RowError` for a text that does not fit, and around a change of
   * offset by the policy.
   */
  local(text: string, format: string, zone: string, policy?: DstPolicy): Temporal.Instant;
  /** ISO 8601 with designator, which is binding; without one the zone is needed. Throws a `RowError`. */
  iso(text: string, zone?: string, policy?: DstPolicy): Temporal.Instant;
  /**
   * First instant of the local day of the text; for files with a row a day and a column an interval. The instant of the
   * n-th interval is `time.addMinutes(start, n * 30)`: intervals count time that passes, so they need no policy. Where
   * the columns are labelled with wall times instead, read those with `local`. Throws a `RowError`.
   */
  dayStart(text: string, format: string, zone: string): Temporal.Instant;
  /**
   * Minutes of the local day of the text: 1440, and for example 1380 or 1500 when daylight saving changes. Throws a
   * `RowError`.
   */
  dayLength(text: string, format: string, zone: string): number;
  /** The instant so many minutes later; fractions of a minute count to the millisecond. */
  addMinutes(instant: Temporal.Instant, minutes: number): Temporal.Instant;
  /** The instant of the same time of day so many days of the zone's calendar later. */
  addDays(instant: Temporal.Instant, days: number, zone: string): Temporal.Instant;
  /**
   * The zone itself, and for `SOURCE_ZONE` that of the source to which the target belongs. Needed where the value of an
   * instant is read, or the length of a day: instants in `SOURCE_ZONE` are known only when they are emitted, and may be
   * handed to `emit`, `addMinutes` and `addDays` alone. Throws a `RowError` when there is no such source.
   */
  zone(name: string, target: Target): string;
}

/**
 * Format of numbers, declared and never guessed. Blanks may stand around the digits, a sign before them (`+`, `-` or
 * `−`) and an exponent behind them (`1.5e-3`). A percent sign, a unit, a sign behind, `NaN` and hexadecimal digits are
 * refused. With a group mark, each of its groups has three digits; digits without the mark are accepted too.
 */
export interface NumberOptions {
  /** Decimal mark. Default `.`. */
  readonly decimal?: "." | ",";
  /** Group mark. Default none: a group mark is refused, never guessed. */
  readonly group?: "." | "," | " " | "'" | "_";
}

/**
 * A configured table (`lookups[]` of the gateway's configuration), such as one from a vendor's tags to targets, units
 * and factors. Keys and column names are trimmed; cells are text, those of a workbook as the spreadsheet holds them
 * (`12.5`, `true`, `2026-03-01T00:00:00`).
 */
export interface Lookup {
  /** The row of this key, or undefined. */
  get(key: string): TextRow | undefined;
  /** The row of this key. Throws a `RowError` that names table and key. */
  require(key: string): TextRow;
  /** Number of rows. */
  readonly size: number;
}

/** The argument of `map`. */
export interface MapContext<Settings> {
  readonly file: MapperFile;
  /** The trigger's `metadata`, as parsed by the mapper's schema. */
  readonly settings: Settings;
  /**
   * Emits one reading. Synchronous, and it never throws: an invalid reading counts as a refused row. Of the same
   * target, date and version the reading that is emitted later wins, however far apart they are, unless `conflicts`
   * refuses those that differ.
   */
  emit(reading: Reading): void;
  /**
   * Refuses a row, with the column and the reason; mapping continues, to report every bad row. In a strict run nothing
   * of the file is pushed then; a lenient run pushes the other rows. Name the fault in the message, and the remedy in
   * the hint.
   */
  reject(
    where: Where,
    reason: string | { readonly column?: string; readonly message: string; readonly hint?: string },
  ): void;
  /**
   * Notes what a person should know about a file that is mapped nevertheless: rows and cells that were left out, and
   * what looks wrong. It is shown with the run: by `map --summary`, by `trace`, and on the page of the file.
   */
  finding(found: Finding): void;
  /**
   * Takes the rows of a reader one by one. A `RowError` thrown by `take` refuses that row, with its place and column,
   * and the next row follows: every bad row is reported. Without this helper an uncaught `RowError` ends the file.
   *
   * `plan` is for rows of `file.csv`: it is called after each row until it returns a plan, by which the further rows
   * are read from the bytes of the file where they are plain, or null when there is none.
   */
  eachRow<Row extends object>(
    rows: AsyncIterable<readonly Row[]>,
    take: (row: Row) => void,
    plan?: () => RowPlan | null | undefined,
  ): Promise<void>;
  readonly time: TimeTools;
  /**
   * Finite number of a text with declared marks. Throws a `RowError` with the text and a hint at the marks that it
   * seems to have.
   */
  number(text: string, options?: NumberOptions): number;
  /**
   * `value`, given in the unit `from`, in the unit `to`; units by symbol (`kWh`, `m³` or `m3`) or name
   * (`Kilowatt-hour`). Converts within one family by the rule of the specification, *Unit*. Throws a `RowError` for an
   * unknown unit, with the nearest one, and for units of different families.
   */
  unit(value: number, from: string, to: string): number;
  /**
   * The configured table of this name, with exactly the content that the run is bound to. Refuses the file when there
   * is none or when it cannot be read: a key column that is missing, a key that is empty or comes twice.
   */
  lookup(name: string): Promise<Lookup>;
  /** Lines for the log of the gateway, with run, file and mapper. */
  readonly log: { info(message: string): void; warn(message: string): void };
  /** Aborted when the run is cancelled: pass it to functions that wait. */
  readonly signal: AbortSignal;
}

export interface MapperDefinition<Schema extends zod.ZodType = zod.ZodType> {
  /** Lower-case words joined by `-`; the name that a trigger's `mapper` uses. */
  readonly name: string;
  /** One line for `headgate mapper list`. */
  readonly summary: string;
  /** Semantic version of the mapper. Default `0.0.0`. */
  readonly version?: string;
  /** Schema of the trigger's `metadata`. Default: no settings. */
  readonly settings?: Schema;
  /**
   * Rule for readings of one target, date and version with different values, unless the trigger's `metadata` sets
   * `conflicts`, a setting that every mapper has. `last` (default): the later counts, as the service itself overwrites;
   * `first`; or `refuse`, which refuses both rows. Equal values are not a conflict.
   */
  readonly conflicts?: "last" | "refuse" | "first";
  /**
   * The setting `timeZone` may be left out at a hub, for the files that it takes itself: it is `SOURCE_ZONE` then. For
   * a mapper that treats its instants as `TimeTools.zone` says.
   */
  readonly sourceZone?: boolean;
  /**
   * Called once for each file. An uncaught `RowError` refuses the file with its row; a `FileError` refuses it with the
   * mapper's message; any other thrown value is reported as a fault of the mapper, with the stack frames in the
   * author's own files.
   */
  map(context: MapContext<zod.output<Schema>>): Promise<void> | void;
}

export interface Mapper<Schema extends zod.ZodType = zod.ZodType> extends MapperDefinition<Schema> {
  readonly isHeadgateMapper: true;
}

/** Declares a mapper; gives `map` its types. */
export function defineMapper<Schema extends zod.ZodType>(definition: MapperDefinition<Schema>): Mapper<Schema> {
  return Object.freeze({ ...definition, isHeadgateMapper: true as const });
}
