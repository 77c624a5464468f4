/**
 * The bytes of bodies, below `<spool>/intake/<drop>`: received under `incoming/<id>`, synced, and renamed to where the drop lists
 * them once their receipt is committed.
 */
import { createHash } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { syncDirectory } from "../../support/durable.ts";
import { ConfigError } from "../../support/errors.ts";
import { faultPoint } from "../../support/faults.ts";
import type { Logger } from "../../support/log.ts";
import { RECEIPTS_FILE, type Receipt, Receipts, type Repeat } from "./receipts.ts";

/** Bytes on their way, under a temporary name. */
export interface Received {
  readonly id: number;
  readonly temporary: string;
  readonly size: number;
  readonly mtime: string;
  readonly sha256: string;
}

export class BodyTooLarge extends Error {}

export class Bodies {
  readonly receipts: Receipts;
  /** Holds what the drop lists. */
  readonly folder: string;
  readonly #incoming: string;
  readonly #made = new Set<string>();
  /** Bodies on their way to their names, by id. */
  readonly #placing = new Map<number, Promise<void>>();

  private constructor(root: string, receipts: Receipts) {
    this.receipts = receipts;
    this.folder = join(root, "bodies");
    this.#incoming = join(root, "incoming");
  }

  /** Completes what the last process had promised, and removes what it had not. */
  static async open(root: string, log: Logger): Promise<Bodies> {
    try {
      for (const folder of ["bodies", "incoming"]) await mkdir(join(root, folder), { recursive: true });
      await syncDirectory(root);
      const bodies = new Bodies(root, new Receipts(join(root, RECEIPTS_FILE)));
      await bodies.#recover(log);
      return bodies;
    } catch (cause) {
      throw new ConfigError("HG-INTK-001", { operation: "open intake", subject: root, cause });
    }
  }

  /** Throws `BodyTooLarge`; then, and when the sender goes away, nothing stays. */
  async receive(stream: Readable, nowMs: number, bytesMax: number): Promise<Received> {
    const id = this.receipts.nextId(nowMs);
    const temporary = join(this.#incoming, String(id));
    try {
      const file = await open(temporary, "wx", 0o640);
      const hash = createHash("sha256");
      let size = 0;
      try {
        // The stream is not destroyed when we turn away: its connection still has to carry our answer.
        for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
          const bytes = chunk as Buffer;
          size += bytes.length;
          if (size > bytesMax) throw new BodyTooLarge();
          hash.update(bytes);
          for (let done = 0; done < bytes.length; )
            done += (await file.write(bytes, done, bytes.length - done)).bytesWritten;
        }
        await file.sync();
        const { mtimeNs } = await file.stat({ bigint: true });
        return { id, temporary, size, mtime: String(mtimeNs), sha256: hash.digest("hex") };
      } finally {
        await file.close();
      }
    } catch (thrown) {
      await rm(temporary, { force: true });
      throw thrown;
    }
  }

  bytes(received: Received): Promise<Buffer> {
    return readFile(received.temporary);
  }

  /**
   * Durable when it resolves: the receipt first, then the body under its name. A repeat of an earlier body is not taken;
   * that one is durable, too, when this resolves.
   */
  async publish(received: Received, receipt: Receipt): Promise<Repeat | { readonly kind: "taken" }> {
    const path = join(this.folder, receipt.path);
    const repeat = this.receipts.repeatOf(receipt);
    if (repeat !== null) {
      await rm(received.temporary, { force: true });
      if (repeat.kind === "repeat") await this.#placing.get(repeat.receipt.id);
      return repeat;
    }
    this.receipts.add(receipt);
    const placing = this.#place(received.temporary, path);
    this.#placing.set(receipt.id, placing);
    try {
      await placing;
      this.receipts.placed(receipt);
      return { kind: "taken" };
    } catch (thrown) {
      // The sender is told that it was not taken; should the name be there all the same, it is nobody's.
      this.receipts.withdraw(receipt);
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
    return rm(received.temporary, { force: true });
  }

  close(): void {
    this.receipts.close();
  }

  async #makeFolder(folder: string): Promise<void> {
    if (this.#made.has(folder)) return;
    const first = await mkdir(folder, { recursive: true });
    if (first !== undefined) {
      for (let at = folder; at.length >= dirname(first).length; at = dirname(at)) await syncDirectory(at);
    }
    // Storage has a folder of its own for each body, so these are not remembered.
    if (dirname(folder) === this.folder) this.#made.add(folder);
  }

  async #recover(log: Logger): Promise<void> {
    let completed = 0;
    for (const name of await readdir(this.#incoming)) {
      const temporary = join(this.#incoming, name);
      const receipt = this.receipts.byId(Number(name));
      if (receipt === null) {
        await rm(temporary, { force: true });
        continue;
      }
      await this.#place(temporary, join(this.folder, receipt.path));
      completed += 1;
    }
    if (completed > 0) log.info({ completed }, "bodies that the last process had taken were put in place");
  }
}
