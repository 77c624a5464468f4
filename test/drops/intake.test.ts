/**
 * What every intake does, wherever it puts what it takes: on the disk of its gateway, or in a ledger that
 * gateways share.
 */
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { Agent, request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { gatewayConfig } from "#gateway/config.ts";
import { dropOptions } from "#gateway/drops/options.ts";
import { openTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { testCertificate, testKey } from "./certificate.ts";
import { basic, GUID, IntakeRig, intakeSettings, pushBody, upload, users } from "./intake-rig.ts";

describe.each(["sqlite", "postgres"] as const)("with a ledger in %s,", (kind) => {
  let rig: IntakeRig;
  let database: TestDatabase | null = null;
  beforeAll(async () => {
    database = kind === "postgres" ? await openTestDatabase() : null;
    const shared = database === null ? {} : { ledger: { kind, url: database.url, node: "north" } };
    rig = await IntakeRig.start(undefined, shared, { limits: { body: "20KB" } });
  });
  afterAll(async () => {
    await rig.close();
    await database?.drop();
  });

  describe("the token endpoint of the intake", () => {
    it("issues a token that permits pushes, by both paths", async () => {
      const { status, body } = await rig.token();
      expect(status).toBe(200);
      expect(body).toMatchObject({ expires_in: 3600, token_type: "Bearer", scope: "push-data datahub-api" });
      const answer = await rig.post("/api/data?operationId=by-token", pushBody(1, 1), {
        authorization: `Bearer ${body["access_token"]}`,
      });
      expect(answer).toMatchObject({
        status: 200,
        body: { operationId: "by-token", status: "accepted", received: 1 },
      });
      const newer = await fetch(`${rig.url}/realms/any/protocol/openid-connect/token`, {
        method: "POST",
        body: new URLSearchParams({ grant_type: "password" }),
      });
      expect(newer.status).toBe(400);
      expect(await newer.json()).toMatchObject({ error: "invalid_request" });
    });

    it.each([
      [{ client_secret: "wrong" }, 401, "invalid_client"],
      [{ password: "wrong" }, 401, "invalid_grant"],
      [{ username: "nobody" }, 401, "invalid_grant"],
      [{ grant_type: "implicit" }, 400, "unsupported_grant_type"],
      [{ scope: "everything" }, 400, "invalid_scope"],
      [{ scope: "" }, 400, "invalid_scope"],
      [{ username: "dev\0ice" }, 400, "invalid_request"],
      [{ account: "2" }, 400, "invalid_grant"],
      [{ acr_values: "accountId:2" }, 400, "invalid_grant"],
    ])("refuses %o by %i %s", async (fields, status, error) => {
      expect(await rig.token(fields as Record<string, string>)).toMatchObject({ status, body: { error } });
    });

    it("accepts the credentials of the client in a Basic header as well, and refuses wrong ones there", async () => {
      const ask = async (secret: string) => {
        const credentials = Buffer.from(`device:${secret}`).toString("base64");
        const fields = { grant_type: "password", username: "device", password: "device-password" };
        const answer = await fetch(`${rig.url}/connect/token`, {
          method: "POST",
          headers: { authorization: `Basic ${credentials}` },
          body: new URLSearchParams({ ...fields, scope: "push-data openid" }),
        });
        return { status: answer.status, body: await answer.json() };
      };
      expect(await ask("device-secret")).toMatchObject({ status: 200, body: { scope: "push-data" } });
      expect(await ask("wrong")).toMatchObject({ status: 401, body: { error: "invalid_client" } });
    });

    it("issues tokens that survive a restart, and none for the account of another service", async () => {
      const { body } = await rig.token({ account: "1" });
      await rig.down();
      await rig.up();
      const authorization = `Bearer ${body["access_token"]}`;
      expect(await rig.post("/api/data", pushBody(1, 1), { authorization })).toMatchObject({ status: 200 });
    });
  });

  describe("a sender", () => {
    const refusals: [string, string, Record<string, string>, number, string][] = [
      ["nobody", "/api/data", { authorization: "" }, 401, "unauthenticated"],
      ["a wrong password", "/api/data", { authorization: basic("device", "wrong") }, 401, "unauthenticated"],
      ["an unknown user", "/api/data", { authorization: basic("nobody") }, 401, "unauthenticated"],
      ["a made-up token", "/api/data", { authorization: "Bearer abc" }, 401, "unauthenticated"],
      ["a user without the right", "/api/data", { authorization: basic("uploader") }, 403, "missing-right"],
      ["another version", "/api/data", { "api-version": "2.0" }, 400, "unsupported-api-version"],
      ["a compressed body", "/api/data", { "content-encoding": "gzip" }, 415, "unsupported-media-type"],
      ["an unknown guid", "/api/generic/9b6b2ad6-8a0e-4d54-9f2b-6f1f3f0f5a11", {}, 404, "unknown-token"],
      ["no such route", "/api/date", {}, 404, "not-found"],
      [
        "an upload without multipart",
        "/storage?Filename=a.csv",
        { "content-type": "text/csv" },
        415,
        "unsupported-media-type",
      ],
      ["an upload without a name", "/storage", { "content-type": "text/csv" }, 400, "invalid-request"],
      ["an upload that leaves its folder", "/storage?filename=..%2Fa.csv", {}, 400, "invalid-request"],
    ];
    it.each(refusals)("%s is refused with an explanation", async (_who, path, headers, status, code) => {
      const answer = await rig.post(path, pushBody(1, 1), headers);
      expect(answer).toMatchObject({
        status,
        body: { status, code, detail: expect.stringMatching(/\w+ \w+/) },
      });
      expect(answer.headers.get("content-type")).toContain("application/problem+json");
    });

    it("needs a token with the scope of the route", async () => {
      const { body } = await rig.token({ scope: "datahub-api" });
      const authorization = `Bearer ${body["access_token"]}`;
      expect(await rig.post("/api/data", pushBody(1, 1), { authorization })).toMatchObject({
        status: 401,
        body: { code: "missing-scope", detail: "the access token lacks the scope push-data" },
      });
      expect((await rig.post("/storage?Filename=x.txt", upload("x.txt", "x"), { authorization })).status).toBe(200);
    });
  });

  describe("a body", () => {
    it.each([
      ["not json", "invalid-json", /not valid JSON/],
      ["{}", "invalid-request", /must be an array/],
      ['[{"variableId":1}]', "invalid-request", /\[0\]\.data is missing/],
      [
        '[{"variableId":1,"data":[{"date":"2026-03-01T00:00:00Z","value":"1"}]}]',
        "invalid-request",
        /\[0\]\.data\[0\]\.value must be a number/,
      ],
      ['[{"accountId":1,"variableId":1,"data":[]}]', "invalid-request", /accountId must not be in the body/],
      ['[{"ROLE":"Admin","variableId":1,"data":[]}]', "invalid-request", /ROLE must not be in the body/],
    ])("%s is refused by 400", async (body, code, detail) => {
      expect(await rig.post("/api/data", body)).toMatchObject({
        status: 400,
        body: { code, detail: expect.stringMatching(detail) },
      });
    });

    it.each([
      ["with its length", pushBody(1, ...Array(1_000).keys())],
      ["in chunks", new Blob([pushBody(1, ...Array(1_000).keys())]).stream()],
    ])("that is too large is refused by 413, sent %s, and leaves no bytes", async (_how, body) => {
      const response = await fetch(`${rig.url}/api/data`, {
        method: "POST",
        body,
        headers: { authorization: basic("device") },
        duplex: "half",
      } as RequestInit);
      expect(response.status).toBe(413);
      expect(await response.json()).toMatchObject({
        code: "too-large",
        detail: expect.stringContaining("20000 bytes"),
      });
      expect(await readdir(join(rig.folder, "spool", "intake", "intake", "incoming"))).toEqual([]);
    });

    it("of an upload is refused when it is too large, or has several parts or none", async () => {
      const large = await rig.post("/storage?Filename=a.csv", upload("a.csv", "x".repeat(30_000)));
      expect(large).toMatchObject({ status: 413 });
      const form = upload("a.csv", "x");
      form.append("more", new Blob(["y"]), "b.csv");
      expect(await rig.post("/storage?Filename=a.csv", form)).toMatchObject({ status: 400 });
      expect(await rig.post("/storage?Filename=a.csv", new FormData())).toMatchObject({ status: 400 });
      expect(await rig.post(`/api/generic/${GUID}`, "")).toMatchObject({ status: 400 });
      expect(await readdir(join(rig.folder, "spool", "intake", "intake", "incoming"))).toEqual([]);
    });

    it("is accepted at the service's paths with and without a slash at the end, in any case", async () => {
      for (const path of ["/api/data/", "/push/api/data", "/API/Data", "/api/data?op-as-bare-query"])
        expect(await rig.post(path, pushBody(1, 1))).toMatchObject({
          status: 200,
          body: { status: "accepted" },
        });
      expect((await rig.post("/api/data?op-as-bare-query", pushBody(1, 9))).body.operationId).toBe("op-as-bare-query");
      expect((await rig.post(`/api/generic/${GUID.toUpperCase()}/`, "x")).status).toBe(200);
    });

    it("of an upload is one part of any name, and the response is its bare id", async () => {
      for (const part of ["file", "data", "a.csv"]) {
        const answer = await rig.post("/storage?filename=notes.txt", upload("a.csv", "x", part));
        expect(answer.status).toBe(200);
        expect(answer.body).toBeGreaterThan(Date.now() * 1_000 - 60e6);
      }
    });
  });

  describe("a repetition", () => {
    const keyed = { "idempotency-key": "key-1" };

    it("has the same operationId and bytes, and gets the same response; other bytes are new", async () => {
      const first = await rig.post("/api/data?operationId=op-1", pushBody(1, 1));
      const again = await rig.post("/api/data?operationId=op-1", pushBody(1, 1));
      expect(again.body).toEqual(first.body);
      await rig.post("/api/data?operationId=op-1", pushBody(1, 2));
      await rig.down();
      await rig.up();
      await rig.post("/api/data?operationId=op-1", pushBody(1, 2));
      await rig.seen();
      expect(await rig.gateway.ledger.trace("op-1")).toHaveLength(2);
    });

    it("by Idempotency-Key gets the same response, and 422 for other bytes", async () => {
      const first = await rig.post("/api/data", pushBody(1, 1), keyed);
      expect(first.headers.get("idempotent-replayed")).toBeNull();
      const second = await rig.post("/api/data", pushBody(1, 1), keyed);
      expect(second.body).toEqual(first.body);
      expect(second.headers.get("idempotent-replayed")).toBe("true");
      expect(await rig.post("/api/data", pushBody(1, 2), keyed)).toMatchObject({
        status: 422,
        body: { code: "idempotency-conflict" },
      });
    });

    it("that is sent at the same time is one arrival", async () => {
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => rig.post("/api/data?operationId=together", pushBody(1, 5))),
      );
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
      await rig.seen();
      expect(await rig.gateway.ledger.trace("together")).toHaveLength(1);
    });

    it("needs an operationId: equal bytes without one are new", async () => {
      const ids = new Set<string>();
      for (let times = 0; times < 3; times += 1)
        ids.add((await rig.post("/api/data", pushBody(1, 77))).body.operationId);
      expect(ids.size).toBe(3);
      await rig.seen();
      for (const id of ids) expect(await rig.gateway.ledger.trace(id)).toHaveLength(1);
    });
  });
});

describe("the settings of the intake", () => {
  it("serve TLS with the given certificate, and refuse an invalid one", async () => {
    const tls = { key: testKey, cert: testCertificate };
    const secure = await IntakeRig.start(undefined, {}, { tls });
    try {
      expect(secure.url).toMatch(/^https:/);
      const dispatcher = new Agent({ connect: { ca: testCertificate } });
      const headers = { authorization: basic("device") };
      const url = `${secure.url}/api/data`;
      const answer = await request(url, { method: "POST", body: pushBody(1, 1), headers, dispatcher });
      expect(answer.statusCode).toBe(200);
      await answer.body.dump();
      await dispatcher.close();
    } finally {
      await secure.close();
    }
    const wrong = { key: testKey, cert: "no certificate" };
    await expect(IntakeRig.start(undefined, {}, { tls: wrong })).rejects.toMatchObject({
      code: "HG-INTK-002",
    });
  });

  it("let a gateway stop while a client holds a connection without TLS", async () => {
    const tls = { key: testKey, cert: testCertificate };
    const secure = await IntakeRig.start(undefined, {}, { tls });
    const silent = connect(Number(new URL(secure.url).port), "127.0.0.1");
    await once(silent, "connect");
    // Whoever is answered came later than the one before it.
    const dispatcher = new Agent({ connect: { ca: testCertificate } });
    await (await request(`${secure.url}/health`, { dispatcher })).body.dump();
    await dispatcher.close();
    await secure.close();
    silent.destroy();
  });

  it("delete delivered bodies and keep the rest, unless they are changed", () => {
    const parse = (finish?: object) =>
      dropOptions.parse({ kind: "http", name: "i", listen: "127.0.0.1:0", users, ...(finish && { finish }) }).finish;
    const leave = { action: "leave" };
    expect(parse()).toMatchObject({ delivered: { action: "delete" }, quarantined: leave, unmatched: leave });
    expect(parse({ quarantined: "delete" })).toMatchObject({ delivered: { action: "delete" } });
    expect(parse({ delivered: { archive: "done" } })).toMatchObject({
      delivered: { action: "archive", to: "done" },
    });
  });

  it("require users with existing services, and unique names", () => {
    const faults = (...people: object[]) => {
      const named = people.map((one) => ({ password: "x-password", ...one }));
      const settings = intakeSettings("/nowhere", "http://127.0.0.1:1", {}, { users: named });
      return gatewayConfig.safeParse(settings).error?.issues.map(({ message }) => message) ?? [];
    };
    expect(faults({ username: "a" }, { username: "b", service: "hub" })).toEqual([]);
    expect(faults({ username: "a", service: "other" })).toEqual(["there is no service other; there is hub"]);
    expect(faults({ username: "a" }, { username: "a" })).toEqual(["the user a is named twice"]);
  });
});
