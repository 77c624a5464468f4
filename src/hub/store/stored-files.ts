/**
 * The contract of the records of stored files, a part of `store.ts`. A record is added when the bytes of its file are
 * durable; files of equal content share their bytes.
 */
import type { FileKind, FileState, StoredFile } from "#wire/index.ts";
import type { Listing, Page } from "./records.ts";

export interface FileRecord extends Omit<StoredFile, "creationDate" | "stateDate" | "repeatedDate"> {
  readonly accountId: number;
  readonly createdMs: number;
  /** When the state last changed. */
  readonly updatedMs: number;
  /** When it last came again, and was not stored twice. */
  readonly repeatedMs: number | null;
  /** How often it was offered to the triggers. */
  readonly offers: number;
  /** Where the outcomes of its pushes are sent; null: nowhere. */
  readonly webhookUrl: string | null;
  /** The user who sent it; null: the hub itself. */
  readonly createdById: number | null;
}

export type NewFile = Pick<
  FileRecord,
  "fileName" | "size" | "sha256" | "cloudItemTypeId" | "contentType" | "tags" | "siteId" | "createdBy" | "via"
> & {
  readonly createdById?: number | null;
  /** Of a file that was sent to a trigger; others have none until one claims them. */
  readonly triggerId?: number;
  readonly createdMs: number;
  /** Whether it waits for the virus scan before triggers may claim it. */
  readonly isScanned: boolean;
  /** Not offered to the triggers, for this reason. */
  readonly unclaimed?: string;
  /** Another file of the account with this key is not added. */
  readonly idempotencyKey?: string | null;
  readonly webhookUrl?: string | null;
  /** Until then the same content under this name comes from a sender that did not get the answer, until `answered`. */
  readonly unansweredUntilMs?: number;
  /** Files whose senders have got the answer by now. */
  readonly answered?: readonly number[];
};

export type FileAdded =
  | { readonly kind: "added"; readonly id: number }
  /** The same file came before, with this key or from a sender that did not get the answer: its id. */
  | { readonly kind: "repeated"; readonly id: number }
  /** Another file came before with this key: its id. */
  | { readonly kind: "conflict"; readonly id: number }
  /** The account has no such site. */
  | { readonly kind: "no-site" }
  /** The account would have more than the permitted bytes. */
  | { readonly kind: "full" };

export type FilesRemoved =
  | { readonly kind: "removed"; readonly sha256s: readonly string[] }
  /** The account does not have these files; nothing was removed. */
  | { readonly kind: "missing"; readonly ids: readonly number[] };

/** A list of values means any of them; fields combine with AND; absent fields do not filter. */
export interface FilesFilter {
  readonly ids?: readonly number[] | undefined;
  /** Whole names, or names without their folders, in any case. */
  readonly names?: readonly string[] | undefined;
  /** A part of the name or of a tag, in any case. */
  readonly text?: string | undefined;
  readonly siteIds?: readonly number[] | undefined;
  /** Groups of sites. */
  readonly groupIds?: readonly number[] | undefined;
  readonly siteTypeIds?: readonly number[] | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly kinds?: readonly FileKind[] | undefined;
  readonly states?: readonly FileState[] | undefined;
}

export interface FileChange {
  readonly id: number;
  readonly state: FileState;
  /** Null: nothing to say. */
  readonly reason: string | null;
  readonly atMs: number;
  /** Absent fields stay as they are. */
  readonly run?: string | null;
  readonly triggerId?: number | null;
  /** Nothing changes when the file was offered again since. */
  readonly offers?: number;
}

export type ScanVerdict = { readonly kind: "clean" } | { readonly kind: "infected"; readonly reason: string };

export interface FileStore {
  /** `bytesMax`: of all files of the account; null for no limit. */
  add(accountId: number, file: NewFile, bytesMax: number | null): Promise<FileAdded>;
  /** Whether a file of the account came with this Idempotency-Key. */
  hasKey(accountId: number, key: string): Promise<boolean>;
  /** The senders of these files have got the answer: the same content is a further file from now on. */
  answered(ids: readonly number[]): Promise<void>;
  /** Bytes of the file of this name whose sender may not have got the answer; 0 without one. */
  unansweredBytes(accountId: number, fileName: string, nowMs: number): Promise<number>;
  /** Bytes of all files of the account. */
  usedBytes(accountId: number): Promise<number>;
  /** Ordered by id. */
  list(accountId: number, filter: FilesFilter, page: Page): Promise<Listing<FileRecord>>;
  one(accountId: number, id: number): Promise<FileRecord | null>;
  /** All of the files, or none. */
  remove(accountId: number, ids: readonly number[]): Promise<FilesRemoved>;
  /** Files that triggers may claim now, in order of their ids: received ones that no virus scan holds back. */
  waiting(accountId: number, limit: number): Promise<readonly FileRecord[]>;
  /**
   * Makes the changes in their order, in one transaction. False for a file that no longer exists, or whose state does
   * not permit the change (`hub/files/states.ts`).
   */
  advance(accountId: number, changes: readonly FileChange[]): Promise<readonly boolean[]>;
  /** Offers a file to the triggers again; otherwise returns why not: its state, or that it does not exist. */
  process(
    accountId: number,
    id: number,
    again: { readonly atMs: number; readonly isScanned: boolean },
  ): Promise<"offered" | "missing" | FileState>;
  /** Accounts with files that wait for the virus scan, in order of their ids. */
  unscannedAccounts(): Promise<readonly number[]>;
  /** The next file of the account that waits for the virus scan. */
  unscanned(accountId: number, afterId: number): Promise<FileRecord | null>;
  /** Ends the wait of every file for the virus scan, for a hub that scans no files. */
  releaseUnscanned(): Promise<void>;
  /** Records a verdict; has no effect on a file that does not wait for one. */
  scanned(accountId: number, id: number, verdict: ScanVerdict, atMs: number): Promise<void>;
  /** Returns the digests that a record names. */
  referred(sha256s: readonly string[]): Promise<ReadonlySet<string>>;
  /** Identifies this store to the folder of its files; made at the first call. */
  folderId(): Promise<string>;
}
