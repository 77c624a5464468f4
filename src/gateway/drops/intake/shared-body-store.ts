/**
 * The store of gateways that share a ledger: bodies are in its database, where every gateway finds the bodies
 * of all. A gateway has a body on its own disk only while it is received, since a transaction that waited for
 * a slow sender would block others.
 */
import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { Clock } from "#core/clock.ts";
import { ConfigError, RejectedError } from "#core/errors.ts";
import { settleEach } from "#core/promises.ts";
import { startFault } from "#core/start-fault.ts";
import type { FetchedFile, FileEntry, FinishPlan, FinishResult, SharedBody, SharedIntake } from "../../model.ts";
import type { FinishPlanned } from "../drop.ts";
import { fetchEach } from "../fetch-list.ts";
import { planInside } from "../finish.ts";
import type { ArchiveClearing } from "../paths.ts";
import { type Destination, openReceiver } from "../receive.ts";
import { interrupted, vanished } from "../refusals.ts";
import type { BodyStore, Received } from "./body-store.ts";
import { RECEIPTS_FILE, type Receipt, Receipts, type Repeat } from "./receipts.ts";
import { SECRET_BYTES } from "./senders.ts";
import { Incoming } from "./uploads.ts";

const PAGE = 500;
/** Maximum age of the cached sum of waiting bytes when a body is admitted. */
const WAITING_KNOWN_MS = 1_000;
/** Interval of the checks for bodies of other gateways. */
const LOOK_EVERY_MS = 1_000;

export class SharedBodyStore implements BodyStore {
  readonly secret: Buffer;
  readonly #name: string;
  readonly #shared: SharedIntake;
  readonly #clock: Clock;
  readonly #incoming: Incoming;
  readonly #closing = new AbortController();
  #waiting: { readonly bytes: Promise<number>; readonly untilMs: number } | null = null;

  private constructor(
    name: string,
    secret: Buffer,
    parts: { readonly shared: SharedIntake; readonly clock: Clock; readonly incoming: Incoming },
  ) {
    this.#name = name;
    this.secret = secret;
    this.#shared = parts.shared;
    this.#clock = parts.clock;
    this.#incoming = parts.incoming;
  }

  /**
   * `root`: folder of the intake in this gateway's spool. Files that the last process left there were never
   * acknowledged.
   */
  static async open(name: string, root: string, shared: SharedIntake, clock: Clock): Promise<SharedBodyStore> {
    const incoming = new Incoming(root);
    try {
      await incoming.open();
      refuseOwnBodies(name, root);
      await incoming.sweep();
    } catch (cause) {
      if (cause instanceof ConfigError) throw cause;
      throw startFault("HG-INTK-001", { operation: "open intake", subject: root, cause });
    }
    const secret = await shared.secret(name, randomBytes(SECRET_BYTES));
    return new SharedBodyStore(name, secret, { shared, clock, incoming });
  }

  /** Of all gateways. */
  async waitingBytes(): Promise<number> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#waiting === null || this.#waiting.untilMs < nowMs)
      this.#waiting = { bytes: this.#shared.waitingBytes(this.#name), untilMs: nowMs + WAITING_KNOWN_MS };
    return await this.#waiting.bytes;
  }

  async receive(stream: Readable, _nowMs: number, bytesMax: number): Promise<Received> {
    const id = await this.#shared.nextId(this.#name);
    const received = await this.#incoming.receive(id, stream, bytesMax);
    // The ids of the server order the bodies of all gateways, whatever their clocks say.
    return { ...received, mtime: String(BigInt(id) * 1_000n) };
  }

  bytes(received: Received): Promise<Buffer> {
    return this.#incoming.bytes(received);
  }

  discard(received: Received): Promise<void> {
    return this.#incoming.discard(received);
  }

  async publish(received: Received, receipt: Receipt): Promise<Repeat | { readonly kind: "taken" }> {
    try {
      const body = sharedBody(receipt);
      const published = await this.#shared.publish(this.#name, body, this.#incoming.read(received));
      if (published.kind !== "repeat") return published;
      return { kind: "repeat", receipt: receiptOf(published.record) };
    } finally {
      await this.#incoming.discard(received);
    }
  }

  waiting(signal: AbortSignal): AsyncGenerator<Receipt> {
    return waitingReceipts(this.#shared, this.#name, signal);
  }

  async byPath(path: string): Promise<Receipt | null> {
    const record = await this.#shared.record(this.#name, path);
    return record === null ? null : receiptOf(record);
  }

  async stat(path: string): Promise<FileEntry | null> {
    const found = await this.#shared.stat(this.#name, path);
    return found === null ? null : { path, ...found };
  }

  fetch(entries: readonly FileEntry[], destination: string, signal: AbortSignal) {
    const drop = { name: this.#name };
    return fetchEach(drop, entries, destination, (entry, to) => this.#fetchOne(entry, to, signal));
  }

  async #fetchOne(entry: FileEntry, destination: Destination, signal: AbortSignal): Promise<FetchedFile> {
    this.#refuseEnded("fetch file", signal);
    const pieces = await this.#shared.open(this.#name, entry.path);
    if (pieces === null) throw vanished(this.#name, entry.path);
    const receiver = await openReceiver(this.#name, entry, destination);
    try {
      for await (const piece of pieces) {
        this.#refuseEnded("fetch file", signal);
        await receiver.write(piece);
      }
      return await receiver.finish();
    } finally {
      await receiver.close();
    }
  }

  /** A body never changes, so only its presence is checked. */
  finish(planned: readonly FinishPlanned[]) {
    return settleEach(planned, ({ entry, plan }) => this.#finishOne(entry, plan));
  }

  async #finishOne({ path, size }: FileEntry, plan: FinishPlan): Promise<FinishResult> {
    planInside(this.#name, { path }, plan);
    if (plan.action === "leave") return "done";
    if (plan.action === "delete") {
      await this.#shared.remove(this.#name, path);
      return "done";
    }
    if ((await this.stat(path)) === null) {
      const there = await this.stat(plan.to);
      return there?.size === size ? "done" : "gone";
    }
    if (await this.#shared.move(this.#name, path, plan.to)) return "done";
    throw new RejectedError("HG-DROP-009", {
      operation: "archive source file",
      subject: `${this.#name}: ${path}`,
      message: `${path} cannot be moved to ${plan.to} in drop ${this.#name}: another file is there`,
    });
  }

  async clearArchive(clearing: ArchiveClearing, signal: AbortSignal): Promise<number> {
    const { folder, isOld, limit } = clearing;
    let cleared = 0;
    for (let after = "", more = true; more && cleared < limit; ) {
      const paths = await this.#shared.below(this.#name, folder, after, PAGE);
      for (const path of paths.filter(isOld).slice(0, limit - cleared)) {
        this.#refuseEnded("clear archive", signal);
        await this.#shared.remove(this.#name, path);
        cleared += 1;
      }
      after = paths.at(-1) ?? after;
      more = paths.length === PAGE;
    }
    return cleared;
  }

  async forget(beforeMs: number): Promise<void> {
    await this.#shared.forget(this.#name, Math.max(0, Math.trunc(beforeMs) * 1_000));
  }

  watch(onChange: () => void): () => Promise<void> {
    const stop = new AbortController();
    const loop = async () => {
      let seen = 0;
      while (await this.#clock.sleep(LOOK_EVERY_MS, stop.signal)) {
        // A failed check has no effect: the next poll lists, and reports the fault.
        const newest = await this.#shared.newest(this.#name).catch(() => seen);
        if (newest > seen) onChange();
        seen = newest;
      }
    };
    const running = loop();
    return async () => {
      stop.abort();
      await running;
    };
  }

  async close(): Promise<void> {
    this.#closing.abort();
  }

  #refuseEnded(operation: string, signal: AbortSignal): void {
    if (signal.aborted || this.#closing.signal.aborted) throw interrupted(this.#name, operation, signal.reason);
  }
}

/** Waiting bodies in the ledger. */
export async function* waitingReceipts(
  shared: Pick<SharedIntake, "waiting">,
  name: string,
  signal: AbortSignal,
): AsyncGenerator<Receipt> {
  for (let after = 0, more = true; more; ) {
    if (signal.aborted) throw interrupted(name, "list drop", signal.reason);
    const some = await shared.waiting(name, after, PAGE);
    for (const { record } of some) yield receiptOf(record);
    after = some.at(-1)?.id ?? after;
    more = some.length === PAGE;
  }
}

/** A gateway that was single before may have acknowledged bodies, which a shared ledger must not lose. */
function refuseOwnBodies(name: string, root: string): void {
  const path = join(root, RECEIPTS_FILE);
  if (!existsSync(path)) return;
  const receipts = Receipts.toRead(path);
  try {
    const [first] = receipts.waiting();
    if (first === undefined) return;
    throw new ConfigError("HG-INTK-003", {
      operation: "open intake",
      subject: name,
      message:
        `${root} contains bodies that the intake ${name} received while its gateway had a ledger of its own, ` +
        `such as ${first.path}`,
    });
  } finally {
    receipts.close();
  }
}

function sharedBody(receipt: Receipt): SharedBody {
  const { id, path, size, mtime, sha256, route, username, operationId, idempotencyKey } = receipt;
  return {
    ...{ id, path, size, mtime },
    content: digestOf(route, sha256),
    byOperation: operationId === null ? null : digestOf(username, operationId, route, sha256),
    keyed: idempotencyKey === null ? null : digestOf(username, idempotencyKey),
    record: JSON.stringify(receipt),
  };
}

function receiptOf(record: string): Receipt {
  return JSON.parse(record) as Receipt;
}

function digestOf(...words: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(words)).digest("hex");
}
