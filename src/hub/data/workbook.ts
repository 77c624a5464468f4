/** A table as a workbook: its values, and a sheet that says what they are. Written as it is read, sheet by sheet. */
import { once } from "node:events";
import { PassThrough, type Writable } from "node:stream";
import exceljs from "exceljs";
import type { FastifyReply } from "fastify";
import type { Logger } from "#core/log.ts";
import { headOf, type NamedColumn } from "./columns.ts";
import { type TableRow, valueColumn } from "./table.ts";

const XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
/** Of a sheet, its head included; a longer table continues in another sheet. */
const SHEET_ROWS = 1_048_576;
const DATE_FORMAT = "yyyy-mm-dd hh:mm:ss";
const DATE_WIDTH = 20;
const VALUE_WIDTH = 24;

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

export function sendWorkbook(reply: FastifyReply, parts: WorkbookParts): FastifyReply {
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
