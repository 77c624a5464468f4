/**
 * The readers of the file that is mapped, as mappers see them. Each call streams the file again from its start, in
 * chunks, with bounded memory; rows, items and elements remember their place, so that `reject(row, …)` and errors can
 * name it.
 *
 * Text is decoded by its byte order mark, else by the declared encoding. Bytes that are not of the encoding are a
 * `FileError` with line and column: nothing is replaced in silence.
 */

/**
 * A row as text cells by column name. Rows remember their place: `reject(row, …)` and `emit({ …, at: row })` find it.
 */
export interface RowPlace {
  readonly sheet?: string | undefined;
  /** Line of a text file or row of a sheet, from 1 as an editor or a spreadsheet shows it. */
  readonly row: number;
}

export type TextRow = Readonly<Record<string, string>>;
/** A row as an array of text cells. */
export type TextCells = readonly string[];

/**
 * A cell of a workbook; of a formula, its result. An error such as `#N/A` is text, and so is `#NOT CALCULATED` for a
 * formula without a result. Empty cells and empty texts are null.
 */
export type CellValue = string | number | boolean | SerialDate | null;
/** A date of a workbook: wall time without a zone, as the spreadsheet shows it. A time alone is on 1899-12-30. */
export interface SerialDate {
  readonly kind: "date";
  /** `yyyy-MM-ddTHH:mm:ss[.SSS]`, without a zone. */
  readonly local: string;
}
export type SheetRow = Readonly<Record<string, CellValue>>;
export type SheetCells = readonly CellValue[];

export interface TextOptions {
  /**
   * Declared encoding when there is no byte order mark: `utf-8` (default), `utf-16le`, `windows-1252`, `iso-8859-1`, …
   */
  readonly encoding?: string | undefined;
}

/** How the names of columns come from the header, for readers that hand out rows by name. Names are trimmed. */
export interface HeaderOptions {
  /**
   * Rows that the header spans. Default 1. Of several, a column's cells are joined by a blank, from above: an empty
   * cell of an upper row takes the cell to its left, as merged cells are written, and a cell that repeats the one above
   * it is left out.
   */
  readonly headerRows?: number | undefined;
  /** Two columns of the same name: refuse the file (default), or name the second `name (2)`. */
  readonly duplicates?: "reject" | "number" | undefined;
  /**
   * A column without a name that holds something: refuse the file (default), or leave the column out. An empty one is
   * left out.
   */
  readonly unnamed?: "reject" | "skip" | undefined;
}

export interface CsvOptions extends TextOptions, HeaderOptions {
  /** One character, or several characters. Default `,`. */
  readonly delimiter?: string | undefined;
  /** Default `"`; `null` for files without quoting. */
  readonly quote?: string | null | undefined;
  /** What makes a quote inside a quoted cell a part of it. Default the quote itself. */
  readonly escape?: string | undefined;
  /** Whether blanks around cells are left out, those inside quotes excepted. Default false. */
  readonly trim?: boolean | undefined;
  /** Lines to skip before the header, whatever quotes they hold. */
  readonly skipLines?: number | undefined;
  /**
   * Tells the line at which the header, or else the first row, begins; the lines before it are skipped. Looked for in
   * 1000 lines.
   */
  readonly headerAt?: ((cells: TextCells) => boolean) | undefined;
  /** Lines that begin with this are skipped. */
  readonly comment?: string | undefined;
  /**
   * Rows shorter or longer than the header: refuse the row (`reject`, the default), fill short ones with empty cells
   * and refuse longer ones (`pad`; empty cells too many are no harm), or fill and cut (`allow`).
   */
  readonly ragged?: "reject" | "pad" | "allow" | undefined;
  /** Longest row, in bytes. Default 8 Mi. */
  readonly rowBytesMax?: number | undefined;
}

export interface SheetOptions extends HeaderOptions {
  /** Name of the sheet, or its number from 1 among those that are not hidden. Default: the first of these. */
  readonly sheet?: string | number | undefined;
  /** 1-based row that holds the names of the columns; rows before it are left out. Default 1. */
  readonly headerRow?: number | undefined;
}

export interface LineOptions extends TextOptions {
  /** Longest line, in characters. Default 8 Mi. */
  readonly lineCharactersMax?: number | undefined;
}

export interface Line {
  /** From 1. */
  readonly row: number;
  readonly text: string;
}

export interface FixedColumn {
  readonly name: string;
  /** Of the first character, from 1. */
  readonly start: number;
  /** Characters. */
  readonly width: number;
  /** Whether blanks around the cell are left out. Default true. */
  readonly trim?: boolean | undefined;
}

export interface FixedWidthOptions extends LineOptions {
  /** A line that ends before a column gives an empty cell there. */
  readonly columns: readonly FixedColumn[];
  /** Lines to skip at the start. Blank lines are left out anyway. */
  readonly skipLines?: number | undefined;
  /** Lines that begin with this are left out. */
  readonly comment?: string | undefined;
}

export interface JsonLimits extends TextOptions {
  /** Largest item, in bytes of UTF-8, and largest text or number anywhere. Default 16 Mi. */
  readonly itemBytesMax?: number | undefined;
  /** Deepest nesting of the whole document. Default 100. */
  readonly depthMax?: number | undefined;
}

export interface JsonOptions extends JsonLimits {
  /**
   * Where the items are, from the root `$`: `$` (the whole document), `$.data.*`, `$.meters[*].readings[*]`,
   * `$["a.b"].*`. Of several paths, all are followed in the order of the file; within an item nothing is looked for
   * again.
   */
  readonly path: string | readonly string[];
}

/**
 * A value of a JSON document. Whole numbers that a double does not keep digit by digit, such as long identifiers, come
 * as `bigint`; other numbers as the nearest double, and what is beyond the range of doubles is an error. A key that
 * occurs twice in one object is an error, and so is anything after the end of the document.
 */
export interface JsonItem {
  readonly value: unknown;
  /** Where it stands, such as `$.data[17]`. */
  readonly path: string;
  /** Line at which it begins, from 1. */
  readonly row: number;
}

export interface XmlOptions extends TextOptions {
  /**
   * Local names of the elements to hand out, whatever their namespace. Only their subtrees are held in memory. Within
   * an element that is handed out, none is handed out again.
   */
  readonly elements: string | readonly string[];
  /** Largest element that is handed out, and largest single tag or text anywhere, in characters. Default 16 Mi. */
  readonly elementCharactersMax?: number | undefined;
  /** Deepest nesting of the whole document. Default 100. */
  readonly depthMax?: number | undefined;
}

/** An element with all that it holds. */
export interface XmlElement {
  /** Without prefix. */
  readonly name: string;
  /** URI, or empty. */
  readonly namespace: string;
  /** By the name as written, with its prefix if it has one. Declarations of namespaces are left out. */
  readonly attributes: Readonly<Record<string, string>>;
  /** The element's own text, CDATA included, without that of its children; trimmed. */
  readonly text: string;
  readonly children: readonly XmlElement[];
  /** Line at which it begins, from 1. */
  readonly row: number;
  /** Local names of the elements around it, from the root; of elements that were handed out. */
  readonly ancestors?: readonly string[] | undefined;
  /** The first child of this local name. */
  child(name: string): XmlElement | undefined;
  /** All children of this local name, in their order. */
  all(name: string): readonly XmlElement[];
  /** Text of the first child of this local name. */
  textOf(name: string): string | undefined;
}

/** The file that is mapped. Each reader streams it from the start, in chunks, with bounded memory. */
export interface MapperFile {
  /** Base name, as triggers match it. */
  readonly name: string;
  /** Path at the drop. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  csv(options: CsvOptions & { readonly columns: true }): AsyncIterable<readonly TextRow[]>;
  csv(options?: CsvOptions & { readonly columns?: false }): AsyncIterable<readonly TextCells[]>;
  lines(options?: LineOptions): AsyncIterable<readonly Line[]>;
  /** Columns at fixed places of a line, as text by name. */
  fixedWidth(options: FixedWidthOptions): AsyncIterable<readonly TextRow[]>;
  xlsx(options: SheetOptions & { readonly columns: true }): AsyncIterable<readonly SheetRow[]>;
  xlsx(options?: SheetOptions & { readonly columns?: false }): AsyncIterable<readonly SheetCells[]>;
  /** Names of the sheets of a workbook, in their order; hidden ones only when asked for. */
  sheets(options?: { readonly hidden?: boolean | undefined }): Promise<readonly string[]>;
  /** Items of a JSON document by their path. */
  json(options: JsonOptions): AsyncIterable<readonly JsonItem[]>;
  /** A JSON value a line. A line that is none is a refused row; blank lines are left out. */
  ndjson(options?: JsonLimits): AsyncIterable<readonly JsonItem[]>;
  /**
   * Elements of an XML document, with namespaces. Encoding by byte order mark, else as declared here, else by the XML
   * declaration. No external entities and no entities of the document's own: a DOCTYPE that declares some is refused.
   */
  xml(options: XmlOptions): AsyncIterable<readonly XmlElement[]>;
  /** The whole text; for files of up to `bytesMax` (default 64 Mi of UTF-8). */
  text(options?: TextOptions & { readonly bytesMax?: number | undefined }): Promise<string>;
  bytes(): AsyncIterable<Uint8Array>;
}
