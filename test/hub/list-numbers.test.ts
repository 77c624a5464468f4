/** Values of lists by their numbers, as some clients send them (`docs/hub/interface.md`, *Clients*). */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createChain, type Query, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

describe("DisplayLevel takes the numbers of", () => {
  const same = async (path: string, query: Query, levels: readonly string[]) => {
    const answers = [];
    for (const [number, name] of levels.entries()) {
      const named = await hub.get(path, { ...query, displayLevel: name });
      expect(await hub.get(path, { ...query, displayLevel: number }), name).toEqual(named);
      answers.push(JSON.stringify(named));
    }
    const beyond = await hub.call("GET", path, { query: { ...query, displayLevel: levels.length } });
    expect(beyond).toMatchObject({ status: 400, body: { detail: expect.stringContaining(levels[0] ?? "") } });
    return new Set(answers).size;
  };

  test("sites", async () => {
    const { siteId } = await createChain(hub);
    expect(await same("/sites", { siteId }, ["SiteLight", "Site", "VerboseSite"])).toBe(2);
  });
  test("sources", async () => {
    const { sourceId } = await createChain(hub);
    for (const path of ["/sources", `/sources/${sourceId}`])
      expect(
        await same(path, path === "/sources" ? { id: sourceId } : {}, ["Light", "Normal", "Verbose", "Site"]),
      ).toBe(4);
  });
  test("variables", async () => {
    const calculated = { calculatedVariableFormulas: [{}] };
    const { sourceId } = await createChain(hub, { variables: [{ calculated }] });
    expect(await same("/variables", { sourceId }, ["Normal", "Verbose"])).toBe(2);
  });
  test("rows of data", async () => {
    const { variableIds } = await createChain(hub);
    const [variableId = 0] = variableIds;
    await hub.push([{ variableId, data: [{ date: "2026-03-01T00:00:00Z", value: 1 }] }]);
    const levels = ["Value", "ValueVariable", "ValueVariableDate", "ValueVariableDateSource"];
    expect(await same("/data", { variableId }, levels)).toBe(4);
  });
  test("users", async () => {
    expect(await same("/user", {}, ["UserLight", "User", "VerboseUser"])).toBe(3);
  });
});

test("PagingOrder is 0 for ASC and 1 for DESC", async () => {
  const { variableIds } = await createChain(hub);
  const [variableId = 0] = variableIds;
  const data = [1, 2].map((value) => ({ date: `2026-03-01T0${value}:00:00Z`, value }));
  await hub.push([{ variableId, data }]);
  const rows = { variableId, "Paging.PageNumber": 0, "Paging.ItemsPerPage": 1 };
  expect(await hub.get("/data", { ...rows, pagingOrder: 0 })).toMatchObject([{ rawValue: 1 }]);
  expect(await hub.get("/data", { ...rows, pagingOrder: 1 })).toMatchObject([{ rawValue: 2 }]);
  const body = { variableId, "Paging.PageNumber": 0, "Paging.ItemsPerPage": 1, pagingOrder: "1" };
  expect(await hub.post("/data", body)).toMatchObject([{ rawValue: 2 }]);
});

test("BusinessKeys.Name is a number, too", async () => {
  const by = (number: number, value: string) =>
    hub.get("/user/users", { "BusinessKeys.Name": number, "BusinessKeys.Values": [value] });
  const [{ id }] = await by(1, "manager");
  expect(await by(0, String(id))).toMatchObject([{ username: "manager" }]);
  expect(await by(2, "nobody@example.com")).toEqual([]);
});

test("states of operations, files and invitations are numbers, too", async () => {
  expect(await hub.get("/operations", { state: 0 })).toEqual(await hub.get("/operations", { state: "Failed" }));
  const { body: id } = await hub.upload("x", { Filename: "numbered.txt" });
  const file = { FileName: "numbered.txt", state: [0, 1, 2, 3, 4, 5, 6], CloudItemTypeId: 4 };
  expect(await hub.get("/storage", file)).toMatchObject([{ id, cloudItemTypeId: "Text" }]);
  expect(await hub.get("/storage", { ...file, CloudItemTypeId: 0 })).toEqual([]);
  expect(await hub.get("/account/invitations", { State: 3 })).toEqual([]);
});

test("a file trigger takes numbers, and answers names", async () => {
  const numbers = { fileType: "2", ingestionType: 2, triggerType: 0, fileTriggerCombination: 1, state: 1 };
  const fileNamePatternMatches = [
    { filterType: 2, value: ".csv" },
    { filterType: "7", value: "a.csv" },
  ];
  const id = await hub.post("/fileTrigger", { ...numbers, fileNamePatternMatches, mapping: "free" });
  expect(await hub.get(`/fileTrigger/${id}`)).toMatchObject({
    fileType: "CustomFormat",
    ingestionType: "SendViaHttp",
    triggerType: "Added",
    fileTriggerCombination: "Or",
    state: "Inactive",
    fileNamePatternMatches: [{ filterType: "EndsWith" }, { filterType: "NotEquals" }],
  });
  const ids = async (query: Query) => (await hub.get("/fileTrigger", query)).map((one: { id: number }) => one.id);
  expect(await ids({ state: 1, ingestionType: 2 })).toEqual([id]);
  expect(await ids({ state: 0 })).toEqual([]);
  expect(await hub.call("PUT", "/fileTrigger", { body: { id, state: 9 } })).toMatchObject({ status: 400 });
});

test("numbers of bodies may be texts", async () => {
  const { sourceId } = await createChain(hub, { variables: [] });
  const texts = { granularityTimeBase: "2", quantityType: "2", aggregate: "1" };
  const numbers = { granularityTimeBase: 2, quantityType: 2, aggregate: 1 };
  const id = await hub.post("/variables", { name: "V", sourceId, variableTypeId: 0, unitId: 8, ...texts });
  expect(await hub.get(`/variables/${id}`)).toMatchObject(numbers);
  const change = (body: unknown) => hub.call("PATCH", `/variables/${id}`, { body });
  const patch = [{ op: "replace", path: "/quantityType", value: "5" }];
  expect(await change(patch)).toMatchObject({ status: 200, body: { ...numbers, quantityType: 5 } });
  for (const quantityType of ["77", "2.5", " 2", ""])
    expect(await change({ quantityType })).toMatchObject({ status: 400 });
  const groups = [{ name: "G", fields: [{ name: "F", type: "2" }] }];
  await hub.post("/form", { name: "Numbered", entityType: "1", groups });
  const [form] = await hub.get("/form", { name: "Numbered", entityType: 1 });
  expect(form).toMatchObject({ entityType: 1, groups: [{ fields: [{ type: 2 }] }] });
});

test("roles have names alone: a wrong number would give rights", async () => {
  const body = { username: "numbered", password: "numbered-password", roles: [2] };
  expect(await hub.call("POST", "/account/users", { body })).toMatchObject({ status: 400 });
});

test("a personal token takes the older name of its scope", async () => {
  const made = await hub.post("/user/tokens", { name: "older", scopes: ["opisense-api", "datahub-api"], days: 1 });
  expect(made).toMatchObject({ scopes: ["datahub-api"] });
});
