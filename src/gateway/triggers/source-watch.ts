/** Reads the triggers of one service again and again, and keeps the last complete list. */
import { isDeepStrictEqual } from "node:util";
import { type Clock, isoInstant } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import {
  type HttpTimeouts,
  listFileTriggers,
  type ServiceAccess,
  ServiceClient,
  type TokenMint,
} from "#wire/client/index.ts";
import { bindTriggers, type ServiceRule, type ServiceTrigger } from "./bound.ts";

/** The last complete list of each source; the ledger implements it. */
export interface KeptLists {
  find(source: string): Promise<KeptList | null>;
  keep(list: KeptList): Promise<void>;
}

interface KeptList {
  readonly source: string;
  /** ISO 8601 */
  readonly listedAt: string;
  /** JSON text. */
  readonly triggers: string;
}

/** One entry `from: service`, with its service. */
export interface TriggerSource {
  readonly rule: ServiceRule & { readonly every: number };
  readonly access: ServiceAccess;
  readonly timeouts: HttpTimeouts;
  /** The name under which its list is kept; made of service, address and account when absent. */
  readonly keptAs?: string;
}

/** The triggers of one service, as they are in force. */
export interface ServiceTriggerState {
  readonly service: string;
  /** When the service listed them; null: they are not known yet. */
  readonly listedAt: string | null;
  /** Why the last attempt to read them failed; null when it did not. */
  readonly fault: string | null;
  /** Since when the service lists none, which is not confirmed yet: the former ones stay in force. Else null. */
  readonly emptySince: string | null;
  readonly triggers: readonly ServiceTrigger[];
}

export interface ServiceTriggersParts {
  readonly lists: KeptLists;
  /** Milliseconds after which another node may have kept another list; null without other nodes. */
  readonly recheckMs: number | null;
  /** Where the tokens of a service come from instead of its token endpoint. */
  readonly mintOf?: (service: string) => TokenMint | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when triggers changed, and at the first attempt to read them. */
  onChange(): void;
}

const RETRY_FIRST_MS = 5_000;

/** The name under which the list of an account is kept. */
export function sourceName({ keptAs, access: { name, base, account, credentials } }: TriggerSource): string {
  return keptAs ?? `${name} ${base} ${account ?? `of ${credentials.username}`}`;
}

export class SourceWatch {
  readonly source: TriggerSource;
  /** Resolves when the kept list is in force. */
  readonly restored: Promise<void>;
  /** Resolves after the first attempt. */
  readonly attempted: Promise<void>;
  readonly #parts: ServiceTriggersParts;
  readonly #log: Logger;
  readonly #name: string;
  readonly #client: ServiceClient;
  readonly #stop = new AbortController();
  readonly #restored = Promise.withResolvers<void>();
  readonly #first = Promise.withResolvers<void>();
  readonly #loop: Promise<void>;
  #rest = new AbortController();
  #list: KeptList | null;
  #triggers: readonly ServiceTrigger[] = [];
  #fault: string | null = null;
  #failures = 0;
  /** Readings that found no trigger, `every` apart. */
  #empty: { readonly since: string; readonly times: number; readonly lastMs: number } | null = null;
  /** Monotonic time. */
  #nextMs: number;
  /** A reading that was asked for and has not begun. */
  #wanted: PromiseWithResolvers<void> | null = null;

  constructor(source: TriggerSource, parts: ServiceTriggersParts, known: KeptList | null) {
    this.source = source;
    this.#parts = parts;
    this.#log = parts.log.child({ service: source.rule.service });
    this.#name = sourceName(source);
    this.#client = new ServiceClient(source.access, {
      connections: 1,
      timeouts: source.timeouts,
      clock: parts.clock,
      mint: parts.mintOf?.(source.rule.service),
    });
    this.#nextMs = parts.clock.monotonicMs();
    this.restored = this.#restored.promise;
    this.attempted = this.#first.promise;
    this.#list = known;
    if (known !== null) this.#triggers = this.#bind(known);
    this.#loop = this.#run();
  }

  state(): ServiceTriggerState {
    const { service } = this.source.rule;
    const emptySince = this.#empty?.since ?? null;
    return {
      service,
      listedAt: this.#list?.listedAt ?? null,
      fault: this.#fault,
      emptySince,
      triggers: this.#triggers,
    };
  }

  /** The list, when it is of the same account. */
  listOf(source: TriggerSource): KeptList | null {
    return sourceName(source) === this.#name ? this.#list : null;
  }

  /** Resolves after a reading that begins after the call; several callers share one. */
  async checkNow(): Promise<void> {
    this.#wanted ??= Promise.withResolvers();
    this.#rest.abort();
    await this.#wanted.promise;
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error("the triggers of the service are no longer read"));
    this.#rest.abort();
    await this.#loop;
    this.#first.resolve();
    this.#wanted?.resolve();
    await this.#client.close();
  }

  async #run(): Promise<void> {
    const { clock, recheckMs } = this.#parts;
    await this.#readKept().catch((thrown) => this.#noteLedger(thrown));
    this.#restored.resolve();
    while (!this.#stop.signal.aborted) {
      const wanted = this.#wanted;
      this.#wanted = null;
      if (wanted !== null || clock.monotonicMs() >= this.#nextMs) await this.#read();
      else await this.#readOthers().catch((thrown) => this.#noteLedger(thrown));
      wanted?.resolve();
      this.#first.resolve();
      this.#rest = new AbortController();
      if (this.#stop.signal.aborted) return;
      if (this.#wanted !== null) continue;
      const restMs = Math.max(0, this.#nextMs - clock.monotonicMs());
      await clock.sleep(Math.min(restMs, recheckMs ?? restMs), this.#rest.signal);
    }
  }

  async #read(): Promise<void> {
    const { clock, lists } = this.#parts;
    const { every } = this.source.rule;
    const hadAttempt = this.#failures > 0 || this.#list !== null;
    try {
      const listed = await listFileTriggers(this.#client, this.#stop.signal);
      const list = { source: this.#name, listedAt: isoInstant(clock.now()), triggers: JSON.stringify(listed) };
      if (this.#isConfirmed(listed.length, list.listedAt)) {
        await lists.keep(list);
        this.#take(list);
      }
      this.#nextMs = clock.monotonicMs() + every;
      this.#readWhole();
    } catch (thrown) {
      if (this.#stop.signal.aborted) return;
      this.#nextMs = clock.monotonicMs() + Math.min(every, RETRY_FIRST_MS * 2 ** this.#failures);
      this.#failed(thrown);
      if (!hadAttempt) this.#parts.onChange();
    }
  }

  /** A list that lost all its triggers has to be read again: the service may have lost its data. */
  #isConfirmed(count: number, listedAt: string): boolean {
    const { confirmEmpty, every } = this.source.rule;
    if (count > 0 || this.#triggers.length === 0 || confirmEmpty === 1) {
      if (this.#empty !== null && count > 0) this.#log.info("the service lists triggers again");
      this.#empty = null;
      return true;
    }
    const nowMs = this.#parts.clock.monotonicMs();
    const before = this.#empty;
    if (before === null)
      this.#log.warn(
        `the service lists no triggers: those of ${this.#list?.listedAt} stay in force until ` +
          `${confirmEmpty} readings found none`,
      );
    // A reading that was asked for in between confirms nothing.
    if (before === null || nowMs - before.lastMs >= every)
      this.#empty = { since: before?.since ?? listedAt, times: (before?.times ?? 0) + 1, lastMs: nowMs };
    if ((this.#empty?.times ?? 0) < confirmEmpty) return false;
    this.#empty = null;
    return true;
  }

  /** Another node may have read the triggers meanwhile. */
  async #readOthers(): Promise<void> {
    if (!(await this.#readKept())) return;
    this.#nextMs = this.#parts.clock.monotonicMs() + this.source.rule.every;
    this.#readWhole();
  }

  /** Returns whether another list was kept than the one in force. */
  async #readKept(): Promise<boolean> {
    const kept = await this.#parts.lists.find(this.#name);
    if (kept === null || kept.listedAt === this.#list?.listedAt) return false;
    this.#empty = null;
    this.#take(kept);
    return true;
  }

  #take(list: KeptList): void {
    const before = this.#list;
    this.#list = list;
    if (before?.triggers === list.triggers) return;
    const former = this.#triggers;
    this.#triggers = this.#bind(list);
    this.#log.info(changesOf(former, this.#triggers), "the triggers of the service are in force");
    this.#parts.onChange();
  }

  #bind({ triggers }: KeptList): readonly ServiceTrigger[] {
    return bindTriggers(JSON.parse(triggers) as unknown[], this.source.rule);
  }

  #readWhole(): void {
    if (this.#failures > 0) this.#log.info("the triggers of the service can be read again");
    this.#failures = 0;
    this.#fault = null;
  }

  #failed(thrown: unknown): void {
    this.#fault = wordsOf(thrown);
    this.#failures += 1;
    if (this.#failures > 1) return;
    const force = this.#list === null ? "none are known yet" : `those of ${this.#list.listedAt} stay in force`;
    this.#log.warn(`the triggers of the service cannot be read, ${force}: ${this.#fault}`);
  }

  #noteLedger(thrown: unknown): void {
    this.#log.warn({ err: thrown }, `the kept triggers of the service cannot be read: ${wordsOf(thrown)}`);
  }
}

function changesOf(before: readonly ServiceTrigger[], now: readonly ServiceTrigger[]) {
  const names = (all: readonly ServiceTrigger[]) => new Map(all.map((one) => [one.name, one]));
  const [former, next] = [names(before), names(now)];
  return {
    triggers: now.length,
    added: [...next.keys()].filter((name) => !former.has(name)),
    removed: [...former.keys()].filter((name) => !next.has(name)),
    changed: [...next]
      .filter(([name, one]) => former.has(name) && !isDeepStrictEqual(former.get(name), one))
      .map(([n]) => n),
  };
}
