import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { systemClock } from "#core/clock.ts";
import { ConfigError, RejectedError, TransientError } from "#core/errors.ts";
import { createLog } from "#core/log.ts";
import { openLedger } from "#gateway/ledger/open.ts";
import { count, Download, endpoint, type Person, Upload } from "#gateway/operations/api/endpoint.ts";
import { served } from "#gateway/operations/endpoint-routes.ts";
import { unknownSubject } from "#gateway/operations/problems.ts";
import { type OperationsServer, startOperations } from "#gateway/operations/server.ts";

const SECRET = "the secret of the endpoint file";
const READ_TOKEN = "a token for reading";
const FACTS = { need: "read", tag: "Test", summary: "A test" } as const;
const ERRORS = {
  unknown: () => unknownSubject({ operation: "test", subject: "x", message: "there is no x" }),
  rejected: () => new RejectedError("HG-RUN-001", { operation: "test", subject: "x", message: "not this one" }),
  config: () => new ConfigError("HG-CONF-001", { operation: "test", subject: "x", message: "change it" }),
  transient: () => new TransientError("HG-OPS-002", { operation: "test", subject: "x", message: "later" }),
  bug: () => new TypeError("x is undefined"),
} as const;

const group = {
  echo: endpoint({
    ...{ ...FACTS, method: "POST", path: "/operations/echo/:name", need: "command" },
    params: z.strictObject({ name: z.string() }),
    query: z.strictObject({ limit: count(100, 7) }),
    body: z.strictObject({ words: z.array(z.string()) }),
    answer: z.object({ name: z.string(), limit: z.number(), words: z.array(z.string()), by: z.string() }),
  }),
  upload: endpoint({
    ...{ ...FACTS, method: "POST", path: "/operations/upload", need: "command" },
    body: new Upload(10),
    answer: z.object({ bytes: z.array(z.number()) }),
  }),
  file: endpoint({ ...FACTS, method: "GET", path: "/operations/file", answer: new Download() }),
  fail: endpoint({
    ...{ ...FACTS, method: "GET", path: "/operations/fail/:how" },
    params: z.strictObject({ how: z.enum(["unknown", "rejected", "config", "transient", "bug"]) }),
    answer: z.unknown(),
  }),
};

let server: OperationsServer;
let isStarted: boolean;
let person: Person | null;
let lines: string[];
let close: () => Promise<void>;

beforeEach(async () => {
  isStarted = true;
  person = null;
  lines = [];
  const folder = mkdtempSync(join(tmpdir(), "headgate-"));
  const ledger = await openLedger({ kind: "sqlite", path: join(folder, "ledger.sqlite") }, { clock: systemClock });
  const endpoints = served(group, () => (isStarted ? handlers : null));
  server = await startOperations(
    {
      listen: "127.0.0.1:0",
      webhook: {},
      access: { tokens: [{ name: "script", token: READ_TOKEN, rights: ["read"] }] },
    },
    {
      ...{ ledger, metrics: new Registry(), endpoints: async () => endpoints },
      log: createLog("info", { write: (line: string) => void lines.push(line) }),
      health: async () => [],
      waiting: async () => ({ files: [], total: 0, next: null }),
      receiveOutcome: async () => ({ status: "unknown" }),
      commands: { secret: SECRET, execute: async () => null },
    },
  );
  close = async () => {
    await server.close();
    await ledger.close();
    rmSync(folder, { recursive: true });
  };
});
afterEach(() => close());

const handlers: Parameters<typeof served<typeof group>>[1] extends () => infer H ? NonNullable<H> : never = {
  echo(asked) {
    person = asked.person;
    return { ...asked.params, ...asked.query, words: asked.body.words, by: asked.person.name };
  },
  async upload({ body }) {
    const bytes: number[] = [];
    for await (const part of body) bytes.push(...part);
    return { bytes };
  },
  file: () => ({ name: 'a "b"\r\nü.csv', content: Buffer.from([0xff, 0x00]) }),
  fail({ params }) {
    throw ERRORS[params.how]();
  },
};

function ask(path: string, init: RequestInit & { readonly token?: string } = {}): Promise<Response> {
  const { token = SECRET, headers, ...rest } = init;
  return fetch(`${server.url}${path}`, { ...rest, headers: { authorization: `Bearer ${token}`, ...headers } });
}

const post = (body: BodyInit, more: RequestInit & { readonly token?: string } = {}) => ({
  ...{ method: "POST", body, ...more },
});

describe("an endpoint", () => {
  it("gives its handler what the request says, with defaults", async () => {
    const answer = await ask("/operations/echo/a%2Fb", post('{"words":["x"]}'));
    expect(await answer.json()).toEqual({ name: "a/b", limit: 7, words: ["x"], by: "command line" });
    expect(await (await ask("/operations/echo/a?limit=5000", post('{"words":[]}'))).json()).toMatchObject({
      limit: 100,
    });
  });

  it.each([
    ["/operations/echo/a", "{", "the body is not JSON"],
    ["/operations/echo/a", "", "the body is not JSON"],
    ["/operations/echo/a", '{"words":[1]}', "words.0"],
    ["/operations/echo/a", '{"words":[],"x":1}', '"x"'],
    ["/operations/echo/a?limit=0", '{"words":[]}', "limit"],
    ["/operations/echo/a?limits=1", '{"words":[]}', '"limits"'],
  ])("refuses %s with %s and says why", async (path, body, words) => {
    const answer = await ask(path, post(body));
    expect(answer.status).toBe(400);
    expect(answer.headers.get("content-type")).toContain("application/problem+json");
    expect(await answer.json()).toMatchObject({ code: "HG-OPS-006", detail: expect.stringContaining(words) });
    expect(person).toBeNull();
  });

  it("answers 503 until the part that it needs has been opened", async () => {
    isStarted = false;
    const answer = await ask("/operations/file");
    expect(answer.status).toBe(503);
    expect(await answer.json()).toMatchObject({ code: "HG-OPS-002", detail: "the gateway is starting" });
  });

  it.each([
    ["unknown", 404, "there is no x"],
    ["rejected", 409, "not this one"],
    ["config", 400, "change it"],
    ["transient", 503, "later"],
  ])("answers an error that is %s with %d", async (how, status, detail) => {
    const answer = await ask(`/operations/fail/${how}`);
    expect(answer.status).toBe(status);
    expect(await answer.json()).toMatchObject({ status, detail, subject: "x", hint: expect.any(String) });
  });

  it("keeps the words of a bug in the log", async () => {
    const answer = await ask("/operations/fail/bug");
    expect(answer.status).toBe(500);
    expect(await answer.text()).not.toContain("undefined");
    expect(lines.join("")).toContain("x is undefined");
  });

  it("answers an unknown address with 404 to one who may ask", async () => {
    expect((await ask("/operations/nothing")).status).toBe(404);
  });
});

describe("a person of an endpoint", () => {
  it("is the one that a program with the secret names", async () => {
    await ask("/operations/echo/a", post('{"words":[]}', { headers: { "x-headgate-by": "J%C3%BCrgen" } }));
    expect(person).toEqual({ name: "Jürgen", role: "operator" });
  });

  it("may do with a token for reading what needs no command", async () => {
    const named = { headers: { "x-headgate-by": "admin" }, token: READ_TOKEN };
    expect((await ask("/operations/echo/a", post('{"words":[]}', named))).status).toBe(403);
    expect((await ask("/operations/file", named)).status).toBe(200);
  });
});

describe("bytes", () => {
  it("arrive as they were sent, whatever their type", async () => {
    for (const headers of [{}, { "content-type": "application/json" }, { "content-type": "text/html" }]) {
      const answer = await ask("/operations/upload", post(new Uint8Array([0xff, 0x0d, 0x0a]), { headers }));
      expect(await answer.json()).toEqual({ bytes: [0xff, 0x0d, 0x0a] });
    }
    expect(await (await ask("/operations/upload", { method: "POST" })).json()).toEqual({ bytes: [] });
  });

  it("are refused beyond their limit, also when their number is not announced", async () => {
    expect((await ask("/operations/upload", post("12345678901"))).status).toBe(413);
    const body = new Response("12345678901").body ?? "";
    const streamed = await ask("/operations/upload", { ...post(body), duplex: "half" } as RequestInit);
    expect(streamed.status).toBe(413);
  });

  it("are saved by a browser under their name, and never shown", async () => {
    const { headers, ...answer } = await ask("/operations/file");
    expect(answer).toBeDefined();
    expect(headers.get("content-disposition")).toBe(
      `attachment; filename="a _b____.csv"; filename*=UTF-8''a%20%22b%22%0D%0A%C3%BC.csv`,
    );
    expect(headers.get("content-type")).toBe("application/octet-stream");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("content-security-policy")).toContain("sandbox");
    expect([...new Uint8Array(await (await ask("/operations/file")).arrayBuffer())]).toEqual([0xff, 0x00]);
  });
});

describe("the document", () => {
  it("describes each endpoint that is served, with its parameters, body and answer", async () => {
    const document = (await (await ask("/operations/openapi.json")).json()) as {
      paths: Record<string, Record<string, { operationId: string; parameters: { name: string; in: string }[] }>>;
    };
    expect(Object.keys(document.paths).sort()).toEqual([
      "/operations/echo/{name}",
      "/operations/fail/{how}",
      "/operations/file",
      "/operations/runs",
      "/operations/trace/{query}",
      "/operations/upload",
      "/operations/waiting",
    ]);
    const echo = document.paths["/operations/echo/{name}"]?.["post"];
    expect(echo).toMatchObject({
      operationId: "postOperationsEchoName",
      "x-need": "command",
      parameters: [
        { name: "name", in: "path", required: true },
        { name: "limit", in: "query", required: false },
      ],
      requestBody: { content: { "application/json": { schema: { required: ["words"] } } } },
    });
    const states = document.paths["/operations/runs"]?.["get"];
    expect(JSON.stringify(states)).toContain("quarantined");
  });
});
