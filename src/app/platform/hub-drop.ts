/**
 * The files that a hub took for one account, as a drop of the gateway inside it: those that wait for a trigger are
 * listed. A file keeps its content and its place in the storage of the hub, whatever becomes of it.
 */

import { RejectedError, wordsOf } from "#core/errors.ts";
import { type Settled, settleEach } from "#core/promises.ts";
import type { Drop, FetchedPart, FinishPlanned, OnFolder, ProbeFinding, Provenance } from "#gateway/drops/drop.ts";
import { fetchEach } from "#gateway/drops/fetch-list.ts";
import { planInside } from "#gateway/drops/finish.ts";
import type { HubDropOptions } from "#gateway/drops/options.ts";
import { insideDrop } from "#gateway/drops/paths.ts";
import { type Destination, openReceiver } from "#gateway/drops/receive.ts";
import { changedWhileFetched, interrupted, refuseTooLarge, vanished } from "#gateway/drops/refusals.ts";
import type { FetchedFile, FileEntry, FinishResult } from "#gateway/model.ts";
import { BlobMissing, type BlobStore } from "#hub/files/blobs.ts";
import { operationPrefixOf } from "#hub/push/origin.ts";
import type { FileRecord, FileStore } from "#hub/store/stored-files.ts";

/** Files of one listing; the next lists those that are left. */
const LISTED_MAX = 5_000;
/** Larger contents are fetched one by one. */
const SMALL_BYTES = 256 * 1024;
/** Records of listed files that are kept until they are claimed and fetched. */
const KEPT_MAX = 20_000;

const WAYS: Readonly<Record<FileRecord["via"], string>> = {
  storage: "by upload",
  hub: "made by the hub",
  generic: "by custom push",
  sftp: "by SFTP",
  ftp: "by FTP",
  ftps: "by FTPS",
};

export interface HubDropParts {
  readonly accountId: number;
  readonly files: Pick<FileStore, "waiting" | "list" | "one">;
  readonly blobs: Pick<BlobStore, "read" | "copy">;
  /** Resolves when every trigger that was saved before the call is in force. */
  triggersInForce(): Promise<void>;
  /** The token of a trigger of the account, also of one that was deleted; null when there is none. */
  tokenOf(triggerId: number): Promise<string | null>;
  onWaiting(onFiles: () => void): () => void;
}

/** `service`: the name of the account's service at the gateway. */
export class HubDrop implements Drop {
  readonly kind = "hub";
  readonly gainsByLists = true;
  readonly offersOnce = true;
  readonly name: string;
  readonly #options: HubDropOptions;
  readonly #service: string;
  readonly #parts: HubDropParts;
  readonly #closing = new AbortController();
  readonly #records = new Map<number, FileRecord>();
  readonly #watching = new Set<() => void>();

  constructor(options: HubDropOptions, service: string, parts: HubDropParts) {
    this.name = options.name;
    this.#options = options;
    this.#service = service;
    this.#parts = parts;
  }

  async *list(signal: AbortSignal, onFolder?: OnFolder): AsyncGenerator<readonly FileEntry[]> {
    this.#refuseEnded("list drop", signal);
    const { files, accountId } = this.#parts;
    const waiting = await files.waiting(accountId, LISTED_MAX);
    // A file is offered once: to every trigger that was saved before it came.
    if (waiting.length > 0) await this.#parts.triggersInForce();
    this.#refuseEnded("list drop", signal);
    for (const record of waiting) this.#keep(record);
    yield waiting.map(entryOf);
    onFolder?.("", []);
    if (waiting.length === LISTED_MAX) for (const onChange of this.#watching) onChange();
  }

  async stat(path: string, signal: AbortSignal): Promise<FileEntry | null> {
    insideDrop(this.name, path);
    this.#refuseEnded("stat file", signal);
    const id = fileIdOf(path);
    const record = Number.isSafeInteger(id) ? await this.#parts.files.one(this.#parts.accountId, id) : null;
    const entry = record === null ? null : entryOf(record);
    return entry?.path === path ? entry : null;
  }

  async fetch(entries: readonly FileEntry[], destination: string, signal: AbortSignal) {
    const { files, accountId } = this.#parts;
    const ids = entries.map(({ path }) => fileIdOf(path)).filter((id) => Number.isSafeInteger(id));
    // As they are now: a file that was removed since must not be processed.
    const { rows } = await files.list(accountId, { ids }, { offset: 0, limit: null });
    const records = new Map(rows.map((record) => [record.id, record]));
    const recordFor = ({ path }: FileEntry) => records.get(fileIdOf(path));
    const copied = await this.#copied(entries, recordFor, destination, signal);
    const fetchOne = (entry: FileEntry, to: Destination) => this.#fetchOne(entry, recordFor(entry), to, signal);
    return await fetchEach(this, entries, destination, fetchOne, copied);
  }

  /** The usual case; null for what `#fetchOne` fetches, or refuses. */
  async #copied(
    entries: readonly FileEntry[],
    recordFor: (entry: FileEntry) => FileRecord | undefined,
    destination: string,
    signal: AbortSignal,
  ): Promise<readonly (FetchedPart | null)[]> {
    this.#refuseEnded("fetch file", signal);
    const most = Math.min(SMALL_BYTES, this.#options.maxFileSize);
    const digests = entries.map((entry) => {
      const record = recordFor(entry);
      return record !== undefined && record.size === entry.size && record.size <= most ? record.sha256 : null;
    });
    const usual = digests.filter((digest) => digest !== null);
    const copies = usual.length === 0 ? [] : await this.#parts.blobs.copy(usual, destination, signal);
    let next = 0;
    return digests.map((digest) => {
      const copy = digest === null ? null : (copies[next++] ?? null);
      return copy?.sha256 === digest ? copy : null;
    });
  }

  /** The source stays where it is, whatever the plan. */
  finish(planned: readonly FinishPlanned[]): Promise<readonly Settled<FinishResult>[]> {
    return settleEach(planned, async ({ entry, plan }): Promise<FinishResult> => {
      planInside(this.name, entry, plan);
      return "done";
    });
  }

  async provenance(path: string): Promise<Provenance | null> {
    const record = await this.#recordAt(path);
    if (record === null) return null;
    const sender = senderOf(record);
    const operationPrefix = operationPrefixOf(record.id);
    const common = { service: this.#service, operationPrefix, namesTrigger: true, sender } as const;
    if (record.via !== "generic") {
      const isUpload = record.via === "storage" || record.via === "hub";
      return { ...common, ingestionType: isUpload ? "UploadInStorage" : "SendViaFtp" };
    }
    const token = record.triggerId === null ? null : await this.#parts.tokenOf(record.triggerId);
    return { ...common, ingestionType: "SendViaHttp", token: token ?? "" };
  }

  modifiedMs({ mtime }: FileEntry): number {
    return Number(mtime.split(" ")[0]);
  }

  async probe(
    signal: AbortSignal,
    onEntry: (entry: FileEntry, provenance?: Provenance) => void = () => undefined,
  ): Promise<readonly ProbeFinding[]> {
    const about = "storage";
    try {
      let count = 0;
      for await (const entries of this.list(signal))
        for (const entry of entries) {
          count += 1;
          onEntry(entry, (await this.provenance(entry.path)) ?? undefined);
        }
      return [{ level: "ok", about, what: `${count} files of account ${this.#parts.accountId} wait for a trigger` }];
    } catch (thrown) {
      return [{ level: "failed", about, what: wordsOf(thrown) }];
    }
  }

  watch(onChange: () => void): () => Promise<void> {
    const end = this.#parts.onWaiting(onChange);
    this.#watching.add(onChange);
    return async () => {
      this.#watching.delete(onChange);
      end();
    };
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#records.clear();
  }

  async #fetchOne(
    entry: FileEntry,
    record: FileRecord | undefined,
    to: Destination,
    signal: AbortSignal,
  ): Promise<FetchedFile> {
    this.#refuseEnded("fetch file", signal);
    refuseTooLarge(this.name, entry, this.#options.maxFileSize);
    if (record === undefined) throw vanished(this.name, entry.path);
    if (record.size !== entry.size)
      throw changedWhileFetched(this.name, entry, `it has ${record.size} bytes, and not ${entry.size}`);
    const receiver = await openReceiver(this.name, entry, to);
    try {
      // Iterating closes it however it ends.
      for await (const chunk of await this.#read(entry, record)) {
        this.#refuseEnded("fetch file", signal);
        await receiver.write(chunk);
      }
      const fetched = await receiver.finish();
      if (fetched.sha256 === record.sha256) return fetched;
    } finally {
      await receiver.close();
    }
    throw new RejectedError("HG-HUB-006", { operation: "fetch file", subject: `${this.name}: ${entry.path}` });
  }

  async #read(entry: FileEntry, record: FileRecord) {
    try {
      return await this.#parts.blobs.read(record.sha256);
    } catch (thrown) {
      if (!(thrown instanceof BlobMissing)) throw thrown;
      if ((await this.#parts.files.one(this.#parts.accountId, record.id)) === null)
        throw vanished(this.name, entry.path);
      const message = `the bytes of ${entry.path} are missing from the stored files`;
      throw new RejectedError("HG-HUB-006", {
        operation: "fetch file",
        subject: `${this.name}: ${entry.path}`,
        message,
      });
    }
  }

  async #recordAt(path: string): Promise<FileRecord | null> {
    const id = fileIdOf(path);
    const known = this.#records.get(id);
    if (known !== undefined) return known;
    const record = await this.#parts.files.one(this.#parts.accountId, id);
    if (record !== null) this.#keep(record);
    return record;
  }

  #keep(record: FileRecord): void {
    this.#records.delete(record.id);
    this.#records.set(record.id, record);
    const oldest = this.#records.size > KEPT_MAX ? this.#records.keys().next().value : undefined;
    if (oldest !== undefined) this.#records.delete(oldest);
  }

  #refuseEnded(operation: string, signal: AbortSignal): void {
    if (signal.aborted || this.#closing.signal.aborted) throw interrupted(this.name, operation, signal.reason);
  }
}

/** `alice, by SFTP (stored file 12)` */
export function senderOf({ id, createdBy, via }: Pick<FileRecord, "id" | "createdBy" | "via">): string {
  return `${createdBy}, ${WAYS[via]} (stored file ${id})`;
}

/** A file that is offered again is another version. */
export function entryOf({ id, fileName, size, createdMs, offers }: FileRecord): FileEntry {
  const name = fileName.slice(fileName.lastIndexOf("/") + 1);
  return { path: `${id}/${name}`, size, mtime: `${createdMs} ${offers}` };
}

/** Of the path of a file, or of an entry of a container. */
export function fileIdOf(path: string): number {
  return Number(path.slice(0, path.indexOf("/")));
}
