/**
 * Parses listings of FTP servers line by line as they arrive: MLSD (RFC 3659) strictly, LIST in the Unix and
 * DOS styles by basic-ftp.
 */
import { createHash } from "node:crypto";
import { Transform } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { type FileInfo, FileType, parseList } from "basic-ftp";
import { type NameEncoding, nameOf } from "#core/file-names.ts";
import type { FtpClient } from "./client.ts";

/** A listed item. `changed` is its time in the server's own format. */
export interface ListedItem {
  readonly name: string;
  readonly kind: "file" | "folder" | "link" | "other";
  readonly size: number;
  readonly changed: string;
  /** The facts fit a symbolic link as well, which some servers report as a file. */
  readonly mayBeLink?: boolean;
}

/** The content of a line of a listing; `unknown` when it cannot be parsed. */
export type ParseLine = (line: string) => ListedItem | "nothing" | "unknown";

export interface ListingStyle {
  readonly command: string;
  readonly parseLine: ParseLine;
}

/** Bytes of one line; a server that sends more is not sending a listing. */
const LINE_MAX = 64 * 1024;
/** Groups of items that are parsed ahead of the consumer; beyond that the server has to wait. */
const GROUPS_AHEAD = 4;

/** A listing whose last line has no end: the server, or the network, may have cut it. */
export class UnendedListing extends Error {
  /** Digest of all its bytes. */
  readonly digest: string;
  /** The items of its last line. */
  readonly last: readonly ListedItem[];
  readonly closing: string;

  constructor(facts: Pick<UnendedListing, "digest" | "last" | "closing">) {
    super("the last line of the listing has no end");
    this.digest = facts.digest;
    this.last = facts.last;
    this.closing = facts.closing;
  }
}

/**
 * The items of the folder that the connection is in, in groups. `onUnknown` receives lines that cannot be
 * parsed; when no line can be parsed, it throws: the files are there, but invisible. Throws `UnendedListing`
 * when the last line has no end; the items leave that line out. Returns the server's closing text. An early
 * end breaks the connection.
 */
export async function* readListing(
  client: FtpClient,
  style: ListingStyle,
  onUnknown: (line: string) => void,
): AsyncGenerator<readonly ListedItem[], string> {
  const ending: Ending = { unended: null };
  const lines = lineParser(client.names, style.parseLine, onUnknown, ending);
  const transfer = client.listInto(lines, style.command);
  transfer.catch((thrown: Error) => lines.destroy(thrown));
  try {
    for await (const items of lines) yield items as readonly ListedItem[];
    const closing = await transfer;
    if (ending.unended !== null) throw new UnendedListing({ ...ending.unended, closing });
    return closing;
  } finally {
    lines.destroy();
  }
}

interface Ending {
  unended: Pick<UnendedListing, "digest" | "last"> | null;
}

function lineParser(
  names: NameEncoding,
  parseLine: ParseLine,
  onUnknown: (line: string) => void,
  ending: Ending,
): Transform {
  const digest = createHash("sha256");
  // A character per byte, so that the bytes of a name are known.
  const decoder = new StringDecoder("latin1");
  let rest = "";
  let read = 0;
  let unread = "";
  const take = (lines: readonly string[]) => {
    const items: ListedItem[] = [];
    for (const line of lines) {
      const item = parseLine(line.endsWith("\r") ? line.slice(0, -1) : line);
      if (item === "nothing") continue;
      if (item === "unknown") {
        unread ||= line;
        onUnknown(line);
        continue;
      }
      read += 1;
      items.push({ ...item, name: nameOf(Buffer.from(item.name, "latin1"), names) });
    }
    return items;
  };
  return new Transform({
    readableObjectMode: true,
    readableHighWaterMark: GROUPS_AHEAD,
    transform(chunk: Buffer, _encoding, done) {
      digest.update(chunk);
      const lines = (rest + decoder.write(chunk)).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > LINE_MAX) return done(new Error(`a line of the listing has more than ${LINE_MAX} bytes`));
      const items = take(lines);
      done(null, items.length === 0 ? undefined : items);
    },
    flush(done) {
      rest += decoder.end();
      // The missing part may belong to a name, or to a size.
      if (rest.trim() !== "") ending.unended = { digest: digest.digest("hex"), last: take([rest]) };
      done(
        read === 0 && unread !== ""
          ? new Error(`no line of the listing can be read; it begins with ${JSON.stringify(unread.slice(0, 120))}`)
          : null,
      );
    },
  });
}

/** The facts of MLSD, with the time as the server sends it, including fractions of a second. */
export const parseMachineLine: ParseLine = (line) => {
  if (line.trim() === "") return "nothing";
  if (!line.includes(" ") || !/^\s|=/.test(line)) return "unknown";
  return parseMlsxLine(line) ?? "nothing";
};

/** A line of LIST, in any of its styles. */
export const parseListLine: ParseLine = (line) => {
  if (line.trim() === "" || /^total\b/i.test(line)) return "nothing";
  let infos: readonly FileInfo[];
  try {
    infos = parseList(line);
  } catch {
    return "unknown"; // The parser throws when no style fits.
  }
  const info = infos[0];
  return info === undefined ? "nothing" : itemOf(info);
};

/** One line of MLSD, or the line of facts in the response to MLST; null for a line without an item. */
export function parseMlsxLine(line: string): ListedItem | null {
  const space = line.indexOf(" ");
  if (space < 0) return null;
  let type = "";
  let size = 0;
  let changed = "";
  let mode = "";
  // Without a list or a map of the facts, which would dominate the cost of a listing of 100,000 lines.
  for (let from = 0; from < space; ) {
    const semicolon = line.indexOf(";", from);
    const end = semicolon < 0 || semicolon > space ? space : semicolon;
    const equals = line.indexOf("=", from);
    if (equals > from && equals < end) {
      const value = line.slice(equals + 1, end);
      const fact = line.slice(from, equals).toLowerCase();
      if (fact === "type") type = value.toLowerCase();
      else if (fact === "size") size = Number(value);
      else if (fact === "modify") changed = value;
      else if (fact === "unix.mode") mode = value;
    }
    from = end + 1;
  }
  const name = line.slice(space + 1);
  if (name === "" || type === "cdir" || type === "pdir") return null;
  const item = { name, kind: kindOf(type), size, changed };
  return /^0?777$/.test(mode) ? { ...item, mayBeLink: true } : item;
}

/** Unix milliseconds of a time in MLSD format (`20260301001500.123`, in UTC); null for any other text. */
export function mlsdTimeMs(changed: string): number | null {
  const parts = /^(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})(\.\d+)?$/.exec(changed);
  if (parts === null) return null;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts.slice(1, 7).map(Number);
  return Date.UTC(year, month - 1, day, hour, minute, second) + Math.floor(Number(parts[7] ?? 0) * 1000);
}

function itemOf(info: FileInfo): ListedItem {
  const kind =
    info.type === FileType.File
      ? "file"
      : info.type === FileType.Directory
        ? "folder"
        : info.type === FileType.SymbolicLink
          ? "link"
          : "other";
  return { name: info.name, kind, size: info.size, changed: info.rawModifiedAt };
}

function kindOf(type: string): ListedItem["kind"] {
  if (type === "file") return "file";
  if (type === "dir") return "folder";
  return type.startsWith("os.unix=slink") || type.startsWith("os.unix=symlink") ? "link" : "other";
}
