/** The time tools of the mapper contract. No zone is ever assumed: assuming one is a silent shift. */

import { Instants } from "./instants.ts";
import { iso, readIso } from "./iso-text.ts";
import type { DstPolicy, TimeTools } from "./mapper.ts";
import { FileError, RowError } from "./row-error.ts";
import { type FormatReader, formatReader } from "./time-format.ts";
import { type Occurrence, Zone } from "./zone.ts";

/** Where a series stands around a repeated hour, for `byOrder`. */
interface Passage {
  last: number;
  at: "outside" | "first" | "second";
  forwards: boolean;
}

/** Those that need no order. */
const POLICIES: ReadonlySet<string> = new Set(["reject", "earlier", "later"]);
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** Tools for one file: the passages of `byOrder` belong to it. */
export function createTimeTools(instants = new Instants()): TimeTools {
  const zones = new Map<string, Zone>();
  /** By zone and series. */
  const passages = new Map<Zone, Map<string, Passage>>();
  let lastFormat = "";
  let lastReader: FormatReader | undefined;
  let lastZone: Zone | undefined;

  function zoneOf(name: string): Zone {
    if (lastZone?.name === name) return lastZone;
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

  function resolve(text: string, wall: number, zone: Zone, policy: DstPolicy): number {
    const plain = zone.plain(wall);
    if (typeof policy === "string" && policy !== "byOrder") {
      if (!POLICIES.has(policy)) throw unknownPolicy(policy);
      return Number.isNaN(plain) ? byPolicy(text, zone.occurrence(wall), policy, zone) : plain;
    }
    const key = typeof policy === "object" ? policy.byOrder : "";
    const series = passagesOf(zone);
    if (Number.isNaN(plain)) return inOrder(text, wall, zone.occurrence(wall), series, key, zone);
    passOutside(series, key, wall);
    return plain;
  }

  function passagesOf(zone: Zone): Map<string, Passage> {
    let series = passages.get(zone);
    if (series === undefined) {
      series = new Map();
      passages.set(zone, series);
    }
    return series;
  }

  function wallTime(text: string, format: string): number {
    if (typeof text !== "string") throw missing();
    if (lastReader === undefined || format !== lastFormat) {
      lastReader = formatReader(format);
      lastFormat = format;
    }
    const wall = lastReader(trimmed(text));
    if (Number.isNaN(wall))
      throw new RowError(`"${short(text)}" is no date in the format ${format}`, { text });
    return wall;
  }

  function localMs(text: string, format: string, zone: string, policy: DstPolicy = "reject"): number {
    return resolve(text, wallTime(text, format), zoneOf(zone), policy);
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

  function isoMs(text: string, zone?: string, policy: DstPolicy = "reject"): number {
    if (typeof text !== "string") throw missing();
    if (!readIso(trimmed(text))) throw notIso(text);
    const { wall, offset } = iso;
    if (!Number.isNaN(offset)) return wall - offset;
    if (zone === undefined)
      throw new RowError(`"${short(text)}" has no designator, and no time zone is given`, {
        text,
        hint: "Write the date with Z or an offset such as +01:00, or name the zone of the file.",
      });
    return resolve(text, wall, zoneOf(zone), policy);
  }

  return {
    local: (text, format, zone, policy) => instants.at(localMs(text, format, zone, policy)),
    iso: (text, zone, policy) => instants.at(isoMs(text, zone, policy)),
    dayStart: (text, format, zone) => instants.at(day(text, format, zone).from),
    dayLength: (...args) => {
      const { from, to } = day(...args);
      return (to - from) / MINUTE_MS;
    },
    addMinutes: (instant, minutes) =>
      instants.at((instants.msOf(instant) ?? instant.epochMilliseconds) + Math.round(minutes * MINUTE_MS)),
  };
}

function unknownPolicy(policy: string): FileError {
  return new FileError(`there is no policy "${short(policy)}" for daylight saving`, {
    hint: "Use reject, earlier, later, byOrder, or { byOrder: series }.",
  });
}

/** Most texts need no trimming, and this finds out sooner than `trim` does. */
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

function passOutside(passages: Map<string, Passage>, key: string, wall: number): void {
  const passage = passages.get(key);
  if (passage === undefined) passages.set(key, { last: wall, at: "outside", forwards: true });
  else {
    passage.last = wall;
    passage.at = "outside";
  }
}

/** Tells the passes of a repeated hour apart by the order in which the wall times come. */
function inOrder(
  text: string,
  wall: number,
  occurrence: Occurrence,
  passages: Map<string, Passage>,
  key: string,
  zone: Zone,
): number {
  const passage = passages.get(key);
  if (occurrence.kind === "never") throw never(text, zone);
  if (occurrence.kind === "once") {
    passOutside(passages, key, wall);
    return occurrence.at;
  }
  // A jump from another day says nothing about the pass; neither does the start of a file.
  if (passage === undefined || Math.abs(wall - passage.last) > DAY_MS)
    throw new RowError(
      `"${short(text)}" occurs twice in ${zone.name}, and nothing before it tells which of the two is meant`,
      {
        text,
        hint: "The series begins inside the repeated hour: ask the sender for the offset, or set the policy to earlier or later.",
      },
    );
  if (passage.at === "outside") {
    passage.forwards = wall > passage.last;
    passage.at = passage.forwards ? "first" : "second";
  } else if (passage.forwards ? wall <= passage.last : wall >= passage.last) {
    const next = passage.forwards ? "second" : "first";
    if (passage.at === next)
      throw new RowError(`"${short(text)}" occurs more than twice in the repeated hour of ${zone.name}`, {
        text,
        hint: "When several series alternate in one file, the mapper has to name the series: { byOrder: series }.",
      });
    passage.at = next;
  }
  passage.last = wall;
  return passage.at === "first" ? occurrence.first : occurrence.second;
}

function missing(): RowError {
  return new RowError("the date is missing", {
    hint: "The column is not in the file, or the row is too short.",
  });
}

function notIso(text: string): RowError {
  if (text.trim() === "") return new RowError("the date is empty", { text });
  return new RowError(`"${short(text)}" is no date of the form yyyy-MM-ddTHH:mm:ss`, {
    text,
    hint: "Seconds may have up to three decimals that are not zero; Z or an offset such as +01:00 may follow.",
  });
}

function repeated(text: string, zone: Zone): RowError {
  return new RowError(`"${short(text)}" occurs twice in ${zone.name} because of daylight saving`, {
    text,
    hint: "Write the offset with the date, or choose what is meant: earlier, later or byOrder.",
  });
}

function never(text: string, zone: Zone): RowError {
  return new RowError(`"${short(text)}" does not occur in ${zone.name} because of daylight saving`, {
    text,
    hint: "Is the zone of the file really this one? Loggers that stay on standard time need a zone without daylight saving.",
  });
}

function short(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
