/** A part of a file as a person reads it: lines of text, whatever their encoding, or rows of a sheet. */

import { ConfigError } from "#core/errors.ts";
import { encodings } from "#mapping/readers/decode.ts";
import { knownFormat } from "#mapping/readers/magic.ts";
import { isUnreadable } from "#mapping/readers/row-error.ts";
import { placeOf } from "#mapping/readers/row-place.ts";
import { sheetNames, xlsxCells } from "#mapping/readers/xlsx.ts";
import type { RejectedRow, Run } from "../model.ts";
import type { InputPage } from "../operations/api/files.ts";
import type { FileContent } from "./file-content.ts";

const HEAD_BYTES = 64 * 1024;
const LINE_MAX = 2_000;
const CELL_MAX = 500;
/** Cells of a row that are shown; a sheet may have 16,384 columns. */
const CELLS_MAX = 200;

export type Format = "text" | "workbook" | "binary";

export interface PreviewRequest {
  readonly sheet?: string | undefined;
  readonly encoding?: string | undefined;
  readonly from: number;
  readonly rows: number;
}

/** The bytes of a file, as often as they are needed; and a copy of it on this machine. */
export type PreviewContent = Pick<FileContent, "stream" | "path">;

/** The first bytes of the file, at most. */
export async function headOf(content: Pick<FileContent, "stream">): Promise<Buffer> {
  const parts: Buffer[] = [];
  let length = 0;
  const stream = await content.stream();
  try {
    for await (const part of stream as AsyncIterable<Buffer>) {
      parts.push(part);
      length += part.length;
      if (length >= HEAD_BYTES) break;
    }
  } finally {
    stream.destroy();
  }
  return Buffer.concat(parts).subarray(0, HEAD_BYTES);
}

export function formatOf(head: Buffer, name: string): Format {
  const isZip = head.toString("latin1", 0, 2) === "PK";
  if (isZip && (isWorkbook(name) || head.includes("[Content_Types].xml"))) return "workbook";
  if (knownFormat(head) !== undefined) return "binary";
  const isWide = (head[0] === 0xff && head[1] === 0xfe) || (head[0] === 0xfe && head[1] === 0xff);
  return head.includes(0) && !isWide ? "binary" : "text";
}

function isWorkbook(name: string): boolean {
  return /\.xls[xm]$/i.test(name);
}

export async function previewOf(
  content: PreviewContent,
  name: string,
  asked: PreviewRequest,
  marks: readonly Mark[],
): Promise<InputPage> {
  const head = await headOf(content);
  const isNamed = asked.encoding !== undefined && knownFormat(head) === undefined;
  const format = isNamed ? "text" : formatOf(head, name);
  if (format === "workbook") return await sheetPage(content, asked, marks);
  if (format === "text") return await textPage(content, head, asked, marks);
  const what = knownFormat(head)?.what ?? "no text: it holds zero bytes";
  return { kind: "binary", reason: `the file is ${what}`, isLast: true, marks: [] };
}

// ── marks

export interface Mark {
  readonly sheet: string | undefined;
  readonly row: number;
  readonly column: string | null;
  readonly reason: string;
}

/** The place of the reason, and the refused rows of the run. */
export function marksOf({ reason }: Pick<Run, "reason">, rejected: readonly RejectedRow[]): readonly Mark[] {
  return [...(reason === null ? [] : [reason]), ...rejected].flatMap(({ place, message }) =>
    place?.row === undefined
      ? []
      : [{ sheet: place.sheet, row: place.row, column: place.column ?? null, reason: message }],
  );
}

function marksWithin(marks: readonly Mark[], { from, rows }: PreviewRequest, sheet?: string) {
  return marks
    .filter(
      (mark) => mark.row >= from && mark.row < from + rows && (sheet === undefined || (mark.sheet ?? sheet) === sheet),
    )
    .map(({ row, column, reason }) => ({ row, column, reason }));
}

// ── text

async function textPage(
  content: PreviewContent,
  head: Buffer,
  asked: PreviewRequest,
  marks: readonly Mark[],
): Promise<InputPage> {
  const encoding = encodingOf(head, asked.encoding);
  const lines = new Lines(asked);
  const decoder = encodings().getDecoder(encoding);
  const stream = await content.stream();
  try {
    for await (const part of stream as AsyncIterable<Buffer>) {
      lines.add(decoder.write(part));
      if (lines.isFull) break;
    }
    if (!lines.isFull) lines.end(decoder.end() ?? "");
  } finally {
    stream.destroy();
  }
  return { kind: "text", encoding, lines: lines.taken, isLast: !lines.isFull, marks: marksWithin(marks, asked) };
}

/** Its byte order mark, the named encoding, or UTF-8 unless the beginning cannot be that. */
function encodingOf(head: Buffer, named: string | undefined): string {
  if (head[0] === 0xff && head[1] === 0xfe) return "utf-16le";
  if (head[0] === 0xfe && head[1] === 0xff) return "utf-16be";
  if (named !== undefined && encodings().encodingExists(named)) return named;
  if (named !== undefined)
    throw new ConfigError("HG-OPS-006", {
      operation: "show file",
      subject: named,
      message: `the encoding ${named} is unknown`,
      hint: "Known encodings are for example utf-8, utf-16le, windows-1252, iso-8859-1.",
    });
  try {
    // The last character may be cut.
    new TextDecoder("utf-8", { fatal: true }).decode(head, { stream: true });
    return "utf-8";
  } catch {
    return "windows-1252";
  }
}

/** Counts lines, keeps those asked for, and of each its beginning: memory does not depend on the file. */
class Lines {
  readonly taken: { row: number; text: string; cut: number }[] = [];
  readonly #asked: PreviewRequest;
  #row = 1;
  #text = "";
  #length = 0;
  #afterReturn = false;

  constructor(asked: PreviewRequest) {
    this.#asked = asked;
  }

  /** A row after those asked for has begun. */
  get isFull(): boolean {
    const after = this.#row - (this.#asked.from + this.#asked.rows);
    return after > 0 || (after === 0 && this.#length > 0);
  }

  add(text: string): void {
    let at = this.#afterReturn && text.startsWith("\n") ? 1 : 0;
    if (text !== "") this.#afterReturn = text.endsWith("\r");
    const ends = /\r\n|\n|\r/g;
    ends.lastIndex = at;
    for (let end = ends.exec(text); end !== null; end = ends.exec(text)) {
      this.#take(text.slice(at, end.index));
      this.#close();
      at = ends.lastIndex;
    }
    this.#take(text.slice(at));
  }

  end(text: string): void {
    this.add(text);
    if (this.#length > 0) this.#close();
  }

  #take(part: string): void {
    if (this.#text.length < LINE_MAX) this.#text += part.slice(0, LINE_MAX - this.#text.length);
    this.#length += part.length;
  }

  #close(): void {
    const { from, rows } = this.#asked;
    if (this.#row >= from && this.#row < from + rows)
      this.taken.push({ row: this.#row, text: this.#text, cut: this.#length - this.#text.length });
    this.#row += 1;
    this.#text = "";
    this.#length = 0;
  }
}

// ── workbooks

async function sheetPage(content: PreviewContent, asked: PreviewRequest, marks: readonly Mark[]): Promise<InputPage> {
  const input = { path: await content.path(), signal: new AbortController().signal };
  try {
    const sheets = await sheetNames(input, {});
    const sheet = asked.sheet ?? marks.find((mark) => mark.sheet !== undefined)?.sheet ?? sheets[0] ?? "";
    const rows: { row: number; cells: string[] }[] = [];
    let isLast = true;
    reading: for await (const chunk of xlsxCells(input, { sheet }))
      for (const cells of chunk) {
        const row = placeOf(cells)?.row ?? 0;
        if (row < asked.from) continue;
        isLast = row < asked.from + asked.rows;
        if (!isLast) break reading;
        rows.push({ row, cells: cells.slice(0, CELLS_MAX).map(cellText) });
      }
    return { kind: "table", sheets, sheet, rows, isLast, marks: marksWithin(marks, asked, sheet) };
  } catch (thrown) {
    if (!isUnreadable(thrown) || !(thrown instanceof Error)) throw thrown;
    return { kind: "binary", reason: thrown.message, isLast: true, marks: [] };
  }
}

function cellText(value: unknown): string {
  const text =
    value === null || value === undefined
      ? ""
      : typeof value === "object"
        ? ((value as { readonly local?: string }).local ?? "")
        : String(value);
  return text.length > CELL_MAX ? `${text.slice(0, CELL_MAX)}…` : text;
}
