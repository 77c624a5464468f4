import { once } from "node:events";
import { Agent, createServer, request } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { DatabaseSync } from "node:sqlite";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemCode } from "#core/errors.ts";
import { silentLog as log } from "#core/log.ts";
import { startHub } from "#hub/hub.ts";
import { hubOptions } from "#hub/options.ts";
import { callsOf, GRANT, rawOptions, temporaryDirectory, until } from "./fixture.ts";

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(() => directory.remove());

const optionsWith = (more: object = {}) => hubOptions.parse(rawOptions(directory.path, more));

test("a taken port names the address, and permits another attempt", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    const listen = `127.0.0.1:${port}`;
    await expect(startHub(optionsWith({ listen }), { log })).rejects.toMatchObject({
      name: "TransientError",
      code: "HG-CONF-004",
      subject: listen,
    });
  } finally {
    server.close();
  }
});

test("a store in use by another hub is refused, and free again when that one ends", async () => {
  const first = await startHub(optionsWith(), { log });
  await expect(startHub(optionsWith(), { log })).rejects.toMatchObject({ code: "HG-HUB-003" });
  await first.close();
  await (await startHub(optionsWith(), { log })).close();
});

test("a hub that shuts down completes running requests, and does not wait for idle clients", async () => {
  const hub = await startHub(optionsWith(), { log });
  const authorization = `Bearer ${await callsOf(() => hub.url).token()}`;
  const headers = { authorization, "content-type": "application/json", expect: "100-continue" };
  const agent = new Agent({ keepAlive: true });
  try {
    const asking = request(`${hub.url}/sites`, { method: "POST", headers, agent });
    asking.flushHeaders();
    await once(asking, "continue");
    const closed = hub.close();
    await until(async () => (await isRefused(hub.url)) || undefined);
    asking.end(JSON.stringify({ name: "Site", typeId: 3, timeZoneId: "Europe/Paris" }));
    const [response] = await once(asking, "response");
    expect(response.statusCode).toBe(200);
    expect(Number(await text(response))).toBeGreaterThan(0);
    await closed;
  } finally {
    agent.destroy();
  }
});

async function isRefused(url: string): Promise<boolean> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  try {
    await once(socket, "connect");
    return false;
  } catch (thrown) {
    return systemCode(thrown) === "ECONNREFUSED";
  } finally {
    socket.destroy();
  }
}

test("a hub that is closed twice closes once", async () => {
  const hub = await startHub(optionsWith(), { log });
  await Promise.all([hub.close(), hub.close()]);
  await hub.close();
});

test.each([
  ["a newer version wrote", "INSERT INTO migration VALUES (999, '999-later.sql', '')", "hub.sqlite"],
  ["another state of the schema made", "UPDATE migration SET digest = ''", "hub.sqlite"],
  ["another state of the schema made in its queue", "UPDATE migration SET digest = ''", "hub.sqlite.intake"],
])("a store that %s is refused and not changed", async (_who, change, file) => {
  await (await startHub(optionsWith(), { log })).close();
  const database = new DatabaseSync(`${directory.path}/${file}`);
  database.exec(change);
  database.close();
  await expect(startHub(optionsWith(), { log })).rejects.toMatchObject({
    code: "HG-HUB-002",
    message: expect.stringContaining(file),
  });
});

test("a store that cannot be created is a configuration error", async () => {
  const store = { kind: "sqlite", path: "/dev/null/hub.sqlite" };
  await expect(startHub(optionsWith({ store }), { log })).rejects.toMatchObject({ code: "HG-HUB-001" });
});

test("a user of an account that does not exist is a configuration error", async () => {
  const users = [{ username: "u", password: "p-password", accounts: [7] }];
  await expect(startHub(optionsWith({ users }), { log })).rejects.toMatchObject({ code: "HG-HUB-004" });
});

test("a user who left the configuration can no longer sign in, and a changed password takes effect", async () => {
  await (await startHub(optionsWith(), { log })).close();
  const users = [{ username: "manager", password: "changed-password", accounts: [1], roles: ["Manager"] }];
  const hub = await startHub(optionsWith({ users }), { log });
  try {
    const { form } = callsOf(() => hub.url);
    const status = async (username: string, password: string) =>
      (await form({ ...GRANT, scope: "datahub-api", username, password })).status;
    expect(await status("plain", "plain-password")).toBe(401);
    expect(await status("manager", "manager-password")).toBe(401);
    expect(await status("manager", "changed-password")).toBe(200);
  } finally {
    await hub.close();
  }
});

test("GET /health needs no token", async () => {
  const hub = await startHub(optionsWith(), { log });
  try {
    const response = await fetch(`${hub.url}/health`);
    expect(await response.json()).toEqual({ status: "ok", pendingOperations: 0, failedOperations: 0 });
  } finally {
    await hub.close();
  }
});
