/** Latest points, which the hub keeps at hand, are those of the store at each moment, whatever was changed before. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createChain, type Query, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

type Row = Readonly<Record<string, unknown>>;
const LATEST = { PagingOrder: "DESC", "Paging.PageNumber": 0 };

const latest = (query: Query): Promise<readonly Row[]> =>
  hub.get("/data", { ...LATEST, "Paging.ItemsPerPage": 1, ...query });

/** The same by a page that is always read from the store: the first row of each variable. */
async function stored(query: Query): Promise<readonly Row[]> {
  const rows: readonly Row[] = await hub.get("/data", { ...LATEST, "Paging.ItemsPerPage": 2, ...query });
  return [...Map.groupBy(rows, (row) => row["variableId"]).values()].flatMap((some) => some.slice(0, 1));
}

interface Chain {
  readonly siteId: number;
  readonly sourceId: number;
  readonly variableIds: readonly number[];
}

const dateOf = (day: number) => new Date(Date.UTC(2026, 2, 20 + day)).toISOString();
const day = fc.nat({ max: 12 });
const which = fc.nat({ max: 2 });

type Change = (chain: Chain) => Promise<unknown>;
const changed = async (path: string, body: object) =>
  expect((await hub.call("PUT", path, { body })).status).toBeOneOf([200, 204]);
const pushes = fc
  .record({ which, day, value: fc.integer({ min: -1_000, max: 1_000 }), version: fc.constantFrom("", "estimated") })
  .map(({ which, day, value, version }): [string, Change] => [
    `push ${which} ${day} ${value} ${version}`,
    ({ variableIds }) => hub.push([{ variableId: variableIds[which], version, data: [{ date: dateOf(day), value }] }]),
  ]);
const removals = fc
  .record({ which, day })
  .map(({ which, day }): [string, Change] => [
    `remove ${which} from ${day}`,
    ({ variableIds }) =>
      hub.ok("DELETE", "/data", { query: { VariableIds: [variableIds[which] ?? 0], FromDateUtc: dateOf(day) } }),
  ]);
const units = fc
  .record({ which, unitId: fc.constantFrom(8, 9) })
  .map(({ which, unitId }): [string, Change] => [
    `unit ${which} ${unitId}`,
    ({ sourceId, variableIds }) => changed(`/sources/${sourceId}/variables/${variableIds[which]}`, { unitId }),
  ]);
const zones = fc
  .constantFrom("Asia/Tokyo", "Europe/Paris")
  .map((timeZoneId): [string, Change] => [
    `zone ${timeZoneId}`,
    ({ siteId }) => changed(`/sites/${siteId}`, { timeZoneId }),
  ]);
const queries: readonly Query[] = [
  { DisplayLevel: "ValueVariable" },
  { DisplayLevel: "ValueVariableDate" },
  { DisplayLevel: "ValueVariableDateSource", TargetUnits: 9 },
  { DisplayLevel: "ValueVariableDate", TimeZoneId: "America/New_York" },
];

test("after each of many changes, in any order", async () => {
  const changes = fc.array(fc.oneof(pushes, pushes, removals, units, zones), { minLength: 1, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(changes, async (all) => {
      const chain = await createChain(hub, { variables: [{}, { isVersioned: true }, {}] });
      for (const [, change] of all) {
        await change(chain);
        for (const query of queries) {
          const asked = { ...query, VariableIds: chain.variableIds };
          const fresh = await stored(asked);
          expect(await latest(asked)).toEqual(fresh);
          expect(await latest({ ...query, SourceId: chain.sourceId })).toEqual(fresh);
        }
      }
    }),
    { numRuns: 12 },
  );
});

test("a point whose push has an outcome is in every later answer, with others asking meanwhile", async () => {
  const { variableIds } = await createChain(hub, { variables: [{}, {}] });
  const asked = { DisplayLevel: "ValueVariable", VariableIds: variableIds };
  let isDone = false;
  const others = Array.from({ length: 4 }, async () => {
    while (!isDone) await latest(asked);
  });
  try {
    for (let turn = 1; turn <= 25; turn += 1) {
      const data = [{ date: dateOf(turn), value: turn }];
      await hub.push(variableIds.map((variableId) => ({ variableId, data })));
      expect((await latest(asked)).map((row) => row["rawValue"])).toEqual([turn, turn]);
    }
  } finally {
    isDone = true;
    await Promise.all(others);
  }
});

test("removed variables are not shown, new ones are", async () => {
  const { sourceId, variableIds } = await createChain(hub, { variables: [{}, {}] });
  const [first = 0, second = 0] = variableIds;
  const pushed = (variableId: number) => hub.push([{ variableId, data: [{ date: dateOf(1), value: variableId }] }]);
  await pushed(first);
  await pushed(second);
  const shown = async () =>
    (await latest({ DisplayLevel: "ValueVariable", SourceId: sourceId })).map((row) => row["variableId"]);
  expect(await shown()).toEqual([first, second]);
  await hub.call("DELETE", `/sources/${sourceId}/variables/${first}`, { query: { WithData: true } });
  expect(await shown()).toEqual([second]);
  const body = { name: "Energy", sourceId, variableTypeId: 0, unitId: 8 };
  const third: number = await hub.post("/variables", body);
  await pushed(third);
  expect(await shown()).toEqual([second, third]);
});
