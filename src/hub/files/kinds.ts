/** The kind of a file (CloudItemTypeId) and its media type, by its first bytes and then by its name. */
import { isUtf8 } from "node:buffer";
import type { FileKind } from "#wire/index.ts";

export interface Kind {
  readonly cloudItemTypeId: FileKind;
  readonly contentType: string;
}

type Signature = readonly [offset: number, bytes: string, kind: FileKind, contentType: string];

/** Bytes as Latin-1. */
const SIGNATURES: readonly Signature[] = [
  [0, "%PDF-", "Pdf", "application/pdf"],
  [0, "\x89PNG\r\n\x1a\n", "Image", "image/png"],
  [0, "\xff\xd8\xff", "Image", "image/jpeg"],
  [0, "GIF8", "Image", "image/gif"],
  [0, "II*\0", "Image", "image/tiff"],
  [0, "MM\0*", "Image", "image/tiff"],
  [8, "WEBP", "Image", "image/webp"],
  [4, "ftypavif", "Image", "image/avif"],
  [4, "ftyphei", "Image", "image/heic"],
  [4, "ftypmif1", "Image", "image/heif"],
  [0, "{\\rtf", "Word", "application/rtf"],
  [0, "\x1f\x8b", "Archive", "application/gzip"],
  [0, "7z\xbc\xaf\x27\x1c", "Archive", "application/x-7z-compressed"],
  [0, "Rar!\x1a\x07", "Archive", "application/vnd.rar"],
  [0, "\xfd7zXZ\0", "Archive", "application/x-xz"],
  [0, "\x28\xb5\x2f\xfd", "Archive", "application/zstd"],
  [257, "ustar", "Archive", "application/x-tar"],
];
const BZIP2 = /^BZh[1-9]1AY&SY/;
const BITMAP = /^BM[\s\S]{4}\0\0\0\0/;

/** Before each entry of a ZIP; its name follows at this distance. */
const ENTRY = "PK\x03\x04";
const ENTRY_NAME_AT = 30;

const OPEN_XML = "application/vnd.openxmlformats-officedocument";
const WORD_NAMES = byExtension({
  docx: `${OPEN_XML}.wordprocessingml.document`,
  docm: "application/vnd.ms-word.document.macroEnabled.12",
  dotx: `${OPEN_XML}.wordprocessingml.template`,
  odt: "application/vnd.oasis.opendocument.text",
});
const EXCEL_NAMES = byExtension({
  xlsx: `${OPEN_XML}.spreadsheetml.sheet`,
  xlsm: "application/vnd.ms-excel.sheet.macroEnabled.12",
  xltx: `${OPEN_XML}.spreadsheetml.template`,
  xlsb: "application/vnd.ms-excel.sheet.binary.macroEnabled.12",
  ods: "application/vnd.oasis.opendocument.spreadsheet",
});
/** Documents in the binary formats of Word and Excel share one signature. */
const OLE = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";
/** No text of HTML: a browser would run it with the rights of the hub's own pages. */
const TEXT_NAMES = byExtension({
  csv: "text/csv",
  json: "application/json",
  xml: "application/xml",
});

/** `head`: the first 4 KB. */
export function kindOf(head: Uint8Array, name: string): Kind {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength);
  const text = bytes.toString("latin1");
  const extension = /\.([^./]+)$/.exec(name)?.[1]?.toLowerCase() ?? "";
  const signed = SIGNATURES.find(([offset, signature]) => text.startsWith(signature, offset));
  if (signed !== undefined) return { cloudItemTypeId: signed[2], contentType: signed[3] };
  if (BZIP2.test(text)) return { cloudItemTypeId: "Archive", contentType: "application/x-bzip2" };
  if (BITMAP.test(text)) return { cloudItemTypeId: "Image", contentType: "image/bmp" };
  if (text.startsWith(ENTRY) || text.startsWith("PK\x05\x06")) return packed(text, extension);
  if (text.startsWith(OLE)) return ofOle(extension);
  return textOf(bytes, text, extension) ?? { cloudItemTypeId: "Data", contentType: "application/octet-stream" };
}

function packed(text: string, extension: string): Kind {
  const isOpenXml = text.includes("[Content_Types].xml");
  const holds = (folder: string) => (isOpenXml && text.includes(folder)) || startsEntry(text, folder);
  const isDocument = isOpenXml || text.includes("vnd.oasis.opendocument");
  if (holds("word/") || text.includes("opendocument.text") || (isDocument && WORD_NAMES.has(extension)))
    return { cloudItemTypeId: "Word", contentType: WORD_NAMES.get(extension) ?? WORD_NAMES.get("docx") ?? "" };
  if (holds("xl/") || text.includes("opendocument.spreadsheet") || EXCEL_NAMES.has(extension))
    return { cloudItemTypeId: "Excel", contentType: EXCEL_NAMES.get(extension) ?? EXCEL_NAMES.get("xlsx") ?? "" };
  return { cloudItemTypeId: "Archive", contentType: "application/zip" };
}

/** Whether the name of an entry of the ZIP starts so. */
function startsEntry(text: string, folder: string): boolean {
  for (let at = text.indexOf(ENTRY); at >= 0; at = text.indexOf(ENTRY, at + 1))
    if (text.startsWith(folder, at + ENTRY_NAME_AT)) return true;
  return false;
}

function byExtension(types: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  return new Map(Object.entries(types));
}

function ofOle(extension: string): Kind {
  if (extension.startsWith("xl")) return { cloudItemTypeId: "Excel", contentType: "application/vnd.ms-excel" };
  if (extension.startsWith("do")) return { cloudItemTypeId: "Word", contentType: "application/msword" };
  return { cloudItemTypeId: "Data", contentType: "application/x-ole-storage" };
}

/** Null when the bytes are no text. */
function textOf(bytes: Buffer, text: string, extension: string): Kind | null {
  const isUtf16 = text.startsWith("\xff\xfe") || text.startsWith("\xfe\xff");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: texts hold none of these.
  if (!isUtf16 && /[\x00-\x08\x0e-\x1a\x7f]/.test(text)) return null;
  const svg = extension === "svg" && text.includes("<svg");
  if (svg) return { cloudItemTypeId: "Image", contentType: "image/svg+xml" };
  const type = TEXT_NAMES.get(extension) ?? "text/plain";
  if (!type.startsWith("text/")) return { cloudItemTypeId: "Text", contentType: type };
  const charset = isUtf16 ? "utf-16" : isUtf8(wholeCharacters(bytes)) ? "utf-8" : null;
  return { cloudItemTypeId: "Text", contentType: charset === null ? type : `${type}; charset=${charset}` };
}

/** The head may end in the middle of a character, which has four bytes at most. */
function wholeCharacters(bytes: Buffer): Buffer {
  let end = bytes.length;
  while (end > 0 && bytes.length - end < 3 && ((bytes[end - 1] ?? 0) & 0xc0) === 0x80) end -= 1;
  return end > 0 && (bytes[end - 1] ?? 0) >= 0xc0 ? bytes.subarray(0, end - 1) : bytes;
}
