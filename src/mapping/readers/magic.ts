/** Formats that are recognized by their first bytes and are never text, whatever their names. */
import { UnreadableError } from "./row-error.ts";

const FORMATS: readonly {
  readonly begin: readonly number[];
  readonly what: string;
  readonly hint: string;
}[] = [
  {
    begin: [0x50, 0x4b, 0x03, 0x04],
    what: "a ZIP archive or a workbook (.xlsx)",
    hint: "A workbook needs a mapper for workbooks; the contents of an archive have to be sent unpacked.",
  },
  {
    begin: [0xd0, 0xcf, 0x11, 0xe0],
    what: "an old binary workbook or document (.xls, .doc)",
    hint: "Open it in a spreadsheet program and save it as .xlsx or CSV.",
  },
  { begin: [0x1f, 0x8b], what: "compressed (gzip)", hint: "Send it unpacked." },
  { begin: [0x28, 0xb5, 0x2f, 0xfd], what: "compressed (Zstandard)", hint: "Send it unpacked." },
  { begin: [0x37, 0x7a, 0xbc, 0xaf], what: "a 7z archive", hint: "Send its contents unpacked." },
  {
    begin: [0x25, 0x50, 0x44, 0x46, 0x2d],
    what: "a PDF document",
    hint: "Ask for the data as CSV or workbook.",
  },
  { begin: [0x89, 0x50, 0x4e, 0x47], what: "a picture (PNG)", hint: "Was the right file sent?" },
  { begin: [0xff, 0xd8, 0xff], what: "a picture (JPEG)", hint: "Was the right file sent?" },
];

/** Names the format of the file in the error, rather than report that its bytes are not text. */
export function refuseOtherFormats(first: Buffer): void {
  const found = knownFormat(first);
  if (found !== undefined) throw new UnreadableError(`the file is not text but ${found.what}`, { hint: found.hint });
}

/** Bytes within which a page says what it is. */
export const PAGE_BYTES = 4096;
const PAGE = /^\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--[\s\S]*?-->\s*)*<(?:!doctype\s+html|html)[\s>]/i;

/** Refuses a page that a server sent in the place of the file. */
export function refusePage(first: Buffer): void {
  // A byte order mark may stand before it, and in UTF-16 each letter has a zero.
  const text = first.toString("latin1", 0, PAGE_BYTES).replace(/\0|^(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)/g, "");
  if (!PAGE.test(text)) return;
  const title = /<title[^>]*>\s*([^<]{1,80}?)\s*</i.exec(text)?.[1];
  const named = title === undefined ? "" : ` ("${title}")`;
  throw new UnreadableError(`the file is an HTML page${named}, not a file of data`, {
    hint:
      "Did a server answer with a page, such as one to sign in or of an error? Open the file to read what it says, " +
      "and correct the export or the download. A table that was saved as a web page has to be saved as .xlsx or CSV.",
  });
}

/** Names the format by the first bytes; undefined when the file may be text. */
export function knownFormat(first: Buffer): { readonly what: string; readonly hint: string } | undefined {
  return FORMATS.find(({ begin }) => begin.every((byte, at) => first[at] === byte));
}
