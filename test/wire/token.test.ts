import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ConfigError, TransientError } from "#core/errors.ts";
import { HttpClient } from "#wire/client/http.ts";
import { TokenSource } from "#wire/client/token.ts";
import { json, ScriptedService } from "../delivery/scripted-service.ts";
import { ManualClock } from "./manual-clock.ts";

const signal = new AbortController().signal;
const timeouts = { connect: 2_000, headers: 5_000, body: 5_000, total: 5_000 };
let service: ScriptedService;
let http: HttpClient;
let clock: ManualClock;
let tokens: TokenSource;

beforeEach(async () => {
  service = await new ScriptedService().start();
  http = new HttpClient({ connections: 4, timeouts });
  clock = new ManualClock();
  tokens = new TokenSource(service.options, http, clock);
});
afterEach(async () => {
  tokens.close();
  await http.close();
  await service.stop();
});

const requests = () => service.callsTo("/token");

describe("a token", () => {
  it("is requested by a form with the password grant, scopes and account", async () => {
    await tokens.get(signal);
    expect(requests()[0]?.headers["content-type"]).toBe("application/x-www-form-urlencoded");
    expect(Object.fromEntries(new URLSearchParams(requests()[0]?.body.toString()))).toEqual({
      grant_type: "password",
      client_id: "c",
      client_secret: "cs",
      username: "u",
      password: "p",
      scope: "datahub-api push-data",
      account: "7",
    });
  });

  it("is requested once, however many callers wait", async () => {
    const got = await Promise.all(Array.from({ length: 50 }, () => tokens.get(signal)));
    expect(new Set(got.map(({ value }) => value)).size).toBe(1);
    expect(requests()).toHaveLength(1);
  });

  it("is kept until shortly before it expires, and renewed before", async () => {
    service.expiresInSec = 300;
    const first = await tokens.get(signal);
    clock.advance(260_000);
    expect((await tokens.get(signal)).value).toBe(first.value);
    clock.advance(20_000);
    expect((await tokens.get(signal)).value).not.toBe(first.value);
    expect(requests()).toHaveLength(2);
  });

  it("is minted in the process where the service is, and renewed before it expires", async () => {
    let minted = 0;
    const own = new TokenSource(service.options, http, clock, async () => {
      minted += 1;
      return { value: `token ${minted}`, lifetimeMs: 300_000 };
    });
    expect((await own.get(signal)).value).toBe("token 1");
    clock.advance(260_000);
    expect((await own.get(signal)).value).toBe("token 1");
    clock.advance(20_000);
    expect((await own.get(signal)).value).toBe("token 2");
    own.invalidate("token 2");
    expect((await own.get(signal)).value).toBe("token 3");
    expect(requests()).toEqual([]);
    own.close();
  });

  it("with a very short lifetime is still used for most of it", async () => {
    service.expiresInSec = 4;
    await tokens.get(signal);
    clock.advance(2_900);
    await tokens.get(signal);
    expect(requests()).toHaveLength(1);
    clock.advance(200);
    await tokens.get(signal);
    expect(requests()).toHaveLength(2);
  });

  it("that was refused is renewed once for all callers that had it", async () => {
    const { value } = await tokens.get(signal);
    await Promise.all(
      Array.from({ length: 20 }, () => {
        tokens.invalidate(value);
        return tokens.get(signal);
      }),
    );
    tokens.invalidate(value);
    await tokens.get(signal);
    expect(requests()).toHaveLength(2);
  });

  it.each(["account", "accountId", "account_id"])("that names another account in %s is not used", async (claim) => {
    service.claims = { [claim]: 8 };
    const refused = tokens.get(signal);
    await expect(refused).rejects.toThrow(ConfigError);
    await expect(refused).rejects.toThrow("account 8, but account 7");
  });

  it("that is opaque makes no statement on its account", async () => {
    service.claims = null;
    expect(await tokens.get(signal)).toMatchObject({ account: null, scopes: ["datahub-api", "push-data"] });
  });
});

describe("a token endpoint", () => {
  it.each([
    ["invalid_client", "HG-PUSH-002", "clientSecret"],
    ["invalid_grant", "HG-PUSH-003", "password"],
    ["invalid_scope", "HG-PUSH-004", "scopes"],
    ["constructor", "HG-PUSH-006", ""],
  ])("that responds %s is reported with the setting to correct", async (error, code, hint) => {
    service.tokenScript.push(json(401, { error, error_description: "its words" }));
    await expect(tokens.get(signal)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(`${error}: its words`),
      hint: expect.stringContaining(hint),
    });
  });

  it("that refuses is not called for a while, with the same error for every caller", async () => {
    service.tokenScript.push(json(401, { error: "invalid_grant" }));
    for (let round = 0; round < 5; round += 1) await expect(tokens.get(signal)).rejects.toThrow(ConfigError);
    expect(requests()).toHaveLength(1);
    clock.advance(31_000);
    await tokens.get(signal);
    expect(requests()).toHaveLength(2);
  });

  it("that fails is called again after growing pauses", async () => {
    service.tokenScript.push(...Array(3).fill({ status: 503 }));
    const failing = () => expect(tokens.get(signal)).rejects.toThrow(TransientError);
    await failing();
    clock.advance(900);
    await failing();
    expect(requests()).toHaveLength(1);
    clock.advance(200);
    await failing();
    expect(requests()).toHaveLength(2);
    clock.advance(1_100);
    await failing();
    expect(requests()).toHaveLength(2);
    clock.advance(1_000);
    await failing();
    expect(requests()).toHaveLength(3);
    clock.advance(4_100);
    await tokens.get(signal);
  });

  it("that throttles is not called for as long as it asks", async () => {
    service.tokenScript.push({ status: 429, headers: { "retry-after": "120" } });
    await expect(tokens.get(signal)).rejects.toThrow(TransientError);
    clock.advance(110_000);
    await expect(tokens.get(signal)).rejects.toThrow(TransientError);
    expect(requests()).toHaveLength(1);
    clock.advance(11_000);
    await tokens.get(signal);
  });

  it.each([
    ["a web page", { status: 200, headers: { "content-type": "text/html" }, body: "<h1>Sign in</h1>" }],
    ["another address", { status: 404 }],
    ["a redirect", { status: 302, headers: { location: "/elsewhere" } }],
  ])("that is %s points at the configuration", async (_, reply) => {
    service.tokenScript.push(reply);
    await expect(tokens.get(signal)).rejects.toMatchObject({ code: "HG-PUSH-006" });
    expect(service.callsTo("/elsewhere")).toHaveLength(0);
  });

  it("releases an aborted caller, and serves the others", async () => {
    const gone = new AbortController();
    const both = [tokens.get(gone.signal), tokens.get(signal)] as const;
    gone.abort(new Error("gone"));
    await expect(both[0]).rejects.toThrow("gone");
    expect((await both[1]).account).toBe("7");
  });
});
