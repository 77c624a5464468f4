/** Fields of a body that its address would drop in silence (`docs/hub/interface.md`, *Errors*). */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createChain, GRANT, type TestHub } from "./fixture.ts";
import { startStrictHub } from "./strict-hub.ts";

let hub: TestHub;
let strict = "";
beforeAll(async () => {
  ({ hub, strict } = await startStrictHub());
});
afterAll(() => hub.close());

let made = 0;
async function person(fields: object = {}) {
  made += 1;
  const body = { username: `fixed-${made}`, password: "a-good-password", mustChangePassword: false, ...fields };
  return hub.post("/account/users", body);
}
const warningOf = ({ headers }: { headers: Headers }) => headers.get("x-headgate-warning");

describe("an id of the body", () => {
  test("that is not that of the address is refused, and nothing is changed", async () => {
    const one = await createChain(hub);
    const other = await createChain(hub);
    const { id: user } = await person();
    const [variable = 0] = one.variableIds;
    for (const [path, field, wrong] of [
      [`/sites/${one.siteId}`, "id", other.siteId],
      [`/sources/${one.sourceId}`, "Id", other.sourceId],
      [`/variables/${variable}`, "id", String(other.variableIds[0])],
      [`/sources/${one.sourceId}/variables/${variable}`, "sourceId", other.sourceId],
      [`/account/users/${user}`, "id", user + 1],
    ] as const)
      for (const method of ["PUT", "PATCH"]) {
        const before = path.includes("/variables/") ? `/variables/${variable}` : path;
        const stored = await hub.get(before);
        const body = { [field]: wrong, name: "Wrong", firstName: "Wrong" };
        const answer = await hub.call(method, path, { body });
        const name = field === "sourceId" ? field : "id";
        expect(answer, `${method} ${path}`).toMatchObject({ status: 400, body: { errors: [{ path: name }] } });
        expect(await hub.get(before)).toEqual(stored);
      }
    const body = [{ op: "replace", path: "/id", value: other.siteId }];
    expect(await hub.call("PATCH", `/sites/${one.siteId}`, { body })).toMatchObject({ status: 400 });
  });

  test("of a source that is not the one of the address makes no variable", async () => {
    const { sourceId } = await createChain(hub, { variables: [] });
    const other = await createChain(hub, { variables: [] });
    const path = `/variables/source/${sourceId}`;
    const body = { name: "V", variableTypeId: 0, unitId: 8, sourceId: other.sourceId };
    expect(await hub.call("POST", path, { body })).toMatchObject({
      status: 400,
      body: { errors: [{ path: "sourceId" }] },
    });
    expect(await hub.get("/variables", { sourceIds: [sourceId, other.sourceId] })).toEqual([]);
    await hub.post(path, { ...body, sourceId });
    expect(await hub.get("/variables", { sourceId })).toHaveLength(1);
  });

  test("passes where it is the same, null or 0, as libraries write one that was not set", async () => {
    const { siteId } = await createChain(hub);
    for (const id of [siteId, String(siteId), 0, null])
      expect(await hub.call("PUT", `/sites/${siteId}`, { body: { id, name: `S ${id}` } })).toMatchObject({
        status: 200,
        body: { id: siteId, name: `S ${id}` },
      });
  });
});

describe("the state of a user", () => {
  const path = (id: number) => `/account/users/${id}`;

  test("changes by PUT and PATCH as by deactivate and activate, also by number", async () => {
    const { id, username } = await person();
    const grant = { ...GRANT, scope: "datahub-api", username, password: "a-good-password" };
    expect(await hub.ok("PUT", path(id), { body: { State: "inactive" } })).toMatchObject({ state: "Inactive" });
    expect((await hub.form(grant)).status).toBe(401);
    expect(await hub.ok("PUT", path(id), { body: { state: "Active", lastName: "L" } })).toMatchObject({
      state: "Active",
    });
    expect((await hub.form(grant)).status).toBe(200);
    const body = [{ op: "replace", path: "/state", value: 2 }];
    expect(await hub.ok("PATCH", path(id), { body })).toMatchObject({ state: "Inactive" });
    expect(await hub.ok("PATCH", path(id), { body: { state: 0 } })).toMatchObject({ state: "Active" });
    const entries: { action: string }[] = await hub.get("/account/audit", { userId: id });
    const actions = entries.map(({ action }) => action).filter((action) => /activated/.test(action));
    expect(actions).toEqual(["user.activated", "user.deactivated", "user.activated", "user.deactivated"]);
  });

  test("keeps the rule of rank, and nothing else of the body is done", async () => {
    const [admin] = await hub.get("/user/users", { "BusinessKeys.Name": 1, "BusinessKeys.Values": ["admin"] });
    const body = { state: "Inactive", firstName: "Gone" };
    expect(await hub.call("PUT", path(admin.id), { body })).toMatchObject({ status: 403 });
    expect(await hub.get("/user", undefined, { as: "admin" })).toMatchObject({ state: "Active" });
  });

  test("is refused where it is the hub's own to say", async () => {
    const { id } = await person();
    for (const state of ["Invited", "Gone", 7]) {
      const answer = await hub.call("PUT", path(id), { body: { state, firstName: "Not" } });
      expect(answer, String(state)).toMatchObject({ status: 400, body: { detail: expect.stringContaining("state") } });
    }
    expect(await hub.get(path(id))).toMatchObject({ state: "Active", firstName: null });
    const invited = await person({ mustChangePassword: true });
    expect(await hub.call("PUT", path(invited.id), { body: { state: "Active" } })).toMatchObject({ status: 400 });
    const body = { username: "fixed-new", password: "a-good-password", state: "Inactive" };
    expect(await hub.call("POST", "/account/users", { body })).toMatchObject({ status: 400 });
    expect(await hub.get("/user/users", { "BusinessKeys.Name": 1, "BusinessKeys.Values": ["fixed-new"] })).toEqual([]);
  });
});

describe("a field that an address only shows", () => {
  const other = [{ id: 0, userId: 1, claimType: "floor", claimValue: "9" }];

  test("is named by a warning where its value is another one", async () => {
    const { id } = await person();
    await hub.ok("PUT", `/account/users/${id}/claims/floor`, { body: { claimValue: "4" } });
    const user = `/account/users/${id}`;
    const { sourceId } = await createChain(hub);
    const source = `/sources/${sourceId}`;
    for (const [method, path, body, field] of [
      ["PUT", user, { claims: other, firstName: "A" }, "claims"],
      ["PATCH", user, { secondFactor: true, firstName: "B" }, "secondFactor"],
      ["PATCH", user, [{ op: "add", path: "/claims", value: other }], "claims"],
      ["PUT", source, { state: "Disabled", name: "Kept" }, "state"],
      ["PATCH", source, [{ op: "replace", path: "/state", value: "Disabled" }], "state"],
    ] as const) {
      const answer = await hub.call(method, path, { body });
      expect(answer, path).toMatchObject({ status: 200 });
      expect(warningOf(answer), path).toContain(`only shows it: ${field}`);
      const refused = await hub.call(method, path, { body, authorization: strict });
      expect(refused, path).toMatchObject({ status: 400, body: { errors: [{ path: field }] } });
    }
    expect(await hub.get(user)).toMatchObject({ firstName: "B", claims: [{ claimValue: "4" }], secondFactor: false });
    expect(await hub.get(source)).toMatchObject({ state: "Enabled", name: "Kept" });
  });

  test("passes as it was read, also from a strict client", async () => {
    const { id } = await person();
    await hub.ok("PUT", `/account/users/${id}/claims/floor`, { body: { claimValue: "4" } });
    const { sourceId } = await createChain(hub);
    for (const path of [`/account/users/${id}`, `/sources/${sourceId}`]) {
      const answer = await hub.call("PUT", path, { body: await hub.get(path), authorization: strict });
      expect(answer, path).toMatchObject({ status: 200 });
      expect(warningOf(answer), path).toBeNull();
    }
  });

  test("counts for a new source and a new user, too", async () => {
    const { siteId } = await createChain(hub, { variables: [] });
    const source = { name: "New", siteId, state: "Disabled" };
    expect(warningOf(await hub.call("POST", "/sources", { body: source }))).toContain("state");
    const user = { username: "fixed-claims", password: "a-good-password", claims: other };
    expect(await hub.call("POST", "/account/users", { body: user, authorization: strict })).toMatchObject({
      status: 400,
    });
    expect(warningOf(await hub.call("POST", "/account/users", { body: user }))).toContain("claims");
  });
});
