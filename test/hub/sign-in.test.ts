/** Guessing of passwords, from several addresses of this machine: 127.0.0.2 is another address than 127.0.0.1. */
import { request } from "node:http";
import { afterEach, expect, test } from "vitest";
import { GRANT, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
afterEach(() => hub.close());

interface Answer {
  readonly status: number;
  readonly retryAfter: number;
}

function post(path: string, body: string, from: string, headers: Record<string, string>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = request(`${hub.url()}${path}`, { method: "POST", localAddress: from, headers }, (answer) => {
      answer.resume();
      answer.on("end", () =>
        resolve({ status: answer.statusCode ?? 0, retryAfter: Number(answer.headers["retry-after"] ?? 0) }),
      );
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

function signIn(fields: Record<string, string>, from: string, headers: Record<string, string> = {}) {
  const form = {
    ...GRANT,
    username: "manager",
    password: "manager-password",
    scope: "datahub-api",
    ...fields,
  };
  const type = { "content-type": "application/x-www-form-urlencoded" };
  return post("/connect/token", new URLSearchParams(form).toString(), from, { ...type, ...headers });
}

function push(user: string, from: string) {
  const authorization = `Basic ${Buffer.from(user).toString("base64")}`;
  return post("/push/api/data", "[]", from, { authorization, "content-type": "application/json" });
}

const statusesOf = (answers: readonly Answer[]) => {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};
const sixty = <T>(make: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: 60 }, (_, index) => make(index)));

test(
  "of 60 wrong secrets of a client at once, 10 are hashed, and the right one signs in meanwhile from " +
    "another address",
  async () => {
    hub = await startTestHub();
    const guesses = sixty((index) => signIn({ client_secret: `guess-${index}` }, "127.0.0.2"));
    expect(await signIn({}, "127.0.0.3")).toMatchObject({ status: 200 });
    const answers = await guesses;
    expect(statusesOf(answers)).toEqual({ 401: 10, 429: 50 });
    for (const { status, retryAfter } of answers) if (status === 429) expect(retryAfter).toBeGreaterThan(0);
    expect(await signIn({}, "127.0.0.3")).toMatchObject({ status: 200 });
    expect(await signIn({}, "127.0.0.2")).toMatchObject({ status: 429 });
  },
);

test("of 60 concurrent wrong passwords by Basic, 10 are hashed, and the right one pushes from elsewhere", async () => {
  hub = await startTestHub();
  expect(statusesOf(await sixty((index) => push(`pusher:guess-${index}`, "127.0.0.2")))).toEqual({
    401: 10,
    429: 50,
  });
  expect(await push("pusher:pusher-password", "127.0.0.3")).toMatchObject({ status: 200 });
});

test("one address that tries many names is stopped, too", async () => {
  hub = await startTestHub({ tokenThrottle: { addressFailures: 20 } });
  const answers = await sixty((index) => push(`user-${index}:guess`, "127.0.0.2"));
  expect(statusesOf(answers)).toEqual({ 401: 20, 429: 40 });
});

test("60 right calls at once, from the first one on, are all answered", async () => {
  hub = await startTestHub();
  expect(statusesOf(await sixty(() => push("pusher:pusher-password", "127.0.0.2")))).toEqual({ 200: 60 });
  expect(statusesOf(await sixty(() => push("pusher:pusher-password", "127.0.0.2")))).toEqual({ 200: 60 });
});

test("only as many sign-ins wait for their hash as the queue holds; the others get 429 at once", async () => {
  // A hash takes long enough for the queue to fill.
  hub = await startTestHub({ tokenThrottle: { failures: 100, addressFailures: 100, queue: 5 } }, false);
  const answers = await sixty((index) => push(`user-${index}:guess`, "127.0.0.2"));
  const counts = statusesOf(answers);
  expect(counts[429]).toBeGreaterThan(0);
  expect((counts[401] ?? 0) + (counts[429] ?? 0)).toBe(60);
  // Those that were turned away did not count as guesses.
  expect(await push("user-0:guess", "127.0.0.2")).toMatchObject({ status: 401 });
});

test("X-Forwarded-For counts as the proxy wrote it, and not as the caller did", async () => {
  hub = await startTestHub({ trustProxy: true, tokenThrottle: { failures: 3 } });
  const guess = (forwarded: string) => signIn({ password: "no" }, "127.0.0.2", { "x-forwarded-for": forwarded });
  for (let index = 0; index < 3; index += 1)
    expect(await guess(`9.9.9.${index}, 7.7.7.7`)).toMatchObject({ status: 401 });
  expect(await guess("9.9.9.200, 7.7.7.7")).toMatchObject({ status: 429 });
  expect(await guess("9.9.9.200, 7.7.7.8")).toMatchObject({ status: 401 });
});

test("X-Forwarded-For of addresses that are no proxies counts for nothing", async () => {
  hub = await startTestHub({ trustProxy: ["127.0.0.4"], tokenThrottle: { failures: 3 } });
  const guess = (from: string, forwarded: string) => signIn({ password: "no" }, from, { "x-forwarded-for": forwarded });
  for (let index = 0; index < 3; index += 1)
    expect(await guess("127.0.0.2", `7.7.7.${index}`)).toMatchObject({ status: 401 });
  expect(await guess("127.0.0.2", "7.7.7.7")).toMatchObject({ status: 429 });
  expect(await guess("127.0.0.4", "7.7.7.7")).toMatchObject({ status: 401 });
});
