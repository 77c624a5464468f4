/**
 * What a workbook says about its sheets, by the readers of exceljs for its small parts: names, relations, number formats. Rows and shared
 * texts are followed here: exceljs keeps only the last run of a rich text in a cell, adds how a text is pronounced to it, takes the year
 * of a date in ISO 8601 for its number, and holds every text as an object.
 */
import { Readable } from "node:stream";
import { PART_BYTES_MAX, SHARED_PART_BYTES_MAX } from "./limits.ts";
import { UnreadableError } from "./row-error.ts";
import { isDateFormat } from "./serial-date.ts";
import type { WorkbookArchive } from "./workbook-archive.ts";
import { damagedPart, plainXml, SAVE_AGAIN } from "./xlsx-part.ts";
import type { SheetBook } from "./xlsx-sheet.ts";
import { SharedStrings } from "./xlsx-strings.ts";

/** Steps of the reader, which its types leave out. */
interface BookReader {
  readonly workbookRels?: readonly Relation[];
  readonly model?: { readonly sheets?: readonly BookSheet[] };
  readonly properties?: { readonly model?: { readonly date1904?: boolean } };
  readonly styles: { getStyleModel(id: number): { readonly numFmt?: string } | null | undefined };
  _parseRels(part: Readable): Promise<void>;
  _parseWorkbook(part: Readable): Promise<void>;
  _parseStyles(part: Readable): Promise<void>;
}

interface Relation {
  readonly Id: string;
  readonly Type?: string;
  readonly Target: string;
}

export interface BookSheet {
  readonly name: string;
  readonly rId: string;
  /** `hidden` and `veryHidden` sheets are seen by no one. */
  readonly state?: string | undefined;
}

export interface Book {
  readonly sheets: readonly BookSheet[];
  /** Name of the part of a sheet. */
  partOf(sheet: BookSheet): string | undefined;
  /** Reads what the cells of any sheet need. */
  forCells(): Promise<SheetBook>;
}

const WORKBOOK = "xl/workbook.xml";

export async function openBook(archive: WorkbookArchive): Promise<Book> {
  const { default: exceljs } = await import("exceljs");
  const book = new exceljs.stream.xlsx.WorkbookReader(Readable.from([]), {
    worksheets: "emit",
    sharedStrings: "cache",
    hyperlinks: "ignore",
    styles: "cache",
    entries: "ignore",
  }) as unknown as BookReader;
  const streamOf = (name: string) => Readable.from(plainXml(name, archive.text(name, PART_BYTES_MAX)));
  if (!archive.has(WORKBOOK))
    throw new UnreadableError("the file is an archive, but no workbook (.xlsx)", { hint: SAVE_AGAIN });
  await parsing(WORKBOOK, async () => {
    await book._parseRels(streamOf("xl/_rels/workbook.xml.rels"));
    await book._parseWorkbook(streamOf(WORKBOOK));
  });
  const relations = book.workbookRels ?? [];
  const partByType = (type: string) =>
    partName(relations.find(({ Type }) => Type?.endsWith(`/${type}`))?.Target ?? `${type}.xml`);
  return {
    sheets: book.model?.sheets ?? [],
    partOf(sheet) {
      const relation = relations.find(({ Id }) => Id === sheet.rId);
      return relation === undefined ? undefined : partName(relation.Target);
    },
    async forCells() {
      const styles = partByType("styles");
      if (archive.has(styles)) await parsing(styles, () => book._parseStyles(streamOf(styles)));
      const strings = partByType("sharedStrings");
      return {
        strings: await SharedStrings.read(strings, archive.text(strings, SHARED_PART_BYTES_MAX)),
        is1904: book.properties?.model?.date1904 === true,
        dateFormat: archive.has(styles) ? rememberFormats(book) : () => undefined,
      };
    },
  };
}

async function parsing(part: string, parse: () => Promise<void>): Promise<void> {
  try {
    await parse();
  } catch (cause) {
    if (!(cause instanceof Error) || cause instanceof UnreadableError) throw cause;
    throw damagedPart(part, cause.message);
  }
}

function rememberFormats({ styles }: BookReader): SheetBook["dateFormat"] {
  const formats = new Map<number, string | undefined>();
  return (style) => {
    if (!formats.has(style)) {
      const format = styles.getStyleModel(style)?.numFmt;
      formats.set(style, isDateFormat(format) ? format : undefined);
    }
    return formats.get(style);
  };
}

/** Targets are relative to `xl/`, or absolute. */
function partName(target: string): string {
  return target.startsWith("/") ? target.slice(1) : `xl/${target}`;
}
