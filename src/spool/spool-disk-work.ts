/**
 * The thread of the spool does the usual case for many runs. What fails is left, so that the spool resumes from it and words the fault
 * (`spool-disk.ts`). Each thread loads this module, so it imports next to nothing.
 */
import {
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { gzipSync, zstdCompressSync } from "node:zlib";
import type { PackPart } from "../segment/layout.ts";
import { publishPackNow } from "../segment/publish-pack.ts";
import { isDone, syncNamesNow, type TaskFacts, triedOnce } from "../support/disk-work.ts";
import { faultPoint } from "../support/faults.ts";
import { type CompressibleFile, filesToKeep, moveToKept, setAge } from "./kept-segments.ts";
import {
  KEPT_ENDS,
  type KeptKind,
  PART,
  PIECE_MAX,
  PLAIN_MAX,
  type SpoolPlaces,
  spoolPlaces,
} from "./paths.ts";

export type SpoolOrder =
  | { readonly kind: "publish"; readonly pack: PackPart }
  /** `nowS`: seconds since 1970, from which the age of what is kept counts. */
  | { readonly kind: "retire"; readonly runIds: readonly string[]; readonly nowS: number };

/** For each run whether it was done. */
export type SpoolAnswer = readonly boolean[];

export function performSpool(order: SpoolOrder, { data, isHeard }: TaskFacts<{ root: string }>): SpoolAnswer {
  const places = spoolPlaces(data.root);
  if (order.kind === "publish") return isHeard() ? publishPackNow(order.pack) : [];
  return isHeard() ? retireAll(order.runIds, order.nowS, places) : order.runIds.map(() => false);
}

function retireAll(runIds: readonly string[], nowS: number, places: SpoolPlaces): boolean[] {
  const inputs = runIds.map((runId) => triedOnce(() => keepInput(runId, nowS, places)));
  faultPoint("spool.list.kept");
  // Once for all of them, before an input is removed whose bytes are in another file now.
  const isMoved = inputs.some((way) => way === "moved" || way === "packed");
  if (isMoved && !isDone(() => syncNamesNow(places.kept))) return runIds.map(() => false);
  const done = runIds.map((runId, at) => {
    const way = inputs[at] ?? null;
    if (way === null || way === "too large") return false;
    return isDone(() => {
      if (way === "packed") unlinkSync(places.input(runId));
      keepRest(places.segment(runId), places.keptOf(runId), nowS);
    });
  });
  // The input of a run that has none of its own is moved with its segment.
  if (!inputs.includes("none") || isDone(() => syncNamesNow(places.kept))) return done;
  return done.map((isKept, at) => isKept && inputs[at] !== "none");
}

type Way = "none" | "moved" | "packed" | "too large";

function keepInput(runId: string, nowS: number, places: SpoolPlaces): Way {
  const input = places.input(runId);
  const status = statSync(input, { throwIfNoEntry: false });
  if (status === undefined) return "none";
  setAge(input, status.mtimeMs, nowS);
  return keep(input, status.size, places.keptOf(runId), "input", true);
}

/**
 * What a replay writes beside under another name until it is complete is not looked for: the spool retires such a run by itself, and what a crash left of it is
 * swept when the gateway starts.
 */
function keepRest(segment: string, kept: string, nowS: number): void {
  const packed: string[] = [];
  const files = filesToKeep(segment);
  for (const [at, file] of files.entries()) {
    if (at === files.length - 1) faultPoint("spool.list.moved");
    if ("end" in file) moveToKept(file, kept, nowS);
    else if (moveOrPack(file, kept) === "packed") packed.push(file.from);
  }
  for (const path of packed) unlinkSync(path);
  // Nobody knows what it is.
  if (files.length === 0) rmSync(segment, { force: true });
}

function moveOrPack({ from, kind, size }: CompressibleFile, kept: string): Way {
  const way = keep(from, size, kept, kind, false);
  if (way === "too large") throw new Error("it is compressed as a stream");
  return way;
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
