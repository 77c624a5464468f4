import { connect } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startHub } from "../../src/hub/hub.ts";
import { hubRegistry } from "../../src/hub/metrics.ts";
import { hubOptions } from "../../src/hub/options.ts";
import { silentLog as log } from "../../src/support/log.ts";
import { rawOptions, temporaryDirectory } from "./fixture.ts";

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
