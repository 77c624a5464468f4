/** Joins the drops, their watchers and the functions that the HTTP intakes call. */
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "#core/clock.ts";
import type { GatewayConfig } from "./config.ts";
import { createDrop } from "./drops/create.ts";
import type { Drop } from "./drops/drop.ts";
import type { IntakeFacts } from "./drops/intake/intake.ts";
import { FileBudget } from "./drops/known-files.ts";
import { Watcher, type WatcherFacts } from "./drops/watcher.ts";
import type { Ledger } from "./ledger/ledger.ts";
import type { DropState } from "./model.ts";
import type { Pauses } from "./runs/pauses.ts";
import type { DropEntry } from "./runs/steps/steps.ts";
import type { SpoolQuota } from "./spool/quota.ts";
import type { TriggerRegistry } from "./triggers/registry.ts";

type DropOptions = GatewayConfig["drops"][number];
type DropFacts = Parameters<typeof createDrop>[1];
type WatchFacts = Pick<WatcherFacts, "journal" | "claim" | "clock" | "log" | "onPoll"> & {
  readonly pauses: Pauses;
  /** The lanes that a file of a drop may belong to. */
  readonly lanesOf: (drop: string, path: string) => readonly string[];
  /** Other drops whose files may belong to the same lanes. */
  readonly laneMates: (drop: string) => readonly string[];
  /** The other nodes of the fleet. */
  readonly fleet: { reason(drop: string): string | null };
};

interface WatchedDrop {
  readonly options: DropOptions;
  readonly entry: DropEntry;
  readonly watcher: Watcher;
  /** The address that senders connect to. */
  url: string | null;
}

/** The drops that an exchange removes and adds. */
export interface DropChange {
  readonly removed: readonly string[];
  readonly added: readonly DropOptions[];
}

/** The drops with their watchers. Single drops can be exchanged while the others keep running. */
export class DropRegistry {
  readonly #facts: DropFacts;
  readonly #watch: () => WatchFacts;
  readonly #drops = new Map<string, WatchedDrop>();
  readonly #filesInMemory = new FileBudget();
  #started = false;

  /** `watch` is called when the first drop is added, since claims need the drops themselves. */
  constructor(facts: DropFacts, watch: () => WatchFacts) {
    this.#facts = facts;
    this.#watch = watch;
  }

  entry(name: string): DropEntry | undefined {
    return this.#drops.get(name)?.entry;
  }

  watchers(): readonly Watcher[] {
    return [...this.#drops.values()].map(({ watcher }) => watcher);
  }

  statuses(): readonly DropState[] {
    return this.watchers().map((watcher) => watcher.status());
  }

  /** URLs of the HTTP intakes, by the names of their drops. */
  intakes(): Readonly<Record<string, string>> {
    return Object.fromEntries([...this.#drops].flatMap(([name, { url }]) => (url === null ? [] : [[name, url]])));
  }

  /** In their order. */
  async add(drops: readonly DropOptions[]): Promise<void> {
    for (const options of drops) this.#add(options, await createDrop(options, this.#facts));
  }

  /** Opens the listeners of the HTTP intakes. Throws `ConfigError`. */
  async open(): Promise<void> {
    for (const watched of this.#drops.values()) watched.url ??= (await watched.entry.drop.open?.()) ?? null;
  }

  /** Offers waiting files to the triggers again, which may have changed, and then starts to poll the drops. */
  async start(): Promise<void> {
    this.#started = true;
    for (const watcher of this.watchers()) await watcher.rematch();
    for (const watcher of this.watchers()) watcher.start();
  }

  /** Compares the given drops with the current ones. */
  changeTo(drops: readonly DropOptions[]): DropChange {
    const same = (name: string) =>
      isDeepStrictEqual(
        this.#drops.get(name)?.options,
        drops.find((options) => options.name === name),
      );
    return {
      removed: [...this.#drops.keys()].filter((name) => !same(name)),
      added: drops.filter(({ name }) => !same(name)),
    };
  }

  /**
   * All or nothing: when one of the new drops cannot be opened, the former drops are restored and its error is
   * thrown.
   */
  async exchange({ removed, added }: DropChange): Promise<void> {
    const before = removed.flatMap((name) => this.#drops.get(name)?.options ?? []);
    try {
      await this.#remove(removed);
      await this.add(added);
      await this.open();
    } catch (thrown) {
      await this.#remove(added.map(({ name }) => name));
      await this.add(before);
      await this.open();
      throw thrown;
    } finally {
      if (this.#started) for (const watcher of this.watchers()) watcher.start();
    }
  }

  async stopWatching(): Promise<void> {
    await Promise.all(this.watchers().map((watcher) => watcher.stop()));
  }

  async close(): Promise<void> {
    await this.#remove([...this.#drops.keys()]);
  }

  #add(options: DropOptions, drop: Drop): void {
    const { pauses, fleet, lanesOf: ofDrop, laneMates: matesOf, ...facts } = this.#watch();
    const lanesOf = (path: string, from = options.name) => ofDrop(from, path);
    const laneMates = () => matesOf(options.name).flatMap((name) => this.entry(name)?.drop ?? []);
    const paused = () => pauses.reason("drop", options.name) ?? fleet.reason(options.name);
    this.#drops.set(options.name, {
      options,
      entry: {
        drop,
        finish: options.finish,
        duplicates: options.duplicates,
        order: options.order.by,
        expectUnmatched: options.expectUnmatched,
        guardMs: options.finish.guard,
      },
      watcher: new Watcher({ drop, options, paused, lanesOf, laneMates, filesInMemory: this.#filesInMemory, ...facts }),
      url: null,
    });
  }

  async #remove(names: readonly string[]): Promise<void> {
    for (const name of names) {
      const watched = this.#drops.get(name);
      this.#drops.delete(name);
      await watched?.watcher.stop();
      await watched?.entry.drop.close();
    }
  }
}

export function intakeFacts(
  config: GatewayConfig,
  parts: {
    readonly registry: TriggerRegistry;
    readonly clock: Clock;
    readonly spool: string;
    readonly quota: SpoolQuota;
    readonly ledger: Pick<Ledger, "shared">;
  },
): IntakeFacts {
  return {
    spool: parts.spool,
    shared: parts.ledger.shared?.intake ?? null,
    isFull: async () => (await parts.quota.full()) !== null,
    clock: parts.clock,
    get defaultService() {
      return config.services[0]?.name ?? "";
    },
    accountOf: (service) => config.services.find(({ name }) => name === service)?.account,
    refusalOf: (token, service, drop) => {
      const { claimed, undecided } = parts.registry.claim("", "SendViaHttp", drop, { service, token });
      if (claimed !== null) return null;
      if (!undecided) return { isFinal: true, reason: `no trigger of ${service} that fires has the token ${token}` };
      return { isFinal: false, reason: `not all triggers are known now, and one of ${service} may have this token` };
    },
  };
}
