/** Stored files: their bytes, their virus scan, and the removal of bytes that no record refers to. */
import type { Clock } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { logNarrowed, narrowModes } from "#core/private-files.ts";
import { storedFilesFolder } from "../gateway-places.ts";
import type { HubOptions } from "../options.ts";
import type { FileStore } from "../store/stored-files.ts";
import type { BlobStore } from "./blobs.ts";
import { openFolderBlobs } from "./folder-blobs.ts";
import { startScans } from "./scan.ts";

const COLLECT_MS = 3_600_000;
/** Longer than any upload takes from its last byte to its record. */
const SHARED_GRACE_MS = 3_600_000;

export interface StoredFiles {
  readonly blobs: BlobStore;
  /** Whether files wait for a virus scan before triggers may claim them. */
  readonly isScanned: boolean;
  /** A file came, or is offered again; of whatever account when it is not named. */
  wake(accountId?: number): void;
  /** Calls back when triggers may claim files of the account that they could not before. Returns the end of that. */
  onWaiting(accountId: number, onFiles: () => void): () => void;
  /** Has the work on files that were removed ended. */
  removed(accountId: number, ids: readonly number[]): Promise<void>;
  /** Calls back after files were removed; does not reject. */
  onRemoved(end: (accountId: number, ids: readonly number[]) => Promise<void>): void;
  /** Removes the bytes that no other record refers to. A failure is logged, and corrected by the next collection. */
  discard(sha256s: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

interface Parts {
  readonly options: HubOptions;
  readonly store: FileStore;
  readonly log: Logger;
  readonly clock: Clock;
}

/** Null when there is no place for the bytes: hubs that share a database need one that is named. */
export async function openStoredFiles(parts: Parts): Promise<StoredFiles | null> {
  const blobs = await openBlobs(parts);
  if (blobs === null) return null;
  const { options, store, log, clock } = parts;
  const closing = new AbortController();
  const watching = new Map<number, Set<() => void>>();
  const isReferred = async (sha256: string) => (await store.referred([sha256])).has(sha256);
  const collecting = collect(blobs, store, log, clock, closing.signal);
  const onFiles = (accountId?: number) => {
    for (const [id, listeners] of watching)
      if (accountId === undefined || id === accountId) for (const call of listeners) call();
  };
  let endWork = async (_accountId: number, _ids: readonly number[]) => {};
  const { scan } = options.files;
  if (scan === undefined) await store.releaseUnscanned();
  const scans = scan === undefined ? null : startScans({ options: scan, blobs, store, log, clock, onClean: onFiles });
  return {
    blobs,
    isScanned: scans !== null,
    wake(accountId) {
      scans?.wake();
      onFiles(accountId);
    },
    onWaiting(accountId, onWaiting) {
      const listeners = watching.get(accountId) ?? new Set();
      watching.set(accountId, listeners.add(onWaiting));
      return () => listeners.delete(onWaiting);
    },
    removed: (accountId, ids) => endWork(accountId, ids),
    onRemoved(end) {
      endWork = end;
    },
    async discard(sha256s) {
      for (const sha256 of sha256s) {
        try {
          await blobs.remove(sha256, isReferred);
        } catch (thrown) {
          log.error({ sha256, err: wordsOf(thrown) }, "bytes of a removed file could not be removed; tried again");
        }
      }
    },
    async close() {
      closing.abort();
      await scans?.close();
      await collecting;
      await blobs.close();
    },
  };
}

async function openBlobs({ options, store, log, clock }: Parts): Promise<BlobStore | null> {
  const path = storedFilesFolder(options);
  if (path === null) return null;
  logNarrowed(narrowModes([path]), log);
  const graceMs = options.store.kind === "sqlite" ? 0 : SHARED_GRACE_MS;
  const common = { storeId: await store.folderId(), graceMs, clock };
  const { files } = options;
  if (files.kind === "folder") return openFolderBlobs({ path, ...common });
  // The client of object storage takes a while to load.
  const { openObjectBlobs } = await import("./s3/object-blobs.ts");
  return openObjectBlobs({ options: files, local: path, ...common });
}

async function collect(blobs: BlobStore, store: FileStore, log: Logger, clock: Clock, signal: AbortSignal) {
  do {
    try {
      const removed = await blobs.collect((sha256s) => store.referred(sha256s));
      if (removed > 0) log.info({ removed }, "bytes of uploads that were not completed were removed");
    } catch (thrown) {
      log.error({ err: thrown }, "the bytes of stored files could not be checked; this is tried again");
    }
  } while (await clock.sleep(COLLECT_MS, signal));
}
