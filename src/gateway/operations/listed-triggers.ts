/** Triggers that come from services, for people: in health, notifications and metrics. */
import { Gauge, type Registry } from "prom-client";
import type { IsoInstant } from "../model.ts";
import type { Concern } from "./attention.ts";
import type { HealthPart } from "./state-of-work.ts";

/** The triggers of one service. */
export interface ListedTriggers {
  readonly service: string;
  /** When the service listed them; null: they are not known yet. */
  readonly listedAt: IsoInstant | null;
  /** Why they could not be read at the last attempt; null when they were. */
  readonly fault: string | null;
  /** Since when the service lists none, which further readings have to confirm; else null. */
  readonly emptySince: IsoInstant | null;
  readonly count: number;
  /** Triggers that are on and cannot work as the service has them. */
  readonly unusable: readonly UnusableTrigger[];
}

export interface UnusableTrigger {
  readonly trigger: string;
  readonly reason: string;
}

export function triggerHealth(all: readonly ListedTriggers[]): readonly HealthPart[] {
  return all.flatMap((one) => [
    // The service itself reports whether it can be used; the kept triggers work meanwhile.
    { part: `triggers of ${one.service}`, ready: one.listedAt !== null, reason: stateWords(one) },
    ...one.unusable.map(({ trigger, reason }) => ({ part: `trigger ${trigger}`, ready: true, reason })),
  ]);
}

export function triggerConcerns(all: readonly ListedTriggers[]): readonly Concern[] {
  return all.flatMap((one): readonly Concern[] => {
    const { service, fault, emptySince, listedAt } = one;
    const unusable = one.unusable.map(
      ({ trigger, reason }): Concern => ({
        key: `trigger ${trigger}`,
        kind: "trigger",
        text: `the trigger ${trigger} cannot be used: ${reason}`,
        facts: { trigger, service },
      }),
    );
    if (fault === null && emptySince === null) return unusable;
    const text = `the triggers of the service ${service}: ${stateWords(one)}`;
    return [{ key: `triggers ${service}`, kind: "service", text, facts: { service, listedAt } }, ...unusable];
  });
}

function stateWords({ listedAt, fault, emptySince, count }: ListedTriggers): string {
  const known = listedAt === null ? "they are not known yet" : `${count}, listed at ${listedAt}`;
  if (fault === null)
    return emptySince === null
      ? known
      : `${known}, stay in force for now: the service lists none since ${emptySince}, which further readings confirm`;
  return listedAt === null ? `${known}: ${fault}` : `${known}, stay in force, since they cannot be read now: ${fault}`;
}

export function measureTriggers(registry: Registry, states: () => Promise<readonly ListedTriggers[]>): void {
  const measure = (name: string, help: string, value: (one: ListedTriggers) => number | null) =>
    new Gauge({
      name,
      help,
      labelNames: ["service"],
      registers: [registry],
      async collect() {
        this.reset();
        for (const one of await states()) {
          const measured = value(one);
          if (measured !== null) this.set({ service: one.service }, measured);
        }
      },
    });
  measure("headgate_service_triggers", "Triggers that the service listed", ({ count }) => count);
  measure(
    "headgate_service_triggers_unusable",
    "Those of them that are on and cannot work: they are malformed, or their mapper is missing or refuses its settings",
    ({ unusable }) => unusable.length,
  );
  measure(
    "headgate_service_triggers_listed_timestamp_seconds",
    "When the service last listed its triggers whole",
    ({ listedAt }) => (listedAt === null ? null : Date.parse(listedAt) / 1000),
  );
  measure(
    "headgate_service_triggers_stale",
    "1 while the triggers of the service cannot be read, or it lists none, which is not confirmed yet; those that it " +
      "listed last stay in force",
    ({ fault, emptySince }) => (fault === null && emptySince === null ? 0 : 1),
  );
}
