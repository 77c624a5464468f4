/** Forms and time-sliced attributes, as the specification has them. */
import { afterAll, beforeAll, expect } from "vitest";
import { form } from "#wire/index.ts";
import { createChain, startTestHub, type TestHub } from "../fixture.ts";
import { rule } from "./rule.ts";

let hub: TestHub;
let contract: { id: string; groups: { fields: object[] }[] };
beforeAll(async () => {
  hub = await startTestHub();
  contract = await hub.post("/form", CONTRACT);
});
afterAll(() => hub.close());

const CONTRACT = {
  name: "Contract",
  type: 0,
  displayOrder: 1,
  entityType: 2,
  groups: [
    {
      name: "Main",
      displayHeader: true,
      displayOrder: 0,
      fields: [
        { name: "Supplier", displayOrder: 0, isList: false, required: false, timeSliced: false, type: 1 },
        { name: "Tariff", displayOrder: 1, isList: false, required: false, timeSliced: true, type: 2 },
      ],
    },
  ],
};

rule("form.fields", async () => {
  const made = contract;
  expect(made).toMatchObject({ ...CONTRACT, accountId: 1, id: expect.any(String) });
  expect(made.groups[0]?.fields).toMatchObject(CONTRACT.groups[0]?.fields ?? []);
  expect((await hub.get("/form", { name: "contract" })).map((one: unknown) => form.parse(one))).toEqual([made]);
  expect(await hub.get(`/form/${made.id}`)).toEqual(made);
});

rule("form.time-sliced", async () => {
  const groups = [{ name: "Main", fields: [{ name: "A" }, { name: "B", timeSliced: true }] }];
  const made = await hub.post("/form", { name: "Fixed", groups });
  expect(made.groups[0].fields).toMatchObject([{ timeSliced: false }, { timeSliced: true }]);
  for (const field of [
    { name: "A", timeSliced: true },
    { name: "B", timeSliced: false },
  ]) {
    const body = { groups: [{ name: "Main", fields: [field] }] };
    expect(await hub.call("PUT", `/form/${made.id}`, { body, query: { WithData: true } })).toMatchObject({
      status: 400,
      body: { errors: [{ path: "groups.0.fields.0.timeSliced" }] },
    });
  }
  expect(await hub.get(`/form/${made.id}`)).toEqual(made);
});

const MOMENTS = { past: "2020-01-01T00:00:00.000Z", future: "2300-01-01T00:00:00.000Z" };
const FAR_END = "9999-12-31T23:59:59.999Z";
const TARIFF = "attributes/Contract/Main/Tariff/slices";

/** A source whose tariff is 1, and will be 2. */
async function withTariffs(): Promise<number> {
  const { sourceId } = await createChain(hub, { variables: [] });
  await hub.post(`/sources/${sourceId}/${TARIFF}`, { FromDate: MOMENTS.future, Value: 2 });
  await hub.post(`/sources/${sourceId}/${TARIFF}`, { FromDate: MOMENTS.past, Value: 1 });
  return sourceId;
}

rule("form.slices", async () => {
  const slices = await hub.get(`/sources/${await withTariffs()}/${TARIFF}`);
  expect(slices).toEqual([
    { id: expect.any(Number), EffectiveDate: MOMENTS.past, Value: 1, EndDate: MOMENTS.future },
    { id: expect.any(Number), EffectiveDate: MOMENTS.future, Value: 2, EndDate: FAR_END },
  ]);
});

rule("source.time-sliced", async () => {
  const id = await withTariffs();
  const { clientData: now } = await hub.get(`/sources/${id}`);
  expect(now).toEqual({ Contract: { Main: { Tariff: 1 } } });
  const { clientData: all } = await hub.get(`/sources/${id}`, { includeTimeSlicedValues: true });
  expect(all.Contract.Main.Tariff).toEqual([
    { EffectiveDate: MOMENTS.past, Value: 1, EndDate: MOMENTS.future },
    { EffectiveDate: MOMENTS.future, Value: 2, EndDate: FAR_END },
  ]);
});

rule("sources.slices", async () => {
  const id = await withTariffs();
  for (const path of [`/sources/${id}`, "/sources"]) {
    const tariff = async (includeTimeSlicedValues?: boolean) => {
      const query = includeTimeSlicedValues === undefined ? {} : { includeTimeSlicedValues };
      const answer = await hub.get(path, path === "/sources" ? { Id: id, ...query } : query);
      return (answer[0] ?? answer).clientData.Contract.Main.Tariff;
    };
    expect(await tariff()).toBe(1);
    expect(await tariff(false)).toBe(1);
    expect(await tariff(true)).toMatchObject([{ Value: 1 }, { Value: 2 }]);
  }
});

rule("sources.add-slice", async () => {
  const id = await withTariffs();
  const added = await hub.post(`/sources/${id}/${TARIFF}`, { FromDate: "2025-01-01T00:00:00Z", Value: 1.5 });
  expect(added).toMatchObject({ EffectiveDate: "2025-01-01T00:00:00.000Z", Value: 1.5, EndDate: MOMENTS.future });
  const slices = await hub.get(`/sources/${id}/${TARIFF}`);
  expect(slices.map(({ Value }: { Value: number }) => Value)).toEqual([1, 1.5, 2]);
  expect(slices[0].EndDate).toBe(added.EffectiveDate);
});
