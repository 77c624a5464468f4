/** Delivery against the real hub, journalled by the real ledger. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { pushOptions, type ServiceOptions, serviceOptions } from "#gateway/delivery/options.ts";
import { type ReportedOutcome, readOutcomeWebhook } from "#gateway/delivery/outcomes.ts";
import { createDelivery } from "#gateway/delivery/service-delivery.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { openLedger } from "#gateway/ledger/open.ts";
import type { Batch, PushElement, Run } from "#gateway/model.ts";
import { segmentChanges } from "#gateway/spool/segment-changes.ts";
import { accountWebhookKey, SIGNATURE_HEADER } from "#wire/index.ts";
import { SECRET, startTestHub, type TestHub, temporaryDirectory } from "../hub/fixture.ts";
import { BINDING, claimed } from "../ledger/fixtures.ts";
import { element, never, writeSegment } from "./setup.ts";

let hub: TestHub;
let ledger: Ledger;
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeEach(async () => {
  hub = await startTestHub();
  directory = await temporaryDirectory();
  ledger = await openOne("ledger");
});

const openOne = (name: string) =>
  openLedger({ kind: "sqlite", path: join(directory.path, `${name}.sqlite`) }, { clock: systemClock, log: silentLog });

afterEach(async () => {
  await ledger.close();
  await hub.close();
  await directory.remove();
});

function service(change: Record<string, unknown> = {}): ServiceOptions {
  return serviceOptions.parse({
    name: "main",
    base: hub.url(),
    push: `${hub.url()}/push`,
    token: `${hub.url()}/connect/token`,
    account: "1",
    credentials: {
      clientId: "gateway",
      clientSecret: "gateway-secret",
      username: "manager",
      password: "manager-password",
    },
    ...change,
  });
}

function delivery(options: ServiceOptions = service(), webhook: { url: string } | null = null) {
  const push = pushOptions.parse({ retry: { initial: "20ms" } });
  return createDelivery(options, push, {
    journal: ledger,
    segments: segmentChanges,
    log: silentLog,
    webhook,
  });
}

async function structure(serialNumber: string, isVersioned: boolean): Promise<number> {
  const siteId = await hub.post("/sites", { name: "Site", typeId: 1, timeZoneId: "Europe/Brussels" });
  const source = await hub.post("/sources", { name: serialNumber, siteId, serialNumber, sourceTypeId: 1 });
  const body = {
    name: "kWh",
    sourceId: source.id,
    variableTypeId: 1,
    unitId: 1,
    mappingConfig: "kWh",
    isVersioned,
  };
  return await hub.post("/variables", body);
}

async function mapped(
  path: string,
  batches: PushElement[][],
  binding = BINDING,
): Promise<{ run: Run; segmentPath: string }> {
  const { id } = await claimed(ledger, path, "lane", binding);
  await ledger.advanceRun(id, "claimed", "fetched", { sha256: path });
  await ledger.advanceRun(id, "fetched", "mapping");
  const segmentPath = join(directory.path, `${id}.segment`);
  const slices = await writeSegment(segmentPath, batches);
  await ledger.recordMapped(id, {
    batches: slices,
    points: slices.reduce((sum, { points }) => sum + points, 0),
    rejected: [],
    rejectedCount: 0,
    findings: [],
    targets: [],
    detail: "",
  });
  return { run: await ledger.advanceRun(id, "mapped", "delivering"), segmentPath };
}

describe("delivery to the hub", () => {
  it("finds the rights of the user", async () => {
    const all = delivery();
    expect((await all.probe(never)).map(({ level }) => level)).toEqual(["ok", "ok", "ok", "ok", "ok"]);
    await all.close();
    const plain = delivery(
      service({ credentials: { ...service().credentials, username: "plain", password: "plain-password" } }),
    );
    expect((await plain.probe(never)).map(({ level }) => level)).toEqual(["ok", "failed", "ok", "ok", "ok"]);
    await plain.close();
  });

  it("pushes, reads back every reading by date, value and version, and names what the hub discarded", async () => {
    await structure("plain", false);
    await structure("versioned", true);
    const batches = [
      [element("plain", 300), { ...element("versioned", 20), version: "V1" }],
      [{ ...element("versioned", 20), version: "V2" }, element("unknown", 4)],
    ];
    const { run, segmentPath } = await mapped("month.csv", batches);
    const through = delivery();
    expect(await through.deliver(run, segmentPath, never)).toMatchObject({
      status: "accepted",
      points: 344,
      recorded: { id: run.id, state: "accepted" },
    });
    for (const { operationId } of await ledger.batches(run.id)) await hub.settled(operationId);
    const read = await through.readBack(run, segmentPath, never);
    expect(read).toMatchObject({
      status: "read",
      missing: 4,
      outcomes: [
        { received: 320, stored: 320, discarded: [] },
        {
          received: 24,
          stored: 20,
          discarded: [
            { target: "sourceSerialNumber=unknown mappingConfig=kWh", reason: "unknown variable", points: 4 },
          ],
        },
      ],
    });
    await through.close();
  });

  it("receives outcomes by webhook, in the same words as by reading back", async () => {
    await structure("plain", false);
    const told: (ReportedOutcome | { refused: string })[] = [];
    const receiver = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const signature = request.headers[SIGNATURE_HEADER];
      told.push(
        readOutcomeWebhook({
          body: Buffer.concat(chunks),
          signature: typeof signature === "string" ? signature : undefined,
          secret: accountWebhookKey(SECRET, 1),
          nowSeconds: Date.now() / 1000,
        }),
      );
      response.end();
    });
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/webhooks/outcome`;
    const through = delivery(service(), { url });
    const { run, segmentPath } = await mapped("day.csv", [[element("plain", 24), element("unknown", 3)]]);
    await through.deliver(run, segmentPath, never);
    await expect.poll(() => told).toHaveLength(1);
    const outcome = { by: "webhook", received: 27, stored: 24, discarded: [{ points: 3 }] };
    expect(told).toMatchObject([{ account: "1", outcome }]);
    const read = await through.readBack(run, segmentPath, never);
    const target = { target: "sourceSerialNumber=unknown mappingConfig=kWh" };
    expect(told).toMatchObject([{ outcome: { discarded: [target] } }]);
    expect(read).toMatchObject({ outcomes: [{ stored: 24, discarded: [target] }] });
    await through.close();
    receiver.closeAllConnections();
    await new Promise((resolve) => receiver.close(resolve));
  });

  it("splits a batch that is too large for the hub, and every reading is stored", async () => {
    await hub.close();
    hub = await startTestHub({ limits: { body: "4KB" } });
    const variableId = await structure("plain", false);
    const { run, segmentPath } = await mapped("large.csv", [[element("plain", 400)]]);
    const through = delivery();
    expect(await through.deliver(run, segmentPath, never)).toMatchObject({
      status: "accepted",
      points: 400,
      recorded: { id: run.id, state: "accepted" },
    });
    const leaves = (await ledger.batches(run.id)).filter(({ state }) => state === "accepted");
    expect(leaves.length).toBeGreaterThan(4);
    for (const { operationId } of leaves) await hub.settled(operationId);
    expect(await through.readBack(run, segmentPath, never)).toMatchObject({ missing: 0 });
    expect(await hub.get("/data", { VariableId: variableId })).toHaveLength(400);
    await through.close();
  });
});

describe("a delivery that came before, from a ledger that was lost", () => {
  const binding = { ...BINDING, address: "file:///srv/drop" };
  const deliverOnce = async (path: string, batches: PushElement[][]) => {
    const { run, segmentPath } = await mapped(path, batches, binding);
    const through = delivery();
    expect(await through.deliver(run, segmentPath, never)).toMatchObject({ status: "accepted" });
    const operations = (await ledger.batches(run.id)).filter(({ state }) => state === "accepted");
    await through.close();
    return { run, operations };
  };
  const applied = async (operations: readonly Batch[]) => {
    for (const { operationId, repeats } of operations) if (repeats === null) await hub.settled(operationId);
  };
  const loseLedger = async () => {
    await ledger.close();
    ledger = await openOne(`ledger-${Math.random()}`);
  };
  const versions = async (variableId: number) =>
    await hub.get("/data", { VariableId: variableId, AllVersions: true, "Paging.ItemsPerPage": 1_000 });

  it("is recognised by the service, and stored once: run and trace say by which operation", async () => {
    const id = await structure("history", true);
    const batches = [[element("history", 20)], [element("history", 20, 20)]];
    const { operations } = await deliverOnce("a.csv", batches);
    await loseLedger();
    const second = await deliverOnce("a.csv", batches);
    await applied(operations);
    expect(second.operations).toMatchObject(
      operations.map(({ operationId }) => ({ repeats: operationId, answer: `already delivered by ${operationId}` })),
    );
    expect((await ledger.events(second.run.arrivalId)).at(-1)?.detail).toMatch(
      /^40 points accepted by main, 40 of which were already delivered by .*-[12]$/,
    );
    expect(await versions(id)).toHaveLength(40);
  });

  it("is sent only where points were removed since, and no other is stored a second time", async () => {
    const id = await structure("history", true);
    const batches = [[element("history", 64)], [element("history", 64, 64)]];
    const { operations } = await deliverOnce("a.csv", batches);
    await applied(operations);
    const [from, to] = [new Date(Date.UTC(2026, 0, 1, 10)), new Date(Date.UTC(2026, 0, 1, 13))];
    const query = { VariableIds: id, FromDateUtc: from.toISOString(), ToDateUtc: to.toISOString() };
    await hub.ok("DELETE", "/data", { query });
    const left = (await versions(id)).length;
    expect(left).toBeLessThan(128);
    await loseLedger();
    const second = await deliverOnce("a.csv", batches);
    await applied(second.operations);
    expect(
      second.operations.filter(({ repeats }) => repeats === null).reduce((sum, { points }) => sum + points, 0),
    ).toBe(128 - left);
    expect(await versions(id)).toHaveLength(128);
    await loseLedger();
    await applied((await deliverOnce("a.csv", batches)).operations);
    expect(await versions(id)).toHaveLength(128);
  });

  it("is sent as a new operation when the earlier one was discarded and its variable exists by now", async () => {
    const batches = [[element("history", 20)]];
    await applied((await deliverOnce("a.csv", batches)).operations);
    const id = await structure("history", true);
    await loseLedger();
    const second = await deliverOnce("a.csv", batches);
    expect(second.operations).toMatchObject([{ repeats: null }]);
    await applied(second.operations);
    expect(await versions(id)).toHaveLength(20);
    await loseLedger();
    expect((await deliverOnce("a.csv", batches)).operations[0]?.repeats).not.toBeNull();
    expect(await versions(id)).toHaveLength(20);
  });

  it("does not replace the correction that came after it", async () => {
    const id = await structure("latest", false);
    const correction = element("latest", 20);
    const corrected = { ...correction, data: correction.data.map(({ date }) => ({ date, value: -1 })) };
    await applied((await deliverOnce("a.csv", [[element("latest", 20)]])).operations);
    await applied((await deliverOnce("b.csv", [[corrected]])).operations);
    await loseLedger();
    expect((await deliverOnce("a.csv", [[element("latest", 20)]])).operations[0]?.repeats).not.toBeNull();
    const rows: { rawValue: number }[] = await hub.get("/data", { VariableId: id });
    expect(new Set(rows.map(({ rawValue }) => rawValue))).toEqual(new Set([-1]));
  });
});
