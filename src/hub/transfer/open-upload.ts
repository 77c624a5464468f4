/**
 * A file that a sender is writing. Clients send many writes at one time, and in any order; they reach the disk in
 * the order of their positions. So the size of a file that broke off is what it holds, also after a crash.
 */
import type { FileHandle } from "node:fs/promises";
import { TreeFault, toFault, type Upload } from "./file-tree.ts";

/** A file up to this size that comes in its order is kept in memory as well: it need not be read to be taken. */
const KEPT_BYTES = 64 * 1024;
const CHUNK_BYTES = 64 * 1024;
/** Bytes that may wait for those before them. */
const AHEAD_BYTES_MAX = 8 * 1024 * 1024;

export interface OpenUploadParts {
  readonly handle: FileHandle;
  readonly size: number;
  /** Milliseconds of the epoch; null: just now. */
  readonly modifiedMs: number | null;
  /** Reserves space for further bytes; throws `TreeFault`. */
  readonly grow: (bytes: number, size: number) => Promise<void> | void;
  readonly shrink: (bytes: number) => void;
  /** Closes the file; with `isWanted`, takes it before. */
  readonly finish: (upload: OpenUpload, isWanted: (() => boolean) | null) => Promise<void>;
}

interface Write {
  readonly bytes: Uint8Array;
  readonly position: number;
  readonly done: (fault: Error | null) => void;
}

export class OpenUpload implements Upload {
  readonly handle: FileHandle;
  readonly #parts: OpenUploadParts;
  #size: number;
  #modifiedMs: number | null;
  /** Null: only the file has them. */
  #kept: Uint8Array[] | null;
  #waiting: Write[] = [];
  #ahead = 0;
  #writing: Promise<void> | null = null;
  #fault: Error | null = null;
  #finished: Promise<void> | null = null;

  constructor(parts: OpenUploadParts) {
    this.#parts = parts;
    this.handle = parts.handle;
    this.#size = parts.size;
    this.#modifiedMs = parts.modifiedMs;
    this.#kept = parts.size === 0 ? [] : null;
  }

  get size(): number {
    return this.#size;
  }

  /** As its sender set it; null: when it was written last. */
  get modifiedMs(): number | null {
    return this.#modifiedMs;
  }

  /** All bytes, from the first one on. */
  content(): AsyncIterable<Uint8Array> | Iterable<Uint8Array> {
    return this.#kept ?? contentOf(this.handle, this.#size);
  }

  write(bytes: Uint8Array, position: number): Promise<void> {
    if (this.#fault !== null) return Promise.reject(this.#fault);
    return new Promise((resolve, reject) => {
      const done = (fault: Error | null) => (fault === null ? resolve() : reject(fault));
      this.#waiting.push({ bytes, position, done });
      this.#ahead += bytes.length;
      this.#writing ??= this.#writeAll();
    });
  }

  async truncate(size: number): Promise<void> {
    await this.#settled();
    if (this.#fault !== null) throw this.#fault;
    if (size > this.#size) throw new TreeFault("failed", "a file can be shortened, and not lengthened");
    this.#kept = null;
    await this.handle.truncate(size);
    this.#parts.shrink(this.#size - size);
    this.#size = size;
  }

  async setModified(ms: number): Promise<void> {
    await this.#settled();
    await this.handle.utimes(ms / 1_000, ms / 1_000);
    this.#modifiedMs = ms;
  }

  async close(isWanted: () => boolean = () => true): Promise<void> {
    await this.#settled();
    if (this.#waiting.length > 0) this.#fail(new TreeFault("failed", `bytes are missing from position ${this.#size}`));
    const fault = this.#fault;
    this.#fault ??= ended();
    await this.#finish(fault === null ? isWanted : null);
    if (fault !== null) throw fault;
  }

  abandon(): Promise<void> {
    return this.end(ended());
  }

  /** Calls of its sender get this fault from now on. */
  async end(fault: Error): Promise<void> {
    this.#fail(fault);
    await this.#settled();
    await this.#finish(null);
  }

  #finish(isWanted: (() => boolean) | null): Promise<void> {
    this.#finished ??= this.#parts.finish(this, isWanted);
    return this.#finished;
  }

  async #settled(): Promise<void> {
    while (this.#writing !== null) await this.#writing;
  }

  async #writeAll(): Promise<void> {
    try {
      // The caller sees this promise before the first write ends.
      await Promise.resolve();
      for (let next = this.#next(); next !== null; next = this.#next()) {
        await this.#put(next);
        next.done(null);
      }
      if (this.#ahead > AHEAD_BYTES_MAX)
        this.#fail(new TreeFault("failed", `bytes are missing from position ${this.#size}`));
    } catch (thrown) {
      this.#fail(toFault(thrown));
    } finally {
      this.#writing = null;
    }
  }

  #next(): Write | null {
    const at = this.#fault === null ? this.#waiting.findIndex(({ position }) => position <= this.#size) : -1;
    const [next = null] = at < 0 ? [] : this.#waiting.splice(at, 1);
    this.#ahead -= next?.bytes.length ?? 0;
    return next;
  }

  async #put({ bytes, position, done }: Write): Promise<void> {
    try {
      const end = position + bytes.length;
      if (position === this.#size && end <= KEPT_BYTES) this.#kept?.push(bytes);
      else this.#kept = null;
      if (end > this.#size) {
        await this.#parts.grow(end - this.#size, end);
        this.#size = end;
        this.#modifiedMs = null;
      }
      for (let at = 0; at < bytes.length; )
        at += (await this.handle.write(bytes, at, bytes.length - at, position + at)).bytesWritten;
    } catch (thrown) {
      done(toFault(thrown));
      throw thrown;
    }
  }

  #fail(fault: Error): void {
    this.#fault ??= fault;
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#ahead = 0;
    for (const { done } of waiting) done(this.#fault);
  }
}

export async function* contentOf(handle: FileHandle, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < size; ) {
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, size - at)), {
      position: at,
    });
    if (bytesRead === 0) return;
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

function ended(): TreeFault {
  return new TreeFault("failed", "the file is closed");
}
