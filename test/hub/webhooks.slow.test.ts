import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Clock } from "#core/clock.ts";
import { createLog } from "#core/log.ts";
import { hubOptions } from "#hub/options.ts";
import { startWebhooks } from "#hub/push/webhooks.ts";
import { openSqliteStore } from "#hub/store/sqlite/index.ts";
import { openSqliteIngest } from "#hub/store/sqlite/ingest.ts";
import { accountWebhookKey, SIGNATURE_HEADER, verifyWebhook, webhookBody } from "#wire/index.ts";
import {
  createChain,
  type Received,
  SECRET,
  startReceiver,
  startTestHub,
  type TestHub,
  temporaryDirectory,
  until,
} from "./fixture.ts";

let hub: TestHub;
beforeEach(async () => {
  hub = await startTestHub({
    webhook: { secret: SECRET, backoff: "20ms", attempts: 3, hosts: ["127.0.0.1"] },
  });
});
afterEach(() => hub.close());

/** All that a caller is told, whatever the receiver did: anything more would tell about the network of the hub. */
const KEY = accountWebhookKey(SECRET, 1);
const NOT_TAKEN = "the receiver did not accept it";
const readings = (value: number) => [{ date: "2026-03-01T00:00:00Z", value }];
const signatureOf = ({ headers }: Received) => String(headers[SIGNATURE_HEADER]);

test("the outcome of a push is delivered to its webhookUrl, signed", async () => {
  const receiver = await startReceiver();
  try {
    const { variableIds } = await createChain(hub);
    const body = [
      { variableId: variableIds[0], data: readings(1) },
      { variableId: 9_999, data: readings(2) },
    ];
    await hub.post("/push/api/data", body, { query: { operationId: "op-1", webhookUrl: receiver.url } });
    const received = await until(async () => receiver.received[0]);
    expect(webhookBody.parse(JSON.parse(received.text))).toMatchObject({
      operationId: "op-1",
      account: "1",
      received: 2,
      stored: 1,
      replaced: 0,
      discarded: [{ target: "variableId=9999", reason: "no such variable in this account", count: 1 }],
    });
    const nowSeconds = Math.floor(Date.now() / 1_000);
    expect(verifyWebhook(received.text, KEY, signatureOf(received), nowSeconds)).toBeNull();
    expect(verifyWebhook(`${received.text} `, KEY, signatureOf(received), nowSeconds)).not.toBeNull();
    // The key of another account forges none.
    expect(await hub.get("/account/webhookKey")).toEqual({ account: 1, key: KEY });
    const other = await hub.get("/account/webhookKey", {}, { as: "second", account: 2 });
    expect(other).toEqual({ account: 2, key: accountWebhookKey(SECRET, 2) });
    for (const wrong of [other.key, SECRET])
      expect(verifyWebhook(received.text, wrong, signatureOf(received), nowSeconds)).not.toBeNull();
    const delivered = await until(async () => {
      const { webhook } = await hub.get("/operations/op-1");
      return webhook.state === "delivered" ? webhook : undefined;
    });
    expect(delivered).toMatchObject({ attempts: 1, error: null });
  } finally {
    await receiver.close();
  }
});

test("a failed delivery is retried until the receiver accepts it", async () => {
  const receiver = await startReceiver([503, 500]);
  try {
    await hub.post("/push/api/data", [], { query: { operationId: "op-2", webhookUrl: receiver.url } });
    await until(async () => receiver.received[2]);
    const texts = new Set(receiver.received.map(({ text }) => text));
    expect(texts.size).toBe(1);
  } finally {
    await receiver.close();
  }
});

test("after the configured attempts a delivery has failed permanently, and the operation reports it", async () => {
  const receiver = await startReceiver([500, 500, 500, 500]);
  try {
    await hub.post("/push/api/data", [], { query: { operationId: "op-3", webhookUrl: receiver.url } });
    const webhook = await until(async () => {
      const operation = await hub.get("/operations/op-3");
      return operation.webhook.state === "given-up" ? operation.webhook : undefined;
    });
    expect(webhook).toEqual({ state: "given-up", attempts: 3, error: NOT_TAKEN });
    expect(receiver.received).toHaveLength(3);
  } finally {
    await receiver.close();
  }
});

test("a waiting delivery is made after a restart", async () => {
  const patient = await startTestHub({ webhook: { backoff: "1s", timeout: "1s", hosts: ["127.0.0.1"] } });
  const receiver = await startReceiver([503]);
  try {
    await patient.post("/push/api/data", [], { query: { operationId: "op-4", webhookUrl: receiver.url } });
    await until(async () => (await patient.get("/operations/op-4")).webhook.error ?? undefined);
    await patient.restart();
    const second = await until(async () => receiver.received[1]);
    expect(JSON.parse(second.text)).toMatchObject({ operationId: "op-4" });
  } finally {
    await patient.close();
    await receiver.close();
  }
});

test.each(["ftp://127.0.0.1/x", "nonsense"])("the webhookUrl %s is refused by 400", async (webhookUrl) => {
  expect(await hub.call("POST", "/push/api/data", { query: { webhookUrl }, body: [] })).toMatchObject({
    status: 400,
  });
});

test("a redirect, and no response within the timeout, count as failures", async () => {
  const receiver = await startReceiver([302]);
  const silent = createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const hasty = await startTestHub({
    webhook: { backoff: "20ms", attempts: 2, timeout: "100ms", hosts: ["127.0.0.1"] },
  });
  try {
    const push = (at: TestHub, operationId: string, webhookUrl: string) =>
      at.post("/push/api/data", [], { query: { operationId, webhookUrl } });
    const ended = (at: TestHub, operationId: string) =>
      until(async () => {
        const { webhook } = await at.get(`/operations/${operationId}`);
        return ["delivered", "given-up"].includes(webhook.state) ? webhook : undefined;
      });
    // With a timeout that the receiver keeps also on a busy machine.
    await push(hub, "moved", receiver.url);
    expect(await ended(hub, "moved")).toMatchObject({ state: "delivered", attempts: 2 });
    await push(hasty, "silent", `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`);
    expect(await ended(hasty, "silent")).toMatchObject({
      state: "given-up",
      attempts: 2,
      error: NOT_TAKEN,
    });
  } finally {
    await hasty.close();
    await receiver.close();
    silent.closeAllConnections();
    silent.close();
  }
});

test("retries double their pause from one failure to the next, up to the longest", async () => {
  const receiver = await startReceiver([500, 500, 500, 500, 500]);
  const { path, remove } = await temporaryDirectory();
  const store = await openSqliteStore(join(path, "hub.sqlite"));
  const waits: number[] = [];
  let nowMs = Date.UTC(2026, 2, 1);
  const clock: Clock = {
    now: () => Temporal.Instant.fromEpochMilliseconds(nowMs),
    monotonicMs: () => nowMs,
    async sleep(ms, signal) {
      if (signal?.aborted === true) return false;
      // Waits for work that is not there last until the test ends.
      if (ms >= 60_000) return new Promise((resolve) => signal?.addEventListener("abort", () => resolve(false)));
      waits.push(ms);
      nowMs += ms;
      return true;
    },
  };
  const options = hubOptions.shape.webhook.parse({ backoff: "1s", backoffMax: "5s", hosts: ["127.0.0.1"] });
  const accepted = await store.operations.accept({
    accountId: 1,
    userId: 1,
    operationId: "op",
    idempotencyKey: null,
    digest: "",
    timeoutSec: 60,
    received: 0,
    webhookUrl: receiver.url,
    acceptedMs: nowMs,
    body: new Uint8Array(),
  });
  if (accepted.kind !== "accepted") throw new Error(accepted.kind);
  const ingest = openSqliteIngest(join(path, "hub.sqlite"), { byDefault: 7, byAccount: new Map() }, clock);
  const at = clock.now().toString();
  const outcome = { received: 0, stored: 0, replaced: 0, discarded: [], started: at, finished: at };
  await ingest.apply(await ingest.next(0, { readings: 1, bytes: 1 }), async () => [outcome]);
  await ingest.close();
  await store.operations.finish([accepted.seq]);
  const webhooks = startWebhooks(store, options, { log: createLog("silent"), clock });
  try {
    await until(async () => receiver.received[5]);
    expect(waits).toEqual([1_000, 2_000, 4_000, 5_000, 5_000]);
  } finally {
    await webhooks.close();
    await store.close();
    await receiver.close();
    await remove();
  }
});

test.each([
  "http://elsewhere.example.org/",
  "https://elsewhere.example.org:8443/",
  "https://10.0.0.1/",
  "https://169.254.169.254/latest/meta-data/",
  "https://[::ffff:127.0.0.1]/",
  "https://167772161/",
  "https://localhost./",
  "https://vault/",
  "https://db.internal/",
])(
  "a push with the webhookUrl %s, which is not allowed, is accepted with a warning, and nothing is sent",
  async (webhookUrl) => {
    const answer = await hub.call("POST", "/push/api/data", {
      query: { operationId: "kept", webhookUrl },
      body: [],
    });
    expect(answer).toMatchObject({ status: 200, body: { operationId: "kept", status: "accepted" } });
    expect(answer.headers.get("x-headgate-warning")).toMatch(/^webhookUrl: the outcome will not be sent to /);
    expect(await hub.settled("kept")).not.toHaveProperty("webhook");
  },
);

test("a receiver at a public address at port 443, or one that the hub lists, causes no warning", async () => {
  for (const webhookUrl of ["https://gateway.example.org/outcome", "https://8.8.8.8/", "http://127.0.0.1:9/"]) {
    const answer = await hub.call("POST", "/push/api/data", { query: { webhookUrl }, body: [] });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-headgate-warning")).toBeNull();
  }
});

test("receivers that never respond delay neither other hosts of their account nor other accounts", async () => {
  const silent: Server[] = [];
  const listen = async () => {
    const server = createServer(() => {});
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    silent.push(server);
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  };
  const crowded = await startTestHub({
    webhook: { backoff: "1h", timeout: "1h", concurrency: 4, hosts: ["127.0.0.1"] },
  });
  const receiver = await startReceiver();
  try {
    const push = (webhookUrl: string, more: object = {}) =>
      crowded.ok("POST", "/push/api/data", { body: [], query: { webhookUrl }, ...more });
    const [first, second] = [await listen(), await listen()];
    for (let count = 0; count < 10; count += 1) await push(first);
    await push(receiver.url);
    await until(async () => receiver.received[0]);
    // More hosts than there are deliveries at one time.
    for (const url of [second, await listen(), await listen(), await listen()]) await push(url);
    await push(receiver.url, { as: "second", account: 2 });
    await until(async () => receiver.received[1]);
  } finally {
    for (const server of silent) {
      server.closeAllConnections();
      server.close();
    }
    await crowded.close();
    await receiver.close();
  }
});
