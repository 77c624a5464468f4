/** Stored points whose bytes are damaged hold up nothing but what cannot do without them. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLog } from "#core/log.ts";
import { addBlocks, type Block, blockOf } from "#hub/store/blocks/blocks.ts";
import { change, rows, type Steps } from "#hub/store/database.ts";
import type { HubStore } from "#hub/store/store.ts";
import { createChain, startTestHub, type TestHub } from "../fixture.ts";

const STEP_MS = 900_000;
const BEGIN_MS = Date.parse("2025-10-05T00:00:00Z");
const dateOf = (step: number) => new Date(BEGIN_MS + step * STEP_MS).toISOString();
const logged: string[] = [];

let hub: TestHub;
beforeAll(async () => {
  const log = createLog("error", { write: (line) => void logged.push(line) });
  hub = await startTestHub({}, true, { log });
});
afterAll(() => hub.close());

const readings = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => ({ date: dateOf(from + index), value: from + index }));

async function inWrite<T>(work: () => Steps<T>): Promise<T> {
  const results: T[] = [];
  await (hub.inside().store as HubStore).people.change(function* () {
    results.splice(0, results.length, yield* work());
  });
  return results[0] as T;
}

const blocksOf = (id: number): Promise<readonly Block[]> =>
  inWrite(function* () {
    return (yield* rows("SELECT * FROM point_block WHERE variable_id = ? ORDER BY first_ms", id)).map(blockOf);
  });

const valuesOf = async (variableId: number, from: number, count: number) => {
  const period = { From: dateOf(from), To: dateOf(from + count) };
  return (await hub.get("/data", { VariableId: variableId, ...period })).map(
    (one: { rawValue: number }) => one.rawValue,
  );
};

/** Damages the newest block of the first of two variables, which has less than 1,000 points. */
async function createDamaged(): Promise<readonly [number, number]> {
  const { variableIds } = await createChain(hub, { variables: [{}, {}] });
  const [damaged = 0, healthy = 0] = variableIds;
  await hub.push([{ variableId: damaged, data: readings(0, 100) }]);
  const [block] = await blocksOf(damaged);
  if (block === undefined) throw new Error("the points are in a block");
  const data = Uint8Array.from(block.data);
  data[60] = (data[60] ?? 0) ^ 255;
  await inWrite(() => change("UPDATE point_block SET data = ? WHERE variable_id = ?", data, damaged));
  logged.length = 0;
  return [damaged, healthy];
}

test("new points after a damaged block begin another one, and the log names it", async () => {
  const [damaged, healthy] = await createDamaged();
  for (const from of [100, 120, 140])
    expect(
      await hub.push([
        { variableId: damaged, data: readings(from, 20) },
        { variableId: healthy, data: readings(from, 20) },
      ]),
    ).toMatchObject({ stored: 40, discarded: [] });
  expect((await blocksOf(damaged)).map(({ points }) => points)).toEqual([100, 60]);
  expect(await valuesOf(damaged, 100, 60)).toEqual(readings(100, 60).map(({ value }) => value));
  const lines = logged.filter((line) => line.includes("stored points are damaged"));
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({
    variable: damaged,
    points: "from 2025-10-05T00:00:00.000Z to before 2025-10-06T00:45:00.001Z",
    refused: 0,
  });
});

test.each([
  ["without", {}],
  ["with", { tags: { kept: "as a row" } }],
])("readings %s tags between the dates of a damaged block are discarded alone", async (_, labels) => {
  const [damaged, healthy] = await createDamaged();
  const outcome = await hub.push([
    { variableId: damaged, data: [...readings(90, 40)], ...labels },
    { variableId: healthy, data: readings(0, 40), ...labels },
  ]);
  expect(outcome).toMatchObject({ received: 80, stored: 70, replaced: 0 });
  expect(outcome.discarded).toEqual([
    { target: `variableId=${damaged}`, reason: expect.stringContaining("are damaged: remove them"), count: 10 },
  ]);
  expect(await valuesOf(damaged, 100, 30)).toEqual(readings(100, 30).map(({ value }) => value));
  expect(await valuesOf(healthy, 0, 40)).toHaveLength(40);
  // As the reason says.
  const period = { FromDateUtc: dateOf(0), ToDateUtc: outcome.discarded[0].reason.match(/before (\S+) are/)[1] };
  await hub.ok("DELETE", "/data", { query: { VariableIds: [damaged], ...period } });
  expect(await hub.push([{ variableId: damaged, data: readings(0, 100) }])).toMatchObject({ stored: 100 });
  expect(await valuesOf(damaged, 0, 130)).toEqual(readings(0, 130).map(({ value }) => value));
});

test("a block does not take the place of another one", async () => {
  const { variableIds } = await createChain(hub, { variables: [{}] });
  const [variableId = 0] = variableIds;
  await hub.push([{ variableId, data: readings(0, 100) }]);
  const other = { atMs: Float64Array.of(BEGIN_MS), values: Float64Array.of(-1), origins: new Float64Array(1) };
  await expect(inWrite(() => addBlocks(variableId, other))).rejects.toThrow();
  expect(await valuesOf(variableId, 0, 100)).toHaveLength(100);
});
