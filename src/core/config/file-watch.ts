/**
 * Watches the files that a configuration was read from. Polling is the truth; file-system events only make it sooner.
 * Files may be written in place, replaced by a rename, or be links whose target changes; a change is reported once
 * the files have settled.
 */
import { type BigIntStats, promises as fs } from "node:fs";
import { watch } from "chokidar";
import type { Clock } from "../clock.ts";
import { systemCode } from "../errors.ts";

/** Editors write in several steps: files that have not changed for this time are complete. */
const SETTLE_MS = 250;
/** The time of a file may be that much behind the clock. */
const CLOCK_MS = 1_000;

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
  /** The files differ from what was read last. */
  #isDue = false;
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
      if (!this.#asked && !this.#isDue) await clock.sleep(everyMs(), this.#pause.signal);
      if (this.#stop.signal.aborted) return;
      const asked = this.#asked;
      this.#asked = false;
      this.#isDue = false;
      const found = asked ? await stampsOf(paths()) : await this.#settled();
      if (!asked && found === this.#known) continue;
      this.#known = found;
      const begunMs = clock.now().epochMilliseconds;
      await onChange();
      if (this.#stop.signal.aborted) return;
      // A change may name other files.
      this.#events.add([...paths()]);
      await this.#addNewPaths(found, begunMs);
    }
  }

  /**
   * Files newly named by the read that began then count as known when all other files are unchanged, and they
   * themselves did not change since: what was read of them may be older.
   */
  async #addNewPaths(found: string, begunMs: number): Promise<void> {
    const now = (await stampsOf(this.#parts.paths())).split("\n");
    const before = new Set(found.split("\n"));
    const pathsBefore = new Set([...before].map(pathOf));
    const fresh = now.filter((line) => !before.has(line));
    this.#isDue = fresh.some((line) => pathsBefore.has(pathOf(line)) || isSince(line, begunMs - CLOCK_MS));
    if (!this.#isDue) this.#known = now.join("\n");
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

/** Whether the file of the line changed then or later. */
function isSince(line: string, ms: number): boolean {
  const ctimeNs = line.split(" ").at(-1) ?? "";
  return /^\d+$/.test(ctimeNs) && BigInt(ctimeNs) / 1_000_000n >= BigInt(Math.trunc(ms));
}

async function stampOf(path: string): Promise<string> {
  try {
    const { size, mtimeNs, ctimeNs, ino }: BigIntStats = await fs.stat(path, { bigint: true });
    return `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch (thrown) {
    return systemCode(thrown) ?? "unknown";
  }
}
