/**
 * Bodies while they are received: a file each, below `incoming/`, without any guarantee until it is
 * published.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { PRIVATE_FILE } from "#core/private-files.ts";
import { BodyTooLarge, type Received } from "./body-store.ts";

export class Incoming {
  readonly folder: string;

  constructor(root: string) {
    this.folder = join(root, "incoming");
  }

  async open(): Promise<void> {
    await mkdir(this.folder, { recursive: true });
  }

  /** Synced. Throws `BodyTooLarge`; then, and when the sender disconnects, no bytes remain. */
  async receive(id: number, stream: Readable, bytesMax: number): Promise<Received> {
    const temporary = join(this.folder, String(id));
    try {
      const file = await open(temporary, "wx", PRIVATE_FILE);
      const hash = createHash("sha256");
      let size = 0;
      try {
        // The stream is not destroyed on a refusal: its connection still has to carry the response.
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

  bytes({ temporary }: Received): Promise<Buffer> {
    return readFile(temporary);
  }

  /** Opened on the first read: a repetition is not read. */
  async *read({ temporary }: Received): AsyncGenerator<Buffer> {
    yield* createReadStream(temporary) as AsyncIterable<Buffer>;
  }

  discard({ temporary }: Received): Promise<void> {
    return rm(temporary, { force: true });
  }

  /** Removes the files that the last process left here. */
  async sweep(): Promise<void> {
    for (const name of await this.left()) await rm(join(this.folder, name), { force: true });
  }

  /** Names of the files that the last process left here: the ids of their receipts. */
  left(): Promise<readonly string[]> {
    return readdir(this.folder);
  }
}
