import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from "jose";
import { afterEach, describe, expect, test } from "vitest";
import type { Clock } from "#core/clock.ts";
import { openSqliteStore } from "#hub/store/sqlite/index.ts";
import { createKeyRing } from "#hub/token/keys.ts";
import { createTokens } from "#hub/token/tokens.ts";
import { GRANT, startTestHub, type TestHub, temporaryDirectory } from "./fixture.ts";

let hub: TestHub | null = null;
const start = async (more: object = {}) => {
  hub = await startTestHub(more);
  return hub;
};
afterEach(async () => {
  await hub?.close();
  hub = null;
});

const json = async (url: string) => (await (await fetch(url)).json()) as Record<string, string>;
const FORM = { ...GRANT, username: "manager", password: "manager-password", scope: "datahub-api" };

describe("discovery", () => {
  test.each(["", "/realms/any"])("below %j leads to a token whose signature its keys verify", async (realm) => {
    const running = await start();
    const issuer = `${running.url()}${realm}`;
    const found = await json(`${issuer}/.well-known/openid-configuration`);
    expect(found).toMatchObject({ issuer, grant_types_supported: ["password", "refresh_token"] });
    const answer = await fetch(String(found["token_endpoint"]), {
      method: "POST",
      body: new URLSearchParams(FORM),
    });
    const { access_token } = (await answer.json()) as { access_token: string };
    const keys = createRemoteJWKSet(new URL(String(found["jwks_uri"])));
    const { payload } = await jwtVerify(access_token, keys, { issuer, algorithms: ["ES256"] });
    expect(payload).toMatchObject({ account: 1, scope: "datahub-api" });
  });

  test("shows no private part of a key", async () => {
    const running = await start();
    await running.token();
    const text = await (await fetch(`${running.url()}/.well-known/jwks.json`)).text();
    expect(JSON.parse(text).keys).toHaveLength(1);
    expect(JSON.parse(text).keys[0]).not.toHaveProperty("d");
  });

  test("client credentials may be in a Basic header", async () => {
    const running = await start();
    const { client_id, client_secret, ...form } = FORM;
    const asked = (secret: string) =>
      fetch(`${running.url()}/connect/token`, {
        method: "POST",
        headers: { authorization: `Basic ${Buffer.from(`${client_id}:${secret}`).toString("base64")}` },
        body: new URLSearchParams(form),
      });
    expect((await asked(client_secret)).status).toBe(200);
    expect((await asked("no")).status).toBe(401);
  });
});

test("renewedSince creates a new key at the start; tokens of the old one stay valid", async () => {
  const running = await start();
  const old = await running.token();
  const renewed = await startTestHubAgain(running, { renewedSince: new Date().toISOString() });
  const young = await newToken(renewed.url());
  expect(decodeProtectedHeader(young).kid).not.toBe(decodeProtectedHeader(old).kid);
  for (const token of [old, young]) expect(await renewed.status(token)).toBe(200);
  await renewed.close();
  const revoked = await startTestHubAgain(running, { revokedBefore: new Date().toISOString() });
  expect(await revoked.status(old)).toBe(401);
  expect(await revoked.status(young)).toBe(401);
  expect(await revoked.status(await newToken(revoked.url()))).toBe(200);
  await revoked.close();
});

async function newToken(url: string): Promise<string> {
  const response = await fetch(`${url}/connect/token`, { method: "POST", body: new URLSearchParams(FORM) });
  return ((await response.json()) as { access_token: string }).access_token;
}

/** Another hub over the store of one that is closed for the while. */
async function startTestHubAgain({ options, stop }: TestHub, signingKeys: object) {
  const { startHub } = await import("#hub/hub.ts");
  const { hubOptions } = await import("#hub/options.ts");
  const { createLog } = await import("#core/log.ts");
  await stop();
  const parsed = hubOptions.shape.signingKeys.parse(signingKeys);
  const again = await startHub({ ...options, signingKeys: parsed }, { log: createLog("silent") });
  return {
    url: () => again.url,
    close: () => again.close(),
    async status(token: string) {
      const answer = await fetch(`${again.url}/sites`, { headers: { authorization: `Bearer ${token}` } });
      await answer.body?.cancel();
      return answer.status;
    },
  };
}

test("keys are renewed by age, verify until their tokens have lapsed, and are then removed", async () => {
  const { path, remove } = await temporaryDirectory();
  const store = await openSqliteStore(`${path}/hub.sqlite`);
  try {
    let nowMs = Date.UTC(2026, 2, 1);
    const clock: Clock = {
      now: () => Temporal.Instant.fromEpochMilliseconds(nowMs),
      monotonicMs: () => nowMs,
      sleep: async () => true,
    };
    const HOUR = 3_600_000;
    const signingKeys = { renewAfter: 24 * HOUR, renewedSince: undefined, revokedBefore: undefined };
    const nodes = [1, 2].map(() => {
      const keys = createKeyRing(store.identity, { signingKeys, tokenLifetime: HOUR }, clock);
      return { keys, tokens: createTokens(keys, { lifetimeMs: HOUR, clock }) };
    });
    const [one, two] = nodes;
    if (one === undefined || two === undefined) throw new Error("two nodes");
    const claims = { userId: 1, accountId: 1, scopes: ["datahub-api"], clientId: "gateway" };
    const issue = () => one.tokens.issue(claims, { username: "manager", issuer: "http://hub" });
    const kid = (token: string) => decodeProtectedHeader(token).kid;
    const first = await issue();
    nowMs += 24 * HOUR - 1_000;
    const last = await issue();
    expect(kid(last)).toBe(kid(first));
    nowMs += 1_000;
    const next = await issue();
    expect(kid(next)).not.toBe(kid(last));
    // The other node never signed: it learns of the new key when a token names it.
    expect(await two.tokens.verify(next)).toEqual(claims);
    expect(await two.tokens.verify(last)).toEqual(claims);
    expect(await one.keys.published()).toHaveLength(2);
    nowMs += HOUR + 120_000;
    expect(decodeJwt(last).exp).toBeLessThan(nowMs / 1_000);
    expect((await one.keys.published()).map((key) => key.kid)).toEqual([kid(next)]);
    expect(await store.identity.signingKeys()).toHaveLength(1);
  } finally {
    await store.close();
    await remove();
  }
});
