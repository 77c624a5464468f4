/** File-system events of a local folder. They make polls come sooner and are never the truth, so that it does no harm when they get lost. */
import { type FSWatcher, watch } from "node:fs";
import { rm, stat, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { basename, join, resolve } from "node:path";
import { systemCode, wordsOf } from "../support/errors.ts";
import { localPath, type NameEncoding, nameOf, type PathOnDisk } from "../support/file-names.ts";
import type { Logger } from "../support/log.ts";
import { OWN_PREFIX } from "./paths.ts";

export interface LocalEventsFacts {
  readonly drop: string;
  readonly root: string;
  readonly names: NameEncoding;
  readonly log: Logger;
  /** Folders of which nothing is told; relative to the root, separated by `/`. */
  isClosed(folder: string): boolean;
  onChange(): void;
}

/** How long the event of a file of our own is waited for. */
const SELF_TEST_MS = 2_000;
/** How long the self-test is waited for when events are no longer wanted: the folder may be on a network share that hangs. */
const STOP_WAIT_MS = 2_000;
/** How long the event of a file that was finished may take, and how many of them are remembered. */
const EXPECTED_MS = 2_000;
const EXPECTED_MAX = 10_000;

/**
 * Only folders are watched, by the system's own means: what happens to the files in them is told all the same. The root is from the
 * beginning, and each folder below from the first listing that looks into it: whoever lists knows them all, so that nobody else walks through the tree.
 */
export class LocalEvents {
  readonly #facts: LocalEventsFacts;
  /** By the paths of folders, relative to the root, which is "". */
  readonly #watchers = new Map<string, FSWatcher>();
  /** Folders that went, or others came in their place, since the last listing began: thousands may go at once. */
  readonly #gone = new Set<string>();
  readonly #root: string;
  /** Which folder the root was when it was last looked at. */
  #rootIdentity: string | null = null;
  readonly #own = Promise.withResolvers<void>();
  readonly #stopping = new AbortController();
  readonly #tested: Promise<void>;
  #arrive: boolean | null = null;
  #toldFault = false;
  /** Paths that the gateway takes away itself, and until when their events are expected. */
  readonly #expected = new Map<string, number>();

  constructor(facts: LocalEventsFacts) {
    this.#facts = facts;
    this.#root = resolve(facts.root);
    this.#tested = this.#begin();
  }

  /**
   * A listing begins, and this is the root. A folder that came in its place tells nobody, when a mount or a symbolic link brought it: then all is watched anew.
   */
  rootIs({ dev, ino }: { readonly dev: bigint; readonly ino: bigint }): void {
    const identity = `${dev}:${ino}`;
    if (identity !== this.#rootIdentity) this.#gone.add("");
    this.#rootIdentity = identity;
    this.#leaveGone();
    this.watchFolder("");
  }

  /** Asked before the folder is read, so that what comes into it afterwards is told. Relative to the root, separated by `/`. */
  watchFolder(folder: string): void {
    if (this.#watchers.has(folder) || this.#stopping.signal.aborted) return;
    try {
      const watcher = watch(this.#full(folder), { persistent: false, encoding: "buffer" }, (event, name) =>
        this.#take(folder, event, name === null ? null : nameOf(name, this.#facts.names)),
      );
      watcher.on("error", (fault) => {
        this.#unwatch(folder);
        this.#tell(fault);
      });
      this.#watchers.set(folder, watcher);
    } catch (thrown) {
      // One that has gone is no fault; whoever lists finds out.
      if (systemCode(thrown) !== "ENOENT" && systemCode(thrown) !== "ENOTDIR") this.#tell(thrown);
    }
  }

  /** A listing came to its end, and these are the folders that there are. */
  keepFolders(folders: ReadonlySet<string>): void {
    for (const folder of [...this.#watchers.keys()])
      if (folder !== "" && !folders.has(folder)) this.#unwatch(folder);
  }

  /**
   * Whether events arrive, as the self-test found; null when that is not known. Network shares and some containers lose them. False also where
   * a folder cannot be watched: what comes into it is seen by polling alone.
   */
  get arrive(): boolean | null {
    return this.#toldFault ? false : this.#arrive;
  }

  /** The same, when the self-test has ended. */
  async tested(): Promise<boolean | null> {
    await this.#tested;
    return this.arrive;
  }

  /**
   * The gateway takes this file away itself: that is no news. Without it, every file that was archived would cause a poll. What is uploaded to
   * the same place within that time is found by the next poll.
   */
  expect(path: string): void {
    const nowMs = performance.now();
    for (const [known, untilMs] of this.#expected) {
      if (untilMs > nowMs && this.#expected.size < EXPECTED_MAX) break;
      this.#expected.delete(known);
    }
    this.#expected.delete(path);
    this.#expected.set(path, nowMs + EXPECTED_MS);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#own.resolve();
    for (const folder of [...this.#watchers.keys()]) this.#unwatch(folder);
    const waited = Promise.withResolvers<void>();
    const timer = setTimeout(waited.resolve, STOP_WAIT_MS);
    await Promise.race([this.#tested, waited.promise]);
    clearTimeout(timer);
  }

  #full(folder: string): PathOnDisk {
    return localPath(this.#root, folder, this.#facts.names);
  }

  #unwatch(folder: string): void {
    this.#watchers.get(folder)?.close();
    this.#watchers.delete(folder);
  }

  /** With all that is below them: these go where they go, and tell nobody. */
  #leaveGone(): void {
    if (this.#gone.size === 0) return;
    for (const folder of [...this.#watchers.keys()])
      for (let at: string | null = folder; at !== null; at = above(at))
        if (this.#gone.has(at)) this.#unwatch(folder);
    this.#gone.clear();
  }

  /** Once, since there may be one for every folder. */
  #tell(fault: unknown): void {
    if (this.#toldFault) return;
    this.#toldFault = true;
    const { log, drop } = this.#facts;
    log.warn({ drop, reason: wordsOf(fault) }, "file-system events failed; polling goes on");
  }

  #take(folder: string, event: string, name: string | null): void {
    if (name?.startsWith(OWN_PREFIX) === true) {
      this.#own.resolve();
      return;
    }
    const path = name === null || folder === "" ? name : `${folder}/${name}`;
    // A folder that goes tells by its own name, and so does the one that it was in. What comes in its place is watched by the listing that finds it.
    const gone = event === "rename" ? this.#goneOf(folder, name, path) : null;
    if (gone !== null) this.#gone.add(gone);
    if (gone !== null || path === null || this.#isNews(path)) this.#facts.onChange();
  }

  /** The watched folder that such an event may be about, or null. */
  #goneOf(folder: string, name: string | null, path: string | null): string | null {
    if (name === basename(folder === "" ? this.#root : folder)) return folder;
    return path !== null && this.#watchers.has(path) ? path : null;
  }

  #isNews(path: string): boolean {
    return (this.#expected.get(path) ?? 0) <= performance.now() && !this.#facts.isClosed(path);
  }

  /** The root is first looked at without holding up anybody: to watch a folder on a share that hangs would. */
  async #begin(): Promise<void> {
    const status = await stat(this.#root, { bigint: true }).catch(() => null); // Whoever lists finds out, and so does the test.
    if (status !== null) this.rootIs(status);
    await this.#test();
  }

  async #test(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    const { drop, log } = this.#facts;
    // Always the same on this machine, so that what a crash left here goes with the next test.
    const path = join(this.#root, `${OWN_PREFIX}events-${hostname()}`);
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

/** The folder that a folder is in; null for the root. */
function above(folder: string): string | null {
  return folder === "" ? null : folder.slice(0, Math.max(0, folder.lastIndexOf("/")));
}
