/**
 * The spool's copies of containers, from which their entries are fetched. A copy that was lost is fetched
 * again, and must be the same.
 */
import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { basename } from "node:path/posix";
import { pipeline } from "node:stream/promises";
import { publishDurably, syncFile } from "#core/durable.ts";
import type { FetchedFile, Run, UnpackLimits } from "../../model.ts";
import type { Spool } from "../../spool/spool.ts";
import { changedContainer, type Directory, directoryOf, openEntry, unpackFault } from "./container.ts";

/** Fetches the container itself again, from its drop or out of its own container. */
export type FetchAgain = (destination: string) => Promise<FetchedFile>;

/**
 * Directories of containers that are kept in memory; the entries of one container are mostly fetched one
 * after another.
 */
const DIRECTORIES_MAX = 4;

export class ContainerCopies {
  readonly #spool: Spool;
  readonly #directories = new Map<string, Promise<Directory>>();
  /** Several entries may miss the copy at once; it is fetched again once. */
  readonly #returning = new Map<string, Promise<void>>();

  constructor(spool: Spool) {
    this.#spool = spool;
  }

  /** Unpacks one entry into a local file, synced before it returns. */
  async extract(
    container: Run,
    entryPath: string,
    destination: string,
    facts: { readonly again: FetchAgain; readonly signal: AbortSignal },
  ): Promise<FetchedFile> {
    await this.#ensureCopy(container, facts.again);
    const path = this.#spool.inputPath(container.id);
    const digest = createHash("sha256");
    let bytes = 0;
    try {
      const entry = await openEntry(path, basename(container.path), entryPath, await this.#directory(container));
      entry.on("data", (chunk: Buffer) => {
        digest.update(chunk);
        bytes += chunk.length;
      });
      await pipeline(entry, createWriteStream(destination), { signal: facts.signal });
      await syncFile(destination);
    } catch (thrown) {
      if (facts.signal.aborted) throw thrown;
      throw unpackFault(thrown);
    }
    return { bytes, sha256: digest.digest("hex") };
  }

  #directory(container: Run): Promise<Directory> {
    const known = this.#directories.get(container.id);
    if (known !== undefined) return known;
    const directory = directoryOf(this.#spool.inputPath(container.id), basename(container.path), limitsOf(container));
    directory.catch(() => this.#directories.delete(container.id)); // Each caller receives the error.
    this.#directories.set(container.id, directory);
    const [oldest] = this.#directories.keys();
    if (this.#directories.size > DIRECTORIES_MAX && oldest !== undefined) this.#directories.delete(oldest);
    return directory;
  }

  async #ensureCopy(container: Run, again: FetchAgain): Promise<void> {
    const isKnown = this.#directories.has(container.id);
    if (isKnown && (await this.#spool.hasInput(container.id))) return;
    let returning = this.#returning.get(container.id);
    if (returning === undefined) {
      returning = this.#bringBack(container, again).finally(() => this.#returning.delete(container.id));
      this.#returning.set(container.id, returning);
    }
    await returning;
  }

  async #bringBack(container: Run, again: FetchAgain): Promise<void> {
    const { id, sha256 } = container;
    if (await this.#spool.hasWholeInput(id, sha256)) return;
    if (await this.#spool.restoreInput(id, id, sha256)) return;
    const path = this.#spool.inputPath(container.id);
    const temporary = `${path}.part`;
    const fetched = await again(temporary);
    if (fetched.sha256 === container.sha256) return publishDurably(temporary, path);
    await rm(temporary, { force: true });
    throw changedContainer(container.path);
  }
}

/** The limits of a run that opens a container. */
export function limitsOf(container: Run): UnpackLimits {
  return container.binding.unpack ?? { entriesMax: 0, sizeMax: 0, ratioMax: 0, ignore: [], names: "utf-8" };
}
