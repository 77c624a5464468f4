/**
 * Malformed input to every route that the server has: no 500, no hang, and every refusal well-formed.
 * `HEADGATE_FUZZ_ROUNDS` sets the number of requests (`npm run test:long` makes many).
 */
import { connect } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import type { HubRoute } from "#hub/http/route.ts";
import { problem, tokenError } from "#wire/index.ts";
import { createChain, startTestHub, type TestHub, until } from "./fixture.ts";

const ROUNDS = Number(process.env["HEADGATE_FUZZ_ROUNDS"] ?? 600);
const ANSWER_MS = 10_000;

let hub: TestHub;
let authorization: string;
beforeAll(async () => {
  hub = await startTestHub({ tokenThrottle: { failures: 1_000_000, tokensPerMinute: 1_000_000 } });
  await createChain(hub, { variables: [{ isVersioned: true }, {}] });
  authorization = `Bearer ${await hub.token()}`;
});
afterAll(() => hub.close());

const WORDS = [
  "",
  "0",
  "1",
  "-1",
  "1e400",
  "99999999999999999999",
  "0x10",
  "NaN",
  "2026-13-01",
  "2026-03-01T00:00:00Z",
  "+275760-09-13T00:00:00Z",
  "UTC",
  "Europe/Paris",
  "Day",
  "Raw",
  "SUM",
  "\u0000",
  "a\u0000b",
  "\ud800",
  "%",
  "%00",
  "null",
  "true",
  "日本",
  "'; DROP TABLE site; --",
  "Name = 'x'",
  "((((((((((",
  "not not not Id = 1",
  "x".repeat(3_000),
  "../../etc/passwd",
  "__proto__",
  "{}",
  "[]",
];
const word = fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...WORDS) }, { weight: 1, arbitrary: fc.string() });
const leaf = fc.oneof(word, fc.double(), fc.integer(), fc.maxSafeInteger(), fc.boolean(), fc.constant(null));
const NAMES = [
  "id",
  "name",
  "data",
  "date",
  "value",
  "version",
  "tags",
  "op",
  "path",
  "from",
  "Paging",
  "__proto__",
  "constructor",
];

/** Names that the route knows, in its own spelling and in others. */
function namesOf(schema: z.ZodType | undefined): string[] {
  if (schema === undefined) return NAMES;
  const { properties = {}, items } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as {
    properties?: object;
    items?: { properties?: object };
  };
  const own = [...Object.keys(properties), ...Object.keys(items?.properties ?? {})];
  return [...own, ...own.map((name) => name.toUpperCase()), ...NAMES];
}

function jsonOf(names: readonly string[]): fc.Arbitrary<unknown> {
  const { value } = fc.letrec<{ value: unknown; object: unknown }>((tie) => ({
    value: fc.oneof({ depthSize: "small" }, leaf, fc.array(tie("value"), { maxLength: 3 }), tie("object")),
    object: fc.dictionary(fc.oneof(fc.constantFrom(...names), fc.string()), tie("value"), { maxKeys: 8 }),
  }));
  return value;
}

const bytes = (text: string) => new TextEncoder().encode(text);
const DEEP = 20_000;
const BROKEN = [
  bytes(""),
  bytes("{"),
  bytes("[1,2"),
  bytes('{"name":'),
  bytes("\ufeff{}"),
  bytes('{"a":1}{"a":2}'),
  bytes('{"__proto__":{"admin":true}}'),
  bytes('{"constructor":{"prototype":{}}}'),
  bytes("\u0000"),
  bytes(`${"[".repeat(DEEP)}${"]".repeat(DEEP)}`),
  bytes(`${'{"name":'.repeat(DEEP)}1${"}".repeat(DEEP)}`),
  bytes('[{"variableId":1,"data":[{"date":"2026-03-01","value":1e999}]}]'),
  bytes(`{"name":"x","typeId":${"9".repeat(400)}}`),
  new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
  new Uint8Array([0xc3, 0x28]),
  Buffer.from('{"name":"x"}', "utf16le"),
];
const TYPES = [
  "application/json",
  "application/json; charset=utf-16",
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/x-www-form-urlencoded",
  "text/plain",
  "multipart/form-data",
  "application/octet-stream",
  "nonsense",
  "a/b; c",
];

interface Attempt {
  readonly route: HubRoute;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: Uint8Array<ArrayBuffer> | null;
}

function attempt(routes: readonly HubRoute[]): fc.Arbitrary<Attempt> {
  return fc.constantFrom(...routes).chain((route) => {
    const { query, body } = route.facts;
    const part = word.map((text) => encodeURIComponent(text.toWellFormed()) || "1");
    const given = fc.oneof(
      jsonOf(namesOf(body)).map((value) => bytes(JSON.stringify(value) ?? "")),
      fc.constantFrom(...BROKEN),
      fc.uint8Array({ maxLength: 200 }).map((array) => new Uint8Array(array)),
    );
    return fc.record({
      route: fc.constant(route),
      url: fc
        .tuple(
          fc.array(part, { minLength: 3, maxLength: 3 }),
          fc.array(fc.tuple(fc.constantFrom(...namesOf(query)), word), { maxLength: 4 }),
        )
        .map(([parts, pairs]) => {
          let used = 0;
          const path = route.url.replaceAll(/:\w+|\*$/g, () => parts[used++ % 3] ?? "1");
          const search = pairs.map(([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`).join("&");
          return search === "" ? path : `${path}?${search}`;
        }),
      headers: fc
        .record(
          {
            "content-type": fc.constantFrom(...TYPES, TYPES[0] ?? "", TYPES[0] ?? ""),
            "api-version": fc.constantFrom("1.7", "1.7", "0", "\u00e9"),
            "content-encoding": fc.constantFrom("identity", "gzip", "br"),
            "idempotency-key": fc.constantFrom("k", "k".repeat(500)),
            "x-total-count": fc.constantFrom("true", "maybe"),
            authorization: fc.constantFrom(
              "Basic",
              "Basic !!!",
              "Bearer a.b.c",
              "Bearer",
              `Basic ${"A".repeat(9_000)}`,
            ),
          },
          { requiredKeys: ["content-type"] },
        )
        .map(
          (headers): Record<string, string> =>
            // Most requests should come as far as the handler.
            headers.authorization !== undefined && headers["idempotency-key"] === undefined
              ? (headers as Record<string, string>)
              : ({ ...headers, authorization } as Record<string, string>),
        ),
      body: ["GET", "HEAD"].includes(route.method) ? fc.constant(null) : fc.option(given, { freq: 8 }),
    });
  });
}

async function made({ route, url, headers, body }: Attempt) {
  const response = await fetch(hub.url() + url, {
    method: route.method,
    headers,
    redirect: "manual",
    signal: AbortSignal.timeout(ANSWER_MS),
    ...(body === null ? {} : { body }),
  });
  return {
    status: response.status,
    type: response.headers.get("content-type") ?? "",
    text: await response.text(),
  };
}

function judge({ route }: Attempt, answer: Awaited<ReturnType<typeof made>>): void {
  expect(answer.status === 501 || answer.status < 500, answer.text).toBe(true);
  if (answer.status < 400) return;
  // A path that is too long is refused before any route is found.
  if (route.facts.tag === "Token" && route.method === "POST" && answer.status !== 414) {
    expect(answer.type).toContain("application/json");
    tokenError.parse(JSON.parse(answer.text));
    return;
  }
  expect(answer.type).toContain("application/problem+json");
  // Its answers have no body.
  if (route.method === "HEAD") return;
  expect(problem.parse(JSON.parse(answer.text))).toMatchObject({
    status: answer.status,
    code: expect.stringMatching(/^[a-z-]+$/),
    detail: expect.any(String),
  });
}

const served = (): readonly HubRoute[] => hub.routes.filter(({ facts }) => facts.hidden !== true);

const LONG = process.env["HEADGATE_FUZZ_ROUNDS"] !== undefined;

test("every route responds to any input, soon, and refuses in a form that clients can read", {
  timeout: LONG ? 3_600_000 : 30_000,
}, async () => {
  const judged = fc.asyncProperty(attempt(served()), async (one) => judge(one, await made(one)));
  await fc.assert(judged, { numRuns: ROUNDS, interruptAfterTimeLimit: LONG ? 3_500_000 : 8_000 });
});

test("every route with a body refuses a broken one", async () => {
  const routes = served().filter(({ method, facts }) => !["GET", "HEAD"].includes(method) && facts.status !== 501);
  for (const route of routes)
    for (const body of BROKEN.filter((_, index) => index % 3 === routes.indexOf(route) % 3)) {
      const url = route.url.replaceAll(/:\w+|\*$/g, "987654");
      const one = {
        route,
        url,
        headers: { authorization, "content-type": "application/json" },
        body: new Uint8Array(body),
      };
      judge(one, await made(one));
    }
});

/** Sends bytes as they are, and reads until the hub has said its piece. */
function raw(text: string): Promise<string> {
  const { hostname, port } = new URL(hub.url());
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.write(text, "latin1"));
    let answer = "";
    socket.setTimeout(ANSWER_MS, () => socket.destroy(new Error("no answer")));
    socket.on("data", (chunk) => {
      answer += chunk.toString("latin1");
    });
    socket.on("error", reject);
    socket.on("close", () => resolve(answer));
  });
}

describe("below the routes", () => {
  const CLOSE = "Host: hub\r\nConnection: close\r\n\r\n";
  test.each([
    ["a bad escape in the path", `GET /sources/%zz HTTP/1.1\r\n${CLOSE}`, 400],
    ["half an escape in the path", `GET /sites/% HTTP/1.1\r\n${CLOSE}`, 400],
    ["an escape that is no UTF-8", `GET /operations/%ff%fe HTTP/1.1\r\n${CLOSE}`, 400],
    ["a long address", `GET /sites?CustomFilter=${"x".repeat(100_000)} HTTP/1.1\r\n${CLOSE}`, 431],
    ["long headers", `GET /sites HTTP/1.1\r\nX-Long: ${"x".repeat(100_000)}\r\n${CLOSE}`, 431],
    ["a NUL in the address", `GET /sites\u0000 HTTP/1.1\r\n${CLOSE}`, 400],
    ["no HTTP at all", "nonsense\r\n\r\n", 400],
    ["an unknown method", `BREW /sites HTTP/1.1\r\n${CLOSE}`, 400],
    ["a method that no route has", `TRACE /sites HTTP/1.1\r\n${CLOSE}`, 404],
    ["a long part of a path", `GET /sources/${"1".repeat(5_000)} HTTP/1.1\r\n${CLOSE}`, 414],
    ["a length that is not a number", `POST /sites HTTP/1.1\r\nContent-Length: many\r\n${CLOSE}`, 400],
    ["two lengths", `POST /sites HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n${CLOSE}`, 400],
  ])("%s is answered by a well-formed problem", async (_, text, status) => {
    const answer = await raw(text);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    const [head = "", body = ""] = answer.split("\r\n\r\n");
    expect(head.toLowerCase()).toContain("content-type: application/problem+json");
    expect(problem.parse(JSON.parse(body))).toMatchObject({ status });
  });
});

test("afterwards the hub works as before, and no request waits for ever", async () => {
  await until(async () => {
    const { pendingOperations } = await hub.get("/health");
    return pendingOperations === 0 ? true : undefined;
  });
  const { variableIds } = await createChain(hub);
  await hub.post("/push/api/data", [
    { variableId: variableIds[0], data: [{ date: "\ud800", value: 1 }] },
    { sourceName: "\u0000", mappingConfig: "\ud800", data: [] },
  ]);
  const push = [{ variableId: variableIds[0], data: [{ date: "2026-03-01T00:00:00Z", value: 1 }] }];
  expect(await hub.push(push)).toMatchObject({ stored: 1 });
});
