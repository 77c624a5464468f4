/**
 * Accounts are walls: every route that the server has is tried with another account's token and this
 * account's ids, names and texts. Nothing leaks, nothing changes, and what belongs to others cannot be told
 * from what does not exist.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import type { HubRoute } from "../../src/hub/http/route.ts";
import { addressOf, createChain, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
const OTHER = { as: "second", account: 2 };
/** In everything of account 1 that a request does not name. */
const HIDDEN = "hidden-7f3a";
const VALUE = 424_242.125;
const DATE = "2026-03-01T00:00:00Z";
/** What requests of the other account name: theirs it is not. */
const NAMED = { serial: "WALL-1", ean: "5410000000017", meter: "WM-1", operation: "wall operation" };
const NOWHERE = { id: 987_654, text: "nowhere" };
const TOKEN = "5b1c1f4e-95d6-4b0f-9c2a-6a2f0d9d7c11";
const NO_TOKEN = TOKEN.replaceAll("1", "2");
/** The examples of the routes name the ids 1: those of account 1, whose chain is the first. */
const THEIRS = 1;

beforeAll(async () => {
  hub = await startTestHub();
  const { siteId, sourceId, variableIds } = await createChain(hub, {
    source: {
      name: HIDDEN,
      serialNumber: NAMED.serial,
      ean: NAMED.ean,
      meterNumber: NAMED.meter,
      description: HIDDEN,
      tags: [HIDDEN],
      clientData: { form: { group: { field: HIDDEN } } },
    },
    variables: [{ name: HIDDEN, mappingConfig: "kWh", isVersioned: true, tags: [HIDDEN] }],
  });
  expect([siteId, sourceId, ...variableIds]).toEqual([THEIRS, THEIRS, THEIRS]);
  await hub.call("PATCH", `/sites/${siteId}`, { body: { name: HIDDEN, city: HIDDEN } });
  expect(await hub.post("/views", { name: HIDDEN, entityType: "Site", customFilter: `Name = '${HIDDEN}'` })).toBe(
    THEIRS,
  );
  const trigger = { name: HIDDEN, ingestionType: "SendViaHttp", token: TOKEN, mapping: HIDDEN, metadata: { HIDDEN } };
  expect(await hub.post("/fileTrigger", trigger)).toBe(THEIRS);
  expect(await hub.post("/groups", { name: HIDDEN, siteIds: [siteId] })).toBe(THEIRS);
  const fields = [{ name: HIDDEN, type: "Number", timeSliced: true }];
  const groups = [{ name: HIDDEN, fields }];
  expect(await hub.post("/form", { name: HIDDEN, groups })).toMatchObject({ id: `${THEIRS}` });
  const slice = { FromDate: DATE, Value: VALUE };
  expect(await hub.post(`/sources/${THEIRS}/attributes/${HIDDEN}/${HIDDEN}/${HIDDEN}/slices`, slice)).toMatchObject({
    id: THEIRS,
  });
  const named = { Filename: `${HIDDEN}/${HIDDEN}.csv`, Tag: HIDDEN, SiteId: siteId };
  expect(await hub.upload(HIDDEN, named)).toMatchObject({ status: 200, body: THEIRS });
  const query = { operationId: NAMED.operation };
  const data = [{ date: DATE, value: VALUE, version: HIDDEN, tags: { note: HIDDEN } }];
  await hub.ok("POST", "/push/api/data", { query, body: [{ variableId: THEIRS, data }] });
  await hub.settled(NAMED.operation);
  await createChain(hub, { more: OTHER });
});
afterAll(() => hub.close());

/** Everything that account 1 can see of itself. */
async function everything() {
  const all = { DisplayLevel: "ValueVariableDateSource", SourceIds: THEIRS, AllVersions: true };
  return {
    sites: await hub.get("/sites", { DisplayLevel: "VerboseSite" }),
    sources: await hub.get("/sources", { DisplayLevel: "Verbose", includeTimeSlicedValues: true }),
    variables: await hub.get("/variables"),
    views: await hub.get("/views"),
    groups: await hub.get("/groups"),
    triggers: await hub.get("/fileTrigger"),
    history: await hub.get(`/fileTrigger/${THEIRS}/history`),
    forms: await hub.get("/form"),
    files: await hub.get("/storage"),
    content: (await hub.call("GET", "/storage/file", { query: { ids: THEIRS } })).body,
    data: await hub.get("/data", all),
    operation: await hub.get(`/operations/${encodeURIComponent(NAMED.operation)}`),
  };
}

interface Attempt {
  readonly route: HubRoute;
  readonly path: string;
  readonly query?: Record<string, string>;
  readonly body?: unknown;
}

const TEXTS: Readonly<Record<string, string>> = {
  Ean: NAMED.ean,
  Eans: NAMED.ean,
  MeterNumber: NAMED.meter,
  MeterNumbers: NAMED.meter,
  CustomFilter: "Id > 0",
  OdmSqlFilter: "Id > 0 or Site.Id > 0 or Variable.Id > 0",
  operationId: NAMED.operation,
  State: "Active",
  IngestionType: "SendViaHttp",
  Token: TOKEN,
};

/** One request without parameters, one for each parameter of the query, one with the example of the body. */
function attemptsOf(route: HubRoute): Attempt[] {
  const ids = {
    site: THEIRS,
    source: THEIRS,
    variable: THEIRS,
    view: THEIRS,
    fileTrigger: THEIRS,
    storage: THEIRS,
    group: THEIRS,
    form: THEIRS,
  };
  const address = addressOf(route, ids, encodeURIComponent(NAMED.operation));
  const path = address
    .replace(/\/generic\/x$/, `/generic/${TOKEN}`)
    .replace("/attributes/x/x/x/", `/attributes/${HIDDEN}/${HIDDEN}/${HIDDEN}/`)
    .replace(/\/slices\/x$/, `/slices/${THEIRS}`);
  const { query, body, example } = route.facts;
  const names =
    query === undefined
      ? []
      : Object.entries(
          (
            z.toJSONSchema(query, { io: "input", unrepresentable: "any" }) as {
              properties?: Record<string, { type?: string; items?: { type?: string } }>;
            }
          ).properties ?? {},
        );
  const queries = names.map(([name, { type, items }]): Record<string, string> => {
    const kind = items?.type ?? type;
    const value = kind === "integer" ? String(THEIRS) : kind === "boolean" ? "true" : (TEXTS[name] ?? NAMED.serial);
    // Without a selection there is nothing to see of data.
    const selection = route.url === "/data" ? { VariableIds: String(THEIRS), SourceIds: String(THEIRS) } : {};
    return { ...selection, [name]: value };
  });
  const withBody = body === undefined ? {} : { body: example?.body ?? {} };
  return [{ route, path, ...withBody }, ...queries.map((one) => ({ route, path, query: one, ...withBody }))];
}

/** The same with what nobody has. */
function elsewhere(attempt: Attempt): Attempt {
  const text = JSON.stringify([attempt.path, attempt.query ?? null, attempt.body ?? null])
    .replaceAll(encodeURIComponent(NAMED.operation), NOWHERE.text)
    .replaceAll(TOKEN, NO_TOKEN)
    .replaceAll(new RegExp(Object.values(NAMED).join("|"), "g"), NOWHERE.text)
    .replaceAll(
      /"(id|siteId|sourceId|variableId|VariableIds?|SourceIds?|SiteIds?|[Ii]ds?|siteIds|ViewId|GroupId|[A-Za-z.]*ImpactingVariableId)":(\[?)"?1"?(\]?)/g,
      (_, name, open, close) =>
        `"${name}":${open}${attempt.query?.[name] === undefined ? NOWHERE.id : `"${NOWHERE.id}"`}${close}`,
    )
    .replaceAll(/\/1(?=[/"])/g, `/${NOWHERE.id}`);
  const [path, query, body] = JSON.parse(text);
  return {
    route: attempt.route,
    path,
    ...(query === null ? {} : { query }),
    ...(body === null ? {} : { body }),
  };
}

let forms = 0;

async function made({ route, path, query, body: example }: Attempt) {
  // Forms have names of their own, and each attempt may make one.
  forms += 1;
  const body =
    example === undefined ? undefined : JSON.parse(JSON.stringify(example).replace("Billing", `Form ${forms}`));
  const options = {
    ...OTHER,
    ...(query === undefined ? {} : { query }),
    ...(body === undefined ? {} : { body }),
  };
  const answer = await hub.call(route.method, path, options);
  return {
    status: answer.status,
    text: JSON.stringify([answer.body, ...answer.headers.values()]),
    body: answer.body,
  };
}

/** Ids and times differ; the words must not. */
const words = (body: unknown) =>
  JSON.stringify(body)
    .replaceAll(new RegExp(Object.values(NAMED).join("|"), "g"), NOWHERE.text)
    .replaceAll(/\d+/g, "#");

test("no route shows, changes or even confirms data of another account", async () => {
  const before = await everything();
  expect(JSON.stringify(before).split(HIDDEN).length).toBeGreaterThan(9);
  const routes = hub.routes.filter(({ facts }) => facts.access !== "open" && facts.status !== 501);
  expect(routes.length).toBeGreaterThan(45);
  const attempts = routes.flatMap(attemptsOf);
  expect(attempts.length).toBeGreaterThan(130);
  for (const attempt of attempts) {
    const called = `${attempt.route.method} ${attempt.path} ${JSON.stringify(attempt.query ?? {})}`;
    const theirs = await made(attempt);
    expect(theirs.status, called).toBeLessThan(500);
    expect(theirs.text, called).not.toContain(HIDDEN);
    expect(theirs.text, called).not.toContain(String(VALUE));
    expect(theirs.text, called).not.toContain(TOKEN);
    const nowhere = await made(elsewhere(attempt));
    expect(`${theirs.status} ${shapeOf(theirs)}`, called).toBe(`${nowhere.status} ${shapeOf(nowhere)}`);
  }
  expect(await everything()).toEqual(before);
});

/** Of refusals the words; of lists their length alone, since the account's own rows may be among them. */
function shapeOf({ status, body }: { readonly status: number; readonly body: unknown }): string {
  return status >= 400 ? words(body) : Array.isArray(body) ? `${body.length} rows` : "done";
}

test("readings for another account's variables are discarded as if these did not exist", async () => {
  const before = await everything();
  const data = [{ date: DATE, value: 1 }];
  for (const [theirs, nobodys] of [
    [{ variableId: THEIRS }, { variableId: NOWHERE.id }],
    [
      { sourceSerialNumber: NAMED.serial, mappingConfig: "kWh" },
      { sourceSerialNumber: NOWHERE.text, mappingConfig: "kWh" },
    ],
    [
      { sourceId: THEIRS, mappingConfig: "kWh" },
      { sourceId: NOWHERE.id, mappingConfig: "kWh" },
    ],
    [
      { sourceEan: NAMED.ean, variableTypeId: 0 },
      { sourceEan: NOWHERE.text, variableTypeId: 0 },
    ],
    [
      { sourceName: HIDDEN, mappingConfig: "kWh" },
      { sourceName: NOWHERE.text, mappingConfig: "kWh" },
    ],
    [
      { meterNumber: NAMED.meter, mappingConfig: "kWh" },
      { meterNumber: NOWHERE.text, mappingConfig: "kWh" },
    ],
  ]) {
    const reasons = [];
    for (const target of [theirs, nobodys]) {
      const outcome = await hub.push([{ ...target, data }], OTHER);
      expect(outcome).toMatchObject({ stored: 0, discarded: [{ count: 1 }] });
      reasons.push(outcome.discarded[0].reason);
    }
    expect(reasons[0]).toBe(reasons[1]);
  }
  expect(await everything()).toEqual(before);
});

test("operation ids and idempotency keys of two accounts are independent", async () => {
  const headers = { "idempotency-key": "shared key" };
  const query = { operationId: NAMED.operation };
  const first = await hub.call("POST", "/push/api/data", {
    headers,
    query: { operationId: "one" },
    body: [],
  });
  expect(first.status).toBe(200);
  const body = [{ variableId: NOWHERE.id, data: [] }];
  expect(await hub.call("POST", "/push/api/data", { ...OTHER, headers, query, body })).toMatchObject({
    status: 200,
  });
  await hub.settled(NAMED.operation, OTHER);
  expect(await hub.get(`/operations/${NAMED.operation}`, undefined, OTHER)).toMatchObject({
    account: "2",
    received: 0,
  });
  expect(await hub.get(`/operations/${NAMED.operation}`)).toMatchObject({ account: "1", received: 1 });
});
