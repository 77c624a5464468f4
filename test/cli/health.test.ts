import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { commandOf } from "#app/cli/health.ts";
import { headgate } from "../e2e/processes.ts";
import { GatewayRig, trigger } from "../runs/gateway-rig.ts";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let rig: GatewayRig;
beforeEach(async () => {
  rig = await GatewayRig.start();
});
afterEach(() => rig.close());

test("a running gateway is healthy, and a stopped one is not", async () => {
  rig.configure({});
  expect((await headgate(["health", "gateway", "-c", rig.config])).code).toBe(1);
  await rig.open({});
  const { code, stdout } = await headgate(["health", "gateway", "-c", rig.config]);
  expect(code, stdout).toBe(0);
});

test("the configuration without -c is that of the other commands", async () => {
  rig.configure({});
  await rig.open({});
  const through = ["env", `HEADGATE_CONFIG=${rig.config}`];
  const { code, stdout, stderr } = await headgate(["health", "gateway"], { through });
  expect(code, stdout + stderr).toBe(0);
});

test("a hub is queried at the address of its configuration", async () => {
  const server = createServer((_request, response) => void response.end("{}")).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  rig.put("hub.yaml", `listen: 0.0.0.0:${port}\nstore: { kind: sqlite, path: ./x.sqlite }\n`);
  const config = `${rig.folder}/hub.yaml`;
  expect((await headgate(["health", "hub", "-c", config])).code).toBe(0);
  await new Promise((resolve) => server.close(resolve));
  expect((await headgate(["health", "hub", "-c", config])).code).toBe(1);
});

test.each([
  [
    ["node", "/opt/headgate/src/main.ts", "gateway", "-c", "/etc/headgate/gateway.yaml"],
    "gateway",
    "/etc/headgate/gateway.yaml",
  ],
  [["node", "/opt/headgate/src/main.ts", "hub", "--config=/x/hub.yaml", ""], "hub", "/x/hub.yaml"],
  [["node", "/opt/headgate/src/main.ts", "hub"], "hub", undefined],
])("the first process %j determines the container", (words, kind, config) => {
  expect(commandOf(words)).toEqual({ kind, config });
});

test("`runs --waiting` lists paused triggers, beside a gateway and without one", async () => {
  const gateway = await rig.open({ triggers: [trigger("standard")] });
  expect((await headgate(["pause", "standard", "--reason", "the mapper changes", "-c", rig.config])).code).toBe(0);
  const ask = async () => JSON.parse((await headgate(["runs", "--waiting", "--json", "-c", rig.config])).stdout);
  const paused = expect.objectContaining({
    trigger: "standard",
    state: "paused",
    reason: expect.stringContaining("the mapper changes"),
  });
  expect(await ask()).toEqual([paused]);
  await gateway.stop();
  expect(await ask()).toEqual([paused]);
  expect((await headgate(["runs", "--waiting", "-c", rig.config])).stdout).toContain("the trigger standard is paused");
});
