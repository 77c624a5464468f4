/**
 * The readers of the file that is mapped, as mappers see them. Each call streams the file again from its
 * start, in chunks, with bounded memory. Rows, items and elements remember their place, so that `reject(row,
 * …)` and errors can name it.
 *
 * Text is decoded by its byte order mark, otherwise by the declared encoding. Bytes that are not valid in the
 * encoding raise a `FileError` with line and column: a reader never replaces them silently.
 */

/**
 * A row as text cells by column name. Rows remember their place: `reject(row, …)` and `emit({ …, at: row })` find it.
 */
export interface RowPlace {
  readonly sheet?: string | undefined;
  /** Line of a text file or row of a sheet, from 1 as an editor or a spreadsheet shows it. */
  readonly row: number;
}

/**
 * Reading a column that the header lacks throws a `FileError` with the nearest name: a renamed column is never a
 * missing value. `"name" in row` asks for a column that may be missing. `Names` are for the compiler: those that the
 * mapper reads.
 */
export type TextRow<Names extends string = string> = Readonly<Record<Names, string>>;
/** A row as an array of text cells. */
export type TextCells = readonly string[];

/**
 * A cell of a workbook; for a formula, its result. An error such as `#N/A` is text, and so is `#NOT
 * CALCULATED` for a formula without a result. Empty cells and empty texts are null.
 */
export type CellValue = string | number | boolean | SerialDate | null;
/** A date of a workbook: wall time without a zone, as the spreadsheet shows it. A time alone is on 1899-12-30. */
export interface SerialDate {
  readonly kind: "date";
  /** `yyyy-MM-ddTHH:mm:ss[.SSS]`, without a zone. */
  readonly local: string;
}
export type SheetRow<Names extends string = string> = Readonly<Record<Names, CellValue>>;
export type SheetCells = readonly CellValue[];

export interface TextOptions {
  /**
   * Declared encoding when there is no byte order mark: `utf-8` (default), `utf-16le`, `windows-1252`, `iso-8859-1`, …
   */
  readonly encoding?: string | undefined;
  /** A file that is an HTML page, as servers answer in the place of a file: refuse it (default), or read it. */
  readonly html?: "reject" | "read" | undefined;
}

export interface LineEndOptions {
  /** `required`: a file whose last line has no line end is refused, since it may have been cut off. Default `any`. */
  readonly lineEnd?: "any" | "required" | undefined;
}

/** How the names of columns come from the header, for readers that hand out rows by name. Names are trimmed. */
export interface HeaderOptions {
  /**
   * Rows that the header spans. Default 1. With several rows, the cells of a column are joined by a blank,
   * from above: an empty cell of an upper row takes the cell to its left, as merged cells are written, and a
   * cell that repeats the one above it is left out.
   */
  readonly headerRows?: number | undefined;
  /** Two columns of the same name: refuse the file (default), or name the second `name (2)`. */
  readonly duplicates?: "reject" | "number" | undefined;
  /**
   * A column without a name that has content: refuse the file (default), or leave the column out. An empty
   * column is always left out.
   */
  readonly unnamed?: "reject" | "skip" | undefined;
}

export interface CsvOptions extends TextOptions, HeaderOptions, LineEndOptions {
  /** One character, or several characters. Default `,`. */
  readonly delimiter?: string | undefined;
  /** Default `"`; `null` for files without quoting. */
  readonly quote?: string | null | undefined;
  /** The character that makes a quote part of a quoted cell. Default: the quote itself. */
  readonly escape?: string | undefined;
  /** Whether blanks around cells are left out, except inside quotes. Default false. */
  readonly trim?: boolean | undefined;
  /** Lines to skip before the header, whatever quotes they contain. */
  readonly skipLines?: number | undefined;
  /**
   * Returns true for the line at which the header begins, or the first row when there is no header; the lines
   * before it are skipped. It is called for at most 1000 lines.
   */
  readonly headerAt?: ((cells: TextCells) => boolean) | undefined;
  /** Lines that begin with this are skipped. Those behind the first row are counted as a finding of the file. */
  readonly comment?: string | undefined;
  /**
   * Called with each line that `comment` skips, instead of the finding; before the rows around it are handed out.
   * `isBehindRow`: a row or the header came before.
   */
  readonly onComment?: ((line: Line, isBehindRow: boolean) => void) | undefined;
  /**
   * Rows shorter or longer than the header: refuse the row (`reject`, the default), or fill short rows with empty
   * cells and permit surplus empty cells (`pad`).
   */
  readonly ragged?: "reject" | "pad" | undefined;
  /** Filled cells beyond those of the header: refuse the row (default), or leave them out. */
  readonly extraCells?: "reject" | "ignore" | undefined;
  /** Longest row, in bytes. Default 8 Mi. */
  readonly rowBytesMax?: number | undefined;
}

export interface SheetOptions extends HeaderOptions {
  /** Name of the sheet, or its number from 1 among those that are not hidden. Default: the first of these. */
  readonly sheet?: string | number | undefined;
  /** 1-based row with the names of the columns; rows before it are left out. Default 1. */
  readonly headerRow?: number | undefined;
}

export interface LineOptions extends TextOptions, LineEndOptions {
  /** Longest line, in characters. Default 8 Mi. */
  readonly lineCharactersMax?: number | undefined;
}

export interface Line {
  /** From 1. */
  readonly row: number;
  readonly text: string;
  /** The last line of the file, where it has no line end. */
  readonly isOpen?: true;
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
  /**
   * A line that ends before a column gives an empty cell there, and a finding. Where it is the last of the file,
   * without a line end, it is refused: the file was cut off.
   */
  readonly columns: readonly FixedColumn[];
  /** Returns true for lines that are no rows, such as those after the data. `at` is the number of the line. */
  readonly leaveOut?: ((line: string, row: TextRow, at: number) => boolean) | undefined;
  /** Lines to skip at the start. Blank lines are always left out. */
  readonly skipLines?: number | undefined;
  /** Lines that begin with this are left out. Those behind the first row are counted as a finding of the file. */
  readonly comment?: string | undefined;
  /** As of `CsvOptions`. */
  readonly onComment?: CsvOptions["onComment"];
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
   * `$["a.b"].*`. With several paths, all are followed in the order of the file; an item is not searched for
   * further items.
   */
  readonly path: string | readonly string[];
}

/**
 * A value of a JSON document. Whole numbers that a double cannot represent exactly, such as long identifiers,
 * are `bigint`; other numbers are the nearest double, and a number beyond the range of doubles is an error. A
 * key that occurs twice in one object is an error, and so is any text after the end of the document.
 */
export interface JsonItem {
  readonly value: unknown;
  /** Path of the item, such as `$.data[17]`. */
  readonly path: string;
  /** Line at which it begins, from 1. */
  readonly row: number;
}

export interface XmlOptions extends TextOptions {
  /**
   * Local names of the elements to return, whatever their namespace. Only their subtrees are held in memory.
   * An element inside a returned element is not returned separately.
   */
  readonly elements: string | readonly string[];
  /**
   * Largest element that is returned, and largest single tag or text anywhere, in characters. Default 16 Mi.
   */
  readonly elementCharactersMax?: number | undefined;
  /** Deepest nesting of the whole document. Default 100. */
  readonly depthMax?: number | undefined;
}

/** An element with its attributes, text and children. */
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
  /** Local names of the elements around it, from the root; present on returned elements only. */
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
  csv<Names extends string = string>(
    options: CsvOptions & { readonly columns: true },
  ): AsyncIterable<readonly TextRow<Names>[]>;
  /** `columns` names the columns of a file without a header: each row has a cell for each of them. */
  csv<const Names extends string>(
    options: CsvOptions & { readonly columns: readonly Names[] },
  ): AsyncIterable<readonly TextRow<Names>[]>;
  csv(options?: CsvOptions & { readonly columns?: false }): AsyncIterable<readonly TextCells[]>;
  lines(options?: LineOptions): AsyncIterable<readonly Line[]>;
  /** Columns at fixed places of a line, as text by name. */
  fixedWidth<Names extends string = string>(options: FixedWidthOptions): AsyncIterable<readonly TextRow<Names>[]>;
  xlsx<Names extends string = string>(
    options: SheetOptions & { readonly columns: true },
  ): AsyncIterable<readonly SheetRow<Names>[]>;
  xlsx(options?: SheetOptions & { readonly columns?: false }): AsyncIterable<readonly SheetCells[]>;
  /** Names of the sheets of a workbook, in their order; hidden ones only when asked for. */
  sheets(options?: { readonly hidden?: boolean | undefined }): Promise<readonly string[]>;
  /** Items of a JSON document by their path. */
  json(options: JsonOptions): AsyncIterable<readonly JsonItem[]>;
  /** One JSON value per line. A line that is not JSON is a refused row; blank lines are left out. */
  ndjson(options?: JsonLimits): AsyncIterable<readonly JsonItem[]>;
  /**
   * Elements of an XML document, with namespaces. The encoding follows from the byte order mark, otherwise
   * from `encoding`, otherwise from the XML declaration. External entities are never read, and a DOCTYPE that
   * declares entities is refused.
   */
  xml(options: XmlOptions): AsyncIterable<readonly XmlElement[]>;
  /** The whole text; for files of up to `bytesMax` (default 64 Mi of UTF-8). */
  text(options?: TextOptions & { readonly bytesMax?: number | undefined }): Promise<string>;
  bytes(): AsyncIterable<Uint8Array>;
}
