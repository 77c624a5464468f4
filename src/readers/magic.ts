/** Formats that are known by their first bytes, and are no text whatever they are named. */
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
    what: "a document of an older office program (.xls, .doc)",
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

/** Says what the file is instead of that its bytes are no text. */
export function refuseOtherFormats(first: Buffer): void {
  const found = knownFormat(first);
  if (found !== undefined)
    throw new UnreadableError(`the file is no text but ${found.what}`, { hint: found.hint });
}

/** What a file is by its first bytes, in words; undefined when it may be text. */
export function knownFormat(first: Buffer): { readonly what: string; readonly hint: string } | undefined {
  return FORMATS.find(({ begin }) => begin.every((byte, at) => first[at] === byte));
}
