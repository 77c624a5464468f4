/** Writes segments into a spool by hand, as `src/mapping/segment/layout.ts` describes them. */
import { hash } from "node:crypto";
import { linkSync, writeFileSync } from "node:fs";
import type { BatchSlice } from "#gateway/model.ts";
import type { Spool } from "#gateway/spool/spool.ts";
import {
  aboutLines,
  endText,
  footerText,
  ROWS_BEGIN,
  type RunAbout,
  SealedLines,
  type SegmentRun,
} from "#mapping/segment/layout.ts";

export interface LaidRun {
  readonly runId: string;
  /** Null: it is stored elsewhere. */
  readonly input: Buffer | null;
  readonly batches: readonly Buffer[];
  /** The row index for the slices; by default without rows. */
  readonly rows?: (slices: readonly BatchSlice[]) => string;
  readonly about?: RunAbout;
}

export interface LaidFacts {
  readonly slices: readonly BatchSlice[];
  readonly inputAt: number;
}

const ABOUT = { from: "2026-03-01T00:00:00Z", to: "2026-03-02T00:00:00Z", targets: [] };

/** Offset of inputs behind everything else, for batches that must begin at 0. */
export const BEHIND = 100_000;

/** A trailer for batches that end at the offset, and the offset of its footer. */
export function trailerText(
  batches: number,
  rows: string,
  about: RunAbout,
  run: SegmentRun,
): { readonly text: string; readonly footerAt: number } {
  const targets = [...aboutLines(about)].join("");
  const lengths = { rows: Buffer.byteLength(rows), about: Buffer.byteLength(targets) };
  return {
    text: `\n${rows}${targets}${footerText(run, { batches, ...lengths })}`,
    footerAt: batches + 1 + lengths.rows + lengths.about,
  };
}

/** As the writer of segments makes it. */
export function sealedRows(lines: readonly object[]): string {
  const sealed = new SealedLines();
  const texts = [ROWS_BEGIN, ...lines.map((line) => `${JSON.stringify(line)}\n`)].map((one) => sealed.add(one));
  return `${texts.join("")}${sealed.end()}`;
}

function emptyRows(slices: readonly BatchSlice[]): string {
  return sealedRows(slices.map(({ sequence, offset, length }) => ({ sequence, offset, length, rows: [] })));
}

/** One segment for all of the runs, of which each gets a name. Returns the places of their parts by their ids. */
export function laySegment(
  spool: Pick<Spool, "segmentPath">,
  runs: readonly LaidRun[],
  inputsAt: 0 | typeof BEHIND = 0,
): ReadonlyMap<string, LaidFacts> {
  const laid = new Map<string, LaidFacts>();
  const footers = new Map<string, number>();
  const inputs = Buffer.concat(runs.flatMap(({ input }) => input ?? []));
  const parts: Buffer[] = inputsAt === 0 ? [inputs] : [];
  let at = inputsAt === 0 ? inputs.length : 0;
  let inputAt: number = inputsAt;
  const put = (bytes: Buffer) => {
    parts.push(bytes);
    at += bytes.length;
  };
  for (const { runId, input, batches, rows = emptyRows, about = ABOUT } of runs) {
    const slices = batches.map((bytes, nth) => {
      const slice = { sequence: String(nth + 1), offset: at, length: bytes.length, points: 1 };
      put(bytes);
      return { ...slice, digest: hash("sha256", bytes) };
    });
    const run = { runId, input: input === null ? null : { offset: inputAt, length: input.length } };
    const { text, footerAt } = trailerText(at, rows(slices), about, run);
    put(Buffer.from(text));
    laid.set(runId, { slices, inputAt });
    footers.set(runId, footerAt);
    inputAt += input?.length ?? 0;
  }
  if (inputsAt === BEHIND) for (const bytes of [Buffer.alloc(BEHIND - at), inputs, Buffer.from("\n")]) put(bytes);
  put(Buffer.from(endText(footers)));
  const [first = "", ...others] = runs.map(({ runId }) => spool.segmentPath(runId));
  writeFileSync(first, Buffer.concat(parts));
  for (const path of others) linkSync(first, path);
  return laid;
}
