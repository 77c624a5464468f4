/**
 * The largest permitted sizes of parts of a file, so that memory does not depend on the file. Options of the
 * readers raise and lower some of them.
 */

/** Longest row of a CSV file, in bytes; an opening quote that is never closed would swallow the rest of the file. */
export const ROW_BYTES_MAX = 8 * 1024 * 1024;
/** Lines that are searched for a header. */
export const PREAMBLE_LINES_MAX = 1000;
/** Longest line, in characters. */
export const LINE_CHARACTERS_MAX = 8 * 1024 * 1024;
/** Largest file that is read as one text, in bytes of UTF-8. */
export const TEXT_BYTES_MAX = 64 * 1024 * 1024;
/** Largest item of a JSON document, in bytes of UTF-8. */
export const ITEM_BYTES_MAX = 16 * 1024 * 1024;
/** Values within one item of a JSON document: small values take more memory than bytes. */
export const ITEM_VALUES_MAX = 1_000_000;
/** Keys of one JSON object that are remembered to detect repeated keys. */
export const KEYS_MAX = 1_000_000;
/** Largest element of an XML document, in characters. */
export const ELEMENT_CHARACTERS_MAX = 16 * 1024 * 1024;
/** Elements and attributes within one element of an XML document. */
export const ELEMENT_NODES_MAX = 500_000;
/** Nesting of JSON and XML documents. */
export const DEPTH_MAX = 100;
/** Longest tag or text in a part of a workbook, in characters; a cell holds at most 32,767. */
export const TAG_CHARACTERS_MAX = 1024 * 1024;
/** Columns of a sheet, as spreadsheet programs limit them, and cells that one row may write. */
export const COLUMNS_MAX = 16_384;
export const SHEET_ROW_CELLS_MAX = 2 * COLUMNS_MAX;
/** Unpacked size of a sheet. Sheets are streamed, so the limit bounds time, not memory. */
export const SHEET_BYTES_MAX = 8 * 1024 * 1024 * 1024;
/**
 * Unpacked size of the parts of a workbook that are read into memory, and their elements; programs write at
 * most 64,000 formats.
 */
export const PART_BYTES_MAX = 16 * 1024 * 1024;
export const PART_ELEMENTS_MAX = 300_000;
/**
 * Unpacked size of the shared texts of a workbook, with their markup; and of the texts, which are held in
 * memory.
 */
export const SHARED_PART_BYTES_MAX = 1024 * 1024 * 1024;
export const SHARED_TEXT_BYTES_MAX = 128 * 1024 * 1024;
/**
 * An entry of an archive that unpacks to more than `UNPACKED_FREE_BYTES` may be at most so many times its
 * packed size.
 */
export const UNPACK_RATIO_MAX = 200;
export const UNPACKED_FREE_BYTES = 32 * 1024 * 1024;
/** Directory of an archive; a workbook has a few dozen entries. */
export const DIRECTORY_BYTES_MAX = 16 * 1024 * 1024;
