/** Files that people try mappers with, in a folder of the spool until they expire, or the gateway stops or starts. */
import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, rm, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Clock } from "#core/clock.ts";
import { PRIVATE_FOLDER } from "#core/private-files.ts";

/** The oldest of more is removed. */
const SAMPLES_MAX = 20;
const KEPT_MS = 60 * 60_000;

export interface Sample {
  /** Of the local copy; it ends like the name, since workbooks are known by that. */
  readonly path: string;
  readonly name: string;
  /** At its drop, or the name. */
  readonly filePath: string;
  readonly bytes: number;
}

interface Kept {
  readonly sample: Promise<Sample>;
  readonly atMs: number;
}

export class Samples {
  readonly #clock: Clock;
  readonly #folder: string;
  /** Oldest first. */
  readonly #kept = new Map<string, Kept>();

  /** `folder`: of the spool, which removes at its start what a crash left there. */
  constructor(folder: string, clock: Clock) {
    this.#folder = folder;
    this.#clock = clock;
  }

  /** Returns its id. */
  async add(
    name: string,
    content: AsyncIterable<Uint8Array>,
  ): Promise<{ readonly id: string; readonly bytes: number }> {
    const id = randomUUID();
    const { bytes } = await this.hold(id, { name, filePath: name }, (path) =>
      pipeline(content, createWriteStream(path)),
    );
    return { id, bytes };
  }

  /** Null when it is unknown, or was removed. */
  async find(id: string): Promise<Sample | null> {
    await this.#removeOld();
    return (await this.#kept.get(id)?.sample) ?? null;
  }

  /** The sample of this id, which `fill` writes when there is none yet. Throws the error of `fill`. */
  async hold(
    id: string,
    names: Pick<Sample, "name" | "filePath">,
    fill: (path: string) => Promise<void>,
  ): Promise<Sample> {
    await this.#removeOld();
    const known = this.#kept.get(id);
    if (known !== undefined) return await known.sample;
    const sample = this.#fill(names, fill);
    this.#kept.set(id, { sample, atMs: this.#now() });
    try {
      return await sample;
    } catch (thrown) {
      this.#kept.delete(id);
      throw thrown;
    }
  }

  async close(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
    this.#kept.clear();
  }

  async #fill(names: Pick<Sample, "name" | "filePath">, fill: (path: string) => Promise<void>): Promise<Sample> {
    await mkdir(this.#folder, { recursive: true, mode: PRIVATE_FOLDER });
    const ending = /^\.\w{1,8}$/.exec(extname(names.name))?.[0] ?? "";
    const path = join(this.#folder, `${randomUUID()}${ending}`);
    try {
      await fill(path);
      return { ...names, path, bytes: (await stat(path)).size };
    } catch (thrown) {
      await rm(path, { force: true });
      throw thrown;
    }
  }

  async #removeOld(): Promise<void> {
    const before = this.#now() - KEPT_MS;
    for (const [id, { sample, atMs }] of this.#kept) {
      if (atMs >= before && this.#kept.size < SAMPLES_MAX) return;
      this.#kept.delete(id);
      const path = await sample.then((one) => one.path).catch(() => null);
      if (path !== null) await rm(path, { force: true });
    }
  }

  #now(): number {
    return this.#clock.now().epochMilliseconds;
  }
}
