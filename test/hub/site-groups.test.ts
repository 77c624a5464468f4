import { afterAll, beforeAll, expect, test } from "vitest";
import { group } from "#wire/index.ts";
import { createChain, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
const SECOND = { as: "second", account: 2 };
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const site = async (more = {}) => (await createChain(hub, { variables: [], more })).siteId;

test("groups are created, listed, shown and removed, and their sites stay", async () => {
  const [one, other] = [await site(), await site()];
  const id = await hub.post("/groups", { Name: "Schools", SITEIDS: [other, one, one] });
  const made = { id, name: "Schools", siteIds: [one, other] };
  expect(group.parse(await hub.get(`/groups/${id}`))).toEqual(made);
  const second = await hub.post("/groups", { name: "Empty" });
  const listed = await hub.call("GET", "/groups", { query: { "Paging.ItemsPerPage": 1, IncludeItemsCount: true } });
  expect(listed.body).toEqual([made]);
  expect(listed.headers.get("x-total-count")).toBe("2");
  expect(await hub.get(`/groups/${second}`)).toMatchObject({ siteIds: [] });
  expect(await hub.call("DELETE", `/groups/${id}`)).toMatchObject({ status: 204 });
  expect(await hub.call("DELETE", `/groups/${id}`)).toMatchObject({ status: 404 });
  expect(await hub.get(`/sites/${one}`)).toMatchObject({ id: one });
});

test("sites are added, once, and taken out, also when they are removed", async () => {
  const [one, other, last] = [await site(), await site(), await site()];
  const id = await hub.post("/groups", { name: "G", siteIds: [one] });
  const whole = await hub.ok("POST", `/groups/${id}/sites`, { body: { siteIds: [last, one, other] } });
  expect(whole).toEqual({ id, name: "G", siteIds: [one, other, last] });
  expect(await hub.call("DELETE", `/groups/${id}/sites/${one}`)).toMatchObject({ status: 204 });
  expect(await hub.call("DELETE", `/groups/${id}/sites/${one}`)).toMatchObject({ status: 404 });
  await hub.ok("DELETE", `/sites/${other}`);
  expect(await hub.get(`/groups/${id}`)).toMatchObject({ siteIds: [last] });
});

test("sites and groups of other accounts do not exist, and then nothing is done", async () => {
  const [own, theirs] = [await site(), await site(SECOND)];
  const before = await hub.get("/groups");
  const body = { name: "G", siteIds: [own, theirs] };
  expect(await hub.call("POST", "/groups", { body })).toMatchObject({
    status: 400,
    body: { errors: [{ path: "siteIds", message: `no site ${theirs} in this account` }] },
  });
  expect(await hub.get("/groups")).toEqual(before);
  const id = await hub.post("/groups", { name: "G" });
  expect(await hub.call("POST", `/groups/${id}/sites`, { body })).toMatchObject({ status: 400 });
  expect(await hub.get(`/groups/${id}`)).toMatchObject({ siteIds: [] });
  const foreign = { ...SECOND, body: { siteIds: [theirs] } };
  expect(await hub.call("POST", `/groups/${id}/sites`, foreign)).toMatchObject({ status: 404 });
  expect(await hub.call("GET", "/storage", { ...SECOND, query: { GroupId: id } })).toMatchObject({
    status: 400,
    body: { errors: [{ path: "GroupId" }] },
  });
});

test.each([[{}], [{ name: "" }], [{ name: "G", siteIds: [1.5] }], [{ name: "G", siteIds: "1" }]])(
  "POST /groups %j is refused",
  async (body) => {
    expect(await hub.call("POST", "/groups", { body })).toMatchObject({ status: 400 });
  },
);
