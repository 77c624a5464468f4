/**
 * Selects the version of each mapper for new runs. A changed mapper is loaded beside the old one, in a
 * process of its own, and replaces it when it loads and its own cases pass; until then, and when they fail,
 * the old one continues from its copy, with a warning. Runs keep the version that they are bound to, also
 * after a restart.
 */
import { type Clock, systemClock } from "#core/clock.ts";
import { ConfigError, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { casesDigest, listCases } from "../authoring/case-files.ts";
import type { MapperVersions } from "../contract.ts";
import { loadMapper } from "../load-mapper.ts";
import { digestMapper, locateMapper, readMapper } from "../mapper-files.ts";
import type { MapperIdentity } from "../model.ts";
import { isBundled, searchFolders } from "./bundled.ts";
import type { Inspector } from "./inspector.ts";
import { type CurrentVersion, createMapperCopies, type MapperCopies, type SharedMappers } from "./mapper-copies.ts";
import { factsOf } from "./mapper-facts.ts";
import type { MapperModule } from "./messages.ts";

export interface VersionsParts {
  /** Absolute; the bundled mappers are added. */
  readonly folders: readonly string[];
  /** The folder of the kept versions. */
  readonly root: string;
  readonly inspector: Inspector;
  readonly log: Logger;
  readonly clock?: Clock;
  /** The store in which other nodes find the versions that runs are bound to on this node. */
  readonly shared?: SharedMappers | null | undefined;
}

/** A version on disk that was refused, and the reason. */
export interface RefusedVersion {
  readonly mapper: string;
  readonly reason: string;
}

const WATCH_EVERY_MS = 2_000;
/**
 * A result stays valid for files that arrive within so many milliseconds: reading the mapper again would cost
 * more than claiming them.
 */
const FRESH_MS = 500;
/** Maximum number of repeated checks of a mapper that changes during its check. */
const LOOKS_MAX = 5;
/** The use of a version is reported to the other nodes this often. */
const SHARED_EVERY_MS = 3_600_000;

interface Refusal {
  /** Digest of the module and its cases. */
  readonly digest: string;
  readonly error: ConfigError;
}

export class KeptVersions implements MapperVersions {
  readonly #log: Logger;
  readonly #inspector: Inspector;
  readonly #clock: Clock;
  readonly #places: readonly string[];
  readonly #copies: MapperCopies;
  readonly #shared: SharedMappers | null;
  /** When each version was shared last, by mapper and digest. */
  readonly #sharedMs = new Map<string, number>();
  readonly #currents = new Map<string, CurrentVersion>();
  readonly #refusals = new Map<string, Refusal>();
  /** Running queries for the current version, by the mapper's name. */
  readonly #asked = new Map<string, Promise<MapperIdentity | null>>();
  /** Until when the current version stays valid without a check, by the mapper's name. */
  readonly #freshUntilMs = new Map<string, number>();
  /** Running checks, by the mapper's name. */
  readonly #looks = new Map<string, Promise<void>>();

  constructor({ folders, root, inspector, log, clock = systemClock, shared = null }: VersionsParts) {
    this.#shared = shared;
    this.#log = log;
    this.#inspector = inspector;
    this.#clock = clock;
    this.#places = searchFolders(folders);
    this.#copies = createMapperCopies(root, () => clock.now().epochMilliseconds);
  }

  /** Concurrent files share one check. */
  current(name: string): Promise<MapperIdentity | null> {
    const asked = this.#asked.get(name) ?? this.#bindable(name).finally(() => this.#asked.delete(name));
    this.#asked.set(name, asked);
    return asked;
  }

  /** The same for a caller that binds no run: other nodes are not notified. */
  here(name: string): Promise<MapperIdentity | null> {
    return this.#decided(name, false);
  }

  /** The module of this version as `locate` would return it, while its copy may not be there yet. */
  async expected(name: string, digest: string): Promise<MapperModule | null> {
    const copy = await this.#copies.find(name, digest);
    if (copy !== null) return copy;
    const { modulePath, content } = await this.#present(name, digest);
    return modulePath !== null && content !== null ? this.#copies.expected(modulePath, content) : null;
  }

  /** The module of exactly this version, or null. */
  async locate(name: string, digest: string): Promise<MapperModule | null> {
    const copy = await this.#copies.find(name, digest);
    if (copy !== null) return copy;
    const { modulePath, content } = await this.#present(name, digest);
    if (modulePath !== null && content !== null) return await this.#copies.keep(modulePath, content);
    const packed = (await this.#shared?.find("mapper", sharedName(name, digest))) ?? null;
    return packed === null ? null : await this.#copies.unpack(name, digest, packed, modulePath);
  }

  /** Where the mapper of this name is now, and its content if that is this version. */
  async #present(name: string, digest: string) {
    const modulePath = await locateMapper(this.#places, name);
    const content = modulePath === null ? null : await readMapper(modulePath);
    return { modulePath, content: content?.digest === digest ? content : null };
  }

  /** Checks these mappers now, and resolves when the version of each is decided. */
  async refresh(names: readonly string[]): Promise<void> {
    for (const name of new Set(names))
      await this.#decided(name, true).catch((thrown) => {
        // The fault of a mapper was reported when it was refused.
        if (thrown instanceof ConfigError) return;
        this.#log.warn({ mapper: name }, `a mapper cannot be checked: ${wordsOf(thrown)}`);
      });
  }

  /**
   * Checks them repeatedly after a first check, so that a change is found before the next file arrives.
   * Returns a function that stops it.
   */
  watch(names: readonly string[], first: Promise<void>): () => Promise<void> {
    const stop = new AbortController();
    const loop = async () => {
      await first;
      while (await this.#clock.sleep(WATCH_EVERY_MS, stop.signal)) await this.refresh(names);
    };
    const running = loop();
    return async () => {
      stop.abort();
      await running;
    };
  }

  refused(): readonly RefusedVersion[] {
    return [...this.#refusals].map(([mapper, { error }]) => ({
      mapper,
      reason: refusedWords(error, this.#currents.get(mapper) ?? null),
    }));
  }

  prune(beforeMs: number): Promise<number> {
    return this.#copies.prune(beforeMs);
  }

  /** A version is available to every node before runs are bound to it. */
  async #bindable(name: string): Promise<MapperIdentity | null> {
    const identity = await this.#decided(name, false);
    if (identity === null || this.#shared === null) return identity;
    const shared = sharedName(name, identity.digest);
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - (this.#sharedMs.get(shared) ?? Number.NEGATIVE_INFINITY) < SHARED_EVERY_MS) return identity;
    await this.#shared.keep("mapper", shared, () => this.#copies.pack(name, identity.digest));
    this.#sharedMs.set(shared, nowMs);
    return identity;
  }

  async #decided(name: string, isAwaited: boolean): Promise<MapperIdentity | null> {
    const isFresh = this.#clock.monotonicMs() < (this.#freshUntilMs.get(name) ?? 0);
    const known = isFresh && !isAwaited ? this.#currents.get(name) : undefined;
    if (known !== undefined) return { name, ...known };
    const modulePath = await locateMapper(this.#places, name);
    if (modulePath === null) {
      this.#refusals.delete(name);
      return null;
    }
    const before = await this.#currentOf(name);
    if (before !== null && before.digest === (await digestMapper(modulePath))) {
      // Also when it was changed and restored.
      this.#refusals.delete(name);
      this.#freshUntilMs.set(name, this.#clock.monotonicMs() + FRESH_MS);
      return { name, ...before };
    }
    const looked = this.#look(name, modulePath);
    if (before !== null && !isAwaited) {
      looked.catch((thrown) =>
        this.#log.warn({ mapper: name }, `a changed mapper cannot be checked: ${wordsOf(thrown)}`),
      );
      return { name, ...before };
    }
    await looked;
    const now = await this.#currentOf(name);
    if (now !== null) return { name, ...now };
    throw (
      this.#refusals.get(name)?.error ??
      new ConfigError("HG-MAP-003", { operation: "load mapper", subject: modulePath })
    );
  }

  async #currentOf(name: string): Promise<CurrentVersion | null> {
    const known = this.#currents.get(name) ?? (await this.#copies.current(name));
    if (known === null || (await this.#copies.find(name, known.digest)) === null) return null;
    this.#currents.set(name, known);
    return known;
  }

  /** One check at a time for each mapper. */
  #look(name: string, modulePath: string): Promise<void> {
    const look = this.#looks.get(name) ?? this.#decide(name, modulePath).finally(() => this.#looks.delete(name));
    this.#looks.set(name, look);
    return look;
  }

  async #decide(name: string, modulePath: string): Promise<void> {
    for (let looks = 1; ; looks += 1) {
      const digest = await digestWithCases(modulePath);
      if (this.#refusals.get(name)?.digest === digest) return;
      let refusal: ConfigError | null = null;
      let taken: CurrentVersion | null = null;
      try {
        taken = await this.#examine(name, modulePath);
      } catch (thrown) {
        if (!(thrown instanceof ConfigError)) throw thrown;
        refusal = thrown;
      }
      // An incomplete change may load and pass, or not load.
      if (looks < LOOKS_MAX && digest !== (await digestWithCases(modulePath))) continue;
      if (taken !== null) await this.#take(name, taken);
      if (refusal !== null) await this.#refuse(name, { digest, error: refusal });
      return;
    }
  }

  /** Throws a `ConfigError` with the reason why this version is refused. */
  async #examine(name: string, modulePath: string): Promise<CurrentVersion> {
    const module = await this.#copies.keep(modulePath, await readMapper(modulePath));
    const { digest } = module;
    if (isBundled(modulePath)) return { digest, version: factsOf(await loadMapper(modulePath, digest)).version };
    const { version } = await this.#inspector.describe(module);
    for (const one of await listCases(modulePath)) {
      const fault = await this.#inspector.caseFault(module, modulePath, one);
      if (fault === null) continue;
      throw new ConfigError("HG-MAP-018", {
        operation: "check mapper",
        subject: modulePath,
        message: `the case ${one} of the mapper ${name} does not pass: ${fault}`,
      });
    }
    return { digest, version };
  }

  async #take(name: string, version: CurrentVersion): Promise<void> {
    const before = await this.#currentOf(name);
    await this.#copies.setCurrent(name, version);
    this.#currents.set(name, version);
    this.#refusals.delete(name);
    if (before === null || before.digest === version.digest) return;
    this.#log.info(
      { mapper: name, ...version, before },
      `the mapper ${name} was changed: new files are mapped by ${words(version)}`,
    );
  }

  async #refuse(name: string, refusal: Refusal): Promise<void> {
    this.#refusals.set(name, refusal);
    const { code } = refusal.error;
    this.#log.warn({ mapper: name, code }, refusedWords(refusal.error, await this.#currentOf(name)));
  }
}

async function digestWithCases(modulePath: string): Promise<string> {
  return `${await digestMapper(modulePath)} ${await casesDigest(modulePath)}`;
}

function sharedName(name: string, digest: string): string {
  return `${name}/${digest}`;
}

function words({ version, digest }: CurrentVersion): string {
  return `version ${version} (${digest.slice(0, 12)})`;
}

function refusedWords(error: ConfigError, current: CurrentVersion | null): string {
  const consequence =
    current === null ? "its files go into quarantine" : `new files are still mapped by ${words(current)}`;
  return `${wordsOf(error)}; ${consequence}`;
}
