/** Values of forms on sites and sources (`docs/hub/structure.md`, *Values of forms*). */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createChain, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
const FIELDS = [
  { name: "Supplier", required: true },
  { name: "Power", type: "Number" },
  { name: "Signed", type: "Date" },
  { name: "Green", type: "Boolean" },
  { name: "Kind", type: "List", options: ["Fixed", "Variable"] },
  { name: "Parent", type: "Reference" },
  { name: "Building", type: "Reference", referenceTo: "Site" },
  { name: "Phones", isList: true },
];
beforeAll(async () => {
  hub = await startTestHub();
  const groups = [{ name: "Main", fields: FIELDS }];
  await hub.post("/form", { name: "Contract", groups });
  await hub.post("/form", { name: "Contract", entityType: "Site", groups });
});
afterAll(() => hub.close());

const main = (values: object) => ({ Contract: { Main: values } });
/** Both kinds of entities behave the same. */
const made = async (path: string, clientData: unknown) => {
  const { siteId } = await createChain(hub, { variables: [] });
  const body =
    path === "/sites"
      ? { name: "S", typeId: 3, timeZoneId: "Europe/Paris", clientData }
      : { name: "S", siteId, sourceTypeId: 1, clientData };
  const answer = await hub.call("POST", path, { body });
  return { ...answer, id: typeof answer.body === "number" ? answer.body : answer.body.id };
};
const valuesOf = async (path: string, id: number) => (await hub.get(`${path}/${id}`)).clientData;

describe.each(["/sites", "/sources"])("values on %s", (path) => {
  test("are typed, and get the names of the form", async () => {
    const { sourceId, siteId } = await createChain(hub, { variables: [] });
    const given = {
      SUPPLIER: "Volta",
      power: "36.5",
      Signed: "2026-03-01T00:00:00",
      Green: "TRUE",
      Kind: "fixed",
      Parent: sourceId,
      Building: siteId,
      Phones: "112",
    };
    const { id, status } = await made(path, { contract: { MAIN: given } });
    expect(status).toBe(200);
    const kept = { Supplier: "Volta", Power: 36.5, Signed: "2026-03-01", Green: true, Kind: "Fixed", Phones: ["112"] };
    expect(await valuesOf(path, id)).toEqual(main({ ...kept, Parent: sourceId, Building: siteId }));
    const signed = main({ ...kept, Signed: "2026-03-01T06:30:00+02:00" });
    const changed = await hub.ok("PUT", `${path}/${id}`, { body: { clientData: signed } });
    expect(changed.clientData).toEqual(main({ ...kept, Signed: "2026-03-01T04:30:00.000Z" }));
  });

  test.each([
    [{ Supplier: 7 }, "clientData.Contract.Main.Supplier", "must be a text, and not 7"],
    [{ Supplier: "x", Power: "much" }, "clientData.Contract.Main.Power", 'must be a number, and not "much"'],
    [{ Supplier: "x", Signed: "2026-02-30" }, "clientData.Contract.Main.Signed", "a date that exists"],
    [{ Supplier: "x", Signed: "2026-02-03T06:00:00" }, "clientData.Contract.Main.Signed", "with Z or an offset"],
    [{ Supplier: "x", Green: "yes" }, "clientData.Contract.Main.Green", "must be true or false"],
    [{ Supplier: "x", Kind: "Other" }, "clientData.Contract.Main.Kind", "must be one of Fixed, Variable"],
    [{ Supplier: "x", Parent: 987654 }, "clientData.Contract.Main.Parent", "no source 987654 in this account"],
    [{ Supplier: "x", Building: "here" }, "clientData.Contract.Main.Building", "must be the id of a site"],
    [{ Supplier: ["x"] }, "clientData.Contract.Main.Supplier", "and not a list"],
    [{ Supplier: "x", Price: 1 }, "clientData.Contract.Main.Price", "has no field Price; it has Supplier, Power"],
    [{ Power: 1 }, "clientData.Contract.Main.Supplier", "is required where the form Contract has values"],
    [{ Supplier: "x", supplier: "y" }, "clientData.Contract.Main.supplier", "is there twice"],
  ])("%j is refused, and the field named", async (values, name, words) => {
    expect(await made(path, main(values))).toMatchObject({
      status: 400,
      body: { errors: [{ path: name, message: expect.stringContaining(words) }] },
    });
  });

  test("are added by a patch below levels that are there", async () => {
    const { id } = await made(path, undefined);
    const body = [{ op: "add", path: "/clientData/Contract", value: { Main: { Supplier: "Volta" } } }];
    expect(await hub.call("PATCH", `${path}/${id}`, { body })).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining("the path /clientData/Contract leads to nothing") },
    });
  });

  test("of groups that the form has not are refused", async () => {
    const { body } = await made(path, { Contract: { Other: {}, Main: 7 } });
    expect(body.errors).toMatchObject([{ path: "clientData.Contract.Other" }, { path: "clientData.Contract.Main" }]);
    expect(await made(path, { Contract: "x" })).toMatchObject({ status: 400 });
  });

  test("of a form that the account has not are kept, with a warning", async () => {
    const { id, headers } = await made(path, { Contrakt: { Main: { Supplier: 1 } } });
    expect(headers.get("x-headgate-warning")).toContain("clientData: no form is named Contrakt");
    expect(await valuesOf(path, id)).toEqual({ Contrakt: { Main: { Supplier: 1 } } });
    const renamed = await hub.call("PUT", `${path}/${id}`, { body: { name: "Other" } });
    expect(renamed.headers.get("x-headgate-warning")).toBeNull();
  });

  test("stay with other changes, also when the form has become stricter", async () => {
    const { id } = await made(path, main({ Supplier: "Volta" }));
    const [form] = await hub.get("/form", { name: "Contract", EntityType: path === "/sites" ? 1 : 2 });
    const [group] = form.groups;
    const stricter = [{ ...group, fields: [...group.fields, { name: "Number", required: true }] }];
    await hub.ok("PUT", `/form/${form.id}`, { body: { groups: stricter } });
    expect(await hub.call("PUT", `${path}/${id}`, { body: { name: "Other" } })).toMatchObject({ status: 200 });
    const body = { clientData: main({ Supplier: "Nova" }) };
    expect(await hub.call("PUT", `${path}/${id}`, { body })).toMatchObject({ status: 400 });
    await hub.ok("PUT", `/form/${form.id}`, { body: { groups: form.groups }, query: { WithData: true } });
    expect(await hub.call("PUT", `${path}/${id}`, { body })).toMatchObject({ status: 200 });
    const patch = [{ op: "replace", path: "/clientData/Contract/Main/Supplier", value: "Aqua" }];
    expect((await hub.ok("PATCH", `${path}/${id}`, { body: patch })).clientData).toEqual(main({ Supplier: "Aqua" }));
    expect((await hub.ok("PATCH", `${path}/${id}`, { body: { clientData: null } })).clientData).toBeNull();
  });

  test("merge by a patch of an object, level by level", async () => {
    const { id } = await made(path, { ...main({ Supplier: "Volta", Power: 1, Kind: "Fixed" }), Free: { a: 1, b: 2 } });
    const clientData = { contract: { MAIN: { power: 2, Kind: null } }, Free: { b: null, c: 3 } };
    const patched = await hub.ok("PATCH", `${path}/${id}`, { body: { clientData } });
    expect(patched.clientData).toEqual({ ...main({ Supplier: "Volta", Power: 2 }), Free: { a: 1, c: 3 } });
    const body = { clientData: { Contract: null } };
    expect((await hub.ok("PATCH", `${path}/${id}`, { body })).clientData).toEqual({ Free: { a: 1, c: 3 } });
  });

  test("are in every display level", async () => {
    const { id } = await made(path, main({ Supplier: "Volta" }));
    const levels = path === "/sites" ? ["SiteLight", "Site", "VerboseSite"] : ["Light", "Normal", "Verbose", "Site"];
    for (const DisplayLevel of levels)
      expect(await hub.get(path, { Id: id, DisplayLevel })).toMatchObject([
        { clientData: main({ Supplier: "Volta" }) },
      ]);
  });

  test("of a reference go with the entity that it names", async () => {
    const target = await createChain(hub, { variables: [] });
    const stays = await createChain(hub, { variables: [] });
    const values = (parent: number, building: number) => main({ Supplier: "x", Parent: parent, Building: building });
    const { id } = await made(path, values(target.sourceId, stays.siteId));
    const other = await made(path, values(stays.sourceId, target.siteId));
    await hub.ok("DELETE", `/sites/${target.siteId}`);
    expect(await valuesOf(path, id)).toEqual(main({ Supplier: "x", Building: stays.siteId }));
    expect(await valuesOf(path, other.id)).toEqual(main({ Supplier: "x", Parent: stays.sourceId }));
  });
});

test("values of another account's forms and entities are out of reach", async () => {
  const own = await createChain(hub, { variables: [] });
  const more = { as: "second", account: 2 };
  const { siteId } = await createChain(hub, { variables: [], more });
  const source = { name: "S", siteId, sourceTypeId: 1 };
  // The form is not theirs: anything goes.
  expect(await hub.post("/sources", { ...source, clientData: main({ Price: 1 }) }, more)).toMatchObject({
    clientData: main({ Price: 1 }),
  });
  await hub.call("POST", "/form", {
    ...more,
    body: { name: "Link", groups: [{ name: "Main", fields: [{ name: "To", type: 6 }] }] },
  });
  const body = { ...source, clientData: { Link: { Main: { To: own.sourceId } } } };
  expect(await hub.call("POST", "/sources", { ...more, body })).toMatchObject({ status: 400 });
});
