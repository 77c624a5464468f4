/** Calculated variables with alarms on them, whose changes are known beforehand, and readers of all events. */
import { expect } from "vitest";
import type { AccountEvent, AlarmChange, EventDelivery } from "#wire/index.ts";
import { createChain, type HubCalls } from "../hub/fixture.ts";

const QUARTER_MS = 900_000;
const START_MS = Date.UTC(2026, 2, 1);
const CHAINS = 4;
const PERIOD = 8;
const [HIGH, LOW] = [60, 10];

const isHigh = (chain: number, nth: number) => (nth + 3 * chain) % PERIOD === 5;
const dateOf = (nth: number) => new Date(START_MS + nth * QUARTER_MS).toISOString();

interface Chain {
  readonly inputId: number;
  /** Reads another calculated variable, and has the alarm. */
  readonly lastId: number;
}

export class DerivedScene {
  #chains: Chain[] = [];

  async create(hub: HubCalls): Promise<void> {
    for (let chain = 0; chain < CHAINS; chain += 1) {
      const { sourceId, variableIds } = await createChain(hub, {});
      const [inputId = 0] = variableIds;
      const calculate = (formula: string, variableId: number): Promise<number> =>
        hub.post("/variables", {
          ...{ name: "Calculated", sourceId, variableTypeId: 0, unitId: 8, isVersioned: true },
          calculated: { calculatedVariableFormulas: [{ formula, variables: [{ alias: "a", variableId }] }] },
        });
      const lastId = await calculate("= a + 1", await calculate("= a * 2", inputId));
      this.#chains.push({ inputId, lastId });
      const condition = { kind: "Above", set: 100, reset: 90 };
      await hub.post("/alarms/template", { name: `Chain ${chain}`, selection: { variableIds: [lastId] }, condition });
    }
    await expect.poll(() => hub.get("/alarms")).toHaveLength(CHAINS);
  }

  elements(from: number, until: number): object[] {
    return this.#chains.map(({ inputId: variableId }, chain) => ({
      variableId,
      data: Array.from({ length: until - from }, (_, at) => ({
        date: dateOf(from + at),
        value: isHigh(chain, from + at) ? HIGH : LOW,
      })),
    }));
  }

  /** After steps 0 to `until`, excluded: each value, and each change of each alarm once. Returns the ids of these. */
  async expectAll(hub: HubCalls, until: number): Promise<readonly number[]> {
    const ids: number[] = [];
    for (const [chain, { lastId }] of this.#chains.entries()) {
      const steps = Array.from({ length: until }, (_, nth) => nth);
      const rows: { rawValue: number }[] = await hub.get("/data", { VariableId: lastId });
      const values = steps.map((nth) => (isHigh(chain, nth) ? HIGH : LOW) * 2 + 1);
      expect(
        rows.map(({ rawValue }) => rawValue),
        `values of chain ${chain}`,
      ).toEqual(values);
      const changes = steps.flatMap((nth) => {
        if (isHigh(chain, nth)) return [["Present", dateOf(nth)]];
        return nth > 0 && isHigh(chain, nth - 1) ? [["NotPresent", dateOf(nth)]] : [];
      });
      const asked = { variableIds: lastId, "Paging.ItemsPerPage": 10_000 };
      const history = async (): Promise<AlarmChange[]> => (await hub.get("/alarms/history", asked)).toReversed();
      await expect.poll(async () => (await history()).length).toBeGreaterThanOrEqual(changes.length);
      const found = await history();
      expect(
        found.map(({ state, date }) => [state, date]),
        `changes of chain ${chain}`,
      ).toEqual(changes);
      ids.push(...found.map(({ id }) => id));
    }
    return ids;
  }
}

/** All events of an account, as the feed has them. */
export async function feedOf(hub: HubCalls): Promise<readonly AccountEvent[]> {
  const all: AccountEvent[] = [];
  for (let after = 0; ; ) {
    const { events, next, last } = await hub.get("/events", { after, limit: 1_000 });
    all.push(...events);
    if (next === last) return all;
    after = next;
  }
}

/** Ids of the events of deliveries; those that a delivery repeats come once. */
export function deliveredIds(texts: readonly { readonly text: string }[]): readonly number[] {
  const ids: number[] = [];
  for (const { text } of texts)
    for (const { id } of (JSON.parse(text) as EventDelivery).events) if (id > (ids.at(-1) ?? 0)) ids.push(id);
  return ids;
}
