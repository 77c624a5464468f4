/**
 * The format of a segment, the file with the batches of one or several runs:
 *
 *     inputs      only of runs of small files: their bytes as they were fetched
 *     batches     for each run: JSON without a line feed, one batch after another
 *     trailer     for each run, after its batches: an empty line, its row index, its targets, and a footer
 *     directory   a line with the offset of each run's footer, by the ids of the runs
 *     end         a line with the bytes of the directory
 *
 * A segment of several runs has a name for each of them (hard links). A split appends batches, a directory and an end.
 */
import { createHash } from "node:crypto";
import { basename } from "node:path";
import type { TargetFacts } from "../model.ts";

/** End of the name of a row index until the batches of its run are complete. */
export const ROWS_PART = ".rows.part";

export interface RunAbout {
  /** Earliest and latest date. */
  readonly from: string;
  readonly to: string;
  readonly targets: readonly TargetFacts[];
}

/** The contents of all batches of a run, as far as the index of its targets describes them. */
export interface MappedContents {
  /** Earliest and latest date; null when there are no readings. */
  readonly period: { readonly from: string; readonly to: string } | null;
  readonly targets: readonly { readonly facts: TargetFacts }[];
}

/** Null when the batches are empty. */
export function aboutOf({ period, targets }: MappedContents): RunAbout | null {
  if (period === null) return null;
  return { ...period, targets: targets.map(({ facts }) => facts).filter(({ points }) => points > 0) };
}

/**
 * One line of a row index: the source rows of the readings of a batch, in the order of its body. 0 is unknown. Rows and
 * sheets are stored as `row-list.ts` says.
 */
export interface RowIndexLine {
  readonly sequence: string;
  /** Of the batch in the file. */
  readonly offset: number;
  /** Bytes of the batch. */
  readonly length: number;
  readonly rows: readonly number[];
  /** Name of the sheet of each reading by position in `sheets`; absent for files without sheets. */
  readonly sheetOf?: readonly number[];
  readonly sheets?: Readonly<Record<string, string>>;
}

/** The first line of a row index. */
export const ROWS_BEGIN = `${JSON.stringify({ sealed: true })}\n`;

const LINES_PER_PIECE = 1_000;

/** Lines of an index that ends with their SHA-256; added one by one, and handed out several at a time. */
export class SealedLines {
  readonly #digest = createHash("sha256");

  /** With its line feed. */
  add(line: string): string {
    this.#digest.update(line);
    return line;
  }

  end(): string {
    return `${JSON.stringify({ sha256: this.#digest.digest("hex") })}\n`;
  }
}

/** A line for the period, one for each target, and last the SHA-256 of the lines before; some lines at a time. */
export function* aboutLines({ from, to, targets }: RunAbout): Generator<string> {
  const sealed = new SealedLines();
  let text = `${JSON.stringify({ from, to, count: targets.length, sealed: true })}\n`;
  for (const [index, facts] of targets.entries()) {
    text += `${JSON.stringify(facts)}\n`;
    if ((index + 1) % LINES_PER_PIECE !== 0) continue;
    yield sealed.add(text);
    text = "";
  }
  yield `${sealed.add(text)}${sealed.end()}`;
}

/** A part of a file. */
export interface Span {
  /** Of its first byte. */
  readonly offset: number;
  /** Bytes. */
  readonly length: number;
}

/**
 * The last line of a trailer: where the trailer begins, and the bytes of row index and targets, by which a footer says
 * where it stands itself.
 */
export interface Footer {
  readonly "headgate-trailer": 1;
  readonly batches: number;
  readonly rows: number;
  readonly about: number;
  readonly run: string;
  /** Of a run whose input is in the segment: its offset and bytes. */
  readonly input?: readonly [offset: number, length: number];
}

/** The last line of a segment: bytes of the directory, which is the line before. */
export interface SegmentEnd {
  readonly "headgate-segment": 1;
  readonly directory: number;
}

export const END_MARK = Buffer.from('\n{"headgate-segment":');
export const FOOTER_MARK = Buffer.from('\n{"headgate-trailer":');
/** Bytes of a footer, and of an end. */
export const FOOTER_MAX = 256;

/** Bytes of a segment of several runs. */
export const SHARED_MAX = 2 * 1024 * 1024;

/** A run with the place of its input in the segment, if it is there. */
export interface SegmentRun {
  readonly runId: string;
  readonly input: Span | null;
}

export function footerText({ runId, input }: SegmentRun, lengths: Pick<Footer, "batches" | "rows" | "about">): string {
  const footer: Footer = {
    "headgate-trailer": 1,
    ...lengths,
    run: runId,
    ...(input === null ? {} : { input: [input.offset, input.length] }),
  };
  return `${JSON.stringify(footer)}\n`;
}

/** Directory and end; `footers` has the offsets of the footers by the ids of the runs. */
export function endText(footers: ReadonlyMap<string, number>): string {
  const directory = `${JSON.stringify(Object.fromEntries(footers))}\n`;
  const end: SegmentEnd = { "headgate-segment": 1, directory: Buffer.byteLength(directory) };
  return `${directory}${JSON.stringify(end)}\n`;
}

/** The files of a run have names that begin with its id. */
export function runOf(path: string): string {
  return basename(path).split(".", 1)[0] ?? "";
}
