/** Recalculation with expressions, which need no R. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestHub, type TestHub, until } from "../fixture.ts";
import { calculate, calculationsOf, openScene, pushValues, untilCalculated, valuesOf } from "./scene.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const FIRST = "2026-03-01T10:00:00Z";
const SECOND = "2026-03-01T10:15:00Z";
const OLD = "2020-06-01T10:00:00Z";

async function openOne(formula = "= a * 10", more: Parameters<typeof calculate>[4] = {}) {
  const scene = await openScene(hub);
  const [input = 0] = scene.inputs;
  const id = await calculate(hub, scene, formula, { a: input }, more);
  return { ...scene, input, id };
}

test("a chain follows a push, and each of its variables is calculated once", async () => {
  const scene = await openScene(hub);
  const [input = 0] = scene.inputs;
  const first = await calculate(hub, scene, "= a * 2", { a: input });
  const second = await calculate(hub, scene, "= a + 1", { a: first });
  const third = await calculate(hub, scene, "= a + b", { a: second, b: input });
  await untilCalculated(hub);
  const before = (await calculationsOf(hub, first, second, third)).length;
  await pushValues(hub, input, { [FIRST]: 1, [SECOND]: 2 });
  await untilCalculated(hub);
  expect(await valuesOf(hub, first)).toEqual({ [FIRST]: 2, [SECOND]: 4 });
  expect(await valuesOf(hub, third)).toEqual({ [FIRST]: 4, [SECOND]: 7 });
  const ran = (await calculationsOf(hub, first, second, third)).slice(before);
  expect(ran.map(({ variableId, state, outputs, stored }) => [variableId, state, outputs, stored])).toEqual([
    [first, "done", 2, 2],
    [second, "done", 2, 2],
    [third, "done", 2, 2],
  ]);
});

test("a new calculated variable gets its history, and a correction changes its dates alone", async () => {
  const scene = await openScene(hub);
  const [input = 0] = scene.inputs;
  await pushValues(hub, input, { [OLD]: 1, [FIRST]: 2 });
  const id = await calculate(hub, scene, "= a * 10", { a: input });
  await untilCalculated(hub);
  expect(await valuesOf(hub, id)).toEqual({ [OLD]: 10, [FIRST]: 20 });
  await pushValues(hub, input, { [OLD]: 5 });
  await untilCalculated(hub);
  expect(await valuesOf(hub, id)).toEqual({ [OLD]: 50, [FIRST]: 20 });
  expect((await calculationsOf(hub, id)).at(-1)).toMatchObject({ outputs: 1, stored: 1, progress: 1 });
});

test("an aggregate of another granularity and unit follows a removal of its inputs", async () => {
  const input = { granularity: "Day", aggregation: "SUM", unitId: 7 };
  const { input: variable, id } = await openOne("= a", { input, variable: { unitId: 7 } });
  await pushValues(hub, variable, { "2026-03-28T23:00:00Z": 1, [FIRST]: 2, "2026-03-29T21:00:00Z": 4 });
  await untilCalculated(hub);
  const found = await valuesOf(hub, id);
  // The day of the change of the clocks, which begins at 23:00 and has 23 hours in Paris.
  const factor = (found["2026-02-28T23:00:00Z"] ?? 0) / 2;
  expect([found["2026-03-28T23:00:00Z"], Object.keys(found).length]).toEqual([5 * factor, 2]);
  const removed = { FromDateUtc: "2026-03-29T20:00:00Z", ToDateUtc: "2026-03-30T00:00:00Z" };
  await hub.ok("DELETE", "/data", { query: { VariableIds: [variable], ...removed } });
  await untilCalculated(hub);
  expect((await valuesOf(hub, id))["2026-03-28T23:00:00Z"]).toBe(factor);
});

test("outputs whose inputs are gone stay, and the calculation says so", async () => {
  const { input, id } = await openOne();
  await pushValues(hub, input, { [FIRST]: 1, [SECOND]: 2 });
  await untilCalculated(hub);
  const removed = { FromDateUtc: SECOND, ToDateUtc: "2026-03-02T00:00:00Z" };
  await hub.ok("DELETE", "/data", { query: { VariableIds: [input], ...removed } });
  await untilCalculated(hub);
  expect(await valuesOf(hub, id)).toEqual({ [FIRST]: 10, [SECOND]: 20 });
  const [last] = (await calculationsOf(hub, id)).toReversed();
  expect(last?.message).toContain("1 stored value of this period is no longer computed");
});

test.each([["= a * 10"], ["= a"]])(
  "outputs of inputs that have no points at all stay, and %s says so",
  async (formula) => {
    const input = formula === "= a" ? { granularity: "Day", aggregation: "SUM" } : {};
    const { input: variable, id } = await openOne(formula, { input });
    await pushValues(hub, variable, { [OLD]: 1, [FIRST]: 2 });
    await untilCalculated(hub);
    const before = await valuesOf(hub, id);
    await hub.ok("DELETE", "/data", { query: { VariableIds: [variable] } });
    await untilCalculated(hub);
    expect(await valuesOf(hub, id)).toEqual(before);
    const message = "2 stored values of this period are no longer computed";
    const [last] = (await calculationsOf(hub, id)).toReversed();
    expect(last).toMatchObject({ state: "done", message: expect.stringContaining(message) });
    await hub.ok("DELETE", "/data", { query: { VariableIds: [id] } });
    await hub.post("/events/forceUpdate", { variableIds: [id] });
    await untilCalculated(hub);
    expect((await calculationsOf(hub, id)).at(-1)).toMatchObject({ state: "done", message: null });
  },
);

const NONE = { variableIds: [], sourceIds: [] };

test("a forced update calculates what it names, of an input what reads it", async () => {
  const { sourceId, input, id } = await openOne();
  await pushValues(hub, input, { [FIRST]: 1 });
  await untilCalculated(hub);
  const count = async () => (await calculationsOf(hub, id)).length;
  const before = await count();
  const period = { From: "2026-03-01T00:00:00Z", To: "2026-03-02T00:00:00Z" };
  const shown = { from: "2026-03-01T00:00:00.000Z", to: "2026-03-01T23:59:59.999Z" };
  expect(await hub.post("/events/forceUpdate", { VariableIds: [id], ...period })).toEqual({
    marked: [{ variableId: id, inputId: null, ...shown }],
    unaffected: NONE,
  });
  await untilCalculated(hub);
  expect(await hub.post("/events/forceUpdate", { variableIds: [input] })).toEqual({
    marked: [{ variableId: id, inputId: input, from: null, to: null }],
    unaffected: NONE,
  });
  await untilCalculated(hub);
  const { marked } = await hub.post("/events/forceUpdate", { SourceIds: [sourceId] });
  expect(marked).toEqual([{ variableId: id, inputId: null, from: null, to: null }]);
  await untilCalculated(hub);
  expect(await count()).toBe(before + 3);
  expect(await valuesOf(hub, id)).toEqual({ [FIRST]: 10 });
});

test("a forced update of a variable or source that the account does not have is refused", async () => {
  for (const body of [{ VariableIds: [987_654] }, { SourceIds: [987_654] }]) {
    const { status, body: problem } = await hub.call("POST", "/events/forceUpdate", { body });
    expect([status, JSON.stringify(problem)]).toEqual([400, expect.stringContaining("987654 in this account")]);
  }
});

test("a forced update takes names in the singular, and refuses those that it does not know", async () => {
  const { sourceId, id } = await openOne();
  const marked = [{ variableId: id, inputId: null, from: null, to: null }];
  for (const body of [{ variableId: id }, { VariableId: [id] }, { sourceId }])
    expect(await hub.post("/events/forceUpdate", body)).toEqual({ marked, unaffected: NONE });
  await untilCalculated(hub);
  const calls = [
    [{ body: { variables: [id] } }, "variables"],
    [{ query: { Form: "2026-01-01" } }, "Form"],
    [{ body: { variableIds: [] } }, "leave it out"],
  ] as const;
  for (const [call, words] of calls) {
    const { status, body } = await hub.call("POST", "/events/forceUpdate", call);
    expect([status, body.detail]).toEqual([400, expect.stringContaining(words)]);
  }
  expect(await hub.get("/calculations/progress")).toEqual([]);
});

test("a forced update says what nothing is calculated from", async () => {
  const { sourceId, inputs } = await openScene(hub);
  expect(await hub.post("/events/forceUpdate", { variableIds: inputs, sourceIds: [sourceId] })).toEqual({
    marked: [],
    unaffected: { variableIds: inputs, sourceIds: [sourceId] },
  });
});

test("formulas hold for their dates", async () => {
  const scene = await openScene(hub);
  const [input = 0] = scene.inputs;
  const variables = [{ alias: "a", variableId: input }];
  const id = await hub.post("/variables", {
    ...{ name: "Calculated", sourceId: scene.sourceId, variableTypeId: 0, unitId: 8 },
    calculated: {
      calculatedVariableFormulas: [
        { formula: "= a", variables, validUntil: "2026-03-01T11:15:00" },
        { formula: "= -a", variables, validFrom: "2026-03-01T11:15:00" },
      ],
    },
  });
  await pushValues(hub, input, { [FIRST]: 1, [SECOND]: 2 });
  await untilCalculated(hub);
  // 11:15 in Paris.
  expect(await valuesOf(hub, id)).toEqual({ [FIRST]: 1, [SECOND]: -2 });
});

test("a formula without variables whose time is still to come says that it gives nothing before", async () => {
  const { sourceId } = await openScene(hub);
  const id = await hub.post("/variables", {
    ...{ name: "Calculated", sourceId, variableTypeId: 0, unitId: 8 },
    calculated: { calculatedVariableFormulas: [{ formula: "list()", validFrom: "2999-01-01T00:00:00Z" }] },
  });
  await untilCalculated(hub);
  const message = expect.stringMatching(/holds from 2999-01-01T00:00:00\.000Z gives nothing before.*forceUpdate/);
  expect((await calculationsOf(hub, id)).at(-1)).toMatchObject({ state: "done", outputs: 0, message });
});

test("an input that is no trigger starts nothing, and is read when another one does", async () => {
  const scene = await openScene(hub, 2);
  const [input = 0, factor = 0] = scene.inputs;
  const id = await hub.post("/variables", {
    ...{ name: "Calculated", sourceId: scene.sourceId, variableTypeId: 0, unitId: 8 },
    calculated: {
      calculatedVariableFormulas: [
        {
          formula: "= a * b",
          variables: [
            { alias: "a", variableId: input },
            { alias: "b", variableId: factor, canBeUsedAsATrigger: false },
          ],
        },
      ],
    },
  });
  await untilCalculated(hub);
  await pushValues(hub, factor, { [FIRST]: 3 });
  expect(await hub.get("/calculations/progress", { VariableIds: [id] })).toEqual([]);
  await pushValues(hub, input, { [FIRST]: 2 });
  await untilCalculated(hub);
  expect(await valuesOf(hub, id)).toEqual({ [FIRST]: 6 });
});

test("calculations are listed by variable and state, and shown one by one", async () => {
  const { input, id } = await openOne();
  await pushValues(hub, input, { [FIRST]: 1 });
  await untilCalculated(hub);
  const [newest] = await hub.get("/calculations", { VariableIds: [id], State: "done", "Paging.ItemsPerPage": 1 });
  expect(newest).toMatchObject({ variableId: id, state: "done", outputs: 1, stored: 1, progress: 1, message: null });
  expect(await hub.get(`/calculations/${newest.id}`)).toEqual(newest);
  expect(await hub.get("/calculations", { VariableIds: [id], State: "failed" })).toEqual([]);
  expect(await hub.get("/calculations", { VariableIds: [id], Since: "2100-01-01T00:00:00Z" })).toEqual([]);
  const [operationId] = newest.operationIds;
  expect(await hub.get(`/operations/${operationId}`)).toMatchObject({ status: "stored", received: 1 });
});

test("a hub that restarts calculates what is due", async () => {
  const { input, id } = await openOne();
  await pushValues(hub, input, { [FIRST]: 1 });
  await hub.restart();
  await pushValues(hub, input, { [SECOND]: 2 });
  const both = { [FIRST]: 10, [SECOND]: 20 };
  await until(async () => (JSON.stringify(await valuesOf(hub, id)) === JSON.stringify(both) ? true : undefined));
});
