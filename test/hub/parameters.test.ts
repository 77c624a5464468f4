/** Odd but legal ways to say what is wanted, and those that must not pass in silence. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { isPage } from "#hub/http/access.ts";
import { addressOf, createChain, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
let id = 0;
let other = 0;
const HOURS = [0, 1, 2].map((hour) => ({ date: `2026-03-01T0${hour}:00:00Z`, value: hour }));
beforeAll(async () => {
  hub = await startTestHub();
  const { variableIds } = await createChain(hub, { variables: [{}, {}] });
  [id = 0, other = 0] = variableIds;
  await hub.push([
    { variableId: id, data: HOURS },
    { variableId: other, data: HOURS },
  ]);
});
afterAll(() => hub.close());

const warning = async (path: string) => (await hub.call("GET", path)).headers.get("x-headgate-warning");
const points = async (VariableId: number) => (await hub.get("/data", { VariableId })).length;
const remove = (query: Record<string, string | number>, body?: object) =>
  hub.call("DELETE", "/data", { query, ...(body === undefined ? {} : { body }) });

describe("an unknown parameter", () => {
  test.each([
    ["/variables?MappingConfig=kWh&sourceids=1", "MappingConfig; it takes DisplayLevel, "],
    ["/sites?serialnumber=1&n%C3%A4me=x", "serialnumber, näme; it takes "],
    ["/sources?SiteIdd=1", "GET /sources knows no parameter SiteIdd (did you mean SiteId?); without"],
    ["/sources?filter.sereialNumber=1", "filter.sereialNumber (did you mean SerialNumber?)"],
    ["/sites?pageNumer=1", "pageNumer (did you mean Paging.PageNumber?)"],
    ["/data?VariableId=1&Form=2026-01-01", "Form (did you mean From?)"],
    ["/form?nam=Billing", "nam (did you mean Name?)"],
    ["/fileTrigger/count?Stat=Active", "Stat (did you mean State?); without"],
  ])("of a list is refused with the nearest: %s", async (path, words) => {
    const answer = await hub.call("GET", path);
    expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining(words) } });
  });

  test("is refused by every list and every removal, and named by all other routes", async () => {
    const judged = hub.routes.filter(({ facts }) => facts.access !== "open" && !isPage(facts) && facts.status !== 501);
    expect(judged.length).toBeGreaterThan(80);
    for (const route of judged) {
      const path = `${addressOf(route, {})}?fooo=1`;
      const answer = await hub.call(route.method, path, ["GET", "HEAD"].includes(route.method) ? {} : { body: {} });
      const told = `${answer.headers.get("x-headgate-warning")} ${JSON.stringify(answer.body)}`;
      const isHarm = route.method === "DELETE" || route.facts.answer instanceof z.ZodArray;
      if (isHarm) expect(answer.status, `${route.method} ${path}`).toBe(400);
      // What is refused for another reason passes nothing in silence.
      if (isHarm || answer.status < 400) expect(told, `${route.method} ${path}`).toContain("fooo");
    }
  });

  test("in the body of POST /data is refused, and known ones in any case are not", async () => {
    expect(await warning(`/data?variableid=${id}&paging.itemsperpage=1&DISPLAYLEVEL=value`)).toBeNull();
    for (const name of ["Period", "constructor", "toString", "hasOwnProperty"]) {
      const answer = await hub.call("POST", "/data", { body: { VariableId: id, [name]: "x" } });
      expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining(`parameter ${name};`) } });
    }
  });

  test("that keeps answers out of caches, or is the bare operationId of a push, passes", async () => {
    expect(await warning(`/variables?Id=${id}&_=1741590000000`)).toBeNull();
    const push = (query: string) => hub.call("POST", `/push/api/data?${query}`, { body: [] });
    expect(await push("a-run")).toMatchObject({ status: 200, body: { operationId: "a-run" } });
    expect((await push("a-run")).headers.get("x-headgate-warning")).toBeNull();
    expect((await push("operation_id=a-run")).headers.get("x-headgate-warning")).toMatch(/: operation_id$/);
  });

  test("of anything else is named by a warning", async () => {
    expect(await warning(`/sources/${(await hub.get("/sources"))[0].id}?DisplayLvl=Site`)).toMatch(/: DisplayLvl$/);
    const body = { name: "Odd", groups: [] };
    const made = await hub.call("POST", "/form", { query: { EntityTyp: 1 }, body });
    expect(made.headers.get("x-headgate-warning")).toMatch(/: EntityTyp$/);
  });

  test("stops a removal, which would otherwise remove everything", async () => {
    const answer = await remove({ VariableIds: id, From: "2030-01-01", To: "2031-01-01" });
    expect(answer).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining("knows no parameter From, To") },
    });
    expect(await points(id)).toBe(3);
  });
});

describe("a parameter in both the address and the body", () => {
  test("is refused when both differ", async () => {
    const query = { VariableIds: id, WhatIf: "true" };
    for (const body of [{ WhatIf: false }, { whatif: false }])
      expect(await remove(query, body)).toMatchObject({ status: 400 });
    for (const body of [{ WhatIf: null }, { whatIf: null }, { WhatIf: true }])
      expect(await remove(query, body)).toMatchObject({ status: 200, body: { whatIf: true, points: 3 } });
    expect(await points(id)).toBe(3);
  });

  test("is the union of both for a list", async () => {
    const options = { query: { VariableIds: id, DisplayLevel: "ValueVariable" } };
    for (const body of [{ VariableIds: [other] }, { variableids: other }]) {
      const rows = await hub.ok("POST", "/data", { ...options, body });
      expect(new Set(rows.map((row: { variableId: number }) => row.variableId))).toEqual(new Set([id, other]));
    }
  });
});

test("of which the body is empty counts as no body, also with a named type", async () => {
  const empty = { raw: "", headers: { "content-type": "application/json" } };
  const query = { VariableIds: id, WhatIf: "true" };
  expect(await hub.call("DELETE", "/data", { ...empty, query })).toMatchObject({ body: { points: 3 } });
  expect(await hub.call("POST", "/data", { ...empty, query: { VariableId: id } })).toMatchObject({
    status: 200,
  });
  expect(await hub.call("POST", "/sites", empty)).toMatchObject({ status: 400 });
  expect(await hub.call("PUT", "/sites", empty)).toMatchObject({ status: 400 });
});

test("an invalid boolean is refused with its name and its kind", async () => {
  const { status, body } = await remove({ VariableIds: id, WhatIf: "maybe" });
  expect(status).toBe(400);
  expect(body.detail).toBe('WhatIf must be true or false, and not "maybe"');
});

test.each([
  ["GET", "/storage/file?ids=1,2", 'ids must be a whole number, and not "1,2"; repeat the name for several'],
  ["GET", "/storage/file?ids=1&ids=1.5", 'ids.1 must be a whole number, and not "1.5"'],
  ["POST", "/fileTrigger/test", "Filename is missing"],
  ["POST", "/storage", "Filename is missing"],
  ["POST", "/fileTrigger/test?Filename=", "Filename must not be empty"],
  ["POST", "/fileTrigger/test?Filename=a&Filename=b", "Filename must be a text, and not a list"],
  ["POST", "/fileTrigger/test?Filename=a&Token=x", "Token must be a GUID, such as"],
  ["GET", "/fileTrigger?State=On", 'State must be one of Active, Inactive, Deleted, Updated, and not "On"'],
  ["GET", "/sites?Paging.PageNumber=x", 'Paging.PageNumber must be a whole number, and not "x"'],
])("%s %s is refused in plain words", async (method, path, words) => {
  const { status, body } = await hub.call(method, path);
  expect(status).toBe(400);
  expect(body.detail).toContain(words);
  expect(body.errors[0].path).toBe(words.slice(0, words.indexOf(" ")));
});

test("the state of sources matches in any case", async () => {
  expect(await hub.get("/sources", { state: "enabled" })).toHaveLength(1);
  expect(await hub.get("/sources", { state: "disabled" })).toEqual([]);
});
