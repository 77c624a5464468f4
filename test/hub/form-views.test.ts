/** Views that name fields of forms, when these change (`docs/hub/structure.md`, *Forms*, *Views*). */
import { afterAll, beforeAll, expect, test } from "vitest";
import { createChain, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const formOf = (name: string, group = "Main", field = "Power") => ({
  name,
  groups: [{ name: group, fields: [{ name: field }, { name: "Other" }] }],
});
const viewOf = (customFilter: string): Promise<number> =>
  hub.post("/views", { name: "V", entityType: "Source", customFilter });
const warning = (answer: Awaited<ReturnType<TestHub["call"]>>) => answer.headers.get("x-headgate-warning");

test.each([
  ["a renamed field", formOf("First", "Main", "Load")],
  ["a renamed group", formOf("First", "General")],
  ["a renamed form", formOf("Second")],
])("are named in a warning after %s, and only those", async (_, changed) => {
  const form = await hub.post("/form", formOf("First"));
  const lost = await viewOf(`Name <> 'x' and 'first' . "Main".'Power' = '9'`);
  await viewOf('Name = \'"First"."Main"."Power"\'');
  const same = await hub.call("PUT", `/form/${form.id}`, { body: { displayOrder: 7 } });
  expect([same.status, warning(same)]).toEqual([200, null]);
  const answer = await hub.call("PUT", "/form", { body: { id: form.id, ...changed } });
  expect([answer.status, warning(answer)]).toEqual([200, `views that name what is gone: ${lost} (GET /views)`]);
  expect(await hub.call("GET", "/sources", { query: { ViewId: lost } })).toMatchObject({ status: 400 });
  for (const { id } of await hub.get("/form")) await hub.call("DELETE", `/form/${id}`);
  for (const { id } of await hub.get("/views")) await hub.call("DELETE", `/views/${id}`);
});

test("are named after a form was removed, and refused instead of finding nothing", async () => {
  const form = await hub.post("/form", formOf("Gone"));
  const lost = await viewOf(`"Gone"."Main"."Power" = '9'`);
  expect(await hub.get("/sources", { ViewId: lost })).toEqual([]);
  const answer = await hub.call("DELETE", `/form/${form.id}`);
  expect([answer.status, warning(answer)]).toEqual([204, `views that name what is gone: ${lost} (GET /views)`]);
  const words = `the view ${lost} names "Gone"."Main"."Power", which no form and no source of this account has`;
  const refused = await hub.call("GET", "/sources", { query: { ViewId: lost } });
  expect(refused).toMatchObject({ status: 400, body: { detail: expect.stringContaining(words) } });
});

test("that name values without a form find them", async () => {
  const free = await viewOf(`"Free"."Main"."Power" = '9'`);
  const { sourceId } = await createChain(hub, { source: { clientData: { Free: { Main: { Power: "9" } } } } });
  expect(await hub.get("/sources", { ViewId: free })).toMatchObject([{ id: sourceId }]);
});
