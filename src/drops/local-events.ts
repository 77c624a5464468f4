/** File-system events of a local folder. They make polls come sooner and are never the truth, so that it does no harm when they get lost. */
import { rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { basename, join, relative, sep } from "node:path";
import { watch } from "chokidar";
import { wordsOf } from "../support/errors.ts";
import type { Logger } from "../support/log.ts";
import { OWN_PREFIX } from "./paths.ts";

export interface LocalEventsFacts {
  readonly drop: string;
  readonly root: string;
  readonly recursive: boolean;
  readonly log: Logger;
  /** Folders of which nothing is told; relative to the root, separated by `/`. */
  isClosed(folder: string): boolean;
  onChange(): void;
}

/** How long the event of a file of our own is waited for. */
const SELF_TEST_MS = 2_000;
/** How long the event of a file that was finished may take, and how many of them are remembered. */
const EXPECTED_MS = 2_000;
const EXPECTED_MAX = 10_000;

export class LocalEvents {
  readonly #facts: LocalEventsFacts;
  readonly #watcher: ReturnType<typeof watch>;
  readonly #own = Promise.withResolvers<void>();
  readonly #stopping = new AbortController();
  readonly #tested: Promise<void>;
  #arrive: boolean | null = null;
  /** Full paths that the gateway takes away itself, and until when their events are expected. */
  readonly #expected = new Map<string, number>();

  constructor(facts: LocalEventsFacts) {
    this.#facts = facts;
    const { root, recursive, log, drop } = facts;
    this.#watcher = watch(root, {
      ignoreInitial: true,
      followSymlinks: false,
      // Only folders are watched: what happens in them is told all the same, and 100,000 files cost nothing.
      ignored: (path, status) =>
        (status !== undefined && !status.isDirectory()) ||
        this.#isExpected(path) ||
        facts.isClosed(relative(root, path).split(sep).join("/")),
      ...(recursive ? {} : { depth: 0 }),
    });
    this.#watcher.on("raw", (_event, path, details) => this.#take(path, details));
    this.#watcher.on("error", (error) =>
      log.warn({ drop, reason: wordsOf(error) }, "file-system events failed; polling goes on"),
    );
    const { promise: ready, resolve } = Promise.withResolvers<void>();
    this.#watcher.on("ready", resolve);
    this.#stopping.signal.addEventListener("abort", () => resolve(), { once: true });
    this.#tested = ready.then(() => this.#test());
  }

  /** Whether events arrive, as the self-test found; null when that is not known. Network shares and some containers lose them. */
  get arrive(): boolean | null {
    return this.#arrive;
  }

  /** The same, when the self-test has ended. */
  async tested(): Promise<boolean | null> {
    await this.#tested;
    return this.#arrive;
  }

  /**
   * The gateway takes this file away itself: that is no news. Without it, chokidar would look through the whole folder for each file that
   * went, and every file that was archived would cause a poll. What is uploaded to the same place within that time is found by the next poll.
   */
  expect(path: string): void {
    const nowMs = performance.now();
    for (const [known, untilMs] of this.#expected) {
      if (untilMs > nowMs && this.#expected.size < EXPECTED_MAX) break;
      this.#expected.delete(known);
    }
    const full = join(this.#facts.root, path);
    this.#expected.delete(full);
    this.#expected.set(full, nowMs + EXPECTED_MS);
  }

  #isExpected(full: string): boolean {
    return (this.#expected.get(full) ?? 0) > performance.now();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#own.resolve();
    await this.#watcher.close();
    await this.#tested;
  }

  #take(path: string | null, details: unknown): void {
    if (path !== null && isWatch(details) && this.#isExpected(join(details.watchedPath, path))) return;
    if (path !== null && basename(path).startsWith(OWN_PREFIX)) this.#own.resolve();
    else this.#facts.onChange();
  }

  async #test(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    const { drop, log, root } = this.#facts;
    // Always the same on this machine, so that what a crash left here goes with the next test.
    const path = join(root, `${OWN_PREFIX}events-${hostname()}`);
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      this.#own.resolve();
    }, SELF_TEST_MS);
    try {
      await writeFile(path, "");
      await this.#own.promise;
      if (this.#stopping.signal.aborted) return;
      this.#arrive = !late;
      if (late)
        log.warn(
          { drop },
          "file-system events do not arrive from this folder; files are seen by polling alone",
        );
      else log.info({ drop }, "file-system events arrive");
    } catch (thrown) {
      log.info(
        { drop, reason: wordsOf(thrown) },
        "whether file-system events arrive cannot be tested here; polling goes on",
      );
    } finally {
      clearTimeout(timer);
      await rm(path, { force: true }).catch((thrown: unknown) =>
        log.warn({ drop, path, reason: wordsOf(thrown) }, "a file of our own cannot be removed"),
      );
    }
  }
}

function isWatch(details: unknown): details is { readonly watchedPath: string } {
  return (
    typeof details === "object" &&
    details !== null &&
    "watchedPath" in details &&
    typeof details.watchedPath === "string"
  );
}
