/** Rules about when calculated variables are calculated, and about their versions; those of scripts alone are beside. */
import { afterAll, beforeAll, expect } from "vitest";
import { defaultVersionOf } from "../../../src/hub/calculated/recalculation/version.ts";
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
/** Twice the input, with the versions of the input as they are. */
const TWICE = `input <- inputVariables$a
list(TimeSeries = data.frame(Dates = input$TimeSeries$Dates, Values = input$TimeSeries$Values * 2,
  Version = input$Version, stringsAsFactors = FALSE))`;

async function openOne(formula: string, more: Parameters<typeof calculate>[4] = {}) {
  const scene = await openScene(hub, 1, { isVersioned: true });
  const [input = 0] = scene.inputs;
  const id = await calculate(hub, scene, formula, { a: input }, more);
  await untilCalculated(hub);
  return { ...scene, input, id };
}

async function pushVersion(variableId: number, version: string, value: number): Promise<void> {
  await hub.push([{ variableId, data: [{ date: DATE, value, version }] }]);
  await untilCalculated(hub);
}

rule("calculated.recalculation", async () => {
  const { input, id } = await openOne("= a * 10");
  await pushValues(hub, input, { [DATE]: 1 });
  await untilCalculated(hub);
  expect(await valuesOf(hub, id)).toEqual({ [DATE]: 10 });
  const before = (await calculationsOf(hub, id)).length;
  await hub.post("/events/forceUpdate", { VariableIds: [id] });
  await untilCalculated(hub);
  expect((await calculationsOf(hub, id)).length).toBe(before + 1);
  const asPlain = { as: "plain", body: { VariableIds: [id] } };
  expect((await hub.call("POST", "/events/forceUpdate", asPlain)).status).toBe(403);
});

rule("calculated.inputs", async () => {
  const { input, id } = await openOne("= a * 10");
  await pushVersion(input, "first", 1);
  await pushVersion(input, "second", 2);
  // The latest version of the input is that of the newest push, also of an older tag.
  expect(await valuesOf(hub, id)).toEqual({ [DATE]: 20 });
  await pushVersion(input, "first", 3);
  expect(await valuesOf(hub, id)).toEqual({ [DATE]: 30 });
});

rule("calculated.coexist", async () => {
  const versioned = await openOne(TWICE, VERSIONED);
  await pushVersion(versioned.input, "A", 1);
  await pushVersion(versioned.input, "B", 2);
  await pushVersion(versioned.input, "A", 3);
  expect((await versionsOf(hub, versioned.id)).toSorted()).toEqual([
    ["A", 6],
    ["B", 4],
  ]);
  const plain = await openOne(TWICE);
  await pushVersion(plain.input, "A", 1);
  await pushVersion(plain.input, "B", 2);
  // Without versions the second overwrites the first, and its version is a label.
  expect(await versionsOf(hub, plain.id)).toEqual([["B", 4]]);
});

rule("calculated.default-version", async () => {
  const { input, id } = await openOne("= a * 10", VERSIONED);
  const before = defaultVersionOf(Temporal.Now.instant());
  for (const value of [1, 2]) {
    await pushValues(hub, input, { [DATE]: value });
    await untilCalculated(hub);
  }
  const after = defaultVersionOf(Temporal.Now.instant());
  const given = (await calculationsOf(hub, id)).slice(-2).map(({ defaultVersion }) => defaultVersion);
  for (const version of given) expect([before, after]).toContain(version);
  // Calculations of one hour overwrite each other: there are as many versions as hours.
  const found = await versionsOf(hub, id);
  expect(found.map(([version]) => version)).toEqual([...new Set(given)]);
  expect(found.at(-1)?.[1]).toBe(20);
});

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

rule("calculated.slices", async () => {
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
