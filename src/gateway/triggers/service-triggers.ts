/** The triggers of all services that are sources of triggers. */
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "#core/clock.ts";
import { TransientError } from "#core/errors.ts";
import { listFileTriggers, ServiceClient } from "#wire/client/index.ts";
import { bindTriggers, type ServiceTrigger } from "./bound.ts";
import {
  type KeptLists,
  type ServiceTriggerState,
  type ServiceTriggersParts,
  SourceWatch,
  sourceName,
  type TriggerSource,
} from "./source-watch.ts";

export type { ServiceTriggerState, TriggerSource };

/** Limit on the wait for the first attempt to read the triggers. */
const FIRST_ATTEMPT_MS = 10_000;

/** The kept list of a source, for commands beside the gateway. */
export async function keptTriggers(lists: KeptLists, source: TriggerSource): Promise<ServiceTriggerState> {
  const { rule } = source;
  const kept = await lists.find(sourceName(source));
  const listed = kept === null ? [] : (JSON.parse(kept.triggers) as unknown[]);
  const triggers = bindTriggers(listed, rule);
  return { service: rule.service, listedAt: kept?.listedAt ?? null, fault: null, emptySince: null, triggers };
}

/** Reads the triggers of a source once. */
export async function readTriggers(
  { rule, access, timeouts }: TriggerSource,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly ServiceTrigger[]> {
  const client = new ServiceClient(access, { connections: 1, timeouts, clock });
  try {
    return bindTriggers(await listFileTriggers(client, signal), rule);
  } finally {
    await client.close();
  }
}

export class ServiceTriggers {
  readonly #parts: ServiceTriggersParts;
  readonly #watches = new Map<string, SourceWatch>();
  readonly #closing = new Set<Promise<void>>();

  constructor(parts: ServiceTriggersParts) {
    this.#parts = parts;
  }

  /** Replaces the sources. A source that is the same continues; the list of one that differs stays known. */
  configure(sources: readonly TriggerSource[]): void {
    const names = new Set(sources.map(({ rule }) => rule.service));
    for (const service of this.#watches.keys()) if (!names.has(service)) this.#end(service);
    for (const source of sources) {
      const { service } = source.rule;
      const before = this.#watches.get(service);
      if (before !== undefined && isDeepStrictEqual(before.source, source)) continue;
      this.#end(service);
      this.#watches.set(service, new SourceWatch(source, this.#parts, before?.listOf(source) ?? null));
    }
  }

  /** Resolves when the kept list of each source is in force. */
  async restored(): Promise<void> {
    await Promise.all([...this.#watches.values()].map(({ restored }) => restored));
  }

  /** Resolves when each source was read once or could not be read, or after a limited time. */
  async firstAttempt(): Promise<void> {
    const over = new AbortController();
    const all = Promise.all([...this.#watches.values()].map(({ attempted }) => attempted));
    await Promise.race([all, this.#parts.clock.sleep(FIRST_ATTEMPT_MS, over.signal)]);
    over.abort();
  }

  /** Undefined for a service that is no source. */
  state(service: string): ServiceTriggerState | undefined {
    return this.#watches.get(service)?.state();
  }

  states(): readonly ServiceTriggerState[] {
    return [...this.#watches.values()].map((watch) => watch.state());
  }

  /**
   * Reads the triggers of the service now, or those of all services. Throws `TransientError` when one of them could not
   * be read.
   */
  async checkNow(service?: string): Promise<void> {
    const asked = [...this.#watches].filter(([name]) => service === undefined || name === service);
    await Promise.all(asked.map(([, watch]) => watch.checkNow()));
    const failed = asked.map(([, watch]) => watch.state()).find(({ fault }) => fault !== null);
    if (failed === undefined) return;
    const facts = { operation: "read triggers", subject: failed.service };
    throw new TransientError("HG-TRIG-002", { ...facts, message: failed.fault ?? "" });
  }

  async close(): Promise<void> {
    for (const service of [...this.#watches.keys()]) this.#end(service);
    await Promise.all(this.#closing);
  }

  #end(service: string): void {
    const watch = this.#watches.get(service);
    this.#watches.delete(service);
    if (watch === undefined) return;
    const closing = watch.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}
