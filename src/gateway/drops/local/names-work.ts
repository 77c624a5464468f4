/** The part of the thread of a local drop in a listing: it reads the names of a large folder, some at a time. */
import { type Dir, opendirSync } from "node:fs";
import { type NameEncoding, nameOf } from "#core/file-names.ts";

export interface NamesOrder {
  readonly kind: "names";
  /** Number of the listing of this folder. */
  readonly listing: number;
  /** Full path, as bytes where it is not UTF-8. */
  readonly folder: string | Uint8Array;
  readonly names: NameEncoding;
  /** `end` closes a folder that was not read to its end. */
  readonly step: "begin" | "continue" | "end";
}

export interface SomeNames {
  /** Separated by a zero character: many texts take longer to pass on than one. Empty for none. */
  readonly files: string;
  readonly folders: string;
  readonly linksCount: number;
  /** Number of read entries, of whichever kind. */
  readonly count: number;
  readonly ended: boolean;
}

/** Entries that are read in one call. */
const READ_AT_ONCE = 512;
/** Entries of one answer. */
const ANSWERED_AT_ONCE = 2048;

const open = new Map<number, Dir>();

/** Fails for a listing that another thread began: the caller repeats it. */
export function readNames({ listing, folder, names, step }: NamesOrder, isWanted: () => boolean): SomeNames {
  if (step === "begin") open.set(listing, openFolder(folder));
  const directory = open.get(listing);
  if (directory === undefined) throw new Error("this thread did not begin the listing");
  const files: string[] = [];
  const folders: string[] = [];
  let linksCount = 0;
  let count = 0;
  let ended = step === "end";
  try {
    while (!ended && count < ANSWERED_AT_ONCE && isWanted()) {
      const item = directory.readSync();
      ended = item === null;
      if (item === null) break;
      count += 1;
      if (item.isFile()) files.push(textOf(item.name, names));
      else if (item.isDirectory()) folders.push(textOf(item.name, names));
      else if (item.isSymbolicLink()) linksCount += 1;
    }
  } catch (thrown) {
    close(listing);
    throw thrown;
  }
  if (ended || !isWanted()) close(listing);
  return { files: files.join("\0"), folders: folders.join("\0"), linksCount, count, ended };
}

function openFolder(folder: string | Uint8Array): Dir {
  const path = typeof folder === "string" ? folder : Buffer.from(folder);
  // As Latin-1, in which each byte is a character: as UTF-8, other names would not lead to their files, and buffers
  // would take three times as long.
  return opendirSync(path, { bufferSize: READ_AT_ONCE, encoding: "latin1" });
}

function close(listing: number): void {
  open.get(listing)?.closeSync();
  open.delete(listing);
}

/** Text without a backslash, control characters and other bytes, which is the same in all encodings. */
const PLAIN = /^[ -[\]-~]*$/;

function textOf(name: string, names: NameEncoding): string {
  return PLAIN.test(name) ? name : nameOf(Buffer.from(name, "latin1"), names);
}
