/**
 * Stored bytes in a folder: `ab/<digest>` by the first digits of the digest, `incoming/` while they are received, and
 * `removing/` for the moment in which it is decided whether they are still needed. Several hubs may share the folder.
 */
import { randomUUID } from "node:crypto";
import { type FileHandle, link, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import type { Clock } from "#core/clock.ts";
import { Collector } from "#core/collector.ts";
import { syncDirectory, writeDurably } from "#core/durable.ts";
import { ConfigError, systemCode, wordsOf } from "#core/errors.ts";
import { PRIVATE_FILE, PRIVATE_FOLDER } from "#core/private-files.ts";
import { settleEach } from "#core/promises.ts";
import { startFault } from "#core/start-fault.ts";
import { besideModule } from "#core/threads/beside.ts";
import { DiskThread } from "#core/threads/disk-thread.ts";
import { BlobMissing, type BlobStore, type ByteRange, type Content, type IsReferred, type PutBlob } from "./blobs.ts";
import type { FolderAnswer, FolderOrder, Placed } from "./folder-work.ts";
import { Holds } from "./holds.ts";
import { receive } from "./received.ts";

/** Contents of one list; with `SMALL_BYTES` they are this much memory. */
const LIST_MAX = 64;

const SHARD = /^[0-9a-f]{2}$/;
/** Larger contents are written while they come. */
const SMALL_BYTES = 64 * 1024;
const DIGEST = /^[0-9a-f]{64}$/;
/** Names the store whose files these are. */
const OWNER = "store";

export interface FolderParts {
  readonly path: string;
  /** `FileStore.folderId`. */
  readonly storeId: string;
  /**
   * Younger bytes are not removed, since another hub may be about to commit their record; 0 when no other hub uses the
   * folder.
   */
  readonly graceMs: number;
  readonly clock: Clock;
}

/** Throws when the folder cannot be used: `ConfigError`, or `TransientError` where that may pass by itself. */
export async function openFolderBlobs(parts: FolderParts): Promise<BlobStore> {
  const { path } = parts;
  try {
    for (const folder of [path, join(path, "incoming"), join(path, "removing")])
      await mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER });
    await syncDirectory(dirname(path));
    await claim(parts);
    const blobs = new FolderBlobs(parts);
    await blobs.recover();
    return blobs;
  } catch (thrown) {
    if (thrown instanceof ConfigError) throw thrown;
    throw startFault("HG-HUB-001", {
      operation: "open stored files",
      subject: path,
      message: `the folder of stored files cannot be used: ${wordsOf(thrown)}`,
      hint: "Check `files.path`, and that the hub may write there.",
      cause: thrown,
    });
  }
}

/** Another store would take all files of this one for orphans, and remove them. */
async function claim({ path, storeId }: FolderParts): Promise<void> {
  const file = join(path, OWNER);
  const owner = await readText(file);
  if (owner === null) return writeDurably(file, `${storeId}\n`);
  if (owner.trim() === storeId) return;
  throw new ConfigError("HG-HUB-001", {
    operation: "open stored files",
    subject: path,
    message: `the folder holds the files of another store of a hub (${owner.trim()}, and this one is ${storeId})`,
    hint:
      "Give this hub a `files.path` of its own. If its store was made again, and the files are to be given up: " +
      "empty the folder.",
  });
}

async function readText(path: string): Promise<string | null> {
  try {
    await using handle = await open(path, "r");
    return await handle.readFile("utf8");
  } catch (thrown) {
    if (systemCode(thrown) === "ENOENT") return null;
    throw thrown;
  }
}

class FolderBlobs implements BlobStore {
  readonly #path: string;
  readonly #graceMs: number;
  readonly #clock: Clock;
  /** Files of the uploads that are being received. */
  readonly #receiving = new Set<string>();
  readonly #holds = new Holds();
  readonly #thread: DiskThread<FolderOrder, FolderAnswer>;
  readonly #placement: ReturnType<typeof placement>;

  constructor({ path, graceMs, clock }: FolderParts) {
    this.#path = path;
    this.#graceMs = graceMs;
    this.#clock = clock;
    this.#thread = new DiskThread({ module: besideModule(import.meta.url, "folder-worker"), data: null });
    this.#placement = placement(this.#thread, (content) => this.#placeAlone(content));
  }

  async put(content: Content, bytesMax: number): Promise<PutBlob> {
    const temporary = join(this.#path, "incoming", randomUUID());
    let release = () => {};
    this.#receiving.add(temporary);
    try {
      const limits = { bytesMax, smallMax: SMALL_BYTES };
      const { sha256, bytes, head, small } = await receive(content, temporary, limits);
      release = this.#holds.hold(sha256);
      await this.#holds.removed(sha256);
      // Also when the content is there already: its age begins again, which keeps other hubs from removing it.
      if (small === null) await this.#place(temporary, this.#fileOf(sha256));
      else await this.#placement.add({ bytes: small, temporary, file: this.#fileOf(sha256) });
      return { sha256, bytes, head, release };
    } catch (thrown) {
      release();
      await rm(temporary, { force: true });
      throw thrown;
    } finally {
      this.#receiving.delete(temporary);
    }
  }

  async read(sha256: string, range?: ByteRange): Promise<Readable> {
    const handle = await this.#open(sha256);
    return handle.createReadStream(range ?? {});
  }

  async copy(sha256s: readonly string[], destination: string, signal: AbortSignal) {
    const files = sha256s.map((sha256) => this.#fileOf(sha256));
    const copied = await this.#thread.ask({ kind: "copy", files, destination }, signal);
    return sha256s.map((_, at) => {
      const one = copied?.[at];
      return typeof one === "object" ? one : null;
    });
  }

  async local(sha256: string) {
    await (await this.#open(sha256)).close();
    return { path: this.#fileOf(sha256), end: async () => undefined };
  }

  remove(sha256: string, isReferred: IsReferred): Promise<void> {
    return this.#holds.remove(sha256, () => this.#removeUnreferred(sha256, isReferred));
  }

  async collect(referred: (sha256s: readonly string[]) => Promise<ReadonlySet<string>>): Promise<number> {
    await this.recover();
    const isReferred = async (sha256: string) => (await referred([sha256])).has(sha256);
    let removed = 0;
    for (const shard of await readdir(this.#path)) {
      if (!SHARD.test(shard)) continue;
      const digests = (await readdir(join(this.#path, shard))).filter((name) => DIGEST.test(name));
      const needed = await referred(digests);
      for (const sha256 of digests) {
        if (needed.has(sha256) || this.#holds.isHeld(sha256)) continue;
        await this.remove(sha256, isReferred);
        if (!(await isThere(this.#fileOf(sha256)))) removed += 1;
      }
    }
    return removed;
  }

  close(): Promise<void> {
    return this.#thread.close();
  }

  /** Removes what broken-off uploads left, and takes back what a process that ended was about to remove. */
  async recover(): Promise<void> {
    for (const name of await readdir(join(this.#path, "incoming"))) {
      const file = join(this.#path, "incoming", name);
      if (!this.#receiving.has(file) && (await this.#isOld(file))) await rm(file, { force: true });
    }
    for (const name of await readdir(join(this.#path, "removing"))) {
      const [sha256 = ""] = name.split(".");
      if (!this.#holds.isRemoving(sha256)) await this.#takeBack(join(this.#path, "removing", name), sha256);
    }
  }

  async #removeUnreferred(sha256: string, isReferred: IsReferred): Promise<void> {
    const file = this.#fileOf(sha256);
    if (!(await isThere(file)) || !(await this.#isOld(file)) || (await isReferred(sha256))) return;
    // Under another name it can be judged for certain: another hub that takes this content now makes a file of its own.
    const aside = join(this.#path, "removing", `${sha256}.${randomUUID()}`);
    if (!(await renamed(file, aside))) return;
    if (!(await this.#isOld(aside)) || (await isReferred(sha256))) await this.#takeBack(aside, sha256);
    else await rm(aside, { force: true });
  }

  async #takeBack(aside: string, sha256: string): Promise<void> {
    try {
      await link(aside, this.#fileOf(sha256));
      await syncDirectory(dirname(this.#fileOf(sha256)));
    } catch (thrown) {
      // The same content came again, or another hub was first.
      if (!["EEXIST", "ENOENT"].includes(systemCode(thrown) ?? "")) throw thrown;
    }
    await rm(aside, { force: true });
  }

  async #placeAlone({ bytes, temporary, file }: Placed): Promise<void> {
    // The thread may have written it in part.
    await rm(temporary, { force: true });
    await using handle = await open(temporary, "wx", PRIVATE_FILE);
    await handle.writeFile(bytes);
    await handle.sync();
    await this.#place(temporary, file);
  }

  async #place(temporary: string, file: string): Promise<void> {
    const made = await mkdir(dirname(file), { recursive: true, mode: PRIVATE_FOLDER });
    if (made !== undefined) await syncDirectory(this.#path);
    await rename(temporary, file);
    await syncDirectory(dirname(file));
  }

  async #open(sha256: string): Promise<FileHandle> {
    // Another hub may be judging it at this moment: then it is back at once.
    for (const isLast of [false, true]) {
      try {
        return await open(this.#fileOf(sha256), "r");
      } catch (thrown) {
        if (systemCode(thrown) !== "ENOENT") throw thrown;
        if (isLast) throw new BlobMissing(sha256);
        await this.#holds.removed(sha256);
        if (this.#graceMs > 0) await this.#clock.sleep(100);
      }
    }
    throw new BlobMissing(sha256);
  }

  async #isOld(path: string): Promise<boolean> {
    if (this.#graceMs === 0) return true;
    try {
      return this.#clock.now().epochMilliseconds - (await stat(path)).mtimeMs > this.#graceMs;
    } catch (thrown) {
      if (systemCode(thrown) === "ENOENT") return false;
      throw thrown;
    }
  }

  #fileOf(sha256: string): string {
    return join(this.#path, sha256.slice(0, 2), sha256);
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (thrown) {
    if (systemCode(thrown) === "ENOENT") return false;
    throw thrown;
  }
}

async function renamed(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (thrown) {
    if (systemCode(thrown) === "ENOENT") return false;
    throw thrown;
  }
}

// Places small contents that come at one moment as one list, by a thread; and what fails, by `placeOne`.

/** A content is durable when its promise resolves. */
function placement(
  thread: DiskThread<FolderOrder, FolderAnswer>,
  placeOne: (content: Placed) => Promise<void>,
): Collector<Placed, void> {
  return new Collector(async (list) => {
    const done = await thread.ask({ kind: "place", list });
    return await settleEach(list, async (content, at) => {
      if (done?.[at] !== true) await placeOne(content);
    });
  }, LIST_MAX);
}
