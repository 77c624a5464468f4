/** Forms and time-sliced attributes, as the specification has them. */
import { afterAll, beforeAll, expect } from "vitest";
import { form } from "../../../src/wire/index.ts";
import { startTestHub, type TestHub } from "../fixture.ts";
import { rule } from "./rule.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
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
  const made = await hub.post("/form", CONTRACT);
  expect(made).toMatchObject({ ...CONTRACT, accountId: 1, id: expect.any(String) });
  expect(made.groups[0].fields).toMatchObject(CONTRACT.groups[0]?.fields ?? []);
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
