/** Definitions of forms (`docs/hub/structure.md`, *Forms*). */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createChain, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const fields = (...all: object[]) => [{ name: "Main", fields: all }];
const names = (form: { groups: { fields: { name: string }[] }[] }) =>
  form.groups.flatMap((group) => group.fields.map(({ name }) => name));

describe("definitions", () => {
  test("take ids and names of types and entities, and the name from the address", async () => {
    const body = {
      entitytype: "site",
      Groups: fields({ name: "Floor", TYPE: "number" }, { name: "Heating", type: 5 }),
    };
    const made = await hub.ok("POST", "/form", { query: { name: "Building" }, body });
    expect(made).toMatchObject({ name: "Building", entityType: 1 });
    expect(made.groups[0].fields).toMatchObject([
      { name: "Floor", type: 2, displayOrder: 0, isList: false, required: false, timeSliced: false },
      { name: "Heating", type: 5, displayOrder: 1, options: null },
    ]);
    expect(await hub.get("/form", { EntityType: "Source", name: "Building" })).toEqual([]);
    expect(await hub.get("/form", { EntityType: 1, name: "BUILDING" })).toEqual([made]);
  });

  test("are listed in their display order, fields as well", async () => {
    const body = { name: "Late", displayOrder: 99, groups: fields({ name: "b", displayOrder: 2 }, { name: "a" }) };
    const late = await hub.post("/form", { ...body, groups: [...body.groups, { name: "First", displayOrder: -1 }] });
    expect(late.groups.map(({ name }: { name: string }) => name)).toEqual(["First", "Main"]);
    expect(names(late)).toEqual(["a", "b"]);
    await hub.post("/form", { name: "Early", displayOrder: -5 });
    const [first, ...rest] = await hub.get("/form");
    expect([first.name, rest.at(-1).name]).toEqual(["Early", "Late"]);
    const page = await hub.call("GET", "/form", { query: { "Paging.ItemsPerPage": 1, IncludeItemsCount: true } });
    expect(page.body).toEqual([first]);
    expect(Number(page.headers.get("x-total-count"))).toBe(rest.length + 1);
  });

  test.each([
    [{ groups: [] }, "name", "is missing"],
    [{ name: 'A"b' }, "name", "quote"],
    [{ name: "__proto__" }, "name", "reserved"],
    [{ name: "toString" }, "name", "reserved"],
    [{ name: "x", groups: [{ name: "valueOf" }] }, "groups.0.name", "reserved"],
    [{ name: "x", entityType: "Variable" }, "entityType", "must be one of 1 (Site), 2 (Source)"],
    [{ name: "x", accountId: 2 }, "accountId", "token"],
    [{ name: "x", groups: fields({ name: "f", type: 9 }) }, "groups.0.fields.0.type", "must be one of 1 (Text)"],
    [{ name: "x", groups: fields({ name: "f" }, { name: "F" }) }, "groups.0.fields.1.name", "twice"],
    [{ name: "x", groups: fields({ name: "f", type: 2, options: ["a"] }) }, "groups.0.fields.0.options", "List"],
    [{ name: "x", groups: fields({ name: "f", referenceTo: 1 }) }, "groups.0.fields.0.referenceTo", "Reference"],
    [{ name: "x", groups: fields({ name: "f", type: 5, options: ["a", "A"] }) }, "groups.0.fields.0.options", "twice"],
  ])("%j is refused, and the field named", async (body, path, words) => {
    expect(await hub.call("POST", "/form", { body })).toMatchObject({
      status: 400,
      body: { errors: [{ path, message: expect.stringContaining(words) }] },
    });
  });

  test("have one name: another one in the address is refused", async () => {
    const query = { name: "One" };
    expect(await hub.call("POST", "/form", { query, body: { name: "Two" } })).toMatchObject({ status: 400 });
    expect(await hub.post("/form", { name: "ONE" })).toMatchObject({ name: "ONE" });
  });

  test("name the fields that they do not know in a warning", async () => {
    const groups = [{ name: "g", title: 1, fields: [{ name: "a" }, { name: "b", timeslice: true }] }];
    const made = await hub.call("POST", "/form", { body: { name: "Unknown", colour: "red", groups } });
    expect(made.headers.get("x-headgate-warning")).toContain("colour, groups.0.title, groups.0.fields.1.timeslice");
    const same = await hub.call("PUT", "/form", { body: made.body });
    expect(same.headers.get("x-headgate-warning")).toBeNull();
    expect(same.body).toEqual(made.body);
  });

  test("have a name of their own for each entity, whatever its case", async () => {
    await hub.post("/form", { name: "Same", entityType: "Site" });
    await hub.post("/form", { name: "same", entityType: "Source" });
    expect(await hub.call("POST", "/form", { body: { name: "SAME" } })).toMatchObject({ status: 409 });
    const other = await hub.post("/form", { name: "Other" });
    expect(await hub.call("PUT", `/form/${other.id}`, { body: { name: "Same" } })).toMatchObject({ status: 409 });
  });

  test("change by PUT: what is left out stays, ids keep what gets another name", async () => {
    const made = await hub.post("/form", { name: "Meter", displayOrder: 7, groups: fields({ name: "Brand" }) });
    const [group] = made.groups;
    const [brand] = group.fields;
    const groups = [
      {
        id: group.id,
        name: "Device",
        fields: [
          { name: "Year", type: 2 },
          { id: brand.id, name: "Make" },
        ],
      },
    ];
    const changed = await hub.ok("PUT", "/form", { body: { id: made.id, groups } });
    expect(changed).toMatchObject({ id: made.id, name: "Meter", displayOrder: 7 });
    expect(changed.groups[0]).toMatchObject({ id: group.id, name: "Device" });
    expect(changed.groups[0].fields[1]).toEqual({ ...brand, name: "Make", displayOrder: 1 });
    expect(await hub.call("PUT", `/form/${made.id}`, { body: { entityType: "Site" } })).toMatchObject({ status: 400 });
    expect(await hub.call("PUT", "/form/987654", { body: {} })).toMatchObject({ status: 404 });
    expect(await hub.call("PUT", "/form", { body: {} })).toMatchObject({ status: 400 });
  });

  test("give a name that a field has left to a new one, and refuse ids that are twice or not there", async () => {
    const made = await hub.post("/form", { name: "Swap", groups: fields({ name: "A" }, { name: "B" }) });
    const [group] = made.groups;
    const [a, b] = group.fields;
    const put = (...all: object[]) =>
      hub.call("PUT", `/form/${made.id}`, { body: { groups: [{ id: group.id, name: "Main", fields: all }] } });
    const swapped = await put({ id: a.id, name: "B" }, { id: b.id, name: "A" });
    expect(swapped.body.groups[0].fields).toMatchObject([
      { id: a.id, name: "B" },
      { id: b.id, name: "A" },
    ]);
    const left = await put({ id: a.id, name: "C" }, { name: "B" }, { name: "A" });
    expect(left.body.groups[0].fields.map(({ id }: { id: string }) => id)).toEqual([a.id, expect.any(String), b.id]);
    expect(left.body.groups[0].fields[1].id).not.toBe(a.id);
    for (const all of [
      [
        { id: a.id, name: "C" },
        { id: a.id, name: "D" },
      ],
      [{ name: "C" }, { id: "987654", name: "D" }],
    ])
      expect(await put(...all)).toMatchObject({ status: 400, body: { errors: [{ path: "groups.0.fields.1.id" }] } });
  });

  test("survive a restart, and are removed with their groups", async () => {
    const made = await hub.post("/form", { name: "Short", groups: fields({ name: "f" }) });
    await hub.restart();
    expect(await hub.get(`/form/${made.id}`)).toEqual(made);
    expect(await hub.call("DELETE", `/form/${made.id}`, { query: { What: 1 } })).toMatchObject({ status: 400 });
    expect(await hub.call("DELETE", `/form/${made.id}`)).toMatchObject({ status: 204 });
    expect(await hub.call("DELETE", `/form/${made.id}`)).toMatchObject({ status: 404 });
    expect(await hub.get("/form", { name: "Short" })).toEqual([]);
  });
});

describe("values that are there already", () => {
  const source = (id: number) => hub.get(`/sources/${id}`);

  test("must fit a new form, and get its spelling", async () => {
    const clientData = { lease: { main: { RENT: "12.5", Until: "2027-01-31" } }, Free: { a: { b: 1 } } };
    const { sourceId } = await createChain(hub, { source: { clientData }, variables: [] });
    const refused = await hub.call("POST", "/form", { body: { name: "Lease", groups: fields({ name: "Rent" }) } });
    expect(refused).toMatchObject({ status: 409 });
    expect(refused.body.detail).toContain(`the source ${sourceId} has a value of clientData.lease.main.Until`);
    const groups = fields({ name: "Rent", type: "Number" }, { name: "Until", type: "Date" });
    await hub.post("/form", { name: "Lease", groups });
    expect((await source(sourceId)).clientData).toEqual({
      Lease: { Main: { Rent: 12.5, Until: "2027-01-31" } },
      Free: { a: { b: 1 } },
    });
  });

  test.each([false, true])(
    "are ids of the account where they become a Reference (timeSliced: %j)",
    async (timeSliced) => {
      const name = timeSliced ? "Slices" : "Plain";
      const form = (type: string) => ({ name, groups: fields({ name: "Of", type, timeSliced, isList: true }) });
      const made = await hub.post("/form", form("Number"));
      const { sourceId } = await createChain(hub, { variables: [] });
      const put = (Of: number[]) =>
        hub.ok("PUT", `/sources/${sourceId}`, { body: { clientData: { [name]: { Main: { Of } } } } });
      await put([sourceId, 987_654]);
      const change = (query = {}) => hub.call("PUT", `/form/${made.id}`, { body: form("Reference"), query });
      const refused = await change();
      expect(refused).toMatchObject({ status: 409 });
      expect(refused.body.detail).toContain("names no source of this account");
      await put([sourceId]);
      expect(await change({ WithData: true })).toMatchObject({ status: 200 });
      const left = { [name]: { Main: { Of: [sourceId] } } };
      if (!timeSliced) expect((await source(sourceId)).clientData).toEqual(left);
    },
  );

  test("move to new names, and go only WithData", async () => {
    const made = await hub.post("/form", {
      name: "Owner",
      groups: fields({ name: "Name" }, { name: "Share", type: "Number" }),
    });
    const clientData = { Owner: { Main: { Name: "Aqua", Share: 3 } } };
    const { sourceId } = await createChain(hub, { source: { clientData }, variables: [] });
    const [group] = made.groups;
    const [name, share] = group.fields;
    const put = (fieldsLeft: object[], query = {}) =>
      hub.call("PUT", `/form/${made.id}`, {
        query,
        body: { name: "Proprietor", groups: [{ id: group.id, name: "Person", fields: fieldsLeft }] },
      });
    const renamed = { id: name.id, name: "Title" };
    expect(await put([renamed, { id: share.id, name: "Part" }])).toMatchObject({ status: 200 });
    expect((await source(sourceId)).clientData).toEqual({ Proprietor: { Person: { Title: "Aqua", Part: 3 } } });
    const refused = await put([renamed]);
    expect(refused).toMatchObject({ status: 409 });
    expect(refused.body.detail).toContain("clientData.Proprietor.Person.Part");
    expect(
      await put([
        { ...renamed, type: "Number" },
        { id: share.id, name: "Part" },
      ]),
    ).toMatchObject({ status: 409 });
    expect((await source(sourceId)).clientData.Proprietor.Person).toEqual({ Title: "Aqua", Part: 3 });
    expect(await put([renamed], { WithData: true })).toMatchObject({ status: 200 });
    expect((await source(sourceId)).clientData).toEqual({ Proprietor: { Person: { Title: "Aqua" } } });
    const detail = expect.stringContaining("clientData.Proprietor.Person.Title: it goes with the form");
    expect(await hub.call("DELETE", `/form/${made.id}`)).toMatchObject({ status: 409, body: { detail } });
    expect(await hub.call("DELETE", `/form/${made.id}`, { query: { WithData: true } })).toMatchObject({ status: 204 });
    expect((await source(sourceId)).clientData).toBeNull();
  });
});
