/** Users of an account: who may change whom, what stays of it, and the audit trail. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { setProven } from "#hub/store/people/users.ts";
import type { HubStore } from "#hub/store/store.ts";
import { type CallOptions, GRANT, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
/** Of the users of the fixture: `manager` of both accounts, `second` of account 2, the others of account 1. */
const IDS: Record<string, number> = {};
beforeAll(async () => {
  hub = await startTestHub();
  const { people } = hub.inside().store as HubStore;
  for (const name of ["manager", "second", "pusher", "plain", "admin"])
    IDS[name] = (await people.userByName(name))?.id ?? 0;
});
afterAll(() => hub.close());

const OTHER: CallOptions = { as: "second", account: 2 };
let made = 0;

/** A user of account 1 with a password that does for the token interface. */
async function create(fields: object = {}, more: CallOptions = {}) {
  made += 1;
  const body = { username: `person-${made}`, password: "a-good-password", mustChangePassword: false, ...fields };
  return hub.post("/account/users", body, more);
}

async function signIn(username: string, password = "a-good-password", fields: Record<string, string> = {}) {
  const response = await hub.form({ ...GRANT, scope: "datahub-api push-data", username, password, ...fields });
  const body = (await response.json()) as { access_token?: string; error_description?: string };
  return { status: response.status, why: body.error_description, authorization: `Bearer ${body.access_token}` };
}

const status = async (method: string, path: string, more: CallOptions = {}) =>
  (await hub.call(method, path, more)).status;

describe("the walls", () => {
  test("a manager neither sees nor changes users of another account, and learns nothing of them", async () => {
    const { id, username } = await create({ email: "walled@example.org", businessId: "W-1" });
    await hub.ok("PUT", `/account/users/${id}/claims/floor`, { body: { claimValue: "4" } });
    const before = await hub.get(`/account/users/${id}`);
    const calls: readonly (readonly [string, string, unknown?])[] = [
      ["GET", ""],
      ["PUT", "", { firstName: "X" }],
      ["PATCH", "", [{ op: "replace", path: "/username", value: "x" }]],
      ["DELETE", ""],
      ["POST", "/deactivate"],
      ["POST", "/activate"],
      ["GET", "/roles"],
      ["PUT", "/roles", ["User"]],
      ["GET", "/claims"],
      ["GET", "/claims/floor"],
      ["PUT", "/claims/floor", { claimValue: "5" }],
      ["DELETE", "/claims/floor"],
    ];
    for (const [method, rest, body] of calls)
      for (const [who, nobody] of [[id, 987_654]]) {
        const answers = [who, nobody].map((one) =>
          hub.call(method, `/account/users/${one}${rest}`, { ...OTHER, ...(body === undefined ? {} : { body }) }),
        );
        const [theirs, nobodys] = await Promise.all(answers);
        expect(theirs?.status, `${method} ${rest}`).toBe(404);
        expect(JSON.stringify(theirs?.body).replaceAll(String(who), "#")).toBe(
          JSON.stringify(nobodys?.body).replaceAll(String(nobody), "#"),
        );
      }
    for (const [name, value] of [
      ["Id", id],
      ["Username", username],
      ["Email", "walled@example.org"],
      ["BusinessId", "W-1"],
    ])
      expect(await hub.get("/user/users", { "BusinessKeys.Name": name, "BusinessKeys.Values": value }, OTHER)).toEqual(
        [],
      );
    expect(JSON.stringify(await hub.get("/account/audit", undefined, OTHER))).not.toContain(username);
    expect(await hub.get(`/account/users/${id}`)).toEqual(before);
  });

  test("other users see themselves alone", async () => {
    const as = { as: "plain" };
    expect(await hub.get("/account/users", undefined, as)).toMatchObject([{ id: IDS["plain"], username: "plain" }]);
    const keys = { "BusinessKeys.Name": "Username", "BusinessKeys.Values": "manager" };
    expect(await hub.get("/user/users", keys, as)).toEqual([]);
    expect(await status("GET", `/account/users/${IDS["manager"]}`, as)).toBe(404);
    expect(await status("GET", `/account/users/${IDS["manager"]}/roles`, as)).toBe(404);
    expect(await hub.get(`/account/users/${IDS["plain"]}`, undefined, as)).toMatchObject({ username: "plain" });
  });

  test("what belongs to a person of two accounts is not changed by a manager of one", async () => {
    const { id, username } = await create();
    const { people } = hub.inside().store as HubStore;
    const { putMembership } = await import("#hub/store/people/users.ts");
    await people.change(() => putMembership(id, { accountId: 2, roles: ["User"], origin: "people" }));
    for (const body of [{ firstName: "X" }, { username: "other" }, { email: "x@example.org" }])
      expect(await hub.call("PUT", `/account/users/${id}`, { body })).toMatchObject({
        status: 403,
        body: { detail: expect.stringContaining("belongs to another account, too") },
      });
    expect(await status("POST", `/account/users/${id}/deactivate`)).toBe(403);
    const shown = await hub.ok("PUT", `/account/users/${id}`, { body: { businessId: "B-2", roles: ["Manager"] } });
    expect(shown).toMatchObject({ businessId: "B-2", memberships: [{ accountId: 1 }] });
    expect(await hub.get(`/account/users/${id}`, undefined, OTHER)).toMatchObject({
      businessId: null,
      roles: [{ id: "User", name: "User" }],
    });
    // A manager here is a plain user there.
    const there = await signIn(username, undefined, { account: "2" });
    expect(await status("POST", "/account/users", { ...there, body: {} })).toBe(403);
    expect(await status("DELETE", `/account/users/${id}`)).toBe(204);
    expect(await status("GET", "/sites", there)).toBe(200);
  });
});

describe("ranks", () => {
  test("nobody gives a role above the own one, nor changes a user of a higher rank", async () => {
    const { id } = await create();
    expect(await status("PUT", `/account/users/${id}/roles`, { body: ["Admin"] })).toBe(403);
    expect(await status("PATCH", `/account/users/${id}`, { body: { roles: ["Admin"] } })).toBe(403);
    expect(
      await status("POST", "/account/users", { body: { username: "x", password: "abcdefgh1", roles: ["Admin"] } }),
    ).toBe(403);
    expect(await status("PUT", `/account/users/${IDS["manager"]}/roles`, { body: ["Manager", "Admin"] })).toBe(403);
    for (const [method, rest, body] of [
      ["PUT", "", { firstName: "X" }],
      ["PUT", "/roles", ["User"]],
      ["PUT", "/claims/floor", { claimValue: "1" }],
      ["POST", "/deactivate", undefined],
      ["DELETE", "", undefined],
    ] as const)
      expect(await status(method, `/account/users/${IDS["admin"]}${rest}`, body === undefined ? {} : { body })).toBe(
        403,
      );
    expect(await hub.ok("PUT", `/account/users/${id}/roles`, { body: ["manager", { id: "Datapusher" }] })).toEqual([
      { id: "Datapusher", name: "Datapusher" },
      { id: "Manager", name: "Manager" },
    ]);
    // The manager knows its password.
    expect(await status("PUT", `/account/users/${id}/roles`, { as: "admin", body: ["Admin"] })).toBe(409);
    await (hub.inside().store as HubStore).people.change(() => setProven(id, 1));
    expect(await hub.ok("PUT", `/account/users/${id}/roles`, { as: "admin", body: ["Admin"] })).toHaveLength(1);
    expect(await status("DELETE", `/account/users/${id}`, { as: "admin" })).toBe(204);
  });

  test("the last active manager of an account keeps the role against the own hand", async () => {
    const lonely = await startTestHub({
      users: [{ username: "manager", password: "manager-password", accounts: [1], roles: ["Manager"] }],
    });
    try {
      const [{ id }] = await lonely.get("/account/users");
      for (const [method, rest, body] of [
        ["PUT", "/roles", ["User"]],
        ["PUT", "", { roles: [] }],
        ["POST", "/deactivate", undefined],
        ["DELETE", "", undefined],
      ] as const)
        expect(
          await lonely.call(method, `/account/users/${id}${rest}`, body === undefined ? {} : { body }),
        ).toMatchObject({ status: 409, body: { detail: expect.stringContaining("the last active Manager") } });
      const other = { username: "other", password: "a-good-password", mustChangePassword: false, roles: ["Manager"] };
      await lonely.post("/account/users", other);
      expect((await lonely.call("PUT", `/account/users/${id}/roles`, { body: ["User"] })).status).toBe(200);
      expect((await lonely.call("GET", "/account/audit")).status).toBe(403);
    } finally {
      await lonely.close();
    }
  });
});

test("managers who take each other's role at the same time leave one", async () => {
  const password = { password: "manager-password", accounts: [1], roles: ["Manager"] };
  const two = await startTestHub({ users: ["manager", "other"].map((username) => ({ username, ...password })) });
  try {
    const [one, other] = await two.get("/account/users");
    const token = await two.form({ ...GRANT, scope: "datahub-api", username: "other", password: "manager-password" });
    const { access_token: value } = (await token.json()) as { access_token: string };
    const answers = await Promise.all([
      two.call("PUT", `/account/users/${other.id}/roles`, { body: ["User"] }),
      two.call("PUT", `/account/users/${one.id}/roles`, { authorization: `Bearer ${value}`, body: ["User"] }),
    ]);
    expect(answers.map((answer) => answer.status).sort()).toEqual([200, 403]);
  } finally {
    await two.close();
  }
});

test("of requests that take the same name at the same time, one has it", async () => {
  const body = { username: "contested", password: "a-good-password" };
  const answers = await Promise.all(
    ["contested", "Contested", "CONTESTED"].map((username) =>
      hub.call("POST", "/account/users", { body: { ...body, username } }),
    ),
  );
  expect(answers.map((answer) => answer.status).sort()).toEqual([200, 409, 409]);
});

describe("changes", () => {
  test("by PUT, merge patch and JSON Patch; names are unique in the hub in any case", async () => {
    const { id } = await create({ username: "Édith", email: "edith@example.org", businessId: "E-1" });
    expect(await hub.ok("PUT", `/account/users/${id}`, { body: { LASTNAME: "Piaf" } })).toMatchObject({
      username: "Édith",
      lastName: "Piaf",
      email: "edith@example.org",
    });
    expect(await hub.ok("PATCH", `/account/users/${id}`, { body: { email: null, businessId: null } })).toMatchObject({
      email: null,
      businessId: null,
      lastName: "Piaf",
    });
    const patch = [{ op: "replace", path: "/FirstName", value: "Édith" }];
    expect(await hub.ok("PATCH", `/account/users/${id}`, { body: patch })).toMatchObject({ firstName: "Édith" });
    const again = await hub.call("POST", "/account/users", { body: { username: "ÉDITH", password: "abcdefgh1" } });
    expect(again).toMatchObject({ status: 409, body: { errors: [{ path: "username" }] } });
    expect(await status("PUT", `/account/users/${id}`, { body: { username: "Manager" } })).toBe(409);
    const { id: other } = await create({ email: "other@example.org", businessId: "E-2" });
    expect(await status("PUT", `/account/users/${id}`, { body: { email: "OTHER@example.org" } })).toBe(409);
    expect(await status("PUT", `/account/users/${id}`, { body: { businessId: "E-2" } })).toBe(409);
    expect(await status("PUT", `/account/users/${other}`, { body: { businessId: "E-3" } })).toBe(200);
    const warned = await hub.call("POST", "/account/users", {
      body: { username: "warned", password: "abcdefgh1", colour: "blue" },
    });
    expect(warned.headers.get("x-headgate-warning")).toContain("colour");
  });

  test("a deactivated user loses tokens at once, and gets them again once active", async () => {
    const { id, username } = await create();
    const token = await signIn(username);
    expect(await status("GET", "/sites", token)).toBe(200);
    await hub.ok("POST", `/account/users/${id}/deactivate`);
    expect(await status("GET", "/sites", token)).toBe(401);
    expect((await signIn(username)).status).toBe(401);
    expect(await hub.ok("POST", `/account/users/${id}/activate`)).toMatchObject({ state: "Active" });
    expect(await status("GET", "/sites", token)).toBe(401);
    expect((await signIn(username)).status).toBe(200);
    expect(await status("DELETE", `/account/users/${id}`)).toBe(204);
    expect(await status("GET", `/account/users/${id}`)).toBe(404);
    expect((await signIn(username)).status).toBe(401);
  });

  test("a temporary password gives no token, and the answer says where to change it", async () => {
    const { username, state, mustChangePassword } = await create({ mustChangePassword: true });
    expect({ state, mustChangePassword }).toEqual({ state: "Invited", mustChangePassword: true });
    const refused = await signIn(username);
    expect(refused).toMatchObject({ status: 400, why: expect.stringContaining("/sign-in") });
    expect(await hub.call("POST", "/account/users", { body: { username: "weak", password: "weak" } })).toMatchObject({
      status: 400,
      body: { errors: [{ path: "password" }] },
    });
  });

  test("are in the audit trail with who did them, and without a secret", async () => {
    const { id, username } = await create({ roles: ["User"] });
    await hub.ok("PUT", `/account/users/${id}/roles`, { body: ["Datapusher"] });
    await hub.ok("PUT", `/account/users/${id}/claims/floor`, { body: { claimValue: "4" } });
    await hub.call("DELETE", `/account/users/${id}/claims/floor`);
    await hub.ok("PUT", `/account/users/${id}`, { body: { firstName: "A" } });
    await hub.ok("PUT", `/account/users/${id}`, { body: { firstName: "A" } });
    await hub.call("DELETE", `/account/users/${id}`);
    const trail = await hub.get("/account/audit", { UserId: id });
    expect(trail.map((one: { action: string }) => one.action)).toEqual([
      "membership.removed",
      "user.changed",
      "claim.removed",
      "claim.set",
      "roles.changed",
      "user.created",
    ]);
    expect(trail[4]).toMatchObject({
      actor: { id: IDS["manager"], name: "manager" },
      impersonator: null,
      subject: { kind: "user", id: String(id), name: username },
      facts: { from: ["User"], to: ["Datapusher"] },
      address: expect.any(String),
    });
    expect(JSON.stringify(await hub.get("/account/audit"))).not.toMatch(/argon2|a-good-password/);
    const page = await hub.call("GET", "/account/audit", {
      query: { UserId: id, "Paging.ItemsPerPage": 2, "Paging.PageNumber": 1, IncludeItemsCount: true },
    });
    expect(page.body.map((one: { action: string }) => one.action)).toEqual(["claim.removed", "claim.set"]);
    expect(page.headers.get("x-total-count")).toBe("6");
    expect(await hub.get("/account/audit", { UserId: id, To: "2020-01-01T00:00:00Z" })).toEqual([]);
    expect(await status("GET", "/account/audit", { as: "plain" })).toBe(403);
  });
});

describe("personal tokens", () => {
  test("work within their scopes and the rights of the user, and are shown once", async () => {
    const { id, username } = await create({ roles: ["Datapusher"] });
    const own = await signIn(username);
    const token = await hub.ok("POST", "/user/tokens", { ...own, body: { name: "report", days: 30 } });
    expect(token).toMatchObject({ name: "report", scopes: ["datahub-api"], lastUsed: null });
    expect(token.token).toMatch(/^hgp_[\w-]{43}$/);
    const personal = { authorization: `Bearer ${token.token}` };
    expect(await hub.get("/user", undefined, personal)).toMatchObject({ username });
    expect(await status("POST", "/push/api/data", { ...personal, body: [] })).toBe(401);
    expect(await status("POST", "/sites", { ...personal, body: {} })).toBe(403);
    expect(await status("POST", "/user/tokens", { ...personal, body: { name: "x", days: 1 } })).toBe(403);
    const pushing = { name: "push", days: 1, scopes: ["push-data"] };
    const pusher = await hub.ok("POST", "/user/tokens", { ...own, body: pushing });
    const push = { authorization: `Bearer ${pusher.token}` };
    expect(await status("POST", "/push/api/data", { ...push, body: [] })).toBe(200);
    const listed = await hub.get("/user/tokens", undefined, own);
    expect(listed).toMatchObject([{ name: "push" }, { name: "report", lastUsed: expect.any(String) }]);
    expect(JSON.stringify(listed)).not.toContain("hgp_");
    expect(await hub.stored()).not.toContain(token.token);
    // Of another user, in another account: none.
    expect(await status("DELETE", `/user/tokens/${pusher.id}`)).toBe(404);
    expect(await status("DELETE", `/user/tokens/${pusher.id}`, own)).toBe(204);
    expect(await status("POST", "/push/api/data", { ...push, body: [] })).toBe(401);
    await hub.ok("PUT", `/account/users/${id}/roles`, { body: ["User"] });
    expect(await status("GET", "/sites", personal)).toBe(200);
    await hub.call("DELETE", `/account/users/${id}`);
    expect(await status("GET", "/sites", personal)).toBe(401);
  });

  test("have no scope beyond the token that makes them, and end with their time", async () => {
    const reader = await signIn("plain", "plain-password", { scope: "datahub-api" });
    const body = { name: "x", days: 1, scopes: ["push-data"] };
    expect(await status("POST", "/user/tokens", { ...reader, body })).toBe(403);
    expect(await status("POST", "/user/tokens", { ...reader, body: { name: "x" } })).toBe(400);
    expect(await status("POST", "/user/tokens", { ...reader, body: { name: "x", days: 367 } })).toBe(400);
    const { people } = hub.inside().store as HubStore;
    const { addApiToken } = await import("#hub/store/people/api-tokens.ts");
    const { hashOfPersonalToken } = await import("#hub/token/personal-token.ts");
    const times = { createdMs: 0, expiresMs: Date.now() - 1 };
    const token = { userId: IDS["plain"] ?? 0, accountId: 1, name: "old", scopes: ["datahub-api"], ...times };
    await people.change(() => addApiToken({ ...token, hash: hashOfPersonalToken("hgp_old") }));
    expect(await status("GET", "/sites", { authorization: "Bearer hgp_old" })).toBe(401);
  });
});
