/** What is calculated after changes of forms, of zones, and of points that are far apart. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { INTERVALS_MAX, intervalsOf } from "#hub/store/calculated/marks.ts";
import { startTestHub, type TestHub } from "../fixture.ts";
import { calculate, calculationsOf, openScene, pushValues, untilCalculated, valuesOf } from "./scene.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const HOURS = [0, 1, 2, 3, 4, 5, 6, 7].map((hour) => `2026-03-01T0${hour}:00:00Z`);

test("a value of a form calculates the outputs that look back at its dates", async () => {
  const scene = await openScene(hub);
  const [input = 0] = scene.inputs;
  const groups = [{ name: "Main", fields: [{ name: "Tariff", type: "Number", timeSliced: true }] }];
  const form = await hub.post("/form", { name: "Contract", groups });
  const [group] = form.groups;
  const at = `/sources/${scene.sourceId}/attributes/Contract/Main/Tariff/slices`;
  for (const [date, value] of [
    ["2026-01-01T00:00:00Z", 1],
    ["2026-03-01T03:00:00Z", 10],
  ])
    await hub.post(at, { FromDate: date, Value: value });
  const entity = {
    ...{ alias: "tariff", entityType: "Source", sourceId: scene.sourceId },
    ...{ formId: Number(form.id), groupId: Number(group.id), propId: Number(group.fields[0].id) },
  };
  await pushValues(hub, input, Object.fromEntries(HOURS.map((date) => [date, 1])));
  const more = { formula: { entities: [entity] } };
  const id = await calculate(hub, scene, "= previous(a * tariff)", { a: input }, more);
  await untilCalculated(hub);
  // From 02:00 to 03:00; the output of 03:00 is the previous one.
  await hub.post(at, { FromDate: "2026-03-01T02:00:00Z", Value: 100 });
  await untilCalculated(hub);
  expect(Object.values(await valuesOf(hub, id))).toEqual([1, 1, 100, 10, 10, 10, 10]);
  expect((await calculationsOf(hub, id)).at(-1)).toMatchObject({ outputs: 2 });
});

describe("another zone cuts days otherwise", () => {
  const POINTS = { "2026-03-01T12:00:00Z": 1, "2026-03-01T23:30:00Z": 2 };
  const body = { name: "Site", typeId: 3 };

  async function openDays(zone: string, ownZone?: string) {
    const siteId = await hub.post("/sites", { ...body, timeZoneId: zone });
    const own = ownZone === undefined ? {} : { timeZoneId: ownZone };
    const source = { name: "Source", siteId, sourceTypeId: 1, ...own };
    const { id: sourceId } = await hub.post("/sources", source);
    const input = await hub.post("/variables", { name: "Energy", sourceId, variableTypeId: 0, unitId: 8 });
    await pushValues(hub, input, POINTS);
    const sums = { input: { granularity: "Day", aggregation: "SUM" } };
    const id = await calculate(hub, { sourceId, inputs: [input] }, "= a", { a: input }, sums);
    await untilCalculated(hub);
    return { siteId, sourceId, source, id };
  }

  const runs = async (id: number) => (await calculationsOf(hub, id)).length;

  test("of a site", async () => {
    const { siteId, id } = await openDays("UTC");
    expect(await valuesOf(hub, id)).toEqual({ "2026-03-01T00:00:00Z": 3 });
    await hub.ok("PUT", `/sites/${siteId}`, { body: { ...body, timeZoneId: "Europe/Paris" } });
    await untilCalculated(hub);
    expect(await valuesOf(hub, id)).toMatchObject({ "2026-02-28T23:00:00Z": 1, "2026-03-01T23:00:00Z": 2 });
  });

  test("of a source, and not of its site while it has its own", async () => {
    const { siteId, sourceId, source, id } = await openDays("UTC", "UTC");
    const before = await runs(id);
    await hub.ok("PUT", `/sites/${siteId}`, { body: { ...body, timeZoneId: "Europe/Paris" } });
    await untilCalculated(hub);
    expect(await runs(id)).toBe(before);
    await hub.ok("PUT", `/sources/${sourceId}`, { body: { ...source, timeZoneId: "Europe/Paris" } });
    await untilCalculated(hub);
    expect(await valuesOf(hub, id)).toMatchObject({ "2026-02-28T23:00:00Z": 1, "2026-03-01T23:00:00Z": 2 });
  });

  test("of another site, to which the source is moved", async () => {
    const { sourceId, source, id } = await openDays("UTC");
    const other = await hub.post("/sites", { ...body, timeZoneId: "Europe/Paris" });
    const before = await runs(id);
    await hub.ok("PUT", `/sources/${sourceId}`, { body: { ...source, name: "Renamed" } });
    await untilCalculated(hub);
    expect(await runs(id)).toBe(before);
    await hub.ok("PUT", `/sources/${sourceId}`, { body: { ...source, siteId: other } });
    await untilCalculated(hub);
    expect(await valuesOf(hub, id)).toMatchObject({ "2026-02-28T23:00:00Z": 1, "2026-03-01T23:00:00Z": 2 });
  });
});

test("a push of two distant points calculates nothing between them", async () => {
  const scene = await openScene(hub, 2);
  const [input = 0, other = 0] = scene.inputs;
  const id = await calculate(hub, scene, "= a * 10", { a: input });
  await pushValues(hub, input, { "2020-01-01T00:00:00Z": 1, "2022-01-01T00:00:00Z": 2, "2025-01-01T00:00:00Z": 3 });
  await untilCalculated(hub);
  const data = (dates: readonly string[]) => dates.map((date) => ({ date, value: 5 }));
  await hub.push([
    { variableId: input, data: data(["2025-01-01T00:00:00Z", "2020-01-01T00:00:00Z"]) },
    { variableId: other, data: data(["2019-01-01T00:00:00Z", "2026-01-01T00:00:00Z"]) },
  ]);
  await untilCalculated(hub);
  expect((await calculationsOf(hub, id)).at(-1)).toMatchObject({ outputs: 2 });
  expect(Object.values(await valuesOf(hub, id))).toEqual([50, 20, 50]);
});

test("dates lie in intervals where they are more than a day apart, and in a limited number of them", () => {
  const day = 86_400_000;
  expect(intervalsOf([5 * day, 0, 1, day, 2 * day + 1])).toEqual([
    { fromMs: 0, toMs: day },
    { fromMs: 2 * day + 1, toMs: 2 * day + 1 },
    { fromMs: 5 * day, toMs: 5 * day },
  ]);
  // Gaps of 2, 3, 4 ... days: the smallest ones are closed.
  const dates = Array.from({ length: INTERVALS_MAX + 5 }, (_, at) => ((at * (at + 3)) / 2) * day);
  const found = intervalsOf(dates);
  expect(found).toHaveLength(INTERVALS_MAX);
  expect(found[0]).toEqual({ fromMs: 0, toMs: dates[5] });
  expect(found.at(-1)).toEqual({ fromMs: dates.at(-1), toMs: dates.at(-1) });
});
