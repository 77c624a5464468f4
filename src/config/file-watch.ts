/**
 * Watches the files that a configuration was read from. Polling is the truth; file-system events only make it sooner.
 * Files may be written in place, replaced by a rename, or be links whose target changes; a change is reported once
 * the files have settled.
 */
import { type BigIntStats, promises as fs } from "node:fs";
import { watch } from "chokidar";
import type { Clock } from "../support/clock.ts";
import { systemCode } from "../support/errors.ts";

/** Editors write in several steps: files that have not changed for this time are complete. */
const SETTLE_MS = 250;

export interface FileWatchParts {
  /** Absolute paths, read at each check. */
  paths(): readonly string[];
  /** Longest time between two checks, in milliseconds. */
  everyMs(): number;
  /** Must not reject. Not called again before it has resolved. */
  onChange(): Promise<void>;
  readonly clock: Clock;
}

export class FileWatch {
  readonly #parts: FileWatchParts;
  readonly #stop = new AbortController();
  readonly #events;
  #pause: AbortController | null = null;
  #asked = false;
  #known: string;
  readonly #running: Promise<void>;

  /** The state of the files at this call is the baseline: call it before they are read. */
  static async start(parts: FileWatchParts): Promise<FileWatch> {
    return new FileWatch(parts, await stampsOf(parts.paths()));
  }

  private constructor(parts: FileWatchParts, known: string) {
    this.#parts = parts;
    this.#known = known;
    this.#events = watch([...parts.paths()], { ignoreInitial: true, ignorePermissionErrors: true });
    this.#events.on("all", () => this.#pause?.abort());
    // Where the file system sends no events, polling suffices.
    this.#events.on("error", () => undefined);
    this.#running = this.#run();
  }

  /** Reads the files again at once, whether or not they changed. */
  checkNow(): void {
    this.#asked = true;
    this.#pause?.abort();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#pause?.abort();
    await this.#running;
    await this.#events.close();
  }

  async #run(): Promise<void> {
    const { clock, everyMs, onChange, paths } = this.#parts;
    while (!this.#stop.signal.aborted) {
      this.#pause = new AbortController();
      if (!this.#asked) await clock.sleep(everyMs(), this.#pause.signal);
      if (this.#stop.signal.aborted) return;
      const asked = this.#asked;
      this.#asked = false;
      const found = asked ? await stampsOf(paths()) : await this.#settled();
      if (!asked && found === this.#known) continue;
      this.#known = found;
      await onChange();
      if (this.#stop.signal.aborted) return;
      // A change may name other files.
      this.#events.add([...paths()]);
      this.#known = this.#known === found ? await this.#withNewPaths(found) : this.#known;
    }
  }

  /** Files newly named by the last read count as known when all other files are unchanged. */
  async #withNewPaths(found: string): Promise<string> {
    const now = await stampsOf(this.#parts.paths());
    const before = new Set(found.split("\n"));
    const changed = now.split("\n").filter((line) => !before.has(line));
    const pathsBefore = new Set([...before].map(pathOf));
    return changed.some((line) => pathsBefore.has(pathOf(line))) ? found : now;
  }

  async #settled(): Promise<string> {
    let found = await stampsOf(this.#parts.paths());
    while (found !== this.#known && !this.#stop.signal.aborted) {
      await this.#parts.clock.sleep(SETTLE_MS, this.#stop.signal);
      const again = await stampsOf(this.#parts.paths());
      if (again === found) return found;
      found = again;
    }
    return found;
  }
}

/** A line for each file: its path and its stamp, which differs for another file or other content. */
async function stampsOf(paths: readonly string[]): Promise<string> {
  const lines = await Promise.all(paths.map(async (path) => `${path}\t${await stampOf(path)}`));
  return lines.join("\n");
}

function pathOf(line: string): string {
  return line.slice(0, line.lastIndexOf("\t"));
}

async function stampOf(path: string): Promise<string> {
  try {
    const { size, mtimeNs, ctimeNs, ino }: BigIntStats = await fs.stat(path, { bigint: true });
    return `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch (thrown) {
    return systemCode(thrown) ?? "unknown";
  }
}
