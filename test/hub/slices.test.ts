/** Time-sliced attributes (`docs/hub/structure.md`, *Time-sliced attributes*). */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fieldValues } from "#hub/forms/slices.ts";
import type { HubStore } from "#hub/store/store.ts";
import { type CallOptions, createChain, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
const DAY = (day: string) => `${day}T00:00:00.000Z`;
const FAR_END = "9999-12-31T23:59:59.999Z";
const FIELDS = [
  { name: "Tariff", type: "Number", timeSliced: true },
  { name: "Zones", timeSliced: true, isList: true },
  { name: "Note" },
  { name: "Meter", type: "Reference", timeSliced: true },
];
let fieldIds: Record<string, number> = {};
beforeAll(async () => {
  hub = await startTestHub();
  const groups = [{ name: "Main", fields: FIELDS }];
  await hub.post("/form", { name: "Contract", entityType: "Site", groups });
  const form = await hub.post("/form", { name: "Contract", groups });
  fieldIds = Object.fromEntries(form.groups[0].fields.map((one: { name: string; id: string }) => [one.name, +one.id]));
});
afterAll(() => hub.close());

const base = (path: string, id: number, field = "Tariff") => `${path}/${id}/attributes/Contract/Main/${field}/slices`;
const entity = async (path: string) => {
  const { siteId, sourceId } = await createChain(hub, { variables: [] });
  return path === "/sites" ? siteId : sourceId;
};
const shown = (list: { EffectiveDate: string; Value: unknown; EndDate: string }[]) =>
  list.map(({ EffectiveDate, Value, EndDate }) => [EffectiveDate, Value, EndDate]);
const status = async (method: string, path: string, more: CallOptions = {}) =>
  (await hub.call(method, path, more)).status;

describe.each(["/sites", "/sources"])("slices on %s", (path) => {
  test("are at most ten thousand of one entity", async () => {
    const names = Array.from({ length: 11 }, (_, nth) => `Price ${nth}`);
    const groups = [{ name: "Main", fields: names.map((name) => ({ name, type: "Number", timeSliced: true })) }];
    await hub.post("/form", { name: "Prices", entityType: path === "/sites" ? "Site" : "Source", groups });
    const id = await entity(path);
    const slices = Array.from({ length: 1_000 }, (_, nth) => ({
      EffectiveDate: new Date(Date.UTC(2000, 0, 1 + nth)).toISOString(),
      Value: nth % 7,
    }));
    const put = (name: string, given: object) =>
      hub.call("PATCH", `${path}/${id}`, { body: { clientData: { Prices: { Main: { [name]: given } } } } });
    for (const name of names.slice(0, 10)) expect((await put(name, slices)).status).toBeLessThan(300);
    const detail = expect.stringMatching(/may have 10000 slices, and the (site|source) \d+ would have more/);
    expect(await put("Price 10", slices)).toMatchObject({ status: 409, body: { code: "quota-exceeded", detail } });
    const more = { FromDate: "2026-01-01", value: 1 };
    const price = (name: string) => `${path}/${id}/attributes/Prices/Main/${name}/slices`;
    expect(await status("POST", price("Price 0"), { body: more })).toBe(409);
    expect(await hub.get(price("Price 0"))).toHaveLength(1_000);
    expect(await hub.get(price("Price 10"))).toEqual([]);
  });

  test("are added, changed and removed; their ends follow", async () => {
    const at = base(path, await entity(path));
    const first = await hub.post(at, { fromdate: "2026-01-01", value: 1 });
    // Without a zone a date is in that of the site: Europe/Paris.
    expect(first).toMatchObject({ EffectiveDate: "2025-12-31T23:00:00.000Z", Value: 1, EndDate: FAR_END });
    const second = await hub.post(at, { EffectiveDate: "2026-02-01T00:00:00Z", Value: 2 });
    await hub.post(at, { FromDate: "2026-03-01T02:00:00+02:00", Value: null });
    expect(shown(await hub.get(at))).toEqual([
      ["2025-12-31T23:00:00.000Z", 1, DAY("2026-02-01")],
      [DAY("2026-02-01"), 2, DAY("2026-03-01")],
      [DAY("2026-03-01"), null, FAR_END],
    ]);
    expect(shown(await hub.get(at, { AsOf: "2026-02-28T23:59:59Z" }))).toEqual([
      [DAY("2026-02-01"), 2, DAY("2026-03-01")],
    ]);
    expect(await hub.get(at, { AsOf: "2025-01-01" })).toEqual([]);
    const moved = await hub.ok("PUT", `${at}/${first.id}`, { body: { FromDate: "2026-02-15T00:00:00Z" } });
    expect(moved).toEqual({ id: first.id, EffectiveDate: DAY("2026-02-15"), Value: 1, EndDate: DAY("2026-03-01") });
    expect(await hub.ok("PUT", `${at}/${second.id}`, { body: { value: "2.5" } })).toMatchObject({ Value: 2.5 });
    expect(await status("DELETE", `${at}/${first.id}`)).toBe(204);
    expect(await status("DELETE", `${at}/${first.id}`)).toBe(404);
    expect(shown(await hub.get(at))).toEqual([
      [DAY("2026-02-01"), 2.5, DAY("2026-03-01")],
      [DAY("2026-03-01"), null, FAR_END],
    ]);
  });

  test("have one value for each date: a repeat changes nothing, another value is refused", async () => {
    const at = base(path, await entity(path));
    const body = { FromDate: DAY("2026-01-01"), Value: 1 };
    const first = await hub.post(at, body);
    expect(await hub.post(at, body)).toEqual(first);
    expect(await status("POST", at, { body: { ...body, Value: 2 } })).toBe(409);
    const second = await hub.post(at, { ...body, FromDate: DAY("2026-02-01") });
    expect(await status("PUT", `${at}/${second.id}`, { body: { FromDate: body.FromDate } })).toBe(409);
    expect(await hub.get(at)).toHaveLength(2);
  });

  test.each([
    [{ Value: 1 }, "FromDate", "needs a FromDate such as 2026-03-01"],
    [{ FromDate: "soon", Value: 1 }, "FromDate", 'and not "soon"'],
    [{ FromDate: "2026-01-01" }, "Value", "is missing"],
    [{ FromDate: "2026-01-01", Value: "much" }, "Value", "must be a number"],
    [{ FromDate: "2026-01-01", Value: [1] }, "Value", "and not a list"],
  ])("%j is refused, and the field named", async (body, field, words) => {
    const at = base(path, await entity(path));
    const errors = [{ path: field, message: expect.stringContaining(words) }];
    expect(await hub.call("POST", at, { body })).toMatchObject({ status: 400, body: { errors } });
    expect(await hub.get(at)).toEqual([]);
  });

  test("are of the time-sliced fields of the account's forms alone", async () => {
    const id = await entity(path);
    const body = { FromDate: "2026-01-01", Value: 1 };
    expect(await hub.call("POST", base(path, id, "Note"), { body })).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining("Note is not time-sliced") },
    });
    expect(await status("POST", base(path, id, "Price"), { body })).toBe(404);
    expect(await status("GET", base(path, id, "Price"))).toBe(404);
    expect(await status("POST", base(path, 987_654), { body })).toBe(404);
    expect(await status("GET", base(path, 987_654))).toBe(404);
    expect(await hub.post(`${path}/${id}/attributes/CONTRACT/main/tariff/slices`, body)).toMatchObject({ Value: 1 });
  });

  test("in a body: a list replaces them, another value holds from now on, the same one changes nothing", async () => {
    const id = await entity(path);
    const tariff = (Tariff: unknown) => ({ clientData: { Contract: { Main: { Tariff, Note: "n" } } } });
    const list = [
      { FromDate: DAY("2300-01-01"), Value: 3 },
      { EffectiveDate: DAY("2020-01-01"), Value: 1, EndDate: FAR_END },
    ];
    const put = (Tariff: unknown) => hub.ok("PUT", `${path}/${id}`, { body: tariff(Tariff) });
    expect((await put(list)).clientData).toEqual(tariff(1).clientData);
    const before = await hub.get(base(path, id));
    await put(1);
    await put([...list].reverse());
    await hub.ok("PUT", `${path}/${id}`, { body: { clientData: { Contract: { Main: { Note: "m" } } } } });
    expect(await hub.get(base(path, id))).toEqual(before);
    const from = Date.now();
    expect((await put(2)).clientData).toEqual(tariff(2).clientData);
    const [first, now, future, ...more] = await hub.get(base(path, id));
    expect([first.Value, now.Value, future.Value, more]).toEqual([1, 2, 3, []]);
    expect(Date.parse(now.EffectiveDate)).toBeGreaterThanOrEqual(from);
    const all = await hub.get(path, { Id: id, includeTimeSlicedValues: true });
    expect((await put(all[0].clientData.Contract.Main.Tariff)).clientData).toEqual(tariff(2).clientData);
    expect(await hub.get(base(path, id))).toHaveLength(3);
    const note = { clientData: { Contract: { Main: { Note: "o" } } } };
    expect((await hub.ok("PATCH", `${path}/${id}`, { body: note })).clientData.Contract.Main).toEqual({
      Tariff: 2,
      Note: "o",
    });
    expect(await hub.get(base(path, id))).toHaveLength(3);
    const patch = [{ op: "remove", path: "/clientData/Contract/Main/Tariff" }];
    expect((await hub.ok("PATCH", `${path}/${id}`, { body: patch })).clientData.Contract.Main).toEqual({ Note: "o" });
    expect((await hub.get(base(path, id)))[2]).toMatchObject({ Value: null, EndDate: DAY("2300-01-01") });
    await put([]);
    expect(await hub.get(base(path, id))).toEqual([]);
    const twice = [list[0], list[0]];
    expect(await status("PUT", `${path}/${id}`, { body: tariff(twice) })).toBe(400);
  });

  test("show the value of the moment that AsOf names, also of lists", async () => {
    const id = await entity(path);
    const zones = base(path, id, "Zones");
    await hub.post(zones, { FromDate: DAY("2024-01-01"), Value: ["a", "b"] });
    await hub.post(zones, { FromDate: DAY("2025-01-01"), Value: "c" });
    const asOf = async (AsOf: string) =>
      [await hub.get(`${path}/${id}`, { AsOf }), ...(await hub.get(path, { Id: id, AsOf }))].map(
        ({ clientData }) => clientData?.Contract.Main.Zones,
      );
    expect(await asOf("2023-12-31")).toEqual([undefined, undefined]);
    expect(await asOf("2024-01-01T00:00:00Z")).toEqual([
      ["a", "b"],
      ["a", "b"],
    ]);
    expect(await asOf("2026-01-01")).toEqual([["c"], ["c"]]);
  });

  test("go with their entity and their field; a removed target leaves a slice without a value", async () => {
    const id = await entity(path);
    const target = await createChain(hub, { variables: [] });
    await hub.post(base(path, id, "Meter"), { FromDate: DAY("2024-01-01"), Value: target.sourceId });
    const foreign = { FromDate: DAY("2025-01-01"), Value: 987_654 };
    expect(await status("POST", base(path, id, "Meter"), { body: foreign })).toBe(400);
    await hub.ok("DELETE", `/sources/${target.sourceId}`);
    expect(shown(await hub.get(base(path, id, "Meter")))).toEqual([[DAY("2024-01-01"), null, FAR_END]]);
    await hub.ok("DELETE", `${path}/${id}`);
    expect(await status("GET", base(path, id, "Meter"))).toBe(404);
  });
});

test("a field with slices is removed or gets another type only WithData", async () => {
  const fields = [{ name: "Price", type: "Number", timeSliced: true }];
  const form = await hub.post("/form", { name: "Offer", groups: [{ name: "Main", fields }] });
  const { sourceId } = await createChain(hub, { variables: [] });
  const at = `/sources/${sourceId}/attributes/Offer/Main/Price/slices`;
  await hub.post(at, { FromDate: DAY("2024-01-01"), Value: 1 });
  const retyped = { groups: [{ name: "Main", fields: [{ name: "Price", type: "Text", timeSliced: true }] }] };
  const number = { groups: [{ name: "Main", fields: [{ name: "Price", type: "Boolean", timeSliced: true }] }] };
  for (const body of [{ groups: [] }, retyped, number])
    expect(await status("PUT", `/form/${form.id}`, { body })).toBe(409);
  expect(await status("DELETE", `/form/${form.id}`)).toBe(409);
  expect(await hub.get(at)).toHaveLength(1);
  await hub.ok("PUT", `/form/${form.id}`, { body: retyped, query: { WithData: true } });
  expect(await hub.get(at)).toEqual([]);
});

test("slices of a list keep their values when options are added, and lose those that go only WithData", async () => {
  const groups = (...options: string[]) => [
    { name: "Main", fields: [{ name: "Kind", type: "List", options, timeSliced: true }] },
  ];
  const form = await hub.post("/form", { name: "Sort", groups: groups("Fixed", "Variable") });
  const { sourceId } = await createChain(hub, { variables: [] });
  const at = `/sources/${sourceId}/attributes/Sort/Main/Kind/slices`;
  for (const [year, Value] of [
    ["2023", "fixed"],
    ["2024", "variable"],
    ["2025", null],
  ])
    await hub.post(at, { FromDate: DAY(`${year}-01-01`), Value });
  const put = (options: string[], query = {}) =>
    hub.call("PUT", `/form/${form.id}`, { body: { groups: groups(...options) }, query });
  const values = async () => (await hub.get(at)).map(({ Value }: { Value: unknown }) => Value);
  expect(await put(["FIXED", "Variable", "Free"])).toMatchObject({ status: 200 });
  expect(await values()).toEqual(["FIXED", "Variable", null]);
  const refused = await put(["Fixed", "Free"]);
  expect(refused).toMatchObject({ status: 409 });
  expect(refused.body.detail).toContain("clientData.Sort.Main.Kind has a slice from 2024-01-01T00:00:00.000Z");
  expect(await values()).toEqual(["FIXED", "Variable", null]);
  expect(await put(["Fixed", "Free"], { WhatIf: true })).toMatchObject({ status: 400 });
  expect(await put(["Fixed", "Free"], { WithData: true })).toMatchObject({ status: 200 });
  expect(await values()).toEqual(["Fixed", null]);
});

test("a name that the body of a slice does not know is named in a warning", async () => {
  const { sourceId } = await createChain(hub, { variables: [] });
  const body = { FromDate: DAY("2024-01-01"), Value: 1, ToDate: DAY("2025-01-01") };
  const added = await hub.call("POST", base("/sources", sourceId), { body });
  expect(added.headers.get("x-headgate-warning")).toContain("ToDate");
  const { ToDate: _, ...known } = body;
  const again = await hub.call("POST", base("/sources", sourceId), { body: { ...added.body, ...known } });
  expect(again.headers.get("x-headgate-warning")).toBeNull();
  expect(again.body).toEqual(added.body);
});

test("a required field keeps a slice while its form has values", async () => {
  const fields = [{ name: "Price", timeSliced: true, required: true }, { name: "Note" }];
  await hub.post("/form", { name: "Need", groups: [{ name: "Main", fields }] });
  const { sourceId } = await createChain(hub, { variables: [] });
  const at = `/sources/${sourceId}/attributes/Need/Main/Price/slices`;
  const { id } = await hub.post(at, { FromDate: DAY("2024-01-01"), Value: "x" });
  const note = (Note: string | null) => ({ body: { clientData: { Need: { Main: { Note } } } } });
  await hub.ok("PUT", `/sources/${sourceId}`, note("n"));
  expect(await status("DELETE", `${at}/${id}`)).toBe(409);
  expect(await status("PUT", `${at}/${id}`, { body: { Value: null } })).toBe(409);
  await hub.ok("PUT", `/sources/${sourceId}`, note(null));
  expect(await status("DELETE", `${at}/${id}`)).toBe(204);
  expect(await status("PUT", `/sources/${sourceId}`, note("n"))).toBe(400);
});

test("what a form requires comes before or with its first slice, and stays while slices are there", async () => {
  const fields = [
    { name: "Owner", timeSliced: true },
    { name: "Area", required: true },
  ];
  await hub.post("/form", { name: "Land", groups: [{ name: "Main", fields }] });
  const { sourceId } = await createChain(hub, { variables: [] });
  const at = `/sources/${sourceId}/attributes/Land/Main/Owner/slices`;
  const slice = { FromDate: DAY("2024-01-01"), Value: "x" };
  const errors = [
    { path: "clientData.Land.Main.Area", message: expect.stringContaining("is required where the form") },
  ];
  expect(await hub.call("POST", at, { body: slice })).toMatchObject({ status: 400, body: { errors } });
  await hub.ok("PUT", `/sources/${sourceId}`, { body: { clientData: { Land: { Main: { Area: "5" } } } } });
  await hub.post(at, slice);
  const cleared = await hub.call("PUT", `/sources/${sourceId}`, { body: { clientData: {} } });
  expect(cleared).toMatchObject({ status: 400, body: { errors } });
  const shown = (await hub.get(`/sources/${sourceId}`)).clientData;
  expect(shown).toEqual({ Land: { Main: { Area: "5", Owner: "x" } } });
  await hub.ok("PATCH", `/sources/${sourceId}`, { body: { clientData: { Land: null } } });
});

test("a list of slices names the value of each", async () => {
  const { sourceId } = await createChain(hub, { variables: [] });
  await hub.post(base("/sources", sourceId), { FromDate: DAY("2024-01-01"), Value: 1 });
  const Tariff = [{ FromDate: DAY("2024-01-01"), Valu: 2 }];
  const answer = await hub.call("PUT", `/sources/${sourceId}`, {
    body: { clientData: { Contract: { Main: { Tariff } } } },
  });
  const message = "has a slice without a Value; null means no value from then on";
  expect(answer).toMatchObject({ status: 400, body: { errors: [{ message }] } });
  expect(shown(await hub.get(base("/sources", sourceId)))).toEqual([[DAY("2024-01-01"), 1, FAR_END]]);
});

test("calculations read a field as of a moment", async () => {
  const { sourceId } = await createChain(hub, { variables: [] });
  await hub.post(base("/sources", sourceId), { FromDate: DAY("2024-01-01"), Value: 1 });
  await hub.post(base("/sources", sourceId), { FromDate: DAY("2025-01-01"), Value: 2 });
  await hub.ok("PUT", `/sources/${sourceId}`, { body: { clientData: { Contract: { Main: { Note: "n" } } } } });
  // The store itself; a gateway inside sees less of it.
  const store = hub.inside().store as HubStore;
  const of = (fieldId = 0, id = sourceId) => ({ entity: "source", id, fieldId }) as const;
  const tariff = await fieldValues(store, 1, of(fieldIds["Tariff"]));
  const [first, second] = [Date.parse(DAY("2024-01-01")), Date.parse(DAY("2025-01-01"))];
  expect(tariff?.slices).toEqual([
    { fromMs: first, endMs: second, value: 1 },
    { fromMs: second, endMs: Date.parse(FAR_END), value: 2 },
  ]);
  expect([first - 1, first, second - 1, second].map((ms) => tariff?.asOf(ms))).toEqual([null, 1, 1, 2]);
  const note = await fieldValues(store, 1, of(fieldIds["Note"]));
  expect([0, second].map((ms) => note?.asOf(ms))).toEqual(["n", "n"]);
  expect(await fieldValues(store, 2, of(fieldIds["Tariff"]))).toBeNull();
  expect(await fieldValues(store, 1, of(987_654))).toBeNull();
  expect(await fieldValues(store, 1, of(fieldIds["Tariff"], 987_654))).toBeNull();
});
