/** Every field of every body, with values of other kinds: the answers are words for people who write clients. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import type { HubRoute } from "#hub/http/route.ts";
import { addressOf, createChain, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
  await createChain(hub);
});
afterAll(() => hub.close());

/** As the validator says it by itself. */
const PHRASES =
  /invalid (input|string|option|key|element|union)|expected .* received|too (small|big)|unrecogni|undefined|NaN|\bzod/i;
const WRONG: readonly unknown[] = ["wrong", 1.5, true, ["wrong", {}], { wrong: [null] }, "", -1];

const refused = (status: number, words: string) => ({ status, body: { detail: expect.stringContaining(words) } });

function namesOf(schema: z.ZodType): readonly string[] {
  const shown = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  const objects = [shown, ...(shown.anyOf ?? [])] as readonly { readonly properties?: object }[];
  return objects.flatMap(({ properties = {} }) => Object.keys(properties));
}

async function wordsOf(route: HubRoute): Promise<string[]> {
  const { body = z.object({}), example } = route.facts;
  const schema = body instanceof z.ZodPipe ? (body.out as z.ZodType) : body;
  const base = typeof example?.body === "object" && !Array.isArray(example.body) ? example.body : {};
  const names = namesOf(schema);
  const bodies = [
    {},
    [],
    7,
    [{}],
    [{ op: "replace" }],
    ...names.flatMap((name, at) => [0, 3].map((more) => ({ ...base, [name]: WRONG[(at + more) % WRONG.length] }))),
  ];
  const path = addressOf(route, { site: 1, source: 1, variable: 1 });
  const found: string[] = [];
  for (const body of bodies) {
    const answer = await hub.call(route.method, path, { body });
    const words = `${answer.body?.detail ?? ""} ${JSON.stringify(answer.body?.errors ?? [])}`;
    if (answer.status >= 400 && PHRASES.test(words))
      found.push(`${route.method} ${path} ${JSON.stringify(body)}: ${words}`);
  }
  return found;
}

test("no answer has a phrase of a library", async () => {
  const routes = hub.routes.filter(({ facts }) => facts.body !== undefined && facts.bodyType === undefined);
  expect(routes.length).toBeGreaterThan(20);
  const found: string[] = [];
  for (const route of routes) found.push(...(await wordsOf(route)));
  expect(found).toEqual([]);
});

test.each([
  ["/sites", {}, "name is missing; timeZoneId is missing"],
  ["/sites", { name: "S", typeId: "school", timeZoneId: "UTC" }, 'typeId must be a whole number, and not "school"'],
  ["/sources", { siteId: 1 }, "name is missing"],
  ["/sources", { name: "S" }, "siteId is missing"],
  ["/variables", { name: "V", sourceId: 1 }, "unitId is missing"],
  ["/views", { name: "V", entityType: "Site" }, "customFilter is missing"],
  [
    "/variables",
    { name: "V", sourceId: 1, unitId: 8, granularityTimeBase: "minut" },
    "granularityTimeBase must be one of Second, Minute, Hour, Day, Week, Month, Year, or the number of one, " +
      'and not "minut" (did you mean Minute?)',
  ],
  ["/account/users", { email: "x" }, 'email is no e-mail address, such as bob@example.com: "x"'],
  ["/account/invitations", { email: "x" }, 'email is no e-mail address, such as bob@example.com: "x"'],
  ["/account/invitations", {}, "email is missing"],
  ["/form", { name: "F", entityType: "Sitte" }, 'entityType must be one of 1 (Site), 2 (Source), and not "Sitte" (did'],
  ["/form", { name: "F", groups: [{ name: "G", fields: [{ name: "f", type: 9 }] }] }, "6 (Reference), and not 9"],
  ["/push/api/data", { data: [] }, "the body must be an array of elements, and not an object"],
  ["/push/api/data", [{ variableId: 1 }], "[0].data is missing"],
  ["/push/api/data", [{ variableId: 1, data: [{ value: 1 }] }], "[0].data[0].date is missing"],
  [
    "/push/api/data",
    [{ variableId: 1, data: [{ date: "2026-03-01T00:00:00Z", value: "12" }] }],
    '[0].data[0].value must be a number, and not "12"',
  ],
  ["/push/api/data", [{ variableId: 1.5, data: [] }], "[0].variableId must be an integer, and not 1.5"],
  ["/push/api/data", [{ variableId: 1, data: [], tags: { a: 1 } }], 'of string to string, and not 1 ("a")'],
])("POST %s with %j says: %s", async (path, body, words) => {
  const answer = await hub.call("POST", path, { body });
  expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining(words) } });
});

test.each([
  ["x", 'must be an object, and not "x"'],
  [{ path: "/name" }, "op is missing: one of add, remove, replace, move, copy, test"],
  [{ op: "replaced", path: "/name", value: 1 }, 'and not "replaced" (did you mean replace?)'],
  [
    { op: "toString", path: "/name", value: 1 },
    'op must be one of add, remove, replace, move, copy, test, and not "toS',
  ],
  [{ op: "_get", path: "/name" }, "op must be one of"],
  [{ op: "remove" }, "path is missing"],
  [{ op: "replace", path: "name", value: 1 }, 'path must be a text that begins with a slash, such as "/name", and not'],
  [{ op: "remove", path: 7 }, 'path must be a text that begins with a slash, such as "/name", and not 7'],
  [{ op: "copy", path: "/name" }, "from is missing"],
  [{ op: "replace", path: "/name" }, "value is missing"],
  [{ op: "test", path: "/name", value: "Other" }, 'the value at "/name" is not "Other", but "Source"'],
  [{ op: "add", path: "/tags/x", value: "a" }, 'the path "/tags/x" must end in the place of an item, from 0 to 2'],
  [{ op: "add", path: "/tags/9", value: "a" }, 'from 0 to 2, or in "-" for the end'],
])("the operation %j of a patch: %s", async (operation, words) => {
  const { sourceId } = await createChain(hub, { source: { tags: ["a", "b"] } });
  const body = [{ op: "test", path: "/name", value: "Source" }, operation];
  const answer = await hub.call("PATCH", `/sources/${sourceId}`, { body });
  expect(answer).toMatchObject(refused(400, words));
  expect(answer.body.detail).toMatch(/^operation 1 of the patch/);
  expect(answer.body.detail).not.toMatch(/OPERATION_|`|RFC/);
});

test("a DisplayLevel that is not known is named, with the known ones", async () => {
  const answer = await hub.call("GET", "/sources?DisplayLevel=Sites");
  expect(answer).toMatchObject({
    status: 400,
    body: { detail: expect.stringMatching(/DisplayLevel must be one of .*Site/) },
  });
  expect(answer.body.detail).toContain('and not "Sites" (did you mean Site?)');
});

const JSON_TYPE = { "content-type": "application/json" };
const typed = (charset: string) => ({ "content-type": `application/json; charset=${charset}` });

test.each([
  ['{"name":"S",}', "the body is not valid JSON: line 1, column 13: a name in double quotes"],
  ['{"name":"S"', "the body is not valid JSON: line 1, column 12: it ends too early"],
  ['{"__proto__":{"a":1}}', 'the body is not valid JSON: a field is named "__proto__"'],
])("the body %s: %s", async (raw, words) => {
  expect(await hub.call("POST", "/sites", { raw, headers: JSON_TYPE })).toMatchObject(refused(400, words));
});

test("a push that is no JSON is told where", async () => {
  const answer = await hub.call("POST", "/push/api/data", { raw: '[{"variableId":1,"data":[}]', headers: JSON_TYPE });
  expect(answer).toMatchObject(refused(400, "the body is not valid JSON: line 1, column 26: a value must stand there"));
});

test("a path that is not encoded, and a media type that is not accepted, are answered in words", async () => {
  const path = await hub.call("GET", "/sites/%ff");
  expect(path).toMatchObject(refused(400, 'the path "/sites/%ff" holds a percent sign that begins no character'));
  const csv = { raw: "a;b", headers: { "content-type": "text/csv" } };
  const type = await hub.call("POST", "/sites", csv);
  expect(type).toMatchObject(refused(415, "Content-Type must be application/json"));
  expect(type.body.detail).toContain('and not "text/csv"');
  const token = await hub.call("POST", "/connect/token", csv);
  expect(token.body.error_description).toBe(
    'Content-Type must be application/x-www-form-urlencoded, and not "text/csv"',
  );
});

test("a body is read in the character set that it names, or refused", async () => {
  const site = { name: "Café", typeId: 3, timeZoneId: "UTC" };
  const latin1 = new Uint8Array(Buffer.from(JSON.stringify(site), "latin1"));
  const utf8 = new Uint8Array(Buffer.from(JSON.stringify(site)));
  for (const [raw, charset] of [
    [latin1, "iso-8859-1"],
    [latin1, "Windows-1252"],
    [utf8, "iso-8859-1"],
  ] as const) {
    const id = await hub.ok("POST", "/sites", { raw, headers: typed(charset) });
    expect(await hub.get(`/sites/${id}`)).toMatchObject({ name: "Café" });
  }
  for (const path of ["/sites", "/push/api/data"]) {
    const call = (charset: string) => hub.call("POST", path, { raw: latin1, headers: typed(charset) });
    expect(await call("utf-8")).toMatchObject(refused(400, "the body is not valid JSON: it is not UTF-8"));
    expect(await call("utf-32")).toMatchObject(refused(415, "the charset utf-32"));
  }
});
