/**
 * File-system events of a local drop, by chokidar. They make polls come sooner and are only hints: a lost
 * event does no harm.
 */
import { rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { basename, join, sep } from "node:path";
import { type FSWatcher, watch } from "chokidar";
import { wordsOf } from "#core/errors.ts";
import { bytesOf } from "#core/file-names.ts";
import type { Logger } from "#core/log.ts";
import type { LocalOptions } from "../options.ts";
import { type ListingFilter, listingFilter, OWN_PREFIX } from "../paths.ts";

/** The size of the tree that a listing found. */
export interface ListedTree {
  /** Full path without symbolic links. */
  readonly root: string;
  /** Device and inode of the root. A mount or a symbolic link replaces the folder without an event. */
  readonly identity: string;
  /** Number of entries that were read, including ignored files. */
  readonly entries: number;
  /** Number of folders that were read. */
  readonly folders: number;
}

/**
 * The largest tree that is watched: chokidar reads the status of each file when it begins, and keeps every
 * name (decision 21).
 */
export const WATCHED_MAX = { entries: 20_000, folders: 500 };
/** A tree that was too large is watched again when it has shrunk to this part of the limit. */
const RETURN_SHARE = 0.5;
/**
 * Number of names that chokidar may keep: it receives no event of files that the gateway removes itself, and
 * is restarted when they are many.
 */
const NAMES_MAX = WATCHED_MAX.entries + 10_000;
/** Milliseconds of the wait for the event of the test file: a busy machine reports it late. */
const SELF_TEST_MS = 5_000;
/** Milliseconds of the wait for the end of a watch: the folder may be on a network share that hangs. */
const STOP_WAIT_MS = 2_000;
/**
 * How long the event of a finished file may take, in milliseconds, and how many such files are remembered.
 */
const EXPECTED = { ms: 2_000, max: 10_000 };
/** Replaces bytes in a name that are not UTF-8. */
const REPLACEMENT = "\uFFFD";

/**
 * A complete listing decides whether the tree is watched: unless it is too large. Between two listings
 * chokidar follows the folders that come and go.
 */
export class LocalEvents {
  readonly #options: LocalOptions;
  readonly #log: Logger;
  readonly #onChange: () => void;
  readonly #filter: ListingFilter;
  /**
   * Name of the test file; always the same on this machine, so that the next test removes the file of a
   * crashed one.
   */
  readonly #ownName = `${OWN_PREFIX}events-${hostname()}`;
  readonly #stopping = new AbortController();
  readonly #tested = Promise.withResolvers<void>();
  #watcher: FSWatcher | null = null;
  #closing: Promise<unknown> = Promise.resolve();
  /** Identity of the tree that is watched, or was last. */
  #identity: string | null = null;
  readonly #namesMax: number;
  /** Approximate number of names that chokidar keeps. */
  #namesCount = 0;
  #isTooLarge = false;
  #arrive: boolean | null = null;
  #testing: Promise<void> = Promise.resolve();
  #ownEvent = Promise.withResolvers<void>();
  #faultLogged = false;
  /**
   * Paths that the gateway removes itself, in chokidar's encoding, and until when their events are expected.
   */
  readonly #expected = new Map<string, number>();

  constructor(options: LocalOptions, log: Logger, onChange: () => void, namesMax = NAMES_MAX) {
    this.#namesMax = namesMax;
    this.#options = options;
    this.#log = log;
    this.#onChange = onChange;
    this.#filter = listingFilter(options);
  }

  /** A listing is complete, with this size. */
  listed(tree: ListedTree): void {
    if (this.#stopping.signal.aborted) return;
    const share = this.#isTooLarge ? RETURN_SHARE : 1;
    const { entries, folders } = WATCHED_MAX;
    const isTooLarge = tree.entries > entries * share || tree.folders > folders * share;
    if (isTooLarge || tree.identity !== this.#identity) this.#leave();
    if (isTooLarge !== this.#isTooLarge) this.#logSize(isTooLarge, tree);
    this.#isTooLarge = isTooLarge;
    if (isTooLarge) this.#tested.resolve();
    else if (this.#watcher === null) this.#begin(tree);
  }

  /**
   * Whether events arrive, by the self-test; null while unknown. Network shares and some containers lose
   * them. False also for a tree that is too large, and where a folder cannot be watched: its new files are
   * found only by polls.
   */
  get arrive(): boolean | null {
    return this.#isTooLarge || this.#faultLogged ? false : this.#arrive;
  }

  get isTooLarge(): boolean {
    return this.#isTooLarge;
  }

  /** The same as `arrive`, after the self-test has ended. */
  async tested(): Promise<boolean | null> {
    await this.#tested.promise;
    return this.arrive;
  }

  /**
   * The gateway removes this file itself, so its event is ignored. Otherwise every archived file would cause
   * a poll. A file that is uploaded to the same place within that time is found by the next poll.
   */
  expect(path: string): void {
    const nowMs = performance.now();
    for (const [known, untilMs] of this.#expected) {
      if (untilMs > nowMs && this.#expected.size < EXPECTED.max) break;
      this.#expected.delete(known);
    }
    const asRead = String(bytesOf(path, this.#options.names));
    this.#expected.delete(asRead);
    this.#expected.set(asRead, nowMs + EXPECTED.ms);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#ownEvent.resolve();
    this.#leave();
    const waited = Promise.withResolvers<void>();
    const timer = setTimeout(waited.resolve, STOP_WAIT_MS);
    await Promise.race([Promise.all([this.#closing, this.#testing]), waited.promise]);
    clearTimeout(timer);
    this.#tested.resolve();
  }

  #begin({ root, identity, entries }: ListedTree): void {
    const isOtherRoot = identity !== this.#identity;
    this.#identity = identity;
    this.#namesCount = entries;
    const prefix = root.endsWith(sep) ? root : root + sep;
    const watcher = watch(root, {
      ignoreInitial: true,
      followSymlinks: false,
      atomic: false,
      persistent: false,
      ignored: (full, status) =>
        full.startsWith(prefix) && this.#isIgnored(full.slice(prefix.length), status?.isDirectory() === true),
    });
    this.#watcher = watcher;
    watcher.on("all", (event, full) => this.#take(event, full.slice(prefix.length)));
    // chokidar does not see files whose names are not UTF-8, but passes on the raw events of the system.
    watcher.on("raw", (_event, name, details) => {
      if (name?.includes(REPLACEMENT))
        this.#reportChange(join(watchedFolder(details) ?? root, name).slice(prefix.length));
    });
    watcher.on("error", (fault) => this.#logFault(fault));
    watcher.on("ready", () => {
      // Some files may have come after they were listed, and before the watch began.
      this.#onChange();
      if (isOtherRoot) this.#testing = this.#test(root);
    });
  }

  #leave(): void {
    const watcher = this.#watcher;
    this.#watcher = null;
    if (watcher === null) return;
    this.#closing = watcher.close().catch((thrown: unknown) => {
      const facts = { drop: this.#options.name, reason: wordsOf(thrown) };
      this.#log.debug(facts, "the watch for file-system events did not end cleanly");
    });
  }

  /** chokidar calls it with a path before its status is known, and again when it is. */
  #isIgnored(path: string, isFolder: boolean): boolean {
    const name = basename(path);
    if (name.startsWith(OWN_PREFIX)) return name !== this.#ownName;
    if (name.includes(REPLACEMENT) || this.#isExpected(path)) return true;
    return isFolder && !this.#filter.entersFolder(path.split(sep).join("/"));
  }

  #isExpected(path: string): boolean {
    return this.#expected.size > 0 && (this.#expected.get(path) ?? 0) > performance.now();
  }

  #take(event: string, path: string): void {
    if (basename(path) === this.#ownName) {
      this.#ownEvent.resolve();
      return;
    }
    if (event.startsWith("add")) this.#namesCount += 1;
    else if (event.startsWith("unlink")) this.#namesCount -= 1;
    // Without its root, or with too many names, the next listing starts a new watch.
    if ((event === "unlinkDir" && path === "") || this.#namesCount > this.#namesMax) this.#leave();
    this.#reportChange(path);
  }

  #reportChange(path: string): void {
    if (!this.#isExpected(path)) this.#onChange();
  }

  /** Once, since there may be one for every folder. */
  #logFault(fault: unknown): void {
    if (this.#faultLogged) return;
    this.#faultLogged = true;
    const facts = { drop: this.#options.name, reason: wordsOf(fault) };
    this.#log.warn(facts, "file-system events failed; polling continues");
  }

  #logSize(isTooLarge: boolean, { entries, folders }: ListedTree): void {
    const facts = { drop: this.#options.name, entries, folders };
    const what = isTooLarge
      ? "the drop is too large for file-system events; files are found only by polls"
      : "the drop is small enough for file-system events again";
    this.#log.info(facts, what);
  }

  async #test(root: string): Promise<void> {
    const log = this.#log;
    const drop = this.#options.name;
    const path = join(root, this.#ownName);
    this.#ownEvent = Promise.withResolvers<void>();
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      this.#ownEvent.resolve();
    }, SELF_TEST_MS);
    try {
      await rm(path, { force: true });
      await writeFile(path, "");
      await this.#ownEvent.promise;
      if (this.#stopping.signal.aborted) return;
      this.#arrive = !isLate;
      if (isLate)
        log.warn({ drop }, "file-system events do not arrive from this folder; files are found only by polls");
      else log.info({ drop }, "file-system events arrive");
    } catch (thrown) {
      const facts = { drop, reason: wordsOf(thrown) };
      log.info(facts, "whether file-system events arrive cannot be tested here; polling continues");
    } finally {
      clearTimeout(timer);
      await rm(path, { force: true }).catch((thrown: unknown) =>
        log.warn({ drop, path, reason: wordsOf(thrown) }, "a test file cannot be removed"),
      );
      this.#tested.resolve();
    }
  }
}

/** From the details of chokidar's raw event, which its types do not describe. */
function watchedFolder(details: unknown): string | null {
  if (typeof details !== "object" || details === null || !("watchedPath" in details)) return null;
  return typeof details.watchedPath === "string" ? details.watchedPath : null;
}
