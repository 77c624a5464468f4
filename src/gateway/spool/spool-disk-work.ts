/**
 * The usual work of the spool for many runs, in a thread. A run that fails is left to the spool, which resumes it and
 * reports the fault (`spool.ts`). Each thread loads this module, so it imports next to nothing.
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
import { zstdCompressSync } from "node:zlib";
import { faultPoint } from "#core/faults.ts";
import { isDone, syncNamesNow, type TaskFacts, triedOnce } from "#core/threads/disk-work.ts";
import { readSpan } from "#mapping/segment/trailer.ts";
import { type CompressibleFile, filesToKeep, isLarge, moveToKept, setAge } from "./kept-segments.ts";
import { isKeptPlain, KEPT_ENDS, PART, type SpoolPlaces, spoolPlaces } from "./paths.ts";

export interface SpoolOrder {
  readonly runIds: readonly string[];
  /** Seconds since 1970, from which the age of kept files counts. */
  readonly nowS: number;
}

export interface SpoolAnswer {
  /** For each run. */
  readonly done: readonly boolean[];
  /** Runs with a file that is compressed later. */
  readonly large: readonly string[];
}

export function performSpool(
  { runIds, nowS }: SpoolOrder,
  { data, isAwaited }: TaskFacts<{ root: string }>,
): SpoolAnswer {
  if (!isAwaited()) return { done: runIds.map(() => false), large: [] };
  const places = spoolPlaces(data.root);
  const large = runIds.filter((runId) => isLarge(runId, places));
  return { done: retireAll(runIds, nowS, places), large };
}

function retireAll(runIds: readonly string[], nowS: number, places: SpoolPlaces): boolean[] {
  const inputs = runIds.map((runId) => triedOnce(() => keepInput(runId, nowS, places)));
  faultPoint("spool.list.kept");
  // Once for all of them, before an input is removed whose bytes are in another file now.
  const isMoved = inputs.some((way) => way === "moved" || way === "packed");
  if (isMoved && !isDone(() => syncNamesNow(places.kept))) return runIds.map(() => false);
  const done = runIds.map((runId, at) => {
    const way = inputs[at] ?? null;
    if (way === null) return false;
    return isDone(() => {
      if (way === "packed") unlinkSync(places.input(runId));
      keepRest(places.segment(runId), places.keptOf(runId), nowS);
    });
  });
  // The input of a run that has none of its own is moved with its segment.
  if (!inputs.includes("none") || isDone(() => syncNamesNow(places.kept))) return done;
  return done.map((isKept, at) => isKept && inputs[at] !== "none");
}

/** `packed`: the original is still there. */
type Way = "none" | "moved" | "packed" | "copied";

function keepInput(runId: string, nowS: number, places: SpoolPlaces): Way {
  const input = places.input(runId);
  const status = statSync(input, { throwIfNoEntry: false });
  if (status === undefined) return "none";
  setAge(input, status.mtimeMs, nowS);
  return keep({ from: input, kind: "input", size: status.size }, places.keptOf(runId), true);
}

/**
 * Files that a replay writes beside under other names until they are complete are not removed: the spool retires such a
 * run by itself, and removes leftovers of a crash when the gateway starts.
 */
function keepRest(segment: string, kept: string, nowS: number): void {
  const files = filesToKeep(segment);
  for (const [at, file] of files.entries()) {
    if (at === files.length - 1) faultPoint("spool.list.moved");
    if ("kind" in file) keep(file, kept, false);
    else moveToKept(file, kept, nowS);
  }
  // One that was compressed, or that nothing is kept of.
  rmSync(segment, { force: true });
}

/** See `keepFile`. */
function keep({ from, kind, size, span }: CompressibleFile, kept: string, synced: boolean): Way {
  const { packed, plain } = KEPT_ENDS[kind];
  const isPlain = isKeptPlain(kind, size);
  const end = isPlain ? plain : packed;
  if (isPlain && span === undefined) {
    renameSync(from, `${kept}${end}`);
    return "moved";
  }
  const part = `${kept}${end}${PART}`;
  const bytes = span === undefined ? readFileSync(from) : readSpan(from, span);
  const file = openSync(part, "w");
  try {
    writeFileSync(file, isPlain ? bytes : zstdCompressSync(bytes));
    if (synced) fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(part, `${kept}${end}`);
  return span === undefined ? "packed" : "copied";
}
