/** The context of a mapper: functions that emit readings and refuse rows, with checks at each call. */

import leven from "leven";
import { convertUnit, findUnit, UNITS, type Unit, unitFamily } from "#wire/units.ts";
import type { LookupFile } from "./contract.ts";
import { Instants } from "./instants.ts";
import { iso, readIso } from "./iso-text.ts";
import { localDateOf } from "./local-date.ts";
import { createLookups } from "./lookup.ts";
import type { MapContext, MapperFile, Reading, Target } from "./mapper.ts";
import type { Place } from "./model.ts";
import { readNumber } from "./number.ts";
import { type PendingDate, pendingDateOf } from "./pending-instant.ts";
import { Emitted } from "./plan/planned-rows.ts";
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

/** Number of letters from which a text may be a misspelt name. */
const NAME_MIN = 5;

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

// The unit tool of the mapper contract: the service does not convert pushed values, so a mapper does.

/** The value in the unit `to`. Throws a `RowError` for an unknown unit, and for units of different families. */
type UnitTool = (value: number, from: string, to: string) => number;

/** Cached, since a file names a handful of units, once a row. */
export function createUnitTool(): UnitTool {
  let fromText: string | undefined;
  let toText: string | undefined;
  let from: Unit | undefined;
  let to: Unit | undefined;

  return (value, fromUnit, toUnit) => {
    if (from === undefined || to === undefined || fromUnit !== fromText || toUnit !== toText) {
      const [knownFrom, knownTo] = convertible(fromUnit, toUnit);
      from = knownFrom;
      to = knownTo;
      fromText = fromUnit;
      toText = toUnit;
    }
    if (typeof value !== "number" || !Number.isFinite(value))
      throw new RowError(`the value to convert from ${from.symbol} to ${to.symbol} is not a finite number`);
    return convertUnit(value, from, to);
  };
}

function convertible(fromText: string, toText: string): [Unit, Unit] {
  const from = knownUnit(fromText);
  const to = knownUnit(toText);
  if (from.unitFamilyId !== to.unitFamilyId)
    throw new RowError(
      `${from.symbol} cannot be converted to ${to.symbol}: one is a unit of ${familyWords(from)}, the ` +
        `other of ${familyWords(to)}`,
      { text: fromText, hint: `Units of ${familyWords(to)} are ${symbolsOf(to)}.` },
    );
  return [from, to];
}

function knownUnit(text: string): Unit {
  if (typeof text !== "string" || text.trim() === "")
    throw new RowError("the unit is missing", {
      hint: "The column of the unit is empty or not in the file.",
    });
  const unit = findUnit(text);
  if (unit !== undefined) return unit;
  const near = nearestUnits(text);
  throw new RowError(`there is no unit ${shown(text)}`, {
    text,
    ...(near.length === 0
      ? {}
      : { hint: `Is ${near.map((one) => `${one.symbol} (${one.name})`).join(" or ")} meant?` }),
  });
}

/** The symbol without case, blanks, dots and repeated letters. */
function spelling(symbol: string): string {
  return symbol
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll(/[\s._^*]/g, "")
    .replaceAll(/(.)\1+/g, "$1");
}

/**
 * The units with the most similar spelling; several only when they differ in case alone. One letter more, less or
 * different is another unit for a symbol (qm/h is not km/h), so only names may differ in letters.
 */
function nearestUnits(text: string): readonly Unit[] {
  const wanted = text.trim().slice(0, 60).normalize("NFKC").toLowerCase();
  const ranked = UNITS.map((unit) => {
    const symbol = spelling(wanted) === spelling(unit.symbol) ? 0 : Number.POSITIVE_INFINITY;
    const name = wanted.length < NAME_MIN ? Number.POSITIVE_INFINITY : leven(wanted, unit.name.toLowerCase());
    return { unit, distance: Math.min(symbol, name) };
  }).sort((a, b) => a.distance - b.distance);
  const best = ranked[0]?.distance ?? Number.POSITIVE_INFINITY;
  if (best > Math.max(1, wanted.length / 3)) return [];
  return ranked
    .filter(({ distance }) => distance === best)
    .map(({ unit }) => unit)
    .slice(0, 3);
}

function familyWords(unit: Unit): string {
  return unitFamily(unit)?.name.toLowerCase() ?? `family ${unit.unitFamilyId}`;
}

function symbolsOf({ unitFamilyId }: Unit): string {
  return UNITS.filter((unit) => unit.unitFamilyId === unitFamilyId)
    .map(({ symbol }) => symbol)
    .join(", ");
}
