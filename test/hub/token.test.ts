import { decodeJwt } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hashPassword } from "#core/sign-in/passwords.ts";
import { GRANT, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const MANAGER = { ...GRANT, username: "manager", password: "manager-password" };

async function asked(fields: Record<string, string>) {
  const response = await hub.form(fields);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

describe("the password grant", () => {
  test("answers with access_token and expires_in in seconds", async () => {
    const { status, body } = await asked({ ...MANAGER, scope: "datahub-api push-data" });
    expect(status).toBe(200);
    expect(body).toMatchObject({ expires_in: 3600, token_type: "Bearer", scope: "datahub-api push-data" });
    expect(decodeJwt(String(body["access_token"]))).toMatchObject({
      account: 1,
      scope: "datahub-api push-data",
    });
  });

  test("is also found under the realm's path", async () => {
    const response = await fetch(`${hub.url()}/realms/any/protocol/openid-connect/token`, {
      method: "POST",
      body: new URLSearchParams({ ...MANAGER, scope: "datahub-api" }),
    });
    expect(response.status).toBe(200);
  });

  test.each([
    ["a wrong client secret", { client_secret: "no" }, 401, "invalid_client"],
    ["an unknown client", { client_id: "nobody" }, 401, "invalid_client"],
    ["a wrong password", { password: "no" }, 401, "invalid_grant"],
    ["an unknown user", { username: "nobody" }, 401, "invalid_grant"],
    ["another grant type", { grant_type: "client_credentials" }, 400, "unsupported_grant_type"],
    ["an unknown scope", { scope: "everything" }, 400, "invalid_scope"],
    ["no scope", { scope: "" }, 400, "invalid_scope"],
    [
      "a scope that the client does not have",
      { client_id: "reader", client_secret: "reader-secret" },
      400,
      "invalid_scope",
    ],
    ["an account that does not exist", { account: "77" }, 400, "invalid_grant"],
    ["an account that is not a number", { account: "1 or 2" }, 400, "invalid_grant"],
    ["an account of others", { username: "pusher", password: "pusher-password", account: "2" }, 400, "invalid_grant"],
  ])("refuses %s", async (_, fields, status, error) => {
    const answer = await asked({ ...MANAGER, scope: "push-data", ...fields });
    expect(answer).toMatchObject({ status, body: { error, error_description: expect.any(String) } });
  });

  test("refuses a request that is no form, and one without its fields", async () => {
    const json = await fetch(`${hub.url()}/connect/token`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...MANAGER, scope: "push-data" }),
    });
    expect(json.status).toBe(400);
    expect(await asked({ grant_type: "password" })).toMatchObject({
      status: 400,
      body: { error: "invalid_request" },
    });
  });

  test("takes the account of `account`, or of the older acr_values, and then has it as the default", async () => {
    const accountOf = async (fields: Record<string, string>) => {
      const { body } = await asked({ ...MANAGER, scope: "datahub-api", ...fields });
      return decodeJwt(String(body["access_token"]))["account"];
    };
    expect(await accountOf({ account: "2" })).toBe(2);
    expect(await accountOf({})).toBe(2);
    expect(await accountOf({ acr_values: "accountId:1" })).toBe(1);
    expect(await accountOf({})).toBe(1);
  });
});

describe("scopes and rights", () => {
  const body = [{ variableId: 1, data: [] }];

  test("the base interface answers 401 to a token without datahub-api", async () => {
    const answer = await hub.call("GET", "/sites", { scope: "push-data" });
    expect(answer).toMatchObject({ status: 401, body: { code: "missing-scope" } });
    expect(answer.headers.get("www-authenticate")).toBe("Bearer");
  });

  test("the push interface answers 401 to a token without push-data", async () => {
    const answer = await hub.call("POST", "/push/api/data", { scope: "datahub-api", body });
    expect(answer).toMatchObject({ status: 401, body: { code: "missing-scope" } });
  });

  test("the push interface answers 403 to a user without the right of a data pusher", async () => {
    const answer = await hub.call("POST", "/push/api/data", { as: "plain", body });
    expect(answer).toMatchObject({ status: 403, body: { code: "missing-right" } });
  });

  test.each(["pusher", "manager", "admin"])("%s may push", async (as) => {
    expect(await hub.call("POST", "/push/api/data", { as, body })).toMatchObject({ status: 200 });
  });

  test("only managers add structure", async () => {
    const site = { name: "S", typeId: 1, timeZoneId: "UTC" };
    expect(await hub.call("POST", "/sites", { as: "pusher", body: site })).toMatchObject({ status: 403 });
  });

  test.each(["Bearer nonsense", "Bearer", "", "Basic xx"])(
    "`%s` does not authorize for the base interface",
    async (authorization) => {
      expect(await hub.call("GET", "/sites", { authorization })).toMatchObject({ status: 401 });
    },
  );

  test("an altered token is refused", async () => {
    const [head, payload, signature] = (await hub.token()).split(".");
    const forged = Buffer.from(JSON.stringify({ ...decodeJwt(`${head}.${payload}.${signature}`), account: 2 }));
    const authorization = `Bearer ${head}.${forged.toString("base64url")}.${signature}`;
    expect(await hub.call("GET", "/sites", { authorization })).toMatchObject({ status: 401 });
  });

  test("push takes Basic credentials of the user, and refuses wrong ones", async () => {
    const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;
    const right = { authorization: basic("pusher:pusher-password"), body };
    expect(await hub.call("POST", "/push/api/data", right)).toMatchObject({ status: 200 });
    const wrong = { authorization: basic("pusher:no"), body };
    expect(await hub.call("POST", "/push/api/data", wrong)).toMatchObject({ status: 401 });
  });

  test("an Api-Version that the hub does not support is refused rather than replaced", async () => {
    const asking = (version: string) => hub.call("GET", "/sites", { headers: { "api-version": version } });
    expect(await asking("1.7")).toMatchObject({ status: 200 });
    expect(await asking("9.0")).toMatchObject({ status: 400, body: { code: "unsupported-api-version" } });
  });
});

describe("the lifetime of tokens", () => {
  test("tokens survive a restart", async () => {
    const authorization = `Bearer ${await hub.token()}`;
    await hub.restart();
    expect(await hub.call("GET", "/sites", { authorization })).toMatchObject({ status: 200 });
  });

  test("tokens end with their lifetime", async () => {
    const short = await startTestHub({ tokenLifetime: "1s" });
    try {
      const authorization = `Bearer ${await short.token()}`;
      await expect
        .poll(async () => (await short.call("GET", "/sites", { authorization })).status, { timeout: 60_000 })
        .toBe(401);
    } finally {
      await short.close();
    }
  });

  test("passwords are stored as argon2id hashes only", async () => {
    const stored = await hub.stored();
    expect(stored).toContain("$argon2id$v=19$");
    expect(stored).not.toContain("manager-password");
    expect(stored).not.toContain("gateway-secret");
  });

  test("a hash costs 19 MiB and two passes unless a test asks for less", async () => {
    expect(await hashPassword("any")).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  });
});
