/** Lays packs into a spool by hand, as they are described in `src/segment/layout.ts`. */
import { hash } from "node:crypto";
import { linkSync, writeFileSync } from "node:fs";
import type { BatchSlice } from "../../src/model.ts";
import { packEndText, type RunAbout, trailerText } from "../../src/segment/layout.ts";
import type { Spool } from "../../src/spool/spool.ts";

export interface LaidRun {
  readonly runId: string;
  readonly input: Buffer;
  readonly batches: readonly Buffer[];
  /** Lines of the row index. */
  readonly rows?: string;
  readonly about?: RunAbout;
}

export interface LaidFacts {
  readonly slices: readonly BatchSlice[];
  readonly inputAt: number;
}

const ABOUT = { from: "2026-03-01T00:00:00Z", to: "2026-03-02T00:00:00Z", targets: [] };

/** Offset of inputs that lie behind everything else, for batches that must begin at 0. */
export const BEHIND = 100_000;

/** One file for all of the runs, of which each gets a name. Answers by their ids where their parts are. */
export function layPack(
  spool: Pick<Spool, "segmentPath">,
  runs: readonly LaidRun[],
  inputsAt: 0 | typeof BEHIND = 0,
): ReadonlyMap<string, LaidFacts> {
  const laid = new Map<string, LaidFacts>();
  const footers = new Map<string, number>();
  const inputs = Buffer.concat(runs.map(({ input }) => input));
  const parts: Buffer[] = inputsAt === 0 ? [inputs] : [];
  let at = inputsAt === 0 ? inputs.length : 0;
  let inputAt: number = inputsAt;
  const put = (bytes: Buffer) => {
    parts.push(bytes);
    at += bytes.length;
  };
  for (const { runId, input, batches, rows = "", about = ABOUT } of runs) {
    const slices = batches.map((bytes, nth) => {
      const slice = { sequence: String(nth + 1), offset: at, length: bytes.length, points: 1 };
      put(bytes);
      return { ...slice, digest: hash("sha256", bytes) };
    });
    const of = { runId, input: { offset: inputAt, length: input.length } };
    const { text, footerAt } = trailerText(at, rows, about, of);
    put(Buffer.from(text));
    laid.set(runId, { slices, inputAt });
    footers.set(runId, footerAt);
    inputAt += input.length;
  }
  if (inputsAt === BEHIND)
    for (const bytes of [Buffer.alloc(BEHIND - at), inputs, Buffer.from("\n")]) put(bytes);
  put(Buffer.from(packEndText(footers)));
  const [first = "", ...others] = runs.map(({ runId }) => spool.segmentPath(runId));
  writeFileSync(first, Buffer.concat(parts));
  for (const path of others) linkSync(first, path);
  return laid;
}
