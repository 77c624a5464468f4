/** Events with several hubs over one PostgreSQL, and when a hub is killed in the middle of a delivery. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { silentLog as log } from "#core/log.ts";
import { type RunningHub, startHub } from "#hub/hub.ts";
import { hubOptions } from "#hub/options.ts";
import { addEvents } from "#hub/store/events/events.ts";
import type { HubStore } from "#hub/store/store.ts";
import type { EventDelivery } from "#wire/index.ts";
import { LITTLE_HASHING as hashCost } from "../../support/hash-cost.ts";
import { callsOf, rawOptions, startReceiver, temporaryDirectory, usePostgres } from "../fixture.ts";
import { HubProcess } from "../hub-process.ts";

const WEBHOOK = { webhook: { backoff: "20ms", hosts: ["127.0.0.1"] } };
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(() => directory.remove());

const storeOf = (hub: RunningHub) => hub.inside.store as HubStore;
const upTo = (count: number) => Array.from({ length: count }, (_, at) => at + 1);
const idsOf = (texts: readonly { readonly text: string }[]) =>
  texts.flatMap(({ text }) => (JSON.parse(text) as EventDelivery).events.map(({ id }) => id));

describe("a hub that is killed while a receiver has its delivery", () => {
  test("delivers the same event again when it starts, and then the rest", async () => {
    const taken: string[] = [];
    let isSilent = true;
    const receiver = createServer(async (request, response) => {
      taken.push(Buffer.concat(await request.toArray()).toString("utf8"));
      if (!isSilent) response.writeHead(204).end();
    });
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    const hubProcess = new HubProcess("hub", WEBHOOK);
    try {
      const hub = await hubProcess.run(directory.path);
      const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
      await hub.post("/events/subscriptions", { name: "W", types: ["structure.changed"], url });
      for (const name of ["A", "B"]) await hub.post("/groups", { name });
      await expect.poll(() => taken.length).toBe(1);
      await hubProcess.end("SIGKILL");
      isSilent = false;
      const again = await hubProcess.run(directory.path);
      await expect.poll(() => again.get("/events/subscriptions/1")).toMatchObject({ behind: 0, state: "Active" });
      expect(idsOf(taken.map((text) => ({ text })))).toEqual([1, 1, 2]);
    } finally {
      await hubProcess.end("SIGKILL");
      receiver.closeAllConnections();
      receiver.close();
    }
  });
});

describe("two hubs over one schema", () => {
  test("number events of many writers without a gap, and readers see each once, in order", async () => {
    await usePostgres();
    const options = hubOptions.parse(rawOptions(directory.path, WEBHOOK));
    const hubs = [await startHub(options, { log, hashCost }), await startHub(options, { log, hashCost })];
    const receiver = await startReceiver([503]);
    try {
      const calls = hubs.map((hub) => callsOf(() => hub.url));
      const body = { name: "W", types: ["file.state"], url: receiver.url, batch: 20 };
      await calls[0]?.post("/events/subscriptions", body);
      const total = 400;
      const event = (at: number) => ({
        ...({ accountId: 1, type: "file.state", atMs: Date.now() } as const),
        subject: { kind: "file", id: at, name: `${at}` } as const,
      });
      const writing = Promise.all(
        upTo(total / 2).map((at) => {
          const hub = hubs[at % 2];
          return hub && storeOf(hub).people.change(() => addEvents([event(at), event(-at)]));
        }),
      );
      const read: number[] = [];
      for (let after = 0; after < total; ) {
        const page = await calls[1]?.get("/events", { after, limit: 7, waitSec: 10 });
        read.push(...page.events.map(({ id }: { id: number }) => id));
        after = page.next;
      }
      await writing;
      expect(read).toEqual(upTo(total));
      await expect.poll(() => calls[0]?.get("/events/subscriptions/1")).toMatchObject({ behind: 0, state: "Active" });
      // Repeats are of one delivery as a whole; each hub continues where the other one stopped.
      const sent = idsOf(receiver.received);
      expect([...new Set(sent)]).toEqual(upTo(total));
      expect(await calls[1]?.get("/events/subscriptions/1")).toMatchObject({ lostTo: null, attempts: 0 });
    } finally {
      for (const hub of hubs) await hub.close();
      await receiver.close();
    }
  });
});
