/** The time tools of the mapper contract. No zone is ever assumed: assuming one is a silent shift. */
import { Instants } from "./instants.ts";
import { iso, readIso } from "./iso-text.ts";
import { LocalDate, localDateOf } from "./local-date.ts";
import { type DstPolicy, SOURCE_ZONE, type TimeTools } from "./mapper.ts";
import { pendingInstant } from "./pending-instant.ts";
import { FileError, isRowError, RowError } from "./readers/row-error.ts";
import { type Passed, SeriesOrders } from "./series-order.ts";
import { SourceZones } from "./source-zones.ts";
import { type FormatReader, formatReader } from "./time-format.ts";
import { type Occurrence, Zone } from "./zone.ts";

/** Limit on the rows of a series that wait for a reading; the earliest no longer count then. */
const WAITING_MAX = 10_000;

/** Policies that need no order. */
const POLICIES: ReadonlySet<string> = new Set(["reject", "earlier", "later"]);
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

export interface FileTimeTools extends TimeTools {
  /** Called after the last row of the file: rows held for repeated hours are settled. */
  finish(): void;
  /** For rows that are read from their bytes: the zone of this name, if local times were read in it. */
  knownZone(name: string): Zone | undefined;
  /** The row that counted in its series since the last call, if a local time was read by the policy `byOrder`. */
  takePassed(): Passed | undefined;
  readonly orders: SeriesOrders;
}

/**
 * Tools for one file, which owns the series of `byOrder`. `onCut` is called with each text that was finer than a
 * millisecond and is cut to it.
 */
export function createTimeTools(
  instants = new Instants(),
  onCut: (text: string) => void = () => undefined,
  sources = new SourceZones(undefined),
): FileTimeTools {
  const zones = new Map<string, Zone>();
  const orders = new SeriesOrders();
  const locals = new LocalTimes(instants, sources);
  let lastZone: Zone | undefined;
  const wallTime = wallTimes(onCut);

  function zoneOf(name: string): Zone {
    if (lastZone?.name === name) return lastZone;
    if (name === SOURCE_ZONE) throw tooEarly();
    if (typeof name !== "string")
      throw new FileError("no time zone is given for a local time", {
        hint: "The mapper has to name one, mostly from its settings: none is assumed.",
      });
    let zone = zones.get(name);
    if (zone === undefined) {
      zone = new Zone(name);
      zones.set(name, zone);
    }
    lastZone = zone;
    return zone;
  }

  function resolve(text: string, wall: number, zone: Zone, policy: DstPolicy): Temporal.Instant {
    const plain = zone.plain(wall);
    if (typeof policy === "string" && policy !== "byOrder") {
      if (!POLICIES.has(policy)) throw unknownPolicy(policy);
      return instants.at(Number.isNaN(plain) ? byPolicy(text, zone.occurrence(wall), policy, zone) : plain);
    }
    const key = typeof policy === "object" ? policy.byOrder : "";
    const occurrence = Number.isNaN(plain) ? zone.occurrence(wall) : undefined;
    if (occurrence?.kind === "never") throw never(text, zone);
    const held = orders.take(zone, key, text, wall, occurrence);
    if (held === undefined) return instants.at(occurrence?.kind === "once" ? occurrence.at : plain);
    instants.hasPending = true;
    return pendingInstant(held);
  }

  function local(text: string, format: string, zone: string, policy: DstPolicy = "reject"): Temporal.Instant {
    const wall = wallTime(text, format);
    return zone === SOURCE_ZONE ? later(text, wall, policy) : resolve(text, wall, zoneOf(zone), policy);
  }

  /** The zone is known when the reading is. */
  function later(text: string, wall: number, policy: DstPolicy): Temporal.Instant {
    return locals.at(policy, (zone) => resolve(text, wall, zoneOf(zone), policy));
  }

  function dayStart(text: string, format: string, zone: string): Temporal.Instant {
    if (zone !== SOURCE_ZONE) return instants.at(day(text, format, zone).from);
    midnight(text, format);
    return locals.at("reject", (own) => instants.at(day(text, format, own).from));
  }

  function addDays(instant: Temporal.Instant, days: number, zone: string): Temporal.Instant {
    const local = localDateOf(instant);
    if (local !== undefined || zone === SOURCE_ZONE)
      return locals.at("reject", (own) => addDays(local?.in(own) ?? instant, days, zone === SOURCE_ZONE ? own : zone));
    const { name } = zoneOf(zone);
    return instants.moved(instant, (ms) => {
      const there = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(name);
      return there.add({ days }).epochMilliseconds;
    });
  }

  /** Wall time at which the day of the text begins. */
  function midnight(text: string, format: string): number {
    const wall = wallTime(text, format);
    return wall - (((wall % DAY_MS) + DAY_MS) % DAY_MS);
  }

  function day(text: string, format: string, zoneName: string): { from: number; to: number } {
    const zone = zoneOf(zoneName);
    const wall = midnight(text, format);
    const from = zone.startOfDay(wall);
    const to = zone.startOfDay(wall + DAY_MS);
    if (from >= to)
      throw new RowError(`the day "${short(text)}" does not occur in ${zone.name}`, {
        text,
        hint: "The zone changed its side of the date line on that day. Is the zone of the file really this one?",
      });
    return { from, to };
  }

  function readInstant(text: string, zone?: string, policy: DstPolicy = "reject"): Temporal.Instant {
    if (typeof text !== "string") throw missing();
    if (!readIso(trimmed(text))) throw notIso(text);
    if (iso.finer) onCut(text);
    const { wall, offset } = iso;
    if (!Number.isNaN(offset)) return instants.at(wall - offset);
    if (zone === undefined)
      throw new RowError(`"${short(text)}" has no designator, and no time zone is given`, {
        text,
        hint: "Write the date with Z or an offset such as +01:00, or name the zone of the file.",
      });
    return zone === SOURCE_ZONE ? later(text, wall, policy) : resolve(text, wall, zoneOf(zone), policy);
  }

  return {
    local,
    iso: readInstant,
    dayStart,
    dayLength: (...args) => {
      const { from, to } = day(...args);
      return (to - from) / MINUTE_MS;
    },
    addMinutes: (instant, minutes) => instants.moved(instant, (ms) => ms + Math.round(minutes * MINUTE_MS)),
    addDays,
    knownZone: (name) => zones.get(name),
    takePassed: () => orders.takePassed(),
    orders,
    zone: (name, target) => (name === SOURCE_ZONE ? sources.zoneOf(target) : name),
    finish() {
      locals.finish();
      orders.finish();
    },
  };
}

/** The wall time of a text in a format, as if it were UTC. */
function wallTimes(onCut: (text: string) => void): (text: string, format: string) => number {
  let lastFormat = "";
  let lastReader: FormatReader | undefined;
  return (text, format) => {
    if (typeof text !== "string") throw missing();
    if (lastReader === undefined || format !== lastFormat) {
      lastReader = formatReader(format);
      lastFormat = format;
    }
    iso.finer = false;
    const wall = lastReader(trimmed(text));
    if (Number.isNaN(wall)) throw new RowError(`"${short(text)}" is not a date in the format ${format}`, { text });
    if (iso.finer) onCut(text);
    return wall;
  };
}

function tooEarly(): FileError {
  return new FileError("the mapper needs the zone of the file before the source is known whose zone it is", {
    hint: "Name the zone of the file in the trigger's metadata, for example: `timeZone: Europe/Brussels`",
  });
}

function unknownPolicy(policy: string): FileError {
  return new FileError(`there is no policy "${short(policy)}" for daylight saving`, {
    hint: "Use reject, earlier, later, byOrder, or { byOrder: series }.",
  });
}

/** Most texts need no trimming, and this check is cheaper than `trim`. */
function trimmed(text: string): string {
  const first = text.charCodeAt(0);
  const last = text.charCodeAt(text.length - 1);
  return first > 32 && first < 128 && last > 32 && last < 128 ? text : text.trim();
}

function byPolicy(text: string, occurrence: Occurrence, policy: DstPolicy, zone: Zone): number {
  if (occurrence.kind === "once") return occurrence.at;
  if (policy === "reject") throw occurrence.kind === "twice" ? repeated(text, zone) : never(text, zone);
  if (occurrence.kind === "twice") return policy === "earlier" ? occurrence.first : occurrence.second;
  return policy === "earlier" ? occurrence.earlier : occurrence.later;
}

function missing(): RowError {
  return new RowError("the date is missing", {
    hint: "The column is not in the file, or the row is too short.",
  });
}

function notIso(text: string): RowError {
  if (text.trim() === "") return new RowError("the date is empty", { text });
  return new RowError(`"${short(text)}" is not a date of the form yyyy-MM-ddTHH:mm:ss`, {
    text,
    hint: "Seconds may have decimals; Z or an offset such as +01:00 may follow.",
  });
}

function repeated(text: string, zone: Zone): RowError {
  return new RowError(`"${short(text)}" occurs twice in ${zone.name} because of daylight saving`, {
    text,
    hint:
      "Write the offset with the date, or read the rows byOrder. By earlier and later both rows of a repeated time " +
      "get the same hour, and only one of them can count.",
  });
}

function never(text: string, zone: Zone): RowError {
  return new RowError(`"${short(text)}" does not occur in ${zone.name} because of daylight saving`, {
    text,
    hint:
      "Is the zone of the file really this one? Loggers that stay on standard time need a zone without " +
      "daylight saving.",
  });
}

function short(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

interface Series {
  waiting: LocalDate[];
  /** Of the last reading. */
  zone: string | undefined;
}

/**
 * Local times in the zones of the sources. For `byOrder` also rows without a reading count, so they get the zone of the
 * next row of their series that has one.
 */
class LocalTimes {
  readonly #instants: Instants;
  readonly #sources: SourceZones;
  readonly #series = new Map<string, Series>();

  constructor(instants: Instants, sources: SourceZones) {
    this.#instants = instants;
    this.#sources = sources;
  }

  /** `read` returns the instant in a zone. Throws when the zones of the sources are not known. */
  at(policy: DstPolicy, read: (zone: string) => Temporal.Instant): Temporal.Instant {
    this.#sources.require();
    if (typeof policy === "string" && policy !== "byOrder") return this.#instants.local(new LocalDate(read));
    const key = typeof policy === "object" ? policy.byOrder : "";
    const date = new LocalDate((zone) => {
      this.#reached(key, date, zone);
      return read(zone);
    });
    this.#add(key, date);
    return this.#instants.local(date);
  }

  #add(key: string, date: LocalDate): void {
    const series = this.#series.get(key) ?? { waiting: [], zone: undefined };
    this.#series.set(key, series);
    series.waiting.push(date);
    if (series.waiting.length > 2 * WAITING_MAX) series.waiting.splice(0, WAITING_MAX);
  }

  /** Called when the zone of a row is known, before its own time counts. */
  #reached(key: string, date: LocalDate, zone: string): void {
    const series = this.#series.get(key);
    const place = series?.waiting.indexOf(date) ?? -1;
    if (series === undefined || place === -1) return;
    series.zone = zone;
    count(series.waiting.splice(0, place + 1).slice(0, -1), zone);
  }

  /** Called after the last row. */
  finish(): void {
    for (const { waiting, zone } of this.#series.values()) if (zone !== undefined) count(waiting.splice(0), zone);
  }
}

function count(dates: readonly LocalDate[], zone: string): void {
  for (const date of dates)
    try {
      date.in(zone);
    } catch (thrown) {
      // The row has no reading that could be refused.
      if (!isRowError(thrown)) throw thrown;
    }
}
