import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createChain, GRANT, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub({
    accounts: [
      { id: 1, name: "First", limits: { requestsPerMinute: 10_000, pointsPerDay: 10, bytesPerDay: "4KB" } },
      { id: 2, name: "Second", limits: { requestsPerMinute: 3 } },
    ],
    clients: [
      { id: "gateway", secret: "gateway-secret" },
      { id: "reader", secret: "reader-secret", scopes: ["datahub-api"], requestsPerMinute: 2 },
    ],
    tokenThrottle: { failures: 3, tokensPerMinute: 8 },
  });
});
afterAll(() => hub.close());

const seconds = (answer: { readonly headers: Headers }) => Number(answer.headers.get("retry-after"));
const points = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ date: new Date(index * 60_000).toISOString(), value: 1 }));

describe("rates of requests", () => {
  test("end an account's minute by 429 with Retry-After, and no other account's", async () => {
    const second = { as: "second", account: 2 };
    for (let left = 2; left >= 0; left -= 1) {
      const answer = await hub.call("GET", "/sites", second);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("x-ratelimit-remaining")).toBe(String(left));
    }
    const refused = await hub.call("GET", "/sources", second);
    expect(refused).toMatchObject({ status: 429, body: { code: "too-many-requests" } });
    expect(seconds(refused)).toBeGreaterThan(0);
    expect(seconds(refused)).toBeLessThanOrEqual(60);
    expect(await hub.call("GET", "/sites")).toMatchObject({ status: 200 });
  });

  test("count for a client by itself", async () => {
    const response = await hub.form({
      ...GRANT,
      client_id: "reader",
      client_secret: "reader-secret",
      username: "plain",
      password: "plain-password",
      scope: "datahub-api",
    });
    const { access_token } = (await response.json()) as { access_token: string };
    const authorization = `Bearer ${access_token}`;
    const statuses = [];
    for (let call = 0; call < 3; call += 1) statuses.push((await hub.call("GET", "/sites", { authorization })).status);
    expect(statuses).toEqual([200, 200, 429]);
    expect(await hub.call("GET", "/sites", { as: "plain" })).toMatchObject({ status: 200 });
  });
});

describe("quotas of a day", () => {
  test(
    "accept pushes that fit, then respond 429 until midnight; a repeat of an accepted push costs " + "nothing",
    async () => {
      const { variableIds } = await createChain(hub);
      const push = (count: number, key: string) =>
        hub.call("POST", "/push/api/data", {
          body: [{ variableId: variableIds[0], data: points(count) }],
          headers: { "idempotency-key": key },
        });
      expect(await push(6, "a")).toMatchObject({ status: 200 });
      const second = await push(4, "b");
      expect(second).toMatchObject({ status: 200 });
      expect(await push(1, "c")).toMatchObject({ status: 429, body: { code: "quota-exceeded" } });
      await hub.settled(second.body.operationId);
      for (const _repeat of [1, 2]) expect(await push(4, "b")).toMatchObject({ status: 200, body: second.body });
      expect(await push(3, "b")).toMatchObject({ status: 422, body: { code: "idempotency-conflict" } });
      await hub.restart();
      const refused = await push(1, "c");
      expect(refused.status).toBe(429);
      expect(seconds(refused)).toBeGreaterThan(0);
      expect(seconds(refused)).toBeLessThanOrEqual(86_400);
    },
  );

  test("answer 413 to a push that exceeds a whole day's quota, so that senders split it", async () => {
    const many = await hub.call("POST", "/push/api/data", { body: [{ variableId: 1, data: points(11) }] });
    expect(many).toMatchObject({ status: 413, body: { code: "too-large" } });
    const long = await hub.call("POST", "/push/api/data", { raw: `[${" ".repeat(5_000)}]` });
    expect(long).toMatchObject({ status: 413 });
  });
});

describe("the token interface", () => {
  const wrong = (fields: Record<string, string>) =>
    hub.form({ ...GRANT, username: "admin", password: "no", scope: "datahub-api", ...fields });

  test("stops checking credentials after repeated failures, also right ones, and reports for how long", async () => {
    const statuses = [];
    for (let call = 0; call < 4; call += 1) statuses.push((await wrong({})).status);
    expect(statuses).toEqual([401, 401, 401, 429]);
    const right = await wrong({ password: "admin-password" });
    expect(right.status).toBe(429);
    expect(await right.json()).toMatchObject({ error: "slow_down" });
    expect(Number(right.headers.get("retry-after"))).toBeGreaterThan(0);
    const other = await wrong({ username: "manager", password: "manager-password" });
    expect(other.status).toBe(200);
  });

  test("does so for secrets of clients, and for Basic on push", async () => {
    for (let call = 0; call < 3; call += 1) await wrong({ client_id: "nobody" });
    expect((await wrong({ client_id: "nobody" })).status).toBe(429);
    const authorization = `Basic ${Buffer.from("pusher:no").toString("base64")}`;
    const statuses = [];
    for (let call = 0; call < 4; call += 1)
      statuses.push((await hub.call("POST", "/push/api/data", { authorization, body: [] })).status);
    expect(statuses).toEqual([401, 401, 401, 429]);
  });

  test("a success resets the failures before it", async () => {
    const statuses = [];
    for (const password of ["no", "no", "plain-password", "no", "no", "plain-password"])
      statuses.push((await wrong({ username: "plain", password })).status);
    expect(statuses).toEqual([401, 401, 200, 401, 401, 200]);
  });

  test("answers 429 to a client that requests a token at every call", async () => {
    const statuses = [];
    for (let call = 0; call < 9; call += 1)
      statuses.push((await wrong({ username: "second", password: "second-password" })).status);
    expect(statuses.slice(-1)).toEqual([429]);
    expect(statuses.slice(0, 7)).toEqual(Array(7).fill(200));
  });
});
