import { afterEach, beforeEach, expect, test } from "vitest";
import { SIGNATURE_HEADER, verifyWebhook, webhookBody } from "../../src/wire/index.ts";
import {
  createChain,
  type Received,
  SECRET,
  startReceiver,
  startTestHub,
  type TestHub,
  until,
} from "./fixture.ts";

let hub: TestHub;
beforeEach(async () => {
  hub = await startTestHub({
    webhook: { secret: SECRET, backoff: "20ms", attempts: 3, hosts: ["127.0.0.1"] },
  });
});
afterEach(() => hub.close());

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
    expect(verifyWebhook(received.text, SECRET, signatureOf(received), nowSeconds)).toBeNull();
    expect(verifyWebhook(`${received.text} `, SECRET, signatureOf(received), nowSeconds)).not.toBeNull();
    const delivered = await until(async () => {
      const { webhook } = await hub.get("/operations/op-1");
      return webhook.state === "delivered" ? webhook : undefined;
    });
    expect(delivered).toMatchObject({ attempts: 1, error: null });
  } finally {
    await receiver.close();
  }
});

test("a delivery that fails is tried again until the receiver takes it", async () => {
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

test("after the configured attempts a delivery is given up, and the operation says so", async () => {
  const receiver = await startReceiver([500, 500, 500, 500]);
  try {
    await hub.post("/push/api/data", [], { query: { operationId: "op-3", webhookUrl: receiver.url } });
    const webhook = await until(async () => {
      const operation = await hub.get("/operations/op-3");
      return operation.webhook.state === "given-up" ? operation.webhook : undefined;
    });
    expect(webhook).toEqual({ state: "given-up", attempts: 3, error: "answered by 500" });
    expect(receiver.received).toHaveLength(3);
  } finally {
    await receiver.close();
  }
});

test("a delivery that waits is made after a restart", async () => {
  const patient = await startTestHub({ webhook: { backoff: "1s", timeout: "1s" } });
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

test.each(["ftp://127.0.0.1/x", "nonsense", "http://elsewhere.example.org/"])(
  "the webhookUrl %s is refused by 400",
  async (webhookUrl) => {
    expect(await hub.call("POST", "/push/api/data", { query: { webhookUrl }, body: [] })).toMatchObject({
      status: 400,
    });
  },
);
