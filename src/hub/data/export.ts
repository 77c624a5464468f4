/** GET {base_url}/data/export: values as a file, streamed (an extension). */

import { once } from "node:events";
import { PassThrough, Readable, type Writable } from "node:stream";
import exceljs from "exceljs";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "#core/log.ts";
import { invalidRequest } from "#wire/http-problem.ts";
import { AGGREGATE_FACTS, type Aggregated, aggregateUnit, type DataRow, exportQuery, UNITS } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import { warn } from "../http/warnings.ts";
import type { VariableFacts } from "../store/records.ts";
import type { PointStore } from "../store/store.ts";
import { conversionOf, conversionWarning } from "./conversion.ts";
import { type DataRequest, readDataRequest, zonedRanges } from "./query.ts";
import { readRows } from "./rows.ts";
import { arrayTexts } from "./texts.ts";

/** Rows of one piece; memory holds this, and a chunk of each variable. */
const PIECE_ROWS = 1_000;

const XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
/** Of a sheet, its head included; a longer table continues in another sheet. */
const SHEET_ROWS = 1_048_576;
const DATE_FORMAT = "yyyy-mm-dd hh:mm:ss";
const DATE_WIDTH = 20;
const VALUE_WIDTH = 24;

/** Limit on the variables of one file. */
const VARIABLES_MAX = 100;

const OPTIONS = described({
  access: "read",
  tag: "Data",
  summary: "Values as a file: CSV, a workbook, or JSON",
  description:
    "An extension of Headgate. CSV and workbooks have a row for each date and a column for each of at most 100 " +
    "variables and each aggregate; the workbook has a second sheet that says what it holds. In a browser that has " +
    "signed in a link is enough.",
  query: exportQuery,
  answerType: "text/csv",
  example: { query: { VariableIds: [1], Format: "csv", From: "2026-03-01", To: "2026-04-01" } },
});

export async function exportRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  app.get("/data/export", OPTIONS, (request, reply) => exportData(context, request, reply));
}

async function exportData(context: HubContext, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { store } = context;
  const caller = callerOf(request);
  const { Format: format, ...query } = parsed(exportQuery, request.query);
  if (query.AllVersions === true && format !== "json")
    throw invalidRequest("AllVersions goes with Format=json: a table has one value for each date");
  const level = { PagingOrder: "ASC", ...(format === "json" ? {} : { DisplayLevel: "ValueVariableDate" }) };
  const asked = readDataRequest({ ...query, ...level }, caller);
  const variables = await store.points.select(asked.accountId, asked.filter);
  if (format !== "json" && variables.length > VARIABLES_MAX)
    throw invalidRequest(`a table has ${VARIABLES_MAX} variables at most, and these are ${variables.length}`);
  variables.forEach(zonedRanges(asked, asked.page));
  const warning = conversionWarning(variables, asked.targetUnits);
  if (warning !== null) warn(reply, warning);
  void reply.header("content-disposition", `attachment; filename="${fileName(query)}.${format}"`);
  if (format === "json") {
    void reply.type("application/json; charset=utf-8");
    return reply.send(Readable.from(arrayTexts(store.points, asked, variables)));
  }
  const columns = await namedColumns(context, asked, variables);
  const rows = tableRows(store.points, asked, variables);
  if (format === "xlsx") {
    const exported = { at: context.clock.now().toString(), by: caller.user.username, query };
    return sendWorkbook(reply, { columns, rows, exported, log: context.log });
  }
  void reply.type("text/csv; charset=utf-8; header=present");
  return reply.send(Readable.from(csvTexts(columns, rows)));
}

function fileName({ From: from, To: to }: { readonly From?: string | undefined; readonly To?: string | undefined }) {
  const part = (text: string | undefined) => (text ?? "").replaceAll(/[^0-9A-Za-z-]/g, "").slice(0, 20);
  return ["values", part(from), part(to)].filter((text) => text !== "").join("_");
}

/** A table as CSV (RFC 4180): comma, point, dates with their offset. */
async function* csvTexts(
  columns: readonly NamedColumn[],
  rows: AsyncIterable<readonly TableRow[]>,
): AsyncGenerator<string> {
  yield `${["date", ...columns.map(headOf)].map(cell).join(",")}\r\n`;
  for await (const piece of rows) {
    let text = "";
    for (const { date, values } of piece) text += `${date},${values.map((value) => value ?? "").join(",")}\r\n`;
    yield text;
  }
}

/** A spreadsheet takes a text that begins like a formula for one; a mark before it makes it a text. */
function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

interface WorkbookParts {
  readonly columns: readonly NamedColumn[];
  readonly rows: AsyncIterable<readonly TableRow[]>;
  readonly exported: {
    readonly at: string;
    readonly by: string;
    /** Parameters of the request. */
    readonly query: Readonly<Record<string, unknown>>;
  };
  readonly log: Logger;
}

/** A table as a workbook: its values, and a sheet that says what they are. Written as it is read, sheet by sheet. */
function sendWorkbook(reply: FastifyReply, parts: WorkbookParts): FastifyReply {
  const out = new PassThrough();
  void reply.type(XLSX);
  // A fault after the first bytes can only cut the answer short, which the client sees.
  write(out, parts).catch((thrown: unknown) => {
    if (!out.destroyed) parts.log.error({ err: thrown }, "a workbook could not be written");
    out.destroy(thrown instanceof Error ? thrown : new Error(String(thrown)));
  });
  return reply.send(out);
}

class ReaderLeft extends Error {}

async function write(out: PassThrough, { columns, rows, exported }: WorkbookParts): Promise<void> {
  const workbook = new exceljs.stream.xlsx.WorkbookWriter({ stream: out, useStyles: true, useSharedStrings: false });
  let sheet: exceljs.Worksheet | null = null;
  let sheets = 0;
  let filled = 0;
  let total = 0;
  const open = (): exceljs.Worksheet => {
    sheets += 1;
    const added = workbook.addWorksheet(sheets === 1 ? "Values" : `Values ${sheets}`, {
      views: [{ state: "frozen", ySplit: 1, xSplit: 1 }],
    });
    added.columns = [
      { header: "Local time", width: DATE_WIDTH, style: { numFmt: DATE_FORMAT } },
      { header: "UTC offset", width: 12 },
      ...columns.map((column) => ({ header: headOf(column), width: VALUE_WIDTH })),
    ];
    filled = 1;
    return added;
  };
  sheet = open();
  for await (const piece of rows) {
    for (const { date, values } of piece) {
      if (filled === SHEET_ROWS) {
        sheet.commit();
        sheet = open();
      }
      const [local, offset] = [date.slice(0, 19), date.slice(19)];
      sheet.addRow([new Date(`${local}Z`), offset, ...values]).commit();
      filled += 1;
      total += 1;
    }
    await drained(out, sheet);
  }
  sheet.commit();
  describe(workbook.addWorksheet("About"), columns, { ...exported, total });
  await workbook.commit();
}

/** The library compresses in the background, and would keep in memory what a slow reader has not taken. */
async function drained(out: PassThrough, sheet: exceljs.Worksheet): Promise<void> {
  const { stream } = sheet as unknown as { readonly stream: { readonly pipes: readonly Writable[] } };
  for (const one of [out, ...stream.pipes])
    while (one.writableNeedDrain && !out.destroyed) await Promise.race([once(one, "drain"), once(out, "close")]);
  if (out.destroyed) throw new ReaderLeft("the reader left before the end");
  await new Promise((resolve) => setImmediate(resolve));
}

function describe(
  sheet: exceljs.Worksheet,
  columns: readonly NamedColumn[],
  { at, by, query, total }: WorkbookParts["exported"] & { readonly total: number },
): void {
  sheet.columns = [
    { width: 22 },
    { width: 40 },
    { width: 30 },
    { width: 30 },
    { width: 20 },
    { width: 12 },
    { width: 16 },
  ];
  const add = (...cells: readonly (string | number)[]) => sheet.addRow([...cells]).commit();
  add("Exported", at);
  add("By", by);
  add("Rows", total);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) add(name, [value].flat().join(", "));
  add();
  add("Variable id", "Variable", "Source", "Site", "Serial number", "Unit", "Value");
  for (const { variableId, variable, source, site, serialNumber, unit, aggregate } of columns)
    add(variableId, variable, source, site, serialNumber, unit, valueColumn(aggregate));
  sheet.commit();
}

// The columns of an exported table, and their words.

/** A column of the table. */
interface NamedColumn {
  readonly variableId: number;
  readonly variable: string;
  readonly source: string;
  readonly site: string;
  readonly serialNumber: string;
  /** The symbol of the column's unit: a count has none. */
  readonly unit: string;
  /** Null: values as stored. */
  readonly aggregate: Aggregated | null;
}

async function namedColumns(
  { store }: HubContext,
  request: DataRequest,
  variables: readonly VariableFacts[],
): Promise<readonly NamedColumn[]> {
  const whole = { offset: 0, limit: null };
  const { accountId } = request;
  const ids = variables.map(({ id }) => id);
  const sourceIds = [...new Set(variables.map(({ sourceId }) => sourceId))];
  const [named, sources] = await Promise.all([
    store.structure.variables(accountId, { ids }, whole),
    store.structure.sources(accountId, { ids: sourceIds }, whole),
  ]);
  const names = new Map(named.rows.map(({ id, name }) => [id, name]));
  const places = new Map(sources.rows.map((source) => [source.id, source]));
  return variables.flatMap((variable) => {
    const { unitId } = conversionOf(variable, request.targetUnits);
    const source = places.get(variable.sourceId);
    const facts = {
      variableId: variable.id,
      variable: names.get(variable.id) ?? "",
      source: source?.name ?? "",
      site: source?.siteName ?? "",
      serialNumber: source?.serialNumber ?? "",
    };
    const symbol = UNITS.find(({ id }) => id === unitId)?.symbol ?? "";
    return shownColumns(request).map((aggregate) => ({ ...facts, aggregate, unit: aggregateUnit(aggregate, symbol) }));
  });
}

/** `Site › Meter › Energy [kWh] sum` */
function headOf({ site, source, variable, unit, aggregate }: NamedColumn): string {
  const path = [site, source, variable].filter((text) => text !== "").join(" › ");
  const words = aggregate === null ? "" : AGGREGATE_FACTS[aggregate].words;
  return [path, unit === "" ? "" : `[${unit}]`, words].filter((text) => text !== "").join(" ");
}

// Rows of /data side by side: a row for each date, a column for each variable and aggregate.

type ValueColumn = keyof DataRow & `${string}Value`;

interface TableRow {
  /** With the offset of its zone. */
  readonly date: string;
  /** By variable, then by column; null where the variable has no value. */
  readonly values: readonly (number | null)[];
}

/** The columns of each variable, in their order; null: values as stored. */
function shownColumns({ granularity, aggregates }: DataRequest): readonly (Aggregated | null)[] {
  return granularity === "Raw" ? [null] : aggregates;
}

function valueColumn(aggregate: Aggregated | null): ValueColumn {
  return aggregate === null ? "rawValue" : AGGREGATE_FACTS[aggregate].column;
}

interface Cursor {
  readonly chunks: AsyncIterator<readonly DataRow[]>;
  chunk: readonly DataRow[];
  at: number;
  /** Of the next row; infinite after the last. */
  ms: number;
}

/** In order of date; equal moments are one row. */
async function* tableRows(
  points: PointStore,
  request: DataRequest,
  variables: readonly VariableFacts[],
): AsyncGenerator<readonly TableRow[]> {
  const columns = shownColumns(request).map(valueColumn);
  const cursors = await Promise.all(
    variables.map(async (variable): Promise<Cursor> => {
      const chunks = readRows(points, request, [variable])[Symbol.asyncIterator]();
      const cursor = { chunks, chunk: [], at: 0, ms: Number.NEGATIVE_INFINITY };
      await advance(cursor);
      return cursor;
    }),
  );
  try {
    yield* piecesOf(cursors, columns);
  } finally {
    // A reader that leaves ends what is read for it.
    await Promise.all(cursors.map(({ chunks }) => chunks.return?.()));
  }
}

async function* piecesOf(
  cursors: readonly Cursor[],
  columns: readonly ValueColumn[],
): AsyncGenerator<readonly TableRow[]> {
  let piece: TableRow[] = [];
  for (;;) {
    const ms = cursors.reduce((least, cursor) => Math.min(least, cursor.ms), Number.POSITIVE_INFINITY);
    if (ms === Number.POSITIVE_INFINITY) break;
    let date = "";
    const values: (number | null)[] = [];
    for (const cursor of cursors) {
      const row = cursor.ms === ms ? cursor.chunk[cursor.at] : undefined;
      for (const column of columns) values.push(row?.[column] ?? null);
      if (row === undefined) continue;
      date = row.date ?? "";
      cursor.at += 1;
      if (cursor.at < cursor.chunk.length) cursor.ms = msOf(cursor);
      else await advance(cursor);
    }
    piece.push({ date, values });
    if (piece.length < PIECE_ROWS) continue;
    yield piece;
    piece = [];
  }
  if (piece.length > 0) yield piece;
}

async function advance(cursor: Cursor): Promise<void> {
  for (;;) {
    const { done, value } = await cursor.chunks.next();
    if (done === true) {
      cursor.ms = Number.POSITIVE_INFINITY;
      return;
    }
    if (value.length === 0) continue;
    cursor.chunk = value;
    cursor.at = 0;
    cursor.ms = msOf(cursor);
    return;
  }
}

function msOf({ chunk, at }: Cursor): number {
  return Date.parse(chunk[at]?.date ?? "");
}
