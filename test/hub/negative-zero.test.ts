/** A negative zero is stored as 0, however it comes: no answer could show the difference. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { HubStore } from "#hub/store/store.ts";
import { createChain, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const DATE = "2026-03-01T00:00:00Z";

const later = (minute: number) =>
  `{"date":"${new Date(Date.parse("2026-03-02") + minute * 60_000).toISOString()}","value":-0}`;

async function pushed(variableId: number, readings: string): Promise<void> {
  const raw = `[{"variableId":${variableId},"data":[${readings}]}]`;
  const { body } = await hub.call("POST", "/push/api/data", { raw });
  expect(await hub.settled(body.operationId)).toMatchObject({ status: "stored" });
}

test.each([
  ["plain", {}],
  ["with versions", { isVersioned: true }],
])("of a variable %s", async (_, more) => {
  const { variableIds } = await createChain(hub, { variables: [more, more] });
  const { points } = hub.inside().store as HubStore;
  const forms = [`{"date":"${DATE}","value":-0}`, `{"value":-0.0,"date":"${DATE}","tags":{"a":"b"}}`];
  for (const [at, id] of variableIds.entries()) {
    await pushed(id, `{"date":"${DATE}","value":0}`);
    await pushed(id, forms[at] ?? "");
    // So many become a block.
    await pushed(id, Array.from({ length: 2_000 }, (_, minute) => later(minute)).join(","));
    const [variable] = await points.select(1, { ids: [id] });
    if (variable === undefined) throw new Error("no variable");
    const page = { order: "ASC", page: { offset: 0, limit: 3_000 }, view: { kind: "latest" } } as const;
    const [found = []] = await points.heads([{ variable, fromMs: null, lastMs: null }], page);
    expect(found).toHaveLength(2_001);
    expect(found.filter(({ value }) => !Object.is(value, 0))).toEqual([]);
  }
});
