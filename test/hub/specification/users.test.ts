/** Users, roles and claims, as the specification has them. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect } from "vitest";
import { claim, role, user } from "#wire/index.ts";
import { GRANT, startTestHub, type TestHub } from "../fixture.ts";
import { rule } from "./rule.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const create = (fields: object) =>
  hub.post("/account/users", { password: "a-good-password", mustChangePassword: false, ...fields });

let runs = 0;

/** Applies a file of master data that `sender` stored; returns why it is refused, or null. */
async function applied(content: string, sender = "manager"): Promise<string | null> {
  runs += 1;
  const fileName = `users-${runs}.csv`;
  const { body: fileId } = await hub.upload(content, fileName, { as: sender });
  const path = join(hub.directory, fileName);
  await writeFile(path, content);
  const facts = { accountId: 1, fileId, fileName, path, run: `run ${runs}`, settings: {} };
  const outcome = await hub.inside().masterData.apply(facts, AbortSignal.timeout(60_000));
  return outcome.kind === "applied" ? null : outcome.words;
}

rule("user.role", async () => {
  const roles = await hub.get("/user/roles");
  expect(roles).toEqual(["User", "Datapusher", "Manager", "Admin"].map((name) => role.parse({ id: name, name })));
  const { id } = await create({ username: "roles", roles: ["Datapusher"] });
  expect(await hub.get(`/account/users/${id}/roles`)).toEqual([{ id: "Datapusher", name: "Datapusher" }]);
});

rule("user.claim", async () => {
  const { id } = await create({ username: "claims" });
  const path = `/account/users/${id}/claims`;
  const made = await hub.ok("PUT", `${path}/Cost centre`, { body: { claimValue: "4711" } });
  expect(claim.parse(made)).toEqual({ id: 0, userId: id, claimType: "Cost centre", claimValue: "4711" });
  await hub.ok("PUT", `${path}/Cost centre`, { body: { claimValue: "4712" } });
  await hub.ok("PUT", `${path}/floor`, { body: { claimValue: "2" } });
  expect(await hub.get(`${path}/Cost%20centre`)).toMatchObject({ id: 0, claimValue: "4712" });
  expect((await hub.call("DELETE", `${path}/floor`)).status).toBe(204);
  expect((await hub.call("GET", `${path}/floor`)).status).toBe(404);
  expect(await hub.get(path)).toHaveLength(1);
});

rule("users.list", async () => {
  const one = await create({ username: "Lookup-1", email: "one@example.org", businessId: "L-1" });
  const two = await create({ username: "lookup-2", email: "two@example.org", businessId: "L-2" });
  const found = async (path: string, name: string, values: readonly (string | number)[], more: object = {}) => {
    const users = await hub.get(path, { "BusinessKeys.Name": name, "BusinessKeys.Values": values, ...more });
    return users.map((each: unknown) => user.parse(each).id);
  };
  for (const path of ["/user/users", "/account/users"]) {
    expect(await found(path, "Id", [one.id, two.id])).toEqual([one.id, two.id]);
    expect(await found(path, "username", ["LOOKUP-1", "nobody"])).toEqual([one.id]);
    expect(await found(path, "EMAIL", ["Two@example.org"])).toEqual([two.id]);
    expect(
      await found(path, "BusinessId", ["L-1", "L-2"], { "Paging.ItemsPerPage": 1, "Paging.PageNumber": 1 }),
    ).toEqual([two.id]);
  }
  const query = { "filter.businessKeys.name": "BusinessId", "filter.businessKeys.values": "L-1" };
  const level = async (DisplayLevel: string) =>
    Object.keys((await hub.get("/user/users", { ...query, DisplayLevel }))[0]);
  expect(await level("UserLight")).toEqual(["id", "username"]);
  expect(await level("user")).not.toContain("claims");
  expect(await level("VerboseUser")).toEqual(expect.arrayContaining(["claims", "memberships", "roles"]));
  const counted = await hub.call("GET", "/user/users", { query: { ...query, IncludeItemsCount: true } });
  expect(counted.headers.get("x-total-count")).toBe("1");
  for (const wrong of [
    { "BusinessKeys.Name": "Id" },
    { "BusinessKeys.Values": "1" },
    { "BusinessKeys.Name": "Id", "BusinessKeys.Values": "x" },
    { "BusinessKeys.Name": "Colour", "BusinessKeys.Values": "x" },
    { DisplayLevel: "All" },
  ] as const)
    expect((await hub.call("GET", "/user/users", { query: wrong })).status, JSON.stringify(wrong)).toBe(400);
});

rule("users.created", async () => {
  const body = { username: "created", password: "a-good-password", mustChangePassword: false, roles: ["Datapusher"] };
  expect((await hub.call("POST", "/account/users", { as: "pusher", body })).status).toBe(403);
  const made = user.parse(await hub.post("/account/users", body));
  expect(made).toMatchObject({ username: "created", state: "Active", memberships: [{ accountId: 1 }] });
  const fields = { ...GRANT, scope: "push-data", username: "created", password: "a-good-password" };
  expect((await hub.form(fields)).status).toBe(200);
  expect(await hub.get("/user/users", undefined, { as: "second", account: 2 })).toMatchObject([
    { username: "manager" },
    { username: "second" },
  ]);
});

rule("users.business-id", async () => {
  const columns = "user_name;user_id;user_email;user_roles";
  expect(await applied(`${columns}\nmaster;900;master@example.org;Datapusher\n`)).toBe(null);
  const keys = { "BusinessKeys.Name": "BusinessId", "BusinessKeys.Values": "900" };
  const [made] = await hub.get("/user/users", keys);
  expect(made).toMatchObject({ username: "master", businessId: "900", state: "Invited", email: "master@example.org" });
  expect(made.id).not.toBe(900);
  // Only what differs is changed.
  expect(await applied(`${columns}\nMASTER;900;;Datapusher\n`)).toBe(null);
  expect(await applied(`${columns}\nmaster;900;other@example.org;Datapusher|User\n`)).toBe(null);
  expect(await hub.get("/user/users", keys)).toMatchObject([{ id: made.id, email: "other@example.org" }]);
  const trail = await hub.get("/account/audit", { UserId: made.id });
  expect(trail.map((one: { action: string }) => one.action)).toEqual(["roles.changed", "user.changed", "user.created"]);
  // The sender's rights count, and names are unique in the hub.
  expect(await applied(`${columns}\nabove;901;;Admin\n`)).toContain("cannot give the roles Admin");
  expect(await applied(`${columns}\nadmin;902;;\n`)).toContain("has a higher role");
  expect(await applied(`${columns}\nsecond;903;;User\n`)).toContain("a user of this hub has this name");
  expect(await applied(`${columns}\nsec\u200bond;907;;User\n`)).toContain("U+200B");
  expect(await applied(`${columns}\nother@example.org;905;;User\n`)).toContain("a user of this hub has this name");
  expect(await applied(`${columns}\nmanager;;eve@example.org;\n`)).toContain("cannot change the own name or email");
  expect(await applied(`${columns}\nother;900;;User\n`)).toBe(null);
  expect(await hub.get("/user/users", keys)).toMatchObject([{ id: made.id, username: "other" }]);
  expect(await hub.get("/user/users", undefined, { as: "second", account: 2 })).toHaveLength(2);
});
