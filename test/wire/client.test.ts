import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, connect, type Server, type Socket } from "node:net";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "#core/clock.ts";
import { ConfigError, RejectedError, TransientError } from "#core/errors.ts";
import { answerWords, retryAfterMs } from "#wire/client/answers.ts";
import { ServiceClient } from "#wire/client/index.ts";
import { json, ScriptedService } from "../delivery/scripted-service.ts";
import { testCertificate, testKey } from "../drops/certificate.ts";

const signal = new AbortController().signal;
const timeouts = { connect: 2_000, headers: 5_000, body: 5_000, total: 5_000 };
let service: ScriptedService;
let client: ServiceClient;

beforeEach(async () => {
  service = await new ScriptedService().start();
  client = new ServiceClient(service.options, { connections: 4, timeouts, clock: systemClock });
});
afterEach(async () => {
  await client.close();
  await service.stop();
});

const body = Buffer.from(`[{"variableId":1,"data":[]}]`);
const push = (operationId = "r1-1", through = client) =>
  through.push(
    {
      body: () => Readable.from([body.subarray(0, 5), body.subarray(5)]),
      length: body.length,
      operationId,
      operationTimeoutSec: 60,
      idempotencyKey: operationId,
    },
    signal,
  );

const limits = { connections: 1, timeouts, clock: systemClock };
const portOf = (server: Server) => (server.address() as AddressInfo).port;
const listen = (server: Server) => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));

/** Token and push behind a certificate that no client trusts by default. */
async function secureService() {
  const server = createSecureServer({ key: testKey, cert: testCertificate }, (request, response) => {
    request.resume();
    const token = request.url === "/token" ? { access_token: "t", expires_in: 60 } : {};
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(token));
  });
  await listen(server);
  const url = `https://127.0.0.1:${portOf(server)}`;
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { access: { ...service.options, push: url, token: `${url}/token` }, close };
}

describe("the client", () => {
  it("renews a token that expired early, and replays the push with the same bytes", async () => {
    await push("r1-1");
    service.validTokens.clear();
    expect(await push("r1-2")).toMatchObject({ status: 200 });
    expect(service.pushes.map((call) => call.query.get("operationId"))).toEqual(["r1-1", "r1-2", "r1-2"]);
    expect(service.pushes.every((call) => call.body.equals(body))).toBe(true);
    expect(service.callsTo("/token")).toHaveLength(2);
  });

  it("renews once for many calls that are refused at the same time", async () => {
    await push();
    service.validTokens.clear();
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => push(`r2-${index}`)));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(service.callsTo("/token")).toHaveLength(2);
  });

  it("reports a missing scope when a new token is refused too", async () => {
    service.scope = "datahub-api";
    service.pushDefault = { status: 401 };
    await expect(push()).rejects.toMatchObject({
      code: "HG-PUSH-007",
      message: expect.stringContaining("scope push-data missing: the token was granted without it"),
    });
    expect(service.pushes).toHaveLength(2);
  });

  it("sends user and password instead of a token where configured", async () => {
    const basic = new ServiceClient(
      { ...service.options, auth: "basic" },
      { connections: 1, timeouts, clock: systemClock },
    );
    expect(await push("r1-1", basic)).toMatchObject({ status: 200 });
    expect(service.pushes[0]?.headers.authorization).toBe(`Basic ${Buffer.from("u:p").toString("base64")}`);
    expect(service.callsTo("/token")).toHaveLength(0);
    service.pushDefault = { status: 401 };
    await expect(push("r1-2", basic)).rejects.toMatchObject({ code: "HG-PUSH-003" });
    await basic.close();
  });

  it("carries an operation id of any letters", async () => {
    await push("März 7-1");
    expect(service.pushes[0]?.query.get("operationId")).toBe("März 7-1");
    expect(service.pushes[0]?.headers["idempotency-key"]).toBe("M%C3%A4rz%207-1");
  });

  it("repeats the key of a list, and reads the count", async () => {
    service.variables = [1, 2, 3].map((id) => ({ id, name: `v${id}`, sourceId: 1 }));
    const { items, total } = await client.getVariables({ Ids: [1, 3] }, signal);
    expect(items.map(({ id }) => id)).toEqual([1, 3]);
    expect(total).toBeNull();
    const [call] = service.callsTo("/base/variables");
    expect(call?.query.getAll("Ids")).toEqual(["1", "3"]);
    expect(call?.headers["api-version"]).toBe("1.7");
    service.readReply = json(200, [], { "x-total-count": "12" });
    expect((await client.getSites({ IncludeItemsCount: true }, signal)).total).toBe(12);
  });

  it.each([
    ["a bare id", 41],
    ["an object with the id", { id: 41, name: "new" }],
  ])("accepts %s as the result of a creation", async (_, answer) => {
    service.readReply = json(200, answer);
    expect(await client.postSite({ name: "new", typeId: 1, timeZoneId: "UTC" }, signal)).toBe(41);
  });

  it.each([
    [{ status: 500 }, TransientError],
    [{ status: 403 }, ConfigError],
    [{ status: 400 }, RejectedError],
    [json(200, "no rows"), ConfigError],
    [json(200, "x".repeat(40 * 1024 ** 2)), RejectedError],
  ])("classifies failures of reads by the required action (%#)", async (reply, kind) => {
    service.readReply = reply;
    await expect(client.postData({ VariableIds: [1] }, signal)).rejects.toThrow(kind);
  });

  it("never follows a redirect, and sends the token nowhere else", async () => {
    const came: string[] = [];
    const elsewhere = createServer((request, response) => {
      came.push(`${request.url} ${request.headers.authorization}`);
      response.end("{}");
    });
    await new Promise<void>((resolve) => elsewhere.listen(0, "127.0.0.1", resolve));
    try {
      const location = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/push/api/data`;
      for (const status of [301, 302, 303, 307, 308]) {
        service.pushScript.push({ status, headers: { location } });
        expect((await push()).status).toBe(status);
      }
      expect(came).toEqual([]);
    } finally {
      elsewhere.close();
    }
  });

  it("cuts off a response that is too large, and reports it", async () => {
    service.pushScript.push({ status: 400, body: "x".repeat(20_000_000) });
    expect((await push()).words).toMatch(/^HTTP 400 \(cut off, since it is too large\): x+/);
  });

  it("names the type of a response that is not JSON", async () => {
    service.pushScript.push({
      status: 502,
      headers: { "content-type": "text/plain; charset=utf-8" },
      body: "sorry",
    });
    expect((await push()).words).toBe("HTTP 502 (text/plain): sorry");
  });

  it("does not treat an informational response as the final one", async () => {
    const hinting = createServer((request, response) => {
      request.resume();
      if (request.url === "/token") response.end(JSON.stringify({ access_token: "t", expires_in: 60 }));
      else response.writeEarlyHints({ link: "</a>; rel=preload" }, () => response.destroy());
    });
    await listen(hinting);
    const url = `http://127.0.0.1:${portOf(hinting)}`;
    const through = new ServiceClient({ ...service.options, push: url, token: `${url}/token` }, limits);
    try {
      await expect(push("r1-1", through)).rejects.toMatchObject({ code: "HG-PUSH-001" });
    } finally {
      await through.close();
      hinting.close();
    }
  });

  it("ends a call at once that waits for a connection when it is aborted, and never sends it", async () => {
    const narrow = new ServiceClient(service.options, limits);
    service.pushDefault = "hang";
    const stop = new AbortController();
    const call = (operationId: string) =>
      narrow.push(
        {
          body: () => body,
          length: body.length,
          operationId,
          operationTimeoutSec: 60,
          idempotencyKey: operationId,
        },
        stop.signal,
      );
    try {
      await narrow.token(signal);
      const calls = [call("r1-1"), call("r1-2")];
      await expect.poll(() => service.pushes).toHaveLength(1);
      stop.abort(new Error("enough"));
      for (const { status, reason } of (await Promise.allSettled(calls)) as PromiseRejectedResult[])
        expect([status, reason.message]).toEqual(["rejected", "enough"]);
      service.pushDefault = "accept";
      expect(await push("r1-3", narrow)).toMatchObject({ status: 200 });
      expect(service.pushes.map(({ query }) => query.get("operationId"))).toEqual(["r1-1", "r1-3"]);
    } finally {
      await narrow.close();
    }
  });

  it("uses the proxy of the service, also for the token", async () => {
    const asked: string[] = [];
    const proxy = createServer().on("connect", (request, socket: Socket) => {
      asked.push(`${request.url} ${request.headers["proxy-authorization"]}`);
      const [host = "", port = ""] = (request.url ?? "").split(":");
      const onward = connect(Number(port), host, () => socket.write("HTTP/1.1 200 OK\r\n\r\n"));
      socket.pipe(onward).pipe(socket);
      for (const end of [socket, onward]) end.on("error", () => end.destroy());
    });
    await listen(proxy);
    const secure = await secureService();
    const address = `http://user:secret@127.0.0.1:${portOf(proxy)}`;
    const through = new ServiceClient({ ...secure.access, ca: testCertificate, proxy: address }, limits);
    try {
      expect((await push("r1-1", through)).status).toBe(200);
      const who = `Basic ${Buffer.from("user:secret").toString("base64")}`;
      expect(new Set(asked)).toEqual(new Set([`${new URL(secure.access.push).host} ${who}`]));
    } finally {
      await through.close();
      secure.close();
      proxy.close();
    }
  });

  it("trusts the certificates that the service is configured with, and no others", async () => {
    const secure = await secureService();
    const strict = new ServiceClient(secure.access, limits);
    const trusting = new ServiceClient({ ...secure.access, ca: testCertificate }, limits);
    try {
      await expect(push("r1-1", strict)).rejects.toThrow(/self.signed|unable to verify/i);
      expect((await push("r1-1", trusting)).status).toBe(200);
    } finally {
      await strict.close();
      await trusting.close();
      secure.close();
    }
  });

  it("names the address where no server listens", async () => {
    await push();
    await service.stop();
    await expect(push()).rejects.toMatchObject({
      code: "HG-PUSH-001",
      message: expect.stringContaining("no answer from http://127.0.0.1"),
    });
    service = await new ScriptedService().start();
  });
});

describe("the text of a response", () => {
  const answer = (text: string) => answerWords({ status: 400, headers: {}, cut: null, text });
  it.each([
    ["", "HTTP 400"],
    [
      `{"title":"Bad","status":400,"detail":"no","errors":[{"path":"0.data","message":"empty"}]}`,
      "HTTP 400: Bad: no (0.data: empty)",
    ],
    ["<html><style>b{}</style><h1>Bad\n\u0007 Request</h1></html>", "HTTP 400: Bad Request"],
  ])("%j are %j", (text, words) => expect(answer(text)).toBe(words));

  it("are short", () => expect(answer("x".repeat(100_000))).toHaveLength(500));
});

it.each([
  ["120", 120_000],
  ["Thu, 28 May 2026 20:27:40 GMT", 60_000],
  ["Thu, 28 May 2026 20:00:00 GMT", 0],
  ["soon", null],
  [undefined, null],
])("Retry-After %s is a wait of %s ms", (header, ms) => {
  const headers = header === undefined ? {} : { "retry-after": header };
  expect(retryAfterMs(headers, Temporal.Instant.from("2026-05-28T20:26:40Z"))).toBe(ms);
});
