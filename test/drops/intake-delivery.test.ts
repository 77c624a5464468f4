/** What was sent to the intake while the service was away is stored exactly once when it is back. */
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { silentLog } from "#core/log.ts";
import { type RunningHub, startHub } from "#hub/hub.ts";
import { type HubOptions, hubOptions } from "#hub/options.ts";
import { callsOf, createChain, type HubCalls, rawOptions, temporaryDirectory } from "../hub/fixture.ts";
import { LITTLE_HASHING } from "../support/hash-cost.ts";
import { basic, freePort, GUID, IntakeRig, pushBody, upload } from "./intake-rig.ts";

/** A hub that comes and goes at one address. */
class Service {
  readonly url: string;
  readonly calls: HubCalls;
  readonly #options: HubOptions;
  #running: RunningHub | null = null;

  constructor(directory: string, port: number) {
    this.url = `http://127.0.0.1:${port}`;
    this.calls = callsOf(() => this.url);
    const listen = `127.0.0.1:${port}`;
    this.#options = hubOptions.parse({
      ...rawOptions(directory),
      listen,
      store: { kind: "sqlite", path: join(directory, "hub.sqlite") },
    });
  }

  async comes(): Promise<void> {
    this.#running = await startHub(this.#options, { log: silentLog, hashCost: LITTLE_HASHING });
  }

  async goes(): Promise<void> {
    await this.#running?.close();
    this.#running = null;
  }

  /** Values of all versions by date. */
  async stored(variableId: number): Promise<readonly [string, number][]> {
    const rows: { date: string; rawValue: number }[] = await this.calls.get("/data", {
      VariableId: variableId,
      DisplayLevel: "ValueVariableDate",
      AllVersions: true,
      TimeZoneId: "UTC",
    });
    return rows.map(({ date, rawValue }) => [new Date(date).toISOString(), rawValue]);
  }
}

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

async function setUp(variables: readonly object[]) {
  const { path, remove } = await temporaryDirectory();
  undo.push(remove);
  const service = new Service(path, await freePort());
  undo.push(() => service.goes());
  await service.comes();
  const { variableIds } = await createChain(service.calls, {
    source: { serialNumber: "M-1" },
    variables: variables.map((one) => ({ isVersioned: true, ...one })),
  });
  const rig = await IntakeRig.start(service.url);
  undo.push(() => rig.close());
  return { service, rig, ids: variableIds };
}

const hour = (nth: number) => new Date(Date.UTC(2026, 2, 1, nth)).toISOString();

it("delivers the flat bodies of older clients as pushes, and refuses another shape with its place", async () => {
  const { service, rig, ids } = await setUp([{}, {}]);
  const [first = 0, second = 0] = ids;
  const Data = [
    { VariableId: first, Date: hour(0), Value: 1 },
    { variableid: second, DATE: hour(0), value: 2 },
    { VariableId: first, Date: hour(1), Value: 3 },
  ];
  for (const path of ["/api/standard", "/push/api/standard"])
    expect(await rig.post(`${path}?operationId=older-1`, JSON.stringify({ Data }))).toMatchObject({
      status: 200,
      body: { operationId: "older-1", status: "accepted", received: 3 },
    });
  for (const [body, place] of [
    ["{", "the body"],
    [JSON.stringify({ Items: [] }), "Data"],
    [JSON.stringify({ Data: [{ VariableId: first, Date: hour(0), Value: "1" }] }), "Data.0.Value"],
  ] as const)
    expect(await rig.post("/api/standard", body)).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining(`${place}: `) },
    });
  await rig.idle();
  expect(await service.stored(first)).toEqual([
    [hour(0), 1],
    [hour(1), 3],
  ]);
  expect(await service.stored(second)).toEqual([[hour(0), 2]]);
  expect(await rig.bodies()).toEqual([]);
});

it("delivers pushes, custom pushes and uploads of an outage once when the service is available again", async () => {
  const { service, rig, ids } = await setUp([{ mappingConfig: "kWh" }, {}, {}, {}]);
  const [bySerial = 0, byId = 0, generic = 0, uploaded = 0] = ids;
  await service.goes();
  const mixed = [
    { variableId: byId, data: [{ date: hour(0), value: 1 }] },
    { sourceSerialNumber: "M-1", mappingConfig: "kWh", data: [{ date: hour(0), value: 2 }] },
    { variableId: byId, data: [{ date: hour(1), value: 3 }] },
  ];
  for (let times = 0; times < 2; times += 1)
    expect(await rig.post("/api/data?operationId=outage-1", JSON.stringify(mixed))).toMatchObject({
      status: 200,
      body: { operationId: "outage-1", status: "accepted", received: 3 },
    });
  const csv = (id: number, value: number) => `date,value,variable_id\n${hour(0)},${value},${id}\n`;
  expect((await rig.post(`/api/generic/${GUID}/`, csv(generic, 4), { "content-type": "text/plain" })).status).toBe(200);
  expect((await rig.post("/storage?Filename=day.csv", upload("x", csv(uploaded, 5)))).status).toBe(200);
  expect((await rig.post("/storage?Filename=notes.txt", upload("x", "notes"))).status).toBe(200);
  await rig.seen();
  await rig.down();
  await rig.up();
  await service.comes();
  await rig.idle();

  expect(await rig.gateway.ledger.runsIn(["quarantined", "discarded", "held", "cancelled"])).toEqual([]);
  expect(await service.stored(byId)).toEqual([
    [hour(0), 1],
    [hour(1), 3],
  ]);
  expect(await service.stored(bySerial)).toEqual([[hour(0), 2]]);
  expect(await service.stored(generic)).toEqual([[hour(0), 4]]);
  expect(await service.stored(uploaded)).toEqual([[hour(0), 5]]);
  const [traced, ...more] = await rig.gateway.ledger.trace("outage-1");
  expect(more).toEqual([]);
  expect(traced?.runs[0]?.run).toMatchObject({
    state: "confirmed",
    binding: { operationPrefix: "outage-1" },
  });
  // One kind of identifier a call.
  expect(traced?.runs[0]?.batches.map(({ operationId }) => operationId)).toEqual([
    expect.stringMatching(/^outage-1-[0-9a-z]{26}-1$/),
    expect.stringMatching(/^outage-1-[0-9a-z]{26}-2$/),
  ]);
  expect(await rig.gateway.ledger.trace("notes.txt")).toMatchObject([
    { arrival: { state: "unmatched", reason: expect.stringContaining('EndsWith ".csv": no') } },
  ]);
  // Delivered bodies are deleted; what nobody claimed stays.
  expect(await rig.bodies()).toEqual([expect.stringMatching(/^storage\/\d{16}\/notes\.txt$/)]);
  // The same again, days later or after a restart, is still a repeat.
  await rig.post("/api/data?operationId=outage-1", JSON.stringify(mixed));
  await rig.seen();
  await rig.idle();
  expect(await service.stored(byId)).toHaveLength(2);
});

it("keeps versions, and tags of elements and readings, separate as the service does", async () => {
  const { service, rig, ids } = await setUp([{}]);
  const [id = 0] = ids;
  const body = [
    {
      VariableId: id,
      version: "element",
      tags: { from: "element" },
      DATA: [
        { date: hour(0), value: 1, tags: { from: "reading" } },
        { date: hour(1), value: 2, version: "reading" },
      ],
    },
    { variableId: id, data: [{ date: hour(2), value: 3 }] },
  ];
  await rig.post("/api/data", JSON.stringify(body));
  await rig.seen();
  await rig.idle();
  const rows = await service.calls.get("/data", { VariableId: id, AllVersions: true, TimeZoneId: "UTC" });
  const batchTags = { from: "element" };
  expect(rows).toMatchObject([
    { rawValue: 1, version: "element", tags: { from: "reading", version: "element" }, batchTags },
    { rawValue: 2, version: "reading", tags: { version: "reading" }, batchTags },
    { rawValue: 3 },
  ]);
  expect(rows[2]).not.toHaveProperty("batchTags");
});

it("reads dates without designator in the zone of the user, and quarantines them without a zone", async () => {
  const { service, rig, ids } = await setUp([{}]);
  const body = JSON.stringify([{ variableId: ids[0], data: [{ date: "2026-07-01T12:00:00", value: 1 }] }]);
  await rig.post("/api/data?operationId=zoned", body, { authorization: basic("local") });
  await rig.post("/api/data?operationId=unzoned", body);
  await rig.seen();
  await rig.idle();
  expect(await service.stored(ids[0] ?? 0)).toEqual([["2026-07-01T10:00:00.000Z", 1]]);
  expect(await rig.gateway.ledger.trace("unzoned")).toMatchObject([
    { runs: [{ run: { state: "quarantined", reason: { hint: expect.stringContaining("timeZone") } } }] },
  ]);
});

it("reports the readings that the service would discard, and delivers the others", async () => {
  const { service, rig, ids } = await setUp([{}]);
  const body = [
    { sourceName: "Boiler", data: [{ date: hour(0), value: 1 }] },
    {
      variableId: ids[0],
      data: [
        { date: "yesterday", value: 2 },
        { date: hour(1), value: 3 },
      ],
    },
  ];
  body[1]?.data.splice(0, 1, { date: "2026-02-30T00:00:00Z", value: 2 });
  expect((await rig.post("/api/data?operationId=some", JSON.stringify(body))).status).toBe(200);
  await rig.seen();
  await rig.idle();
  expect(await service.stored(ids[0] ?? 0)).toEqual([[hour(1), 3]]);
  const [traced] = await rig.gateway.ledger.trace("some");
  expect(traced?.runs[0]).toMatchObject({
    run: { points: { accepted: 1, rejected: 2 } },
    rejected: [
      {
        message: "sourceName needs mappingConfig or variableTypeId beside it",
        place: { row: 1, column: "data[0]" },
      },
      { place: { row: 2, column: "data[0]" } },
    ],
  });
});

it("refuses bodies beyond the backlog, and accepts them again when it has shrunk", async () => {
  const rig = await IntakeRig.start(undefined, {}, { limits: { backlog: "100B" } });
  undo.push(() => rig.close());
  expect((await rig.post("/api/data", pushBody(1, 1, 2, 3))).status).toBe(200);
  const refused = await rig.post("/api/data", pushBody(1, 1));
  expect(refused).toMatchObject({ status: 503, body: { code: "backlog-full" } });
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
});
