/**
 * The contract between the protocols (SFTP, FTP) and the folders that they show. Paths begin with a slash and are
 * normalised by `absolute`, so that none leads out of the tree. Every method may run concurrently, and throws
 * `TreeFault` with words for the sender.
 */
import { posix } from "node:path";
import { isMissing, isOutOfSpace, systemCode } from "#core/errors.ts";

export interface Entry {
  readonly name: string;
  /** A `link` is shown, and never followed. */
  readonly kind: "file" | "folder" | "link";
  readonly size: number;
  readonly modifiedMs: number;
}

export interface OpenMode {
  /** Otherwise an upload that broke off is continued. */
  readonly truncate: boolean;
  /** A file that does not exist is made. */
  readonly create: boolean;
  /** It must not exist. */
  readonly exclusive: boolean;
}

/** A file that is being written. After `close` or `abandon` no other method is called. */
export interface Upload {
  readonly size: number;
  /** Bytes beyond the end wait for those before them, so that a file never has holes. */
  write(bytes: Uint8Array, position: number): Promise<void>;
  /** Shortens the file. */
  truncate(size: number): Promise<void>;
  setModified(ms: number): Promise<void>;
  /**
   * The sender has written everything. When it resolves, the file is taken for good, or waits for another name.
   * `isWanted`: asked at the last moment; when the sender is gone, the file is not taken.
   */
  close(isWanted?: () => boolean): Promise<void>;
  /** The transfer broke off: what was written can be continued. */
  abandon(): Promise<void>;
}

/** A file that is being read. Reads may run concurrently; nothing is called after `close`. */
export interface Download {
  readonly size: number;
  /** No bytes at the end of the file. */
  read(position: number, length: number): Promise<Buffer>;
  close(): Promise<void>;
}

export interface FileTree {
  stat(path: string): Promise<Entry>;
  /** Ordered by name. */
  list(path: string): Promise<readonly Entry[]>;
  write(path: string, mode: OpenMode): Promise<Upload>;
  /** A tree whose files are only sent refuses it. */
  read(path: string): Promise<Download>;
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  makeFolder(path: string): Promise<void>;
  removeFolder(path: string): Promise<void>;
  setModified(path: string, ms: number): Promise<void>;
  /** Shortens an unfinished upload. */
  truncate(path: string, size: number): Promise<void>;
  /** The sender asks for something further, so it has got every answer so far. */
  answersArrived?(): void;
}

export type TreeReason = "missing" | "denied" | "exists" | "full" | "failed";

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const MODES = { file: "-rw-r--r--", folder: "drwxr-xr-x", link: "lrwxrwxrwx" } as const;
const HALF_YEAR_MS = 180 * 86_400_000;

export class TreeFault extends Error {
  readonly reason: TreeReason;

  constructor(reason: TreeReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** `..` ends at the root. */
export function absolute(path: string, folder = "/"): string {
  const resolved = posix.resolve("/", folder, path);
  return resolved === "" ? "/" : resolved;
}

export const noSuchFile = () => new TreeFault("missing", "no such file or folder");

/** Errors of the disk get words for the sender. */
export function toFault(thrown: unknown): Error {
  const code = systemCode(thrown) ?? "";
  if (isOutOfSpace(thrown)) return new TreeFault("full", "the hub has no space for this file");
  if (isMissing(thrown)) return new TreeFault("missing", "no such file or folder");
  if (code === "EEXIST") return new TreeFault("exists", "there is a file or folder of this name");
  if (code === "ENOTEMPTY") return new TreeFault("failed", "the folder is not empty");
  if (code === "ENAMETOOLONG") return new TreeFault("failed", "the name is too long");
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

// Entries as clients list them.

/** A line as `ls -l` writes it, in UTC. */
export function unixLine({ name, kind, size, modifiedMs }: Entry, nowMs: number): string {
  const time = new Date(modifiedMs);
  const two = (part: number) => String(part).padStart(2, "0");
  const isRecent = modifiedMs <= nowMs && nowMs - modifiedMs < HALF_YEAR_MS;
  const hour = isRecent ? `${two(time.getUTCHours())}:${two(time.getUTCMinutes())}` : ` ${time.getUTCFullYear()}`;
  const when = `${MONTHS[time.getUTCMonth()]} ${String(time.getUTCDate()).padStart(2)} ${hour}`;
  const mode = MODES[kind];
  return `${mode} 1 sender account ${String(size).padStart(12)} ${when} ${name}`;
}
