/**
 * The store of a single gateway, below `<spool>/intake/<drop>`: bodies are received under `incoming/<id>`,
 * synced, and renamed into the folder that the drop lists once their receipt is committed.
 */
import { randomBytes } from "node:crypto";
import { mkdir, rename, rm, rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { syncDirectory } from "#core/durable.ts";
import { systemCode } from "#core/errors.ts";
import { faultPoint } from "#core/faults.ts";
import type { Logger } from "#core/log.ts";
import { resultOf, settleEach } from "#core/promises.ts";
import { startFault } from "#core/start-fault.ts";
import type { FileEntry, FinishPlan, FinishResult } from "../../model.ts";
import type { FinishPlanned } from "../drop.ts";
import { LocalDrop } from "../local/local.ts";
import { localOptions } from "../options.ts";
import type { ArchiveClearing } from "../paths.ts";
import { interrupted } from "../refusals.ts";
import type { BodyStore, Received } from "./body-store.ts";
import { RECEIPTS_FILE, type Receipt, Receipts, type Repeat } from "./receipts.ts";
import { SECRET_BYTES } from "./senders.ts";
import { Incoming } from "./uploads.ts";

export class Bodies implements BodyStore {
  readonly secret: Buffer;
  readonly #name: string;
  readonly #receipts: Receipts;
  /** The folder that the drop lists, as a local drop: fetching and finishing are the same as there. */
  readonly #folder: string;
  readonly #files: LocalDrop;
  readonly #incoming: Incoming;
  readonly #made = new Set<string>();
  /** Running renames of bodies, by id. */
  readonly #placing = new Map<number, Promise<void>>();

  private constructor(name: string, root: string, log: Logger) {
    this.#name = name;
    this.#receipts = new Receipts(join(root, RECEIPTS_FILE));
    this.secret = this.#receipts.secret("tokens", () => randomBytes(SECRET_BYTES));
    this.#folder = join(root, "bodies");
    this.#incoming = new Incoming(root);
    const local = localOptions.parse({ kind: "local", name, path: this.#folder, watch: false });
    this.#files = new LocalDrop({ ...local, maxFileSize: Number.MAX_SAFE_INTEGER }, log);
  }

  /** Completes the bodies that the last process had acknowledged, and removes the others. */
  static async open(name: string, root: string, log: Logger): Promise<Bodies> {
    try {
      for (const folder of ["bodies", "incoming"]) await mkdir(join(root, folder), { recursive: true });
      await syncDirectory(root);
      const bodies = new Bodies(name, root, log);
      await bodies.#recover(log);
      return bodies;
    } catch (cause) {
      throw startFault("HG-INTK-001", { operation: "open intake", subject: root, cause });
    }
  }

  async receive(stream: Readable, nowMs: number, bytesMax: number): Promise<Received> {
    return await this.#incoming.receive(this.#receipts.nextId(nowMs), stream, bytesMax);
  }

  bytes(received: Received): Promise<Buffer> {
    return this.#incoming.bytes(received);
  }

  /** The receipt first, then the body under its name. */
  async publish(received: Received, receipt: Receipt): Promise<Repeat | { readonly kind: "taken" }> {
    const path = join(this.#folder, receipt.path);
    const repeat = this.#receipts.repeatOf(receipt);
    if (repeat !== null) {
      await rm(received.temporary, { force: true });
      if (repeat.kind === "repeat") await this.#placing.get(repeat.receipt.id);
      return repeat;
    }
    this.#receipts.add(receipt);
    const placing = this.#place(received.temporary, path);
    this.#placing.set(receipt.id, placing);
    try {
      await placing;
      this.#receipts.placed(receipt);
      return { kind: "taken" };
    } catch (thrown) {
      // The sender receives a failure; a file that exists under the name all the same has no receipt.
      this.#receipts.withdraw(receipt);
      await rm(path, { force: true });
      throw thrown;
    } finally {
      this.#placing.delete(receipt.id);
    }
  }

  async #place(temporary: string, path: string): Promise<void> {
    faultPoint("intake.promised");
    await this.#makeFolder(dirname(path));
    await rename(temporary, path);
    await syncDirectory(dirname(path));
  }

  discard(received: Received): Promise<void> {
    return this.#incoming.discard(received);
  }

  async waitingBytes(): Promise<number> {
    return this.#receipts.waitingBytes;
  }

  async *waiting(signal: AbortSignal): AsyncGenerator<Receipt> {
    for (const receipt of this.#receipts.waiting()) {
      if (signal.aborted) throw interrupted(this.#name, "list drop", signal.reason);
      yield receipt;
    }
  }

  async byPath(path: string): Promise<Receipt | null> {
    return this.#receipts.byPath(path);
  }

  async stat(path: string, signal: AbortSignal): Promise<FileEntry | null> {
    const entry = await this.#files.stat(path, signal);
    if (entry === null) this.#receipts.left(path);
    return entry;
  }

  fetch(entries: readonly FileEntry[], destination: string, signal: AbortSignal) {
    return this.#files.fetch(entries, destination, signal);
  }

  async finish(planned: readonly FinishPlanned[], signal: AbortSignal) {
    const finished = await this.#files.finish(planned, signal);
    return await settleEach(planned, ({ entry, plan }, at) => this.#left(entry, plan, resultOf(finished[at])));
  }

  async #left(entry: FileEntry, plan: FinishPlan, result: FinishResult): Promise<FinishResult> {
    if (plan.action === "leave" || result === "changed") return result;
    this.#receipts.left(entry.path);
    if (entry.path.startsWith("storage/")) await removeEmpty(join(this.#folder, dirname(entry.path)));
    return result;
  }

  clearArchive(clearing: ArchiveClearing, signal: AbortSignal): Promise<number> {
    return this.#files.clearArchive(clearing, signal);
  }

  async forget(beforeMs: number): Promise<void> {
    this.#receipts.forget(beforeMs);
  }

  /** No other process adds bodies. */
  watch(): () => Promise<void> {
    return async () => undefined;
  }

  async close(): Promise<void> {
    await this.#files.close();
    this.#receipts.close();
  }

  async #makeFolder(folder: string): Promise<void> {
    if (this.#made.has(folder)) return;
    const first = await mkdir(folder, { recursive: true });
    if (first !== undefined) {
      for (let at = folder; at.length >= dirname(first).length; at = dirname(at)) await syncDirectory(at);
    }
    // Storage has a folder of its own for each body, so these are not remembered.
    if (dirname(folder) === this.#folder) this.#made.add(folder);
  }

  async #recover(log: Logger): Promise<void> {
    let completed = 0;
    for (const name of await this.#incoming.left()) {
      const temporary = join(this.#incoming.folder, name);
      const receipt = this.#receipts.byId(Number(name));
      if (receipt === null) {
        await rm(temporary, { force: true });
        continue;
      }
      await this.#place(temporary, join(this.#folder, receipt.path));
      completed += 1;
    }
    if (completed > 0) log.info({ completed }, "bodies that the last process had received were put in place");
  }
}

async function removeEmpty(folder: string): Promise<void> {
  await rmdir(folder).catch((thrown: unknown) => {
    if (!["ENOENT", "ENOTEMPTY"].includes(systemCode(thrown) ?? "")) throw thrown;
  });
}
