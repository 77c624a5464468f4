/** A gateway with a hub and a receiver: what needs attention is told, once, also over a restart. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { drop, GatewayRig, oneReading, trigger, until } from "../runs/gateway-rig.ts";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

interface Told {
  readonly text: string;
  readonly items: readonly { readonly kind: string; readonly file?: string; readonly drop?: string }[];
}

let rig: GatewayRig;
let server: Server;
let told: Told[];

beforeEach(async () => {
  told = [];
  rig = await GatewayRig.start();
  server = createServer((request, response) => {
    let body = "";
    request.on("data", (part) => {
      body += part;
    });
    request.on("end", () => {
      told.push(JSON.parse(body) as Told);
      response.end();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterEach(async () => {
  await rig.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const kinds = (some: readonly Told[]) =>
  some.flatMap(({ items }) => items.map(({ kind, file }) => `${kind} ${file ?? ""}`.trim())).toSorted();

test("files at rest, and an unavailable drop and service, are notified once, over two starts", async () => {
  const { port } = server.address() as AddressInfo;
  const sections = {
    services: [rig.service("hub"), rig.service("dead", "http://127.0.0.1:9")],
    drops: [drop("in"), drop("gone", { path: "/nowhere/at/all", backoffMax: "200ms" })],
    triggers: [
      trigger("standard", { service: "hub" }),
      trigger("to the dead", {
        service: "dead",
        fileNamePatternMatches: [{ filterType: "EndsWith", value: ".dead" }],
      }),
    ],
    notifications: {
      receivers: [{ name: "programs", kind: "webhook", url: `http://127.0.0.1:${port}/` }],
      unreachableAfter: "0s",
      every: "0s",
      group: "0s",
    },
  };
  const variable = await rig.variable("a");
  rig.put("in/bad.csv", `variable_id,date,value\n${variable},2026-03-01T00:00:00Z,no number\n`);
  rig.put("in/missing.csv", oneReading(999_999, 1));
  rig.put("in/a.dead", oneReading(variable, 1));
  const first = await rig.open(sections);
  await until("all rests or waits", async () => {
    const { files } = await first.summary();
    return files.quarantined === 1 && files.held === 1 && first.serviceWaits().has("dead");
  });
  await first.stop();
  expect(kinds(told)).toEqual(["drop", "held missing.csv", "quarantined bad.csv", "service"]);

  const before = told.length;
  rig.put("in/worse.csv", `variable_id,date,value\n${variable},2026-03-02T00:00:00Z,no number\n`);
  const second = await rig.open(sections);
  await until("it rests, too", async () => (await second.summary()).files.quarantined === 2);
  await second.stop();
  expect(kinds(told.slice(before))).toEqual(["quarantined worse.csv"]);
});
