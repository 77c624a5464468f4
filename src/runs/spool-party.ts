/**
 * What the spool does for many runs at once, in a thread of its own: with the same result as `Spool.note`, `Spool.retire` and the publishing of a
 * segment for each, which go on from whatever is left when something fails. It is loaded with each thread, so it imports next to nothing.
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
import { type PartyFacts, syncNamesNow, triedOnce } from "../support/disk-work.ts";
import { faultPoint } from "../support/faults.ts";
import {
  ABOUT,
  BESIDE_SEGMENT,
  KEPT_ENDS,
  type KeptKind,
  PART,
  PIECE_MAX,
  PLAIN_MAX,
  type SpoolPlaces,
  spoolPlaces,
} from "./spool-names.ts";

export interface NoteText {
  readonly runId: string;
  /** The whole file. */
  readonly text: string;
}

/** A segment that is complete, with its row index beside it. */
export interface SegmentPart {
  readonly part: string;
  readonly rowsPart: string;
  /** The name that it is to have, in the folder of segments. */
  readonly path: string;
}

export type SpoolOrder =
  | { readonly kind: "note"; readonly notes: readonly NoteText[] }
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
  if (order.kind === "note")
    return order.notes.map(({ runId, text }) =>
      isHeard() ? isDone(() => writeFileSync(`${places.segment(runId)}${ABOUT}`, text)) : false,
    );
  if (order.kind === "publish") return isHeard() ? publishParty(order.parts, places) : [];
  return isHeard() ? retireParty(order.runIds, order.nowS, places) : order.runIds.map(() => false);
}

function publishParty(parts: readonly SegmentPart[], places: SpoolPlaces): boolean[] {
  // One after another, when all are written: the first takes most of what the others would have to wait for.
  const synced = parts.map(({ part, rowsPart }) =>
    isDone(() => {
      syncNow(part);
      syncNow(rowsPart);
    }),
  );
  const named = parts.map(({ part, rowsPart, path }, at) =>
    isDone(() => {
      if (synced[at] !== true) throw new Error("it is not synced");
      renameSync(rowsPart, `${path}.rows`);
      renameSync(part, path);
    }),
  );
  return isDone(() => syncNamesNow(places.segments)) ? named : named.map(() => false);
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
      keepRest(runId, places);
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

type Way = "none" | "moved" | "packed" | "too large";

function keepInput(runId: string, nowS: number, places: SpoolPlaces): Way {
  const input = places.input(runId);
  const size = sizeOf(input);
  if (size === null) return "none";
  utimesSync(input, nowS, nowS);
  return keep(input, size, places.keptOf(runId), "input", true);
}

function keepRest(runId: string, places: SpoolPlaces): void {
  const segment = places.segment(runId);
  const about = `${segment}${ABOUT}`;
  const left = new Set(BESIDE_SEGMENT);
  if (sizeOf(about) !== null) {
    const kept = places.keptOf(runId);
    for (const [kind, end] of [
      ["segment", ""],
      ["rows", ".rows"],
    ] as const) {
      const size = sizeOf(`${segment}${end}`);
      if (size === null) continue;
      const way = keep(`${segment}${end}`, size, kept, kind, false);
      if (way === "too large") throw new Error("it is compressed as a stream");
      if (way === "moved") left.delete(end);
    }
    faultPoint("spool.together.moved");
    // Last, since a search begins with it.
    renameSync(about, `${kept}${ABOUT}`);
    left.delete(ABOUT);
  }
  for (const end of left) if (sizeOf(`${segment}${end}`) !== null) unlinkSync(`${segment}${end}`);
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
