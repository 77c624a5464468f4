/**
 * File names as bytes and as text. A name is bytes at the drop and text in the ledger. Bytes that cannot be text
 * (unknown to the drop's encoding, or a control character) appear in it as an escape, such as `Z\xE4hler.csv`: so
 * that each file has a record, and its bytes are not lost. A file with such a name is recorded and never taken.
 */
import { isUtf8 } from "node:buffer";
import { dirname, sep } from "node:path";
import { basename } from "node:path/posix";

/** `names` of a drop. */
export type NameEncoding = "utf-8" | "latin-1";

/** A path to pass to the operating system: as bytes where it is not UTF-8. */
export type PathOnDisk = string | Buffer;

const ESCAPE = /\\x([0-9A-F]{2})/g;
/**
 * Characters of a valid name that are escaped: control characters except the tab, which servers and tools accept, and
 * any text that would read as an escape.
 */
const TO_ESCAPE = /(?![\t\u0080-\u009F])\p{Cc}|\\(?=x[0-9A-F]{2})/gu;

/**
 * Both forms of a name whose letters and accents are apart, as a Mac writes it, since they look alike: it is matched as
 * NFC composes it, and stays as it is listed. Null for every other name.
 */
export function nameForms(name: string): string | null {
  const composed = name.normalize("NFC");
  if (composed === name) return null;
  const apart = name.replace(/\p{M}/gu, (mark) => `‹U+${(mark.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}›`);
  return `it is listed as ${apart}, and matched as ${composed} (Unicode NFC)`;
}

export function nameOf(bytes: Buffer, encoding: NameEncoding): string {
  if (encoding === "latin-1") return escaped(bytes.toString("latin1"));
  return isUtf8(bytes) ? escaped(bytes.toString("utf8")) : escapedBytes(bytes);
}

/** The bytes of a name or a path; as text where its UTF-8 is the same. */
export function bytesOf(path: string, encoding: NameEncoding): string | Buffer {
  const isText = !hasEscapes(path) && (encoding === "utf-8" || /^\p{ASCII}*$/u.test(path));
  if (isText) return path;
  const code = encoding === "latin-1" ? "latin1" : "utf8";
  const parts: Buffer[] = [];
  let from = 0;
  for (const match of path.matchAll(ESCAPE)) {
    parts.push(Buffer.from(path.slice(from, match.index), code));
    parts.push(Buffer.from([Number.parseInt(match[1] ?? "", 16)]));
    from = match.index + match[0].length;
  }
  return Buffer.concat([...parts, Buffer.from(path.slice(from), code)]);
}

/** The full path of a file of this machine; `root` is always text. */
export function localPath(root: string, path: string, encoding: NameEncoding): PathOnDisk {
  if (path === "") return root;
  const own = bytesOf(path, encoding);
  return typeof own === "string" ? `${root}${sep}${own}` : Buffer.concat([Buffer.from(`${root}${sep}`), own]);
}

/** The folder that holds the path. */
export function folderOnDisk(path: PathOnDisk): PathOnDisk {
  return typeof path === "string" ? dirname(path) : path.subarray(0, path.lastIndexOf(sep));
}

/** The path with `more` appended. */
export function extendedOnDisk(path: PathOnDisk, more: string): PathOnDisk {
  return typeof path === "string" ? path + more : Buffer.concat([path, Buffer.from(more)]);
}

/** A file with such a name is never taken. */
export function hasEscapes(path: string): boolean {
  return /\\x[0-9A-F]{2}/.test(path);
}

/** Why a file is not taken, for a person. */
export function unusableName(path: string): { readonly message: string; readonly hint: string } {
  const [first = ""] = path.match(ESCAPE) ?? [];
  const byte = first.slice(2);
  const value = Number.parseInt(byte, 16);
  const rename = "Have it renamed at the drop.";
  if (value >= 0x80)
    return {
      message: `the name of the file is not UTF-8 (byte ${byte} where ${first} stands)`,
      hint: "Set `names: latin-1` at this drop when its senders write names in Latin-1, or have it named in UTF-8.",
    };
  if (value === 0x0a || value === 0x0d)
    return { message: `the name of the file has a line break (where ${first} stands)`, hint: rename };
  if (value === 0x5c)
    return { message: "the name of the file has text in it that reads as an escaped byte", hint: rename };
  return { message: `the name of the file has a control character (where ${first} stands)`, hint: rename };
}

function escaped(text: string): string {
  return text.replace(TO_ESCAPE, (one) => escapeOf(one.charCodeAt(0)));
}

/** Character by character: bytes that are not UTF-8 are escaped one by one. */
function escapedBytes(bytes: Buffer): string {
  let text = "";
  let valid = 0;
  for (let at = 0; at < bytes.length; ) {
    const length = lengthOf(bytes[at] ?? 0);
    if (length > 0 && at + length <= bytes.length && isUtf8(bytes.subarray(at, at + length))) {
      at += length;
      continue;
    }
    text += escaped(bytes.toString("utf8", valid, at)) + escapeOf(bytes[at] ?? 0);
    at += 1;
    valid = at;
  }
  return text + escaped(bytes.toString("utf8", valid));
}

/** Length in bytes of the character that begins with this byte; 0 when no character does. */
function lengthOf(byte: number): number {
  if (byte < 0x80) return 1;
  if (byte < 0xc2 || byte > 0xf4) return 0;
  return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

function escapeOf(byte: number): string {
  return `\\x${byte.toString(16).toUpperCase().padStart(2, "0")}`;
}

/** Decides by the name alone: an `.xlsx` is a zip by its bytes, but is read as a file. */
export function isContainerName(fileName: string): boolean {
  return /^.+\.(zip|gz)$/i.test(fileName);
}

export function isZipName(fileName: string): boolean {
  return /\.zip$/i.test(fileName);
}

/** Of the only file in a gzip: the name that it may carry inside is for the sender's own use. */
export function gzipEntryName(fileName: string): string {
  return basename(fileName).slice(0, -".gz".length);
}
