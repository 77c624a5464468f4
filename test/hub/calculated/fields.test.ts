/** Each field of a formula has its effect; units, aggregates and triggers are in `recalculation.test.ts`. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestHub, type TestHub } from "../fixture.ts";
import { calculate, calculationsOf, openScene, pushValues, untilCalculated, valuesOf } from "./scene.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const HOURS = [0, 1, 2, 3, 4, 5, 6, 7].map((hour) => `2026-03-01T0${hour}:00:00Z`);
const AT_TWO = "2026-03-01T02:00:00Z";

/** Outputs of the calculation after a correction at 02:00, of an input that has these fields. */
async function outputsAfterCorrection(input: object): Promise<number | undefined> {
  const scene = await openScene(hub);
  const [variable = 0] = scene.inputs;
  await pushValues(hub, variable, Object.fromEntries(HOURS.map((date) => [date, 1])));
  const id = await calculate(hub, scene, "= a", { a: variable }, { input });
  await untilCalculated(hub);
  await pushValues(hub, variable, { [AT_TWO]: 5 });
  await untilCalculated(hub);
  expect((await valuesOf(hub, id))[AT_TWO]).toBe(5);
  return (await calculationsOf(hub, id)).at(-1)?.outputs;
}

test("a change affects its own date without a periodType", async () => {
  expect(await outputsAfterCorrection({})).toBe(1);
});

test("periodType 1: a change affects a period of so many periodTimeBase after it", async () => {
  expect(await outputsAfterCorrection({ periodType: 1, period: 2, periodTimeBase: "Hour" })).toBe(3);
  expect(await outputsAfterCorrection({ periodType: "RelativeDate", period: 1, periodTimeBase: "Day" })).toBe(6);
});

test("periodType 3: a change affects the outputs up to so many later points", async () => {
  expect(await outputsAfterCorrection({ periodType: 3, period: 4 })).toBe(5);
});

test("periodType 2: a formula sees the absolute period, whatever it calculates, and its end is excluded", async () => {
  const scene = await openScene(hub, 2);
  const [input = 0, reference = 0] = scene.inputs;
  await pushValues(hub, input, { [AT_TWO]: 1 });
  const absolute = { fromAbsolutePeriod: "2026-01-01T00:00:00Z", toAbsolutePeriod: "2026-01-02T00:00:00Z" };
  await pushValues(hub, reference, { "2026-01-01T12:00:00Z": 10, "2026-01-02T00:00:00Z": 100 });
  const variables = [
    { alias: "a", variableId: input },
    { alias: "b", variableId: reference, periodType: 2, ...absolute },
  ];
  const id = await calculate(hub, scene, "= a + hold(b)", {}, { formula: { variables } });
  await untilCalculated(hub);
  expect((await valuesOf(hub, id))[AT_TWO]).toBe(11);
  const before = (await calculationsOf(hub, id)).length;
  await pushValues(hub, reference, { "2026-02-01T00:00:00Z": 1_000 });
  await untilCalculated(hub);
  expect((await valuesOf(hub, id))[AT_TWO]).toBe(11);
  expect((await calculationsOf(hub, id)).slice(before).map(({ outputs }) => outputs)).toEqual([0]);
  await pushValues(hub, reference, { "2026-01-01T13:00:00Z": 20 });
  await untilCalculated(hub);
  expect((await valuesOf(hub, id))[AT_TWO]).toBe(21);
  expect((await calculationsOf(hub, id)).slice(before).map(({ outputs }) => outputs)).toEqual([0, 1]);
});

test("alias: two that change places change what the formula reads", async () => {
  const scene = await openScene(hub, 2);
  const [first = 0, second = 0] = scene.inputs;
  await pushValues(hub, first, { [AT_TWO]: 10 });
  await pushValues(hub, second, { [AT_TWO]: 3 });
  const id = await calculate(hub, scene, "= a - b", { a: first, b: second });
  await untilCalculated(hub);
  expect(await valuesOf(hub, id)).toEqual({ [AT_TWO]: 7 });
  const variables = [
    { alias: "b", variableId: first },
    { alias: "a", variableId: second },
  ];
  const calculated = { calculatedVariableFormulas: [{ formula: "= a - b", variables }] };
  await hub.ok("PATCH", `/variables/${id}`, { body: { calculated } });
  await untilCalculated(hub);
  expect(await valuesOf(hub, id)).toEqual({ [AT_TWO]: -7 });
  // Both still start calculations.
  await pushValues(hub, first, { [AT_TWO]: 20 });
  await untilCalculated(hub);
  await pushValues(hub, second, { [AT_TWO]: 5 });
  await untilCalculated(hub);
  expect(await valuesOf(hub, id)).toEqual({ [AT_TWO]: -15 });
});

test("constants: numbers and texts by their aliases", async () => {
  const scene = await openScene(hub);
  const [input = 0] = scene.inputs;
  await pushValues(hub, input, { [AT_TWO]: 2 });
  const constants = [
    { alias: "price", value: 0.5 },
    { alias: "tariff", value: "peak" },
  ];
  const formula = '= tariff == "peak" ? a * price : 0';
  const id = await calculate(hub, scene, formula, { a: input }, { formula: { constants } });
  await untilCalculated(hub);
  expect(await valuesOf(hub, id)).toEqual({ [AT_TWO]: 1 });
});

test.each([
  ["Site", "sites"],
  ["Source", "sources"],
])("entities: the value of a field of a form of a %s", async (entityType, at) => {
  const scene = await openScene(hub);
  const [input = 0] = scene.inputs;
  const [source] = await hub.get("/sources", { Id: scene.sourceId });
  const own = entityType === "Site" ? { siteId: source.siteId } : { sourceId: scene.sourceId };
  const groups = [{ name: "Main", fields: [{ name: "Factor", type: "Number" }] }];
  const name = `Facts of a ${entityType}`;
  const form = await hub.post("/form", { name, entityType, groups });
  const [group] = form.groups;
  const parts = { formId: Number(form.id), groupId: Number(group.id), propId: Number(group.fields[0].id) };
  const clientData = (factor: number) => ({ clientData: { [name]: { Main: { Factor: factor } } } });
  const path = `/${at}/${own.siteId ?? own.sourceId}`;
  await hub.ok("PATCH", path, { body: clientData(3) });
  await pushValues(hub, input, { [AT_TWO]: 2 });
  const entities = [{ alias: "factor", entityType, ...own, ...parts }];
  const id = await calculate(hub, scene, "= a * factor", { a: input }, { formula: { entities } });
  await untilCalculated(hub);
  expect(await valuesOf(hub, id)).toEqual({ [AT_TWO]: 6 });
  await hub.ok("PATCH", path, { body: clientData(4) });
  await untilCalculated(hub);
  expect(await valuesOf(hub, id)).toEqual({ [AT_TWO]: 8 });
});

test("groupId and propId: each names its own field among several of one name", async () => {
  const scene = await openScene(hub);
  const [input = 0] = scene.inputs;
  const fields = ["Low", "High"].map((name) => ({ name, type: "Number" }));
  const groups = ["Day", "Night"].map((name) => ({ name, fields }));
  const form = await hub.post("/form", { name: "Tariffs", entityType: "Source", groups });
  const values = { Day: { Low: 2, High: 3 }, Night: { Low: 5, High: 7 } };
  const path = `/sources/${scene.sourceId}`;
  await hub.ok("PATCH", path, { body: { clientData: { Tariffs: values } } });
  await pushValues(hub, input, { [AT_TWO]: 1 });
  const entityOf = (alias: string, groupAt: number, fieldAt: number) => {
    const group = form.groups[groupAt];
    const ids = { formId: Number(form.id), groupId: Number(group.id), propId: Number(group.fields[fieldAt].id) };
    return { alias, entityType: "Source", sourceId: scene.sourceId, ...ids };
  };
  const entities = [entityOf("w", 0, 0), entityOf("x", 0, 1), entityOf("y", 1, 0), entityOf("z", 1, 1)];
  const more = { formula: { entities } };
  const id = await calculate(hub, scene, "= a * (w * 1000 + x * 100 + y * 10 + z)", { a: input }, more);
  await untilCalculated(hub);
  expect(await valuesOf(hub, id)).toEqual({ [AT_TWO]: 2_357 });
  await hub.ok("PATCH", path, { body: { clientData: { Tariffs: { ...values, Night: { Low: 6, High: 7 } } } } });
  await untilCalculated(hub);
  expect(await valuesOf(hub, id)).toEqual({ [AT_TWO]: 2_367 });
  // A field of another group than the one that is named.
  const wrong = { ...entityOf("w", 0, 0), propId: entityOf("z", 1, 1).propId };
  const formula = { formula: "= w", variables: [{ alias: "a", variableId: input }], entities: [wrong] };
  const body = { calculated: { calculatedVariableFormulas: [formula] } };
  expect((await hub.call("PATCH", `/variables/${id}`, { body })).status).toBe(400);
});
