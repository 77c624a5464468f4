/** The context of a mapper: functions that emit readings and refuse rows, with checks at each call. */

import type { LookupFile } from "./contract.ts";
import { Instants } from "./instants.ts";
import { iso, readIso } from "./iso-text.ts";
import { localDateOf } from "./local-date.ts";
import { createLookups } from "./lookup.ts";
import type { MapContext, MapperFile, Reading, Target } from "./mapper.ts";
import type { Place } from "./model.ts";
import { readNumber } from "./number.ts";
import { type PendingDate, pendingDateOf } from "./pending-instant.ts";
import { Emitted } from "./plan/emitted.ts";
import { RowTaker } from "./plan/row-taker.ts";
import { isPlausible } from "./plausible.ts";
import type { RowWatch } from "./ranges/ranges.ts";
import { blocksOf } from "./readers/plain-rows.ts";
import { RowError } from "./readers/row-error.ts";
import { placeOf, type RowTracker } from "./readers/row-place.ts";
import type { Group, ReadingIndex } from "./reading-index.ts";
import { type Findings, isRowError, placeAt, type Rejections, rowFault } from "./rejections.ts";
import type { SourceZones } from "./source-zones.ts";
import { checkTarget, shown } from "./targets.ts";
import { createTimeTools } from "./time.ts";
import { createUnitTool } from "./unit.ts";

/** Limit on the readings of repeated hours in memory. */
const WAITING_MAX = 250_000;

interface WaitingReading extends Pick<Reading, "value" | "version" | "tags" | "batchTags"> {
  readonly group: Group;
  readonly place: Place;
  /** Index of the place's sheet. */
  readonly sheet: number;
  /** Column of the date. */
  readonly column: string | undefined;
}

function copied(tags: Reading["tags"]): Reading["tags"] {
  return tags === undefined ? undefined : { ...tags };
}

/** Follows what the mapper begins and gives (`MapWork`). */
export interface BegunWork {
  readonly hasEnded: boolean;
  comesLate(words: string): void;
  during<Value>(use: string, work: () => Promise<Value>): Promise<Value>;
}

export interface ContextParts<Settings> {
  readonly file: MapperFile;
  readonly settings: Settings;
  readonly index: ReadingIndex;
  readonly rejections: Rejections;
  readonly findings: Findings;
  readonly tracker: RowTracker;
  readonly lookups?: readonly LookupFile[] | undefined;
  readonly zones: SourceZones;
  /** Version of readings that have none of their own. */
  readonly version?: string | undefined;
  readonly log: MapContext<Settings>["log"];
  /** Called with each date that is finer than a millisecond, and is cut to it. */
  readonly onCut?: ((date: string) => void) | undefined;
  readonly signal: AbortSignal;
  readonly watch?: RowWatch | undefined;
  readonly work: BegunWork;
}

export interface FileContext<Settings> {
  readonly context: MapContext<Settings>;
  /** Called when `map` ends: readings that waited for their instants get them now, or are refused. */
  finish(): void;
}

export function createContext<Settings>(parts: ContextParts<Settings>): FileContext<Settings> {
  const { rejections, tracker, work } = parts;
  const lookup = createLookups(parts.lookups ?? [], parts.signal);
  const instants = new Instants();
  const emitted = new Emitted();
  const emit = createEmit(parts, instants, emitted);
  const { finish, knownZone, takePassed, orders, ...time } = createTimeTools(instants, parts.onCut, parts.zones);

  function attempt(row: object, take: () => void): void {
    try {
      take();
    } catch (thrown) {
      if (!isRowError(thrown)) throw thrown;
      rejections.add(placeAt(row, tracker), rowFault(thrown, row));
    }
  }

  const tools = { index: parts.index, rejections, tracker, emitted, attempt, knownZone, takePassed };
  const context: MapContext<Settings> = {
    file: parts.file,
    settings: parts.settings,
    emit,
    reject(where, reason) {
      if (work.hasEnded) return work.comesLate("`reject` was called");
      const fault = typeof reason === "string" ? { message: reason } : reason;
      rejections.add(placeAt(where, tracker), { ...fault, text: cellText(where, fault.column) });
    },
    finding({ where, text, ...found }) {
      if (work.hasEnded) return work.comesLate("`finding` was called");
      const place = where === undefined ? undefined : placeAt(where, tracker);
      parts.findings.add({ ...found, place: text === undefined ? place : { ...place, text: String(text) } });
    },
    eachRow: (chunks, take, plan) =>
      work.during("eachRow(…)", async () => {
        const taker = new RowTaker({ take, plan, tools });
        const { watch } = parts;
        watch?.begin(taker, { orders, instants });
        for await (const rows of blocksOf(chunks) ?? chunks) {
          parts.signal.throwIfAborted();
          if (work.hasEnded) return;
          taker.take(rows);
          watch?.check();
        }
        watch?.end();
      }),
    time,
    number: readNumber,
    unit: createUnitTool(),
    lookup: (name) => work.during("lookup(…)", () => lookup(name)),
    log: parts.log,
    signal: parts.signal,
  };
  return { context, finish };
}

/** The offending text of a refused row, when the mapper names the column. */
function cellText(where: unknown, column: string | undefined): string | undefined {
  if (typeof where !== "object" || where === null || column === undefined || !Object.hasOwn(where, column))
    return undefined;
  const cell: unknown = Reflect.get(where, column);
  return typeof cell === "string" ? cell : undefined;
}

function createEmit<Settings>(
  { index, rejections, tracker, zones, work, version: stamp, onCut = () => undefined }: ContextParts<Settings>,
  instants: Instants,
  emitted: Emitted,
): (reading: Reading) => void {
  const frozen = new WeakMap<object, Group>();
  /** By the ids of the groups. */
  const sourceZones: string[] = [];
  let latestTarget: Target | undefined;
  let latestGroup: Group | undefined;

  function groupOf(target: Target): Group {
    // Only a frozen target is certain to be unchanged.
    if (target === latestTarget && latestGroup !== undefined) return latestGroup;
    const isFrozen = typeof target === "object" && target !== null && Object.isFrozen(target);
    let group = isFrozen ? frozen.get(target) : undefined;
    if (group === undefined) {
      const known = checkTarget(target);
      if (typeof known === "string") throw new RowError(known);
      group = index.group(known.json, known.kind);
      if (isFrozen) frozen.set(target, group);
    }
    latestTarget = isFrozen ? target : undefined;
    latestGroup = group;
    return group;
  }

  function inSource(date: Reading["date"], group: Group): Reading["date"] {
    const local = localDateOf(date);
    if (local === undefined) return date;
    const zone = sourceZones[group.id] ?? zones.zoneOf(group.target);
    sourceZones[group.id] = zone;
    return local.in(zone);
  }

  function take(reading: Reading): void {
    const { version, tags, batchTags, at, unit } = reading;
    const group = groupOf(reading.target);
    const given = instants.hasLocal ? inSource(reading.date, group) : reading.date;
    const pending = instants.hasPending ? pendingDateOf(given) : undefined;
    const date = pending === undefined ? (instants.msOf(given) ?? epochMs(given, onCut)) : 0;
    checkPlausible(date, given);
    const value = finiteValue(reading.value);
    if (unit !== undefined && unit !== null) agreeOnUnit(group, unit);
    const place = at === undefined ? tracker : (placeOf(at) ?? placeAt(at, tracker));
    const row = place.row ?? 0;
    const sheet = index.sheet(place.sheet);
    if (pending !== undefined) {
      if (emitted.isRecorded) emitted.add({ group, date: Number.NaN, value, row, sheet });
      const { text } = pending;
      const named = "column" in place ? place.column : undefined;
      const latest = tracker.row === place.row ? tracker.latest : undefined;
      const column = named ?? rowFault(new RowError("", { text }), latest).column;
      takeLater(pending, {
        ...{ group, value, sheet, column },
        place: { row: place.row, sheet: place.sheet },
        version: checkedVersion(version) ?? stamp,
        // Copied, since a mapper may reuse its object of tags.
        tags: copied(checkedTags(tags)),
        batchTags: copied(checkedTags(batchTags)),
      });
      return;
    }
    if (emitted.isRecorded)
      emitted.add({
        ...{ group, date, value, row, sheet },
        version: checkedVersion(version) ?? stamp,
        tags: copied(checkedTags(tags)),
        batchTags: copied(checkedTags(batchTags)),
      });
    const extra =
      version === undefined && tags === undefined && batchTags === undefined && stamp === undefined
        ? 0
        : index.extra(checkedVersion(version) ?? stamp, checkedTags(tags), checkedTags(batchTags));
    index.add(group, date, value, extra, row, sheet);
    rejections.taken(row);
  }

  let waiting = 0;

  /** Handles a reading in a repeated hour, which counts when its series has left the hour. */
  function takeLater(date: PendingDate, reading: WaitingReading): void {
    if (waiting >= WAITING_MAX)
      throw new RowError(`more than ${WAITING_MAX} readings of repeated hours wait for their instants`, {
        text: date.text,
      });
    waiting += 1;
    date.whenKnown((known) => {
      waiting -= 1;
      const { group, value, version, tags, batchTags, place, sheet, column } = reading;
      const { row = 0 } = place;
      if (typeof known === "number") {
        const hasExtra = version !== undefined || tags !== undefined || batchTags !== undefined;
        index.add(group, known, value, hasExtra ? index.extra(version, tags, batchTags) : 0, row, sheet);
        rejections.taken(row);
      } else {
        const { message, text, hint } = known;
        const at = {
          ...(row === 0 ? {} : { row }),
          ...(place.sheet === undefined ? {} : { sheet: place.sheet }),
        };
        rejections.add(at, { message, text, hint, column });
      }
    });
  }

  return (reading) => {
    if (work.hasEnded) return work.comesLate("`emit` was called");
    try {
      take(reading);
    } catch (thrown) {
      if (!isRowError(thrown)) throw thrown;
      rejections.add(placeAt(reading.at, tracker), rowFault(thrown, tracker.row === 0 ? undefined : tracker.latest));
    }
  };
}

function checkPlausible(ms: number, date: Reading["date"]): void {
  if (!isPlausible(ms))
    throw new RowError(
      Number.isNaN(ms) ? "the date is not valid" : `the date ${shown(date)} is not plausible: outside 1901 to 2199`,
      typeof date === "string" ? { text: date } : {},
    );
}

function epochMs(date: Reading["date"], onCut: (date: string) => void): number {
  if (typeof date === "string") {
    if (!readIso(date))
      throw new RowError(`the date ${shown(date)} is not of the form yyyy-MM-ddTHH:mm:ssZ`, { text: date });
    if (Number.isNaN(iso.offset))
      throw new RowError(`the date ${shown(date)} has no designator, so its instant is not known`, {
        text: date,
        hint: "The mapper has to read it with `time.iso` or `time.local` and a time zone.",
      });
    if (iso.finer) onCut(date);
    return iso.wall - iso.offset;
  }
  if (date instanceof Date) return date.getTime();
  if (date instanceof Temporal.Instant) {
    if (date.epochNanoseconds % 1_000_000n !== 0n) onCut(date.toString());
    return date.epochMilliseconds;
  }
  throw new RowError(`the date is not an instant, a date or a text: ${shown(date)}`);
}

function finiteValue(value: number): number {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw new RowError(
    typeof value === "number" ? `the value is not finite: ${value}` : `the value is not a number: ${shown(value)}`,
    typeof value === "string" ? { text: value } : {},
  );
}

function checkedVersion(version: string | undefined): string | undefined {
  if (version === undefined || version === null || version === "") return undefined;
  if (typeof version === "string" && version.isWellFormed()) return version;
  throw new RowError(`the version is not text: ${shown(version)}`);
}

function checkedTags(tags: Reading["tags"]): Reading["tags"] {
  if (tags === undefined || tags === null) return undefined;
  const entries = typeof tags === "object" ? Object.entries(tags) : null;
  if (entries === null || Array.isArray(tags)) throw new RowError("the tags are not an object of texts");
  for (const [name, text] of entries) {
    if (name === "") throw new RowError("a tag has no name");
    if (typeof text !== "string" || !text.isWellFormed() || !name.isWellFormed())
      throw new RowError(`the tag ${shown(name)} is not text: ${shown(text)}`);
  }
  return entries.length === 0 ? undefined : tags;
}

/** A target has one unit: the guard compares it with the variable's, and a file that mixes two would be half wrong. */
function agreeOnUnit(group: Group, unit: string): void {
  if (group.unit === unit) return;
  if (typeof unit !== "string" || unit === "") throw new RowError(`the unit is not text: ${shown(unit)}`);
  if (group.unit !== undefined)
    throw new RowError(`${group.words} has readings in ${group.unit} and in ${unit}`, { text: unit });
  group.unit = unit;
}
