/**
 * The zones of the sources of accounts, to which a hub binds runs whose files have dates without a zone. A table is
 * read again only when the structure of its account has changed, so that all runs meanwhile share one binding.
 */
import type { Clock } from "#core/clock.ts";
import { HeadgateError, TransientError, wordsOf } from "#core/errors.ts";
import { LOOKUP_TOUCH_MS, type LookupStore } from "./lookups.ts";

/** Each is that of the account of a service. */
export interface ZoneTables {
  /** Another number after each change of the structure. */
  version(service: string): Promise<number>;
  /** JSON of a `ZoneTable`; the same for the same structure. */
  text(service: string): Promise<string>;
}

interface Kept {
  readonly version: number;
  readonly digest: string;
  readonly readMs: number;
}

export class SourceZones {
  readonly #tables: ZoneTables;
  readonly #lookups: Pick<LookupStore, "keepText">;
  readonly #clock: Clock;
  /** Triggers with files that needed the zones: their later runs are bound to them at once. */
  readonly #triggers = new Set<string>();
  readonly #kept = new Map<string, Kept>();
  /** Reads in progress, by services. */
  readonly #reads = new Map<string, Promise<unknown>>();

  constructor(tables: ZoneTables, lookups: Pick<LookupStore, "keepText">, clock: Clock) {
    this.#tables = tables;
    this.#lookups = lookups;
    this.#clock = clock;
  }

  /** For a new run: the digest of the table, or null as long as no file of the trigger needed it. */
  async atClaim(trigger: string, service: string): Promise<string | null> {
    return this.#triggers.has(trigger) ? await this.#current(service) : null;
  }

  /** For a run whose file needs the zones. Rejects with a `TransientError` when they cannot be read or kept. */
  async bind(trigger: string, service: string): Promise<string> {
    this.#triggers.add(trigger);
    return await this.#current(service);
  }

  /** A file that is claimed after a change of the structure gets the table after the change. */
  async #current(service: string): Promise<string> {
    try {
      for (;;) {
        const version = await this.#tables.version(service);
        const kept = this.#kept.get(service);
        const isFresh = this.#clock.monotonicMs() - (kept?.readMs ?? Number.NEGATIVE_INFINITY) < LOOKUP_TOUCH_MS;
        if (kept?.version === version && isFresh) return kept.digest;
        const running = this.#reads.get(service);
        if (running === undefined) return await this.#read(service, version);
        await running.catch(() => undefined); // Its own caller gets the fault.
      }
    } catch (thrown) {
      if (thrown instanceof HeadgateError) throw thrown;
      throw new TransientError("HG-MAP-020", {
        operation: "read zones of sources",
        subject: service,
        message: `the zones of the sources of ${service} cannot be read: ${wordsOf(thrown)}`,
        cause: thrown,
      });
    }
  }

  async #read(service: string, version: number): Promise<string> {
    const read = (async () => {
      const digest = await this.#lookups.keepText(await this.#tables.text(service));
      this.#kept.set(service, { version, digest, readMs: this.#clock.monotonicMs() });
      return digest;
    })();
    this.#reads.set(service, read);
    try {
      return await read;
    } finally {
      this.#reads.delete(service);
    }
  }
}
