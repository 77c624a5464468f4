/** The time tools of the mapper contract. No zone is ever assumed: assuming one is a silent shift. */
import { iso, readIso } from "./iso-text.ts";
import type { DstPolicy, TimeTools } from "./mapper.ts";
import { RowError } from "./row-error.ts";
import { type FormatReader, formatReader } from "./time-format.ts";
import { type Occurrence, Zone } from "./zone.ts";

/** Where a series stands around a repeated hour, for `byOrder`. */
interface Passage {
  last: number;
  at: "outside" | "first" | "second";
  forwards: boolean;
}

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** Tools for one file: the passages of `byOrder` belong to it. */
export function createTimeTools(): TimeTools & { localMs: LocalMs; isoMs: IsoMs } {
  const zones = new Map<string, Zone>();
  const passages = new Map<Zone, Map<string, Passage>>();
  let lastFormat = "";
  let lastReader: FormatReader | undefined;
  let lastZone: Zone | undefined;

  function zoneOf(name: string): Zone {
    if (lastZone?.name === name) return lastZone;
    let zone = zones.get(name);
    if (zone === undefined) {
      zone = new Zone(name);
      zones.set(name, zone);
    }
    lastZone = zone;
    return zone;
  }

  function resolve(text: string, wall: number, zone: Zone, policy: DstPolicy): number {
    const ordered = typeof policy === "object" || policy === "byOrder";
    const plain = zone.plain(wall);
    if (!Number.isNaN(plain) && !ordered) return plain;
    if (!ordered) return byPolicy(text, zone.occurrence(wall), policy, zone);
    const key = typeof policy === "object" ? policy.byOrder : "";
    const passagesOf = seriesOf(zone);
    if (Number.isNaN(plain)) return inOrder(text, wall, zone.occurrence(wall), passagesOf, key, zone);
    const passage = passagesOf.get(key);
    if (passage !== undefined) passOutside(passage, wall);
    else passagesOf.set(key, { last: wall, at: "outside", forwards: true });
    return plain;
  }

  function seriesOf(zone: Zone): Map<string, Passage> {
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
    const wall = lastReader(text.trim());
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
    if (!readIso(text.trim())) throw notIso(text);
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
    localMs,
    isoMs,
    local: (...args) => instantAt(localMs(...args)),
    iso: (...args) => instantAt(isoMs(...args)),
    dayStart: (...args) => Temporal.Instant.fromEpochMilliseconds(day(...args).from),
    dayLength: (...args) => {
      const { from, to } = day(...args);
      return (to - from) / MINUTE_MS;
    },
    addMinutes: (instant, minutes) =>
      Temporal.Instant.fromEpochMilliseconds(instant.epochMilliseconds + minutes * MINUTE_MS),
  };
}

/** A prime number, so that dates at regular distances spread over all places. */
const INSTANTS_KEPT = 16_381;
const SECOND_MS = 1000;
const instants = new Array<Temporal.Instant | undefined>(INSTANTS_KEPT).fill(undefined);
const instantsMs = new Float64Array(INSTANTS_KEPT).fill(Number.NaN);

/** Instants never change, and the series of a file share their dates: making one anew costs more than all the rest of reading it. */
function instantAt(epochMs: number): Temporal.Instant {
  const place = Math.abs(Math.floor(epochMs / SECOND_MS)) % INSTANTS_KEPT;
  const known = instants[place];
  if (known !== undefined && instantsMs[place] === epochMs) return known;
  const instant = Temporal.Instant.fromEpochMilliseconds(epochMs);
  instants[place] = instant;
  instantsMs[place] = epochMs;
  return instant;
}

type LocalMs = (text: string, format: string, zone: string, policy?: DstPolicy) => number;
type IsoMs = (text: string, zone?: string, policy?: DstPolicy) => number;

function byPolicy(text: string, occurrence: Occurrence, policy: DstPolicy, zone: Zone): number {
  if (occurrence.kind === "once") return occurrence.at;
  if (policy === "reject") throw occurrence.kind === "twice" ? repeated(text, zone) : never(text, zone);
  if (occurrence.kind === "twice") return policy === "earlier" ? occurrence.first : occurrence.second;
  return policy === "earlier" ? occurrence.earlier : occurrence.later;
}

function passOutside(passage: Passage, wall: number): void {
  passage.last = wall;
  passage.at = "outside";
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
    if (passage === undefined) passages.set(key, { last: wall, at: "outside", forwards: true });
    else passOutside(passage, wall);
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
