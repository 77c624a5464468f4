/** Rules about the versions and dates that scripts give, from the push to the outputs, on webR. */
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  calculate,
  calculationsOf,
  openScene,
  pushValues,
  untilCalculated,
  valuesOf,
  versionsOf,
} from "../calculated/scene.ts";
import { startTestHub, type TestHub } from "../fixture.ts";
import { rule } from "./rule.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const DATE = "2026-03-01T10:00:00Z";
const VERSIONED = { variable: { isVersioned: true } };
async function openOne(formula: string, more: Parameters<typeof calculate>[4] = {}) {
  const scene = await openScene(hub, 1, { isVersioned: true });
  const [input = 0] = scene.inputs;
  const id = await calculate(hub, scene, formula, { a: input }, more);
  await untilCalculated(hub);
  return { ...scene, input, id };
}

rule("calculated.storage", async () => {
  const { input, id } = await openOne(
    `rows <- inputVariables$a$TimeSeries
    list(TimeSeries = data.frame(Dates = rows$Dates, Values = rows$Values, Version = c("as it is ", ""),
      Tags = c('{"site":"north"}', ""), stringsAsFactors = FALSE))`,
    VERSIONED,
  );
  await pushValues(hub, input, { [DATE]: 1, "2026-03-01T10:15:00Z": 2 });
  await untilCalculated(hub);
  const [last] = (await calculationsOf(hub, id)).toReversed();
  expect(await versionsOf(hub, id)).toEqual([
    ["as it is ", 1],
    [last?.defaultVersion, 2],
  ]);
  const [first] = await hub.get("/data", { VariableIds: [id], AllVersions: true });
  expect(first.tags).toEqual({ site: "north", version: "as it is " });
});

rule("calculated.tags", async () => {
  // The script decides that the tag of the client is the version of the output.
  const { input, id } = await openOne(
    `input <- inputVariables$a
    campaign <- sub('.*"campaign":"([^"]*)".*', "\\\\1", input$Tags)
    list(TimeSeries = data.frame(Dates = input$TimeSeries$Dates, Values = input$TimeSeries$Values,
      Version = ifelse(grepl("campaign", input$Tags), campaign, ""), stringsAsFactors = FALSE))`,
    VERSIONED,
  );
  const push = async (value: number, tags?: object) => {
    await hub.push([{ variableId: input, data: [{ date: DATE, value, ...(tags === undefined ? {} : { tags }) }] }]);
    await untilCalculated(hub);
  };
  await push(1, { campaign: "spring" });
  await push(2, { campaign: "autumn" });
  await push(3, { campaign: "spring" });
  expect((await versionsOf(hub, id)).toSorted()).toEqual([
    ["autumn", 2],
    ["spring", 3],
  ]);
  await push(4);
  const [last] = (await calculationsOf(hub, id)).toReversed();
  expect(await versionsOf(hub, id)).toContainEqual([last?.defaultVersion, 4]);
});

test("a new value of a time-sliced attribute calculates the dates for which it holds", async () => {
  const scene = await openScene(hub);
  const [input = 0] = scene.inputs;
  const groups = [{ name: "Main", fields: [{ name: "Tariff", type: "Number", timeSliced: true }] }];
  const form = await hub.post("/form", { name: "Contract", groups });
  const [group] = form.groups;
  const at = `/sources/${scene.sourceId}/attributes/Contract/Main/Tariff/slices`;
  await hub.post(at, { FromDate: "2026-01-01T00:00:00Z", Value: 5 });
  await hub.post(at, { FromDate: "2026-03-01T10:15:00Z", Value: 7 });
  const entity = {
    ...{ alias: "tariff", entityType: "Source", sourceId: scene.sourceId },
    ...{ formId: Number(form.id), groupId: Number(group.id), propId: Number(group.fields[0].id) },
  };
  const script = `slices <- inputFormsTimeSliced$tariff
    stopifnot(length(slices$EffectiveDates) == length(slices$Values), length(slices$EndDates) == length(slices$Values))
    rows <- inputVariables$a$TimeSeries
    list(TimeSeries = data.frame(Dates = rows$Dates,
      Values = rows$Values * slices$Values[findInterval(rows$Dates, slices$EffectiveDates)]))`;
  const id = await calculate(hub, scene, script, { a: input }, { formula: { entities: [entity] } });
  await pushValues(hub, input, { [DATE]: 1, "2026-03-01T10:15:00Z": 1 });
  await untilCalculated(hub);
  expect(await valuesOf(hub, id)).toEqual({ [DATE]: 5, "2026-03-01T10:15:00Z": 7 });
  // A new version of the attribute recalculates, too.
  await hub.post(at, { FromDate: "2026-03-01T10:10:00Z", Value: 9 });
  await hub.post(at, { FromDate: "2026-02-01T00:00:00Z", Value: 6 });
  await untilCalculated(hub);
  expect(await valuesOf(hub, id)).toEqual({ [DATE]: 6, "2026-03-01T10:15:00Z": 7 });
});

test("a script reads constants and values of forms, and follows a new value", async () => {
  const scene = await openScene(hub);
  const [input = 0] = scene.inputs;
  const fields = ["Factor", "Label", "Missing"].map((name) => ({ name, type: name === "Label" ? "Text" : "Number" }));
  const form = await hub.post("/form", { name: "Plate", entityType: "Source", groups: [{ name: "Main", fields }] });
  const [group] = form.groups;
  const fill = (Factor: number) =>
    hub.ok("PATCH", `/sources/${scene.sourceId}`, {
      body: { clientData: { Plate: { Main: { Factor, Label: "é north" } } } },
    });
  await fill(3);
  const entities = ["factor", "label", "missing"].map((alias, at) => ({
    ...{ alias, entityType: "Source", sourceId: scene.sourceId },
    ...{ formId: Number(form.id), groupId: Number(group.id), propId: Number(group.fields[at].id) },
  }));
  const constants = [
    { alias: "price", value: 0.5 },
    { alias: "unit", value: "EUR/kWh" },
  ];
  const script = `stopifnot(identical(inputForms$label, "\u00e9 north"), is.null(inputForms$missing))
    stopifnot(identical(inputConstants$unit, "EUR/kWh"), is.numeric(inputConstants$price))
    rows <- inputVariables$a$TimeSeries
    list(TimeSeries = data.frame(Dates = rows$Dates,
      Values = rows$Values * inputForms$factor * inputConstants$price))`;
  await pushValues(hub, input, { [DATE]: 4 });
  const id = await calculate(hub, scene, script, { a: input }, { formula: { entities, constants } });
  await untilCalculated(hub);
  expect((await calculationsOf(hub, id)).at(-1)).toMatchObject({ state: "done", message: null });
  expect(await valuesOf(hub, id)).toEqual({ [DATE]: 6 });
  await fill(5);
  await untilCalculated(hub);
  expect(await valuesOf(hub, id)).toEqual({ [DATE]: 10 });
});

rule("limits.horizon", async () => {
  const scene = await openScene(hub);
  const [input = 0] = scene.inputs;
  // A forecast for the day, for two years and for four years after each point.
  const script = `rows <- inputVariables$a$TimeSeries
    years <- as.integer(c(0, 2, 4) * 366 * 86400)
    list(TimeSeries = data.frame(Dates = max(rows$Dates) + years, Values = c(1, 2, 3)))`;
  const id = await calculate(hub, scene, script, { a: input });
  const today = Temporal.Now.instant().round({ smallestUnit: "hour", roundingMode: "floor" }).toString();
  await pushValues(hub, input, { [today]: 1 });
  await untilCalculated(hub);
  expect(Object.values(await valuesOf(hub, id))).toEqual([1, 2]);
  const [last] = (await calculationsOf(hub, id)).toReversed();
  expect(last).toMatchObject({ outputs: 3, stored: 2, discarded: 1 });
});

test("a script that fails is shown with its reason, and is calculated when it is mended", async () => {
  const { input, id } = await openOne("stop('no tariff for this year')");
  await pushValues(hub, input, { [DATE]: 1 });
  await untilCalculated(hub);
  const [last] = (await calculationsOf(hub, id)).toReversed();
  expect(last).toMatchObject({ state: "failed", message: expect.stringContaining("no tariff for this year") });
  expect(await hub.get("/calculations", { VariableIds: [id], State: "failed" })).toHaveLength(1);
  const formula = { formula: "= a * 2", variables: [{ alias: "a", variableId: input }] };
  const body = { calculated: { calculatedVariableFormulas: [formula] } };
  expect((await hub.call("PATCH", `/variables/${id}`, { body })).status).toBeLessThan(300);
  await untilCalculated(hub);
  expect(await valuesOf(hub, id)).toEqual({ [DATE]: 2 });
});

test("rows of a script that have one date are said in the message, and the last one stays", async () => {
  const { input, id } = await openOne(`dates <- inputVariables$a$TimeSeries$Dates
    list(TimeSeries = data.frame(Dates = c(dates, dates), Values = c(1, 2)))`);
  await pushValues(hub, input, { [DATE]: 1 });
  await untilCalculated(hub);
  const [last] = (await calculationsOf(hub, id)).toReversed();
  const words = "1 row has the same date as a row before, first at 2026-03-01T10:00:00.000Z";
  expect(last).toMatchObject({ state: "done", message: expect.stringContaining(words) });
  expect(await valuesOf(hub, id)).toEqual({ [DATE]: 2 });
});
