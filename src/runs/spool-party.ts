/**
 * What the spool does for many runs at once, in a thread of its own: with the same result as `Spool.retire` and the publishing of a segment for each,
 * which go on from whatever is left when something fails. It is loaded with each thread, so it imports next to nothing.
 */
import {
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { gzipSync, zstdCompressSync } from "node:zlib";
import {
  ROWS,
  readSpan,
  type SegmentPart,
  type Trailer,
  trailerAnywhere,
} from "../mapping/segment-layout.ts";
import { type PartyFacts, syncNamesNow, triedOnce } from "../support/disk-work.ts";
import { faultPoint } from "../support/faults.ts";
import {
  ABOUT,
  KEPT_ENDS,
  type KeptKind,
  PART,
  PIECE_MAX,
  PLAIN_MAX,
  type SpoolPlaces,
  spoolPlaces,
} from "./spool-names.ts";

export type SpoolOrder =
  | { readonly kind: "publish"; readonly parts: readonly SegmentPart[] }
  /** `nowS`: seconds since 1970, from which the age of what is kept counts. */
  | { readonly kind: "retire"; readonly runIds: readonly string[]; readonly nowS: number };

/** For each run whether it was done. */
export type SpoolAnswer = readonly boolean[];

export function performSpool(
  order: SpoolOrder,
  { data, isHeard }: PartyFacts<{ root: string }>,
): SpoolAnswer {
  const places = spoolPlaces(data.root);
  if (order.kind === "publish") return isHeard() ? publishParty(order.parts, places) : [];
  return isHeard() ? retireParty(order.runIds, order.nowS, places) : order.runIds.map(() => false);
}

function publishParty(parts: readonly SegmentPart[], places: SpoolPlaces): boolean[] {
  // One after another, when all are written: the first takes most of what the others would have to wait for.
  const synced = parts.map(({ part }) => isDone(() => syncNow(part)));
  const named = parts.map((segment, at) => synced[at] === true && isDone(() => giveName(segment)));
  return isDone(() => syncNamesNow(places.segments)) ? named : named.map(() => false);
}

function giveName({ part, path }: SegmentPart): void {
  renameSync(part, path);
  // What another attempt, or another version of the gateway, left beside it would be taken for what it holds.
  for (const end of [ROWS, ABOUT]) if (sizeOf(`${path}${end}`) !== null) unlinkSync(`${path}${end}`);
}

function retireParty(runIds: readonly string[], nowS: number, places: SpoolPlaces): boolean[] {
  const inputs = runIds.map((runId) => triedOnce(() => keepInput(runId, nowS, places)));
  faultPoint("spool.together.kept");
  // Once for all of them, before an input is removed whose bytes are in another file now.
  const isMoved = inputs.some((way) => way === "moved" || way === "packed");
  if (isMoved && !isDone(() => syncNamesNow(places.kept))) return runIds.map(() => false);
  return runIds.map((runId, at) => {
    const way = inputs[at] ?? null;
    if (way === null || way === "too large") return false;
    return isDone(() => {
      if (way === "packed") unlinkSync(places.input(runId));
      keepRest(places.segment(runId), places.keptOf(runId));
    });
  });
}

function syncNow(path: string): void {
  const file = openSync(path, "r+");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Of something that is a moment old anyway, in seconds. */
const AGE_S = 60;

type Way = "none" | "moved" | "packed" | "too large";

function keepInput(runId: string, nowS: number, places: SpoolPlaces): Way {
  const input = places.input(runId);
  const status = statSync(input, { throwIfNoEntry: false });
  if (status === undefined) return "none";
  // Its age counts from here; that of one which came a moment ago does so already, but for that moment.
  if (Math.abs(nowS - status.mtimeMs / 1000) > AGE_S) utimesSync(input, nowS, nowS);
  return keep(input, status.size, places.keptOf(runId), "input", true);
}

/**
 * See `keepSegment`. What a replay writes beside under another name until it is complete is not looked for: none goes in a party, and what is left of one is
 * swept when the gateway starts.
 */
function keepRest(segment: string, kept: string): void {
  const size = sizeOf(segment);
  const hasAbout = sizeOf(`${segment}${ABOUT}`) !== null;
  const hasRows = sizeOf(`${segment}${ROWS}`) !== null;
  if (hasAbout || hasRows) keepBeside(segment, { size, hasRows, hasAbout }, kept);
  else if (size !== null) keepWhole(segment, size, kept);
}

/** With the row index and what it is about in files beside it. */
function keepBeside(
  segment: string,
  { size, hasRows, hasAbout }: { size: number | null; hasRows: boolean; hasAbout: boolean },
  kept: string,
): void {
  if (size !== null) moveOrPack(segment, size, kept, "segment");
  if (hasRows) moveOrPack(`${segment}${ROWS}`, sizeOf(`${segment}${ROWS}`) ?? 0, kept, "rows");
  faultPoint("spool.together.moved");
  // Last, since a search begins with it.
  if (hasAbout) renameSync(`${segment}${ABOUT}`, `${kept}${ABOUT}`);
}

/** With a trailer, of which a small one needs no look: all others have something beside them. */
function keepWhole(segment: string, size: number, kept: string): void {
  faultPoint("spool.together.moved");
  if (size <= PLAIN_MAX) {
    renameSync(segment, `${kept}${KEPT_ENDS.segment.plain}`);
    return;
  }
  const trailer = trailerAnywhere(segment);
  const way = trailer === null ? "none" : keep(segment, size, kept, "segment", false);
  if (way === "too large") throw new Error("it is compressed as a stream");
  if (trailer !== null) copyOut(segment, trailer, kept);
  unlinkSync(segment);
}

function copyOut(segment: string, { rows, about }: Trailer, kept: string): void {
  const rowsPart = `${segment}${ROWS}${PART}`;
  writeFileSync(rowsPart, readSpan(segment, rows));
  moveOrPack(rowsPart, rows.length, kept, "rows");
  writeFileSync(`${kept}${ABOUT}${PART}`, readSpan(segment, about));
  renameSync(`${kept}${ABOUT}${PART}`, `${kept}${ABOUT}`);
}

/** It is not here any more then. */
function moveOrPack(from: string, size: number, kept: string, kind: KeptKind): void {
  const way = keep(from, size, kept, kind, false);
  if (way === "too large") throw new Error("it is compressed as a stream");
  if (way === "packed") unlinkSync(from);
}

/** See `keepFile`. */
function keep(from: string, size: number, kept: string, kind: KeptKind, synced: boolean): Way {
  if (size > PIECE_MAX) return "too large";
  const { packed, plain } = KEPT_ENDS[kind];
  if (size <= PLAIN_MAX) {
    renameSync(from, `${kept}${plain}`);
    return "moved";
  }
  const part = `${kept}${packed}${PART}`;
  const bytes = readFileSync(from);
  const file = openSync(part, "w");
  try {
    writeFileSync(file, kind === "input" ? gzipSync(bytes) : zstdCompressSync(bytes));
    if (synced) fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(part, `${kept}${packed}`);
  return "packed";
}

function sizeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.size ?? null;
}

function isDone(work: () => void): boolean {
  return triedOnce(() => work() ?? true) === true;
}
