import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compressed, decompressed, packed, release } from "#hub/push/body-compression.ts";
import { createChain, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

test("a body leaves the queue as it entered, compressed or not", async () => {
  await fc.assert(
    fc.asyncProperty(fc.json(), fc.integer({ min: 1, max: 20_000 }), async (json, times) => {
      const body = Buffer.from(`[${Array.from({ length: Math.ceil(times / json.length) }, () => json).join(",")}]`);
      const waiting = await compressed(body);
      expect(waiting.byteLength).toBeLessThanOrEqual(body.byteLength);
      expect(Buffer.from(decompressed(waiting)).equals(body)).toBe(true);
      // One that a hub of before left in its queue.
      expect(decompressed(body)).toBe(body);
    }),
    { numRuns: 50 },
  );
});

test("the memory of a decompressed body is given back, and no other", async () => {
  const body = Buffer.from(JSON.stringify(Array.from({ length: 20_000 }, (_, index) => index)));
  const waiting = await compressed(body);
  const before = Buffer.from(waiting);
  const apart = decompressed(waiting);
  release(apart);
  expect(apart.byteLength).toBe(0);
  const [small, next] = [Buffer.from("small"), Buffer.from("next")];
  release(small);
  expect([small, next].map(String)).toEqual(["small", "next"]);
  expect(before.equals(waiting)).toBe(true);
});

test("the memory of a body that was compressed is given back", async () => {
  const text = JSON.stringify(Array.from({ length: 20_000 }, (_, index) => index));
  const body = Buffer.from(text);
  const waiting = await packed(body);
  expect(body.byteLength).toBe(0);
  expect(Buffer.from(decompressed(waiting)).toString()).toBe(text);
  const small = Buffer.from("[]");
  expect(await packed(small)).toBe(small);
  expect(String(small)).toBe("[]");
});

test("large bodies wait at a fraction of their size, and all of their readings are stored", async () => {
  const { variableIds } = await createChain(hub);
  const data = Array.from({ length: 2_000 }, (_, minute) => ({
    date: new Date(Date.UTC(2026, 0, 1) + minute * 60_000).toISOString(),
    value: minute,
  }));
  const body = [{ variableId: variableIds[0], data }];
  const bytes = Buffer.from(JSON.stringify(body));
  expect((await compressed(bytes)).byteLength).toBeLessThan(bytes.byteLength / 4);
  expect(await hub.push(body)).toMatchObject({ received: 2_000, stored: 2_000 });
  const all = { VariableId: variableIds, Granularity: "All", Aggregation: "SUM" };
  expect(await hub.get("/data", all)).toEqual([{ sumValue: (1_999 * 2_000) / 2, unitId: 8 }]);
});
