/** Writes the bytes of a drop into a local file, and computes digest and size on the way. */
import { createHash } from "node:crypto";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import { systemCode, TransientError, wordsOf } from "#core/errors.ts";
import type { FetchedFile, FileEntry } from "../model.ts";
import { changedWhileFetched } from "./refusals.ts";

export interface Receiver {
  /** Bytes written so far. */
  readonly bytes: number;
  /** Refuses more bytes than the entry has. */
  write(chunk: Uint8Array): Promise<void>;
  /** Discards the received bytes: the file comes again from the first byte. */
  restart(): Promise<void>;
  /** Syncs; refuses fewer bytes than the entry has. */
  finish(): Promise<FetchedFile>;
  /** Always called, also after `finish`. */
  close(): Promise<void>;
}

/** A place in a local file for the bytes. */
export interface Destination {
  readonly path: string;
  readonly offset: number;
  /** The file receives others as well, and was created before. */
  readonly isShared: boolean;
}

/** Creates or empties a file that several files are written into. */
export function makeDestination(drop: string, path: string): Promise<void> {
  return local(drop, path, async () => (await create(path)).close());
}

export async function openReceiver(drop: string, entry: FileEntry, to: Destination): Promise<Receiver> {
  let digest = createHash("sha256");
  let bytes = 0;
  const destination = to.path;
  const handle = await local(drop, destination, () => (to.isShared ? open(destination, "r+") : create(destination)));
  return {
    get bytes() {
      return bytes;
    },
    async write(chunk) {
      if (bytes + chunk.byteLength > entry.size)
        throw changedWhileFetched(drop, entry, `more than ${entry.size} bytes came`);
      const written = local(drop, destination, async () => {
        for (let at = 0; at < chunk.byteLength; ) {
          const { bytesWritten } = await handle.write(chunk, at, chunk.byteLength - at, to.offset + bytes + at);
          at += bytesWritten;
        }
      });
      // While it is written. A receiver whose disk failed is not used again.
      digest.update(chunk);
      await written;
      bytes += chunk.byteLength;
    },
    async restart() {
      if (!to.isShared) await local(drop, destination, () => handle.truncate(0));
      digest = createHash("sha256");
      bytes = 0;
    },
    async finish() {
      if (bytes !== entry.size) throw changedWhileFetched(drop, entry, `${bytes} bytes came instead of ${entry.size}`);
      await local(drop, destination, () => handle.sync());
      return { bytes, sha256: digest.digest("hex") };
    },
    close: () => handle.close(),
  };
}

async function create(destination: string): Promise<FileHandle> {
  try {
    return await open(destination, "w");
  } catch (thrown) {
    if (systemCode(thrown) !== "ENOENT") throw thrown;
    await mkdir(dirname(destination), { recursive: true });
    return await open(destination, "w");
  }
}

/** A full local disk must not look like a fault of the drop. */
async function local<T>(drop: string, destination: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    throw new TransientError("HG-DROP-013", {
      operation: "write fetched copy",
      subject: `${drop}: ${destination}`,
      message: `the copy ${destination} cannot be written: ${wordsOf(thrown)}`,
      cause: thrown,
    });
  }
}
