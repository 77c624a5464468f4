import { connect } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLog as log } from "#core/log.ts";
import { startHub } from "#hub/hub.ts";
import { hubRegistry } from "#hub/metrics.ts";
import { hubOptions } from "#hub/options.ts";
import { LITTLE_HASHING as hashCost } from "../support/hash-cost.ts";
import { callsOf, createChain, GRANT, rawOptions, startReceiver, temporaryDirectory } from "./fixture.ts";

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(() => directory.remove());

const optionsWith = (metrics: object) => hubOptions.parse(rawOptions(directory.path, { metrics }));

test(
  "a separate listener reports requests and operations to holders of the token; the clients' address " + "does not",
  async () => {
    const token = "a token of sixteen characters";
    const hub = await startHub(optionsWith({ listen: "127.0.0.1:0", token }), { log });
    try {
      await fetch(`${hub.url}/health`);
      const at = `${hub.metricsUrl}/metrics`;
      expect((await fetch(at)).status).toBe(401);
      expect((await fetch(at, { headers: { authorization: "Bearer another" } })).status).toBe(401);
      const text = await (await fetch(at, { headers: { authorization: `Bearer ${token}` } })).text();
      expect(text).toMatch(/^headgate_hub_request_duration_seconds_count\{method="GET",status="2xx"\} [1-9]/m);
      expect(text).toMatch(/^headgate_hub_operations_pending 0$/m);
      expect(text).toMatch(/^headgate_hub_operations_failed 0$/m);
      const described = hubRegistry().getMetricsAsArray();
      expect([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)).toEqual(described.map(({ name }) => name));
      expect((await fetch(`${hub.url}/metrics`)).status).toBe(404);
    } finally {
      await hub.close();
    }
  },
);

test("readings are counted by end, refused sign-ins by reason, and outcomes until they are delivered", async () => {
  const receiver = await startReceiver(Array.from({ length: 50 }, () => 503));
  const webhook = { hosts: [new URL(receiver.url).host], backoff: "1h", backoffMax: "1h" };
  const raw = rawOptions(directory.path, { metrics: { listen: "127.0.0.1:0" }, webhook });
  const hub = await startHub(hubOptions.parse(raw), { log, hashCost });
  const shown = async (name: string) => {
    const text = await (await fetch(`${hub.metricsUrl}/metrics`)).text();
    const line = text.split("\n").find((one) => one.startsWith(`${name} `));
    return Number(line?.slice(name.length + 1));
  };
  try {
    expect(await shown("headgate_hub_oldest_pending_seconds")).toBe(0);
    expect(await shown('headgate_hub_readings_total{end="stored"}')).toBe(0);
    const calls = callsOf(() => hub.url);
    const { variableIds } = await createChain(calls);
    const data = [1, 2].map((value) => ({ date: `2026-03-0${value}T00:00:00Z`, value }));
    const body = [
      { variableId: variableIds[0], data },
      { variableId: 999_999, data: data.slice(1) },
    ];
    await calls.post("/push/api/data", body, { query: { operationId: "a", webhookUrl: receiver.url } });
    await expect.poll(() => shown('headgate_hub_readings_total{end="stored"}')).toBe(2);
    expect(await shown('headgate_hub_readings_total{end="discarded"}')).toBe(1);
    await expect.poll(() => receiver.received.length).toBeGreaterThan(0);
    expect(await shown("headgate_hub_webhooks_due")).toBe(1);
    const grant = new URLSearchParams({ ...GRANT, username: "manager", password: "guessed", scope: "datahub-api" });
    await fetch(`${hub.url}/connect/token`, { method: "POST", body: grant });
    expect(await shown('headgate_hub_sign_ins_refused_total{reason="wrong"}')).toBe(1);
    expect(await shown('headgate_hub_sign_ins_refused_total{reason="throttled"}')).toBe(0);
  } finally {
    await hub.close();
    await receiver.close();
  }
});

test("alarms are counted by severity and state while they are present", async () => {
  const hub = await startHub(optionsWith({ listen: "127.0.0.1:0" }), { log, hashCost });
  const shown = async () => {
    const text = await (await fetch(`${hub.metricsUrl}/metrics`)).text();
    const found = text.matchAll(/^headgate_hub_alarms\{severity="(\w+)",state="(\w+)"\} ([1-9]\d*)$/gm);
    return [...found].map(([, severity, state, count]) => [severity, state, count]);
  };
  try {
    const calls = callsOf(() => hub.url);
    const { variableIds } = await createChain(calls);
    const body = { name: "A", severity: "Critical", selection: { variableIds }, condition: { kind: "Above", set: 5 } };
    await calls.post("/alarms/template", body);
    expect(await shown()).toEqual([]);
    await calls.push([{ variableId: variableIds[0], data: [{ date: "2026-03-01T00:00:00Z", value: 9 }] }]);
    await expect.poll(shown).toEqual([["Critical", "Present", "1"]]);
    const [{ id }] = await calls.get("/alarms");
    await calls.post(`/alarms/${id}/acknowledge`, {});
    await expect.poll(shown).toEqual([["Critical", "Acknowledged", "1"]]);
    await calls.push([{ variableId: variableIds[0], data: [{ date: "2026-03-02T00:00:00Z", value: 1 }] }]);
    await expect.poll(shown).toEqual([]);
  } finally {
    await hub.close();
  }
});

test("no listener starts without an address, and beyond loopback a token is required", async () => {
  const hub = await startHub(optionsWith({}), { log });
  expect(hub.metricsUrl).toBeNull();
  await hub.close();
  expect(() => optionsWith({ listen: "0.0.0.0:9465" })).toThrow(/metrics\.listen/);
});

test("its listener accepts no more connections than configured", async () => {
  const raw = rawOptions(directory.path, { metrics: { listen: "127.0.0.1:0" }, http: { connections: 2 } });
  const hub = await startHub(hubOptions.parse(raw), { log });
  const port = Number(new URL(hub.metricsUrl ?? "").port);
  const held = [connect(port, "127.0.0.1"), connect(port, "127.0.0.1")];
  try {
    await Promise.all(held.map((socket) => new Promise((resolve) => socket.once("connect", resolve))));
    await expect(fetch(`${hub.metricsUrl}/health`)).rejects.toThrow();
  } finally {
    for (const socket of held) socket.destroy();
    await hub.close();
  }
});
