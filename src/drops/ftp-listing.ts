/** Listings of FTP servers: MLSD (RFC 3659) read to the letter, LIST in the Unix and DOS styles by basic-ftp. */
import { FileInfo, FileType, parseList } from "basic-ftp";

/** A listed item. `changed` is what the server says about its time, as it says it. */
export interface ListedItem {
  readonly name: string;
  readonly kind: "file" | "folder" | "link" | "other";
  readonly size: number;
  readonly changed: string;
}

/** The parser for basic-ftp that keeps the time of MLSD as the server sends it, fractions of a second included. */
export function parseMlsd(text: string): FileInfo[] {
  const items: FileInfo[] = [];
  for (const line of text.split(/\r?\n/)) {
    const item = parseMlsxLine(line);
    if (item !== null) items.push(infoOf(item));
  }
  return items;
}

/** One line of MLSD, or the line of facts in the answer to MLST; null for a line that names no item. */
export function parseMlsxLine(line: string): ListedItem | null {
  const space = line.indexOf(" ");
  if (space < 0) return null;
  const facts = new Map<string, string>();
  for (const fact of line.slice(0, space).split(";")) {
    const equals = fact.indexOf("=");
    if (equals > 0) facts.set(fact.slice(0, equals).toLowerCase(), fact.slice(equals + 1));
  }
  const name = line.slice(space + 1);
  const type = facts.get("type")?.toLowerCase() ?? "";
  if (name === "" || type === "cdir" || type === "pdir") return null;
  return {
    name,
    kind: kindOf(type),
    size: Number(facts.get("size") ?? 0),
    changed: facts.get("modify") ?? "",
  };
}

export const parseListText = parseList;

export function itemOf(info: FileInfo): ListedItem {
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

function infoOf(item: ListedItem): FileInfo {
  const info = new FileInfo(item.name);
  info.type =
    item.kind === "file"
      ? FileType.File
      : item.kind === "folder"
        ? FileType.Directory
        : item.kind === "link"
          ? FileType.SymbolicLink
          : FileType.Unknown;
  info.size = item.size;
  info.rawModifiedAt = item.changed;
  return info;
}

function kindOf(type: string): ListedItem["kind"] {
  if (type === "file") return "file";
  if (type === "dir") return "folder";
  return type.startsWith("os.unix=slink") || type.startsWith("os.unix=symlink") ? "link" : "other";
}
