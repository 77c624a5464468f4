import { afterAll, beforeAll, expect } from "vitest";
import { createChain, GRANT, startTestHub, type TestHub } from "../fixture.ts";
import { rule } from "./rule.ts";

let hub: TestHub;
let id = 0;
beforeAll(async () => {
  hub = await startTestHub({
    tokenThrottle: { failures: 50, tokensPerMinute: 30 },
    users: [
      { username: "manager", password: "manager-password", accounts: [1, 2], roles: ["Manager"] },
      { username: "second", password: "second-password", accounts: [2], roles: ["Manager"] },
      { username: "plain", password: "plain-password", accounts: [1], roles: ["User"] },
      { username: "standard", password: "standard-password", accounts: [1], roles: ["datapusher.standard"] },
      { username: "hasty", password: "hasty-password", accounts: [1] },
    ],
    accounts: [
      { id: 1, name: "First" },
      { id: 2, name: "Second" },
      { id: 3, name: "Third", limits: { requestsPerMinute: 1, pointsPerDay: 1 } },
    ],
  });
  const { variableIds } = await createChain(hub);
  [id = 0] = variableIds;
  await hub.push([{ variableId: id, data: [{ date: "2026-03-01T00:00:00Z", value: 1 }] }]);
});
afterAll(() => hub.close());

const FORM: Record<string, string> = {
  ...GRANT,
  username: "manager",
  password: "manager-password",
  scope: "datahub-api push-data",
};
async function asked(fields: Record<string, string>) {
  const response = await hub.form({ ...FORM, ...fields });
  return { status: response.status, body: (await response.json()) as Record<string, string> };
}
const without = async (field: string) => {
  const { [field]: _, ...rest } = FORM;
  const response = await hub.form(rest);
  await response.body?.cancel();
  return response.status;
};
const claims = (token: string | undefined) =>
  JSON.parse(Buffer.from(token?.split(".")[1] ?? "", "base64url").toString()) as Record<string, unknown>;
const push = (more: Parameters<TestHub["call"]>[2]) => hub.call("POST", "/push/api/data", { body: [], ...more });

rule("token.form", async () => {
  expect((await asked({})).status).toBe(200);
  const json = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(FORM),
  };
  expect((await fetch(`${hub.url()}/connect/token`, json)).status).toBe(400);
});
rule("token.grant", async () => {
  const other = await asked({ grant_type: "client_credentials" });
  expect(other).toMatchObject({ status: 400, body: { error: "unsupported_grant_type" } });
  expect(await without("grant_type")).toBe(400);
});
rule("token.client", async () => {
  expect(await without("client_id")).toBe(400);
  expect(await without("client_secret")).toBe(400);
});
rule("token.user", async () => {
  expect(await without("username")).toBe(400);
  expect(await without("password")).toBe(400);
});
rule("token.scope", async () => {
  expect(await without("scope")).toBe(400);
  expect((await asked({ scope: "push-data  datahub-api" })).body["scope"]).toBe("push-data datahub-api");
  expect(await asked({ scope: "push-data,datahub-api" })).toMatchObject({ body: { error: "invalid_scope" } });
});
rule("token.account", async () => {
  const { body } = await asked({ account: "2" });
  expect(claims(body["access_token"])).toMatchObject({ account: 2 });
  expect(await asked({ account: "3" })).toMatchObject({ status: 400 });
});
rule("token.default-account", async () => {
  for (const account of ["2", "1"]) {
    await asked({ account });
    expect(claims((await asked({})).body["access_token"])).toMatchObject({ account: Number(account) });
  }
});
rule("token.answer", async () => {
  const { body } = await asked({});
  expect(body).toMatchObject({ access_token: expect.any(String), expires_in: 3_600 });
});
rule("token.cache", async () => {
  const hasty = { username: "hasty", password: "hasty-password" };
  const { body } = await asked(hasty);
  const authorization = `Bearer ${body["access_token"]}`;
  for (let call = 0; call < 3; call += 1)
    expect(await hub.call("GET", "/sites", { authorization })).toMatchObject({ status: 200 });
  const statuses = [];
  for (let call = 0; call < 30; call += 1) statuses.push((await asked(hasty)).status);
  expect(statuses.at(-1)).toBe(429);
});
rule("scope.base", async () => {
  expect(await hub.call("GET", "/sites", { scope: "datahub-api" })).toMatchObject({ status: 200 });
});
rule("scope.push", async () => expect(await push({ scope: "push-data" })).toMatchObject({ status: 200 }));
rule("scope.others", async () => {
  const scope = "dashboards-api geozones-api odm-api";
  expect((await asked({ scope })).body["scope"]).toBe(scope);
  expect(await hub.call("GET", "/sites", { scope })).toMatchObject({ status: 401 });
});
rule("scope.base-only", async () => expect(await push({ scope: "datahub-api" })).toMatchObject({ status: 401 }));
rule("scope.both", async () => {
  const scope = "datahub-api push-data";
  expect(await hub.call("GET", "/sites", { scope })).toMatchObject({ status: 200 });
  expect(await push({ scope })).toMatchObject({ status: 200 });
});
rule("calls.bearer", async () => {
  for (const authorization of ["", "Bearer", "Bearer x.y.z", "Token abc"])
    expect(await hub.call("GET", "/sites", { authorization })).toMatchObject({ status: 401 });
});
const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;
rule("push.basic", async () => {
  expect(await push({ authorization: basic("standard:standard-password") })).toMatchObject({ status: 200 });
  expect(await push({ authorization: basic("standard:no") })).toMatchObject({ status: 401 });
  const base = await hub.call("GET", "/sites", { authorization: basic("standard:standard-password") });
  expect(base.status).toBe(401);
});
rule("rights.matching", async () => {
  const site = { name: "S", typeId: 1, timeZoneId: "UTC" };
  expect(await hub.call("POST", "/sites", { as: "plain", body: site })).toMatchObject({ status: 403 });
  expect(await hub.call("GET", "/sites", { as: "plain" })).toMatchObject({ status: 200 });
});
rule("rights.pusher", async () => {
  expect(await push({ as: "plain" })).toMatchObject({ status: 403 });
  expect(await push({ as: "standard" })).toMatchObject({ status: 200 });
});
const SECOND = { as: "second", account: 2 };
rule("account.walls", async () => {
  for (const path of ["/sites", "/sources", "/variables"]) expect(await hub.get(path, {}, SECOND)).toEqual([]);
  expect(await hub.call("GET", `/variables/${id}`, SECOND)).toMatchObject({ status: 404 });
});
rule("token.older", async () => {
  // The default of the user is the other account, which the older way must not fall back to.
  const older = await asked({ acr_values: "accountId:2" });
  await asked({ account: "2" });
  const oldest = await asked({ acr_values: "tenant:x accountId:1" });
  const newer = await asked({ account: "1" });
  expect(claims(older.body["access_token"])).toMatchObject({ account: 2 });
  for (const { body } of [newer, oldest]) {
    expect(claims(body["access_token"])).toMatchObject({ account: 1 });
    const authorization = `Bearer ${body["access_token"]}`;
    expect(await hub.call("GET", "/sites", { authorization })).toMatchObject({ status: 200 });
  }
});

rule("errors.400", async () => {
  const statuses = [];
  for (let call = 0; call < 3; call += 1)
    statuses.push((await hub.call("POST", "/sites", { body: { name: 5 } })).status);
  expect(statuses).toEqual([400, 400, 400]);
});
rule("errors.401-token", async () => {
  expect(await asked({ client_secret: "no" })).toMatchObject({
    status: 401,
    body: { error: "invalid_client" },
  });
  expect(await asked({ password: "no" })).toMatchObject({ status: 401, body: { error: "invalid_grant" } });
});
rule("errors.401-base", async () => {
  const answer = await hub.call("GET", "/data", { scope: "push-data" });
  expect(answer).toMatchObject({ status: 401, body: { code: "missing-scope" } });
});
rule("errors.401-push", async () => {
  expect(await push({ scope: "odm-api" })).toMatchObject({ status: 401, body: { code: "missing-scope" } });
});
rule("errors.403", async () => {
  expect(await push({ as: "plain" })).toMatchObject({ status: 403, body: { code: "missing-right" } });
});
rule("errors.other-4xx", async () => {
  for (let call = 0; call < 2; call += 1) {
    expect(await hub.call("GET", "/sources/999999")).toMatchObject({ status: 404 });
    expect(await hub.call("DELETE", "/variables/1")).toMatchObject({ status: 409 });
  }
});
rule("errors.401-expired", async () => {
  const short = await startTestHub({ tokenLifetime: "1s" });
  try {
    const authorization = `Bearer ${await short.token()}`;
    const status = async () => (await short.call("GET", "/sites", { authorization })).status;
    await expect.poll(status, { timeout: 60_000 }).toBe(401);
  } finally {
    await short.close();
  }
});
rule("silent.account", async () => {
  expect(await hub.get("/data", { VariableId: id }, SECOND)).toEqual([]);
  expect(await hub.get("/data", { VariableId: id })).toHaveLength(1);
});
rule("silent.version", async () => {
  const pinned = await hub.call("GET", "/sites", { headers: { "api-version": "1.7" } });
  expect((await hub.call("GET", "/sites")).body).toEqual(pinned.body);
});
rule("silent.conversion", async () => {
  const answer = await hub.call("GET", "/data", { query: { VariableId: id, TargetUnits: 19 } });
  expect(answer).toMatchObject({ status: 200, body: [{ rawValue: 1, unitId: 8 }] });
});
rule("api.version", async () => {
  const asking = (version: string) => hub.call("GET", "/sites", { headers: { "api-version": version } });
  expect(await asking("1.7")).toMatchObject({ status: 200 });
  expect(await asking("1.6")).toMatchObject({ status: 400 });
});
rule("api.newest", async () => {
  const list = (version?: string) =>
    hub.call("GET", "/variables", version === undefined ? {} : { headers: { "api-version": version } });
  const [newest, named] = [await list(), await list("1.7")];
  expect(newest).toMatchObject({ status: 200 });
  expect(newest.body).toEqual(named.body);
  // An older one is not answered as though it were the newest.
  expect(await list("1.6")).toMatchObject({ status: 400 });
});
rule("limits.customer", async () => {
  const limited = await startTestHub({
    accounts: [
      { id: 1, name: "First", limits: { requestsPerMinute: 1 } },
      { id: 2, name: "Second", limits: { pointsPerDay: 1 } },
    ],
  });
  try {
    expect(await limited.call("GET", "/sites")).toMatchObject({ status: 200 });
    const refused = await limited.call("GET", "/sites");
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await limited.call("GET", "/sites", SECOND)).toMatchObject({ status: 200 });
    const body = [{ variableId: 1, data: [{ date: "2026-03-01T00:00:00Z", value: 1 }] }];
    const pushed = () => limited.call("POST", "/push/api/data", { ...SECOND, body });
    expect(await pushed()).toMatchObject({ status: 200 });
    expect(await pushed()).toMatchObject({ status: 429, body: { code: "quota-exceeded" } });
  } finally {
    await limited.close();
  }
});
