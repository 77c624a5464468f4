import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "#core/clock.ts";
import { TargetResolver } from "#gateway/delivery/targets.ts";
import type { Gateway } from "#gateway/gateway.ts";
import type { Run, RunState } from "#gateway/model.ts";
import { trailerAtEnd } from "#mapping/segment/trailer.ts";
import type { DataQuery } from "#wire/index.ts";
import { askOperations } from "../support/operations.ts";
import { GatewayRig, oneReading, trigger, until } from "./gateway-rig.ts";
import { headgate } from "./in-process.ts";

const never = new AbortController().signal;
const PUSH = {
  confirm: { by: "read-back", pollEvery: "50ms" },
  retry: { initial: "50ms", max: "200ms", quickAttempts: 1 },
  guard: { remember: "100ms", recheck: "50ms", recheckMax: "200ms" },
};
/** Nothing is looked at again unless somebody asks. */
const UNASKED = { ...PUSH, guard: { remember: "100ms", recheck: "1h", recheckMax: "1h" } };
/** Readings of meters, in kilowatt-hours or watt-hours by the name of the file. */
const inUnit = (unit: string) => ({
  ...trigger(unit, { mapper: "delimited", guard: "hold" }),
  fileNamePatternMatches: [{ filterType: "StartsWith", value: `${unit}-` }],
  metadata: {
    timeZone: "UTC",
    date: { column: "when", format: "yyyy-MM-dd" },
    target: { sourceSerialNumber: "{meter}", mappingConfig: "v" },
    value: "value",
    unit,
  },
});

let rig: GatewayRig;
let gateway: Gateway;
beforeAll(async () => {
  rig = await GatewayRig.start();
});
afterAll(() => rig.close());

async function open(triggers: readonly object[], more: Readonly<Record<string, unknown>> = {}) {
  gateway = await rig.open({ triggers, push: PUSH, ...more });
}

async function runOf(path: string): Promise<Run | undefined> {
  return (await gateway.ledger.trace(path))[0]?.runs.at(-1)?.run;
}

async function untilState(path: string, state: RunState): Promise<Run> {
  let run: Run | undefined;
  await until(`${path} is ${state}`, async () => {
    run = await runOf(path);
    return run?.state === state;
  });
  if (run === undefined) throw new Error("no run");
  return run;
}

async function eventsOf(path: string): Promise<readonly string[]> {
  const file = (await gateway.ledger.trace(path))[0];
  return (file?.events ?? []).map(({ what, detail }) => `${what}: ${detail}`);
}

const bySerial = (serial: string, value: number, date = "2026-03-01T00:00:00Z") =>
  `source_serialnumber,mapping_config,date,value\n${serial},v,${date},${value}\n`;

/** Before the hub: answers what it is told to, and passes the rest on. */
async function proxy(answer: (url: URL) => { status: number; body: string } | null): Promise<{
  readonly url: string;
  readonly seen: string[];
  close(): Promise<void>;
}> {
  const seen: string[] = [];
  const server: Server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", rig.hub.url);
    seen.push(`${request.method} ${url.pathname}`);
    const own = answer(url);
    if (own !== null) {
      response.writeHead(own.status, { "content-type": "application/json" }).end(own.body);
      return;
    }
    const headers = Object.entries(request.headers).filter(([name]) => !/^(host|connection|te)$/.test(name));
    const passed = await fetch(url, {
      method: request.method ?? "GET",
      headers: headers.map(([name, value]) => [name, String(value)] as [string, string]),
      ...(request.method === "GET" ? {} : { body: Buffer.concat(await request.toArray()) }),
    });
    const count = passed.headers.get("x-total-count");
    response
      .writeHead(passed.status, {
        "content-type": "application/json",
        ...(count === null ? {} : { "x-total-count": count }),
      })
      .end(await passed.text());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

describe("the guard before the first push", () => {
  it("holds a run whose variable is missing, and resumes it by itself once that was created", async () => {
    await open([trigger("standard")]);
    rig.put("in/missing.csv", bySerial("M-1", 5));
    const held = await untilState("missing.csv", "held");
    expect(held.reason).toMatchObject({
      code: "HG-GUARD-001",
      message: expect.stringContaining("there is no source with sourceSerialNumber M-1"),
      targets: [{ what: "missing", target: "sourceSerialNumber=M-1 mappingConfig=v", points: 1 }],
    });
    await until("the gateway is idle", () => gateway.isIdle());
    expect(await gateway.concerns()).toEqual([expect.stringContaining("is held: 1 target is missing")]);
    const id = await rig.variable("M-1");
    expect((await untilState("missing.csv", "confirmed")).reason).toBeNull();
    expect(await rig.stored(id)).toEqual({ "2026-03-01": 5 });
  });

  it("holds a run whose target means several variables, and names them", async () => {
    const one = await rig.variable("TWIN");
    const two = await rig.variable("TWIN");
    rig.put("in/twins.csv", bySerial("TWIN", 5));
    const held = await untilState("twins.csv", "held");
    expect(held.reason?.targets).toMatchObject([
      { what: "ambiguous", words: expect.stringContaining(`variables ${one}, ${two} all match`) },
    ]);
    expect(await rig.stored(one)).toEqual({});
    await gateway.ledger.advanceRun(held.id, "held", "cancelled");
  });

  it("says what a source has instead of the variable that is missing", async () => {
    await rig.variable("M-2");
    rig.put("in/other.csv", bySerial("M-2", 5).replace(",v,", ",w,"));
    const held = await untilState("other.csv", "held");
    expect(held.reason?.message).toMatch(/source \d+ has no variable with mappingConfig w; it has v/);
    await gateway.ledger.advanceRun(held.id, "held", "cancelled");
  });

  it("holds a run in another unit than the variable's, and takes other spellings of the same", async () => {
    const id = await rig.variable("M-3");
    await open([inUnit("Wh"), inUnit("KWH"), trigger("standard")]);
    rig.put("in/KWH-a.csv", "meter,when,value\nM-3,2026-03-01,5\n");
    await untilState("KWH-a.csv", "confirmed");
    rig.put("in/Wh-a.csv", "meter,when,value\nM-3,2026-03-02,5000\n");
    const held = await untilState("Wh-a.csv", "held");
    expect(held.reason).toMatchObject({
      code: "HG-GUARD-002",
      targets: [{ what: "unit", words: expect.stringContaining(`declared in Wh, but variable ${id} stores kWh`) }],
      hint: expect.stringContaining("`convertTo`"),
    });
    expect(await rig.stored(id)).toEqual({ "2026-03-01": 5 });
    await gateway.ledger.advanceRun(held.id, "held", "cancelled");
  });

  it("warns of dates beyond the limits and of second versions, and pushes", async () => {
    const id = await rig.variable("M-4", true);
    await open([trigger("standard")], {
      services: [{ ...rig.service("hub"), ingestion: { past: "3650d", future: "30d" } }],
    });
    const ahead = Temporal.Now.instant()
      .add({ hours: 24 * 100 })
      .toString()
      .slice(0, 10);
    rig.put("in/warned.csv", `${oneReading(id, 1, "1999-01-01T00:00:00Z")}${id},${ahead}T00:00:00Z,2\n`);
    await untilState("warned.csv", "confirmed");
    const warned = (await eventsOf("warned.csv")).filter((event) => event.startsWith("run.warned"));
    expect(warned).toEqual([expect.stringMatching(new RegExp(`dates up to ${ahead}.*HG-GUARD-003.*HG-GUARD-004`))]);
    rig.put("in/past.csv", oneReading(id, 1, "1999-02-01T00:00:00Z"));
    await untilState("past.csv", "confirmed");
    expect(await eventsOf("past.csv")).toContainEqual(expect.stringContaining("dates from 1999-02-01"));
  });

  it("has readings carry the id of their run as version where the trigger says so", async () => {
    const id = await rig.variable("M-5", true);
    await open([trigger("standard", { version: "run" })]);
    rig.put("in/stamped.csv", oneReading(id, 1));
    const run = await untilState("stamped.csv", "confirmed");
    const query: DataQuery = {
      VariableIds: [id],
      DisplayLevel: "ValueVariableDate",
      TimeZoneId: "UTC",
      VersionTag: run.id,
    };
    expect(await rig.client.postData(query, never)).toMatchObject([{ rawValue: 1 }]);
    expect((await eventsOf("stamped.csv")).filter((event) => event.startsWith("run.warned"))).toEqual([]);
  });

  it("pushes what it would hold where the trigger says warn, and does not look where it says push", async () => {
    const away = await proxy(() => null);
    const service = { ...rig.service("hub"), base: away.url };
    const push = { ...PUSH, confirm: { ...PUSH.confirm, within: "300ms" } };
    await open([trigger("standard", { guard: "warn" })], { services: [service], push });
    rig.put("in/warn.csv", bySerial("NOWHERE", 5));
    await untilState("warn.csv", "discarded");
    expect(await eventsOf("warn.csv")).toContainEqual(expect.stringMatching(/^run.warned: 1 target is missing/));
    await open([trigger("standard", { guard: "push" })], {
      services: [service],
      push: { ...PUSH, confirm: { by: "none" } },
    });
    away.seen.length = 0;
    rig.put("in/push.csv", bySerial("NOWHERE", 5));
    await untilState("push.csv", "accepted");
    expect(away.seen).toEqual([]);
    await gateway.stop();
    await away.close();
  });

  it("waits while the read interface cannot be reached, says so, and delivers when it is back", async () => {
    const id = await rig.variable("M-6");
    let isAway = true;
    const base = await proxy(() => (isAway ? { status: 503, body: "{}" } : null));
    await open([trigger("standard")], { services: [{ ...rig.service("hub"), base: base.url }] });
    rig.put("in/waits.csv", bySerial("M-6", 5));
    await until("the reason is known", async () => (await runOf("waits.csv"))?.reason?.code === "HG-GUARD-006");
    expect(await runOf("waits.csv")).toMatchObject({
      state: "mapped",
      reason: { message: expect.stringContaining("targets cannot be checked now") },
    });
    expect(await gateway.isIdle()).toBe(false);
    // Told a moment after the run has its reason.
    await until("the gateway is not ready", async () => {
      const health = await askOperations(gateway, "/health/ready");
      return health.status === 503 && (await health.text()).includes("targets cannot be checked now");
    });
    isAway = false;
    await untilState("waits.csv", "confirmed");
    expect(await rig.stored(id)).toEqual({ "2026-03-01": 5 });
    await gateway.stop();
    await base.close();
  });

  it("goes by the rule of the trigger when the user may not read", async () => {
    await rig.variable("M-7");
    const asked: string[] = [];
    const base = await proxy((url) => {
      if (url.pathname !== "/sources") return null;
      // Runs of other tests that are held may be looked at again as well.
      asked.push(...url.searchParams.getAll("SerialNumbers").filter((serial) => serial === "M-7"));
      return { status: 403, body: "{}" };
    });
    const services = [{ ...rig.service("hub"), base: base.url }];
    const strict = trigger("strict", { guard: { unreadable: "hold" }, drops: ["in"] });
    const push = { ...UNASKED, confirm: { ...PUSH.confirm, within: "700ms" } };
    await open(
      [{ ...strict, fileNamePatternMatches: [{ filterType: "StartsWith", value: "strict" }] }, trigger("standard")],
      { services, push },
    );
    rig.put("in/unread.csv", bySerial("M-7", 5));
    rig.put("in/strict.csv", bySerial("M-7", 6, "2026-03-02T00:00:00Z"));
    expect((await untilState("strict.csv", "held")).reason).toMatchObject({ code: "HG-GUARD-005" });
    await until("it is pushed", async () =>
      ["accepted", "confirmed"].includes((await runOf("unread.csv"))?.state ?? ""),
    );
    expect(await eventsOf("unread.csv")).toContainEqual(expect.stringMatching(/^run.warned: pushed unchecked:.*403/));
    // The service is not asked again and again for what it refuses: by the guard for each file at most, at
    // the first reading back and at the last.
    await until("nothing more is to come", async () =>
      (await eventsOf("unread.csv")).some((event) => event.startsWith("run.unconfirmed")),
    );
    expect(asked.length).toBeGreaterThan(0);
    expect(asked.length).toBeLessThan(5);
    await gateway.stop();
    await base.close();
  });
});

describe("a held run", () => {
  const config = () => join(rig.folder, "gateway.yaml");

  it("stays held when later files delivered its dates meanwhile, until a person says what counts", async () => {
    await open([trigger("standard")], { push: UNASKED });
    rig.put("in/older.csv", `${bySerial("M-8", 1)}M-8,v,2026-03-02T00:00:00Z,1\n`);
    const held = await untilState("older.csv", "held");
    const id = await rig.variable("M-8");
    rig.put("in/newer.csv", bySerial("M-8", 2));
    await until("the newer file is delivered", async () => {
      const newer = await runOf("newer.csv");
      // That the variable was missing may still have been remembered.
      if (newer?.state === "held") await headgate("recheck", newer.id, "-c", config());
      return newer?.state === "confirmed";
    });
    const path = join(rig.folder, "state/spool/segments", `${held.id}.segment`);
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.toString("latin1").replace("2026-03-01T", "2025-03-01T"), "latin1");
    await headgate("recheck", "-c", config());
    await until("it is known again which dates it holds", async () => {
      const files = await gateway.ledger.trace(held.id);
      return files.some(({ events }) => events.some(({ what }) => what === "run.rebuilt"));
    });
    expect(readFileSync(path).equals(bytes)).toBe(true);
    await headgate("recheck", "-c", config());
    await until("older is overtaken", async () => (await runOf("older.csv"))?.reason?.code === "HG-GUARD-007");
    expect((await runOf("older.csv"))?.reason?.message).toMatch(
      /1 of its readings \(2026-03-01T00:00:00.000Z to 2026-03-01T00:00:00.000Z\) were delivered by later files/,
    );
    const refused = await headgate("release", held.id, "-c", config());
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("HG-GUARD-007") });
    const quarantine = await headgate("quarantine", "-c", config());
    expect(quarantine.stdout).toContain(`headgate release ${held.id} -c ${config()} --overwrite`);
    expect(await headgate("replay", held.id, "-c", config(), "--dry-run")).toMatchObject({ code: 0 });
    expect(await gateway.ledger.run(held.id)).toMatchObject({ state: "held" });
    // A replay takes its place, and spares what came later.
    expect(await headgate("replay", held.id, "-c", config(), "--no-diff")).toMatchObject({ code: 0 });
    await untilState("older.csv", "confirmed");
    expect(await gateway.ledger.run(held.id)).toMatchObject({ state: "cancelled" });
    expect(await rig.stored(id)).toEqual({ "2026-03-01": 2, "2026-03-02": 1 });
  });

  it("is pushed as it is when a person releases it, and looked at now when one asks", async () => {
    await open([trigger("standard")], { push: UNASKED });
    rig.put("in/asked.csv", bySerial("M-9", 1));
    const held = await untilState("asked.csv", "held");
    const shown = await headgate("trace", held.id, "-c", config());
    expect(shown.stdout).toContain("missing: sourceSerialNumber=M-9 mappingConfig=v: there is no source");
    const health = await (await askOperations(gateway, "/health/ready")).text();
    expect(health).toContain("1 target is missing: sourceSerialNumber=M-9");
    const metrics = await (await askOperations(gateway, "/metrics")).text();
    expect(metrics).toContain('headgate_held_runs{trigger="standard",code="HG-GUARD-001"} 1');
    await rig.variable("M-9");
    expect(await headgate("recheck", held.id, "-c", config())).toMatchObject({ code: 0 });
    await untilState("asked.csv", "confirmed");
    expect(await headgate("release", held.id, "-c", config())).toMatchObject({ code: 1 });
  });

  it("is not released silently while targets are missing: the response counts what would be discarded", async () => {
    await open([trigger("standard")], { push: UNASKED });
    const readings = `${bySerial("M-11", 1)}M-11,v,2026-03-02T00:00:00Z,2\n`;
    rig.put("in/unknown.csv", readings);
    const held = await untilState("unknown.csv", "held");
    expect(held.reason).toMatchObject({ code: "HG-GUARD-001", discards: 2 });
    const refused = await headgate("release", held.id, "-c", config());
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/2 of its 2 readings would be discarded.*HG-GUARD-009[\s\S]*--yes/),
    });
    expect(await runOf("unknown.csv")).toMatchObject({ state: "held" });
    const released = await headgate("release", held.id, "-c", config(), "--yes");
    expect(released).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("the service will discard 2 of its readings"),
    });
  });

  it("is looked at again after a restart, also where the spool has lost what its batches hold", async () => {
    await open([trigger("standard")]);
    rig.put("in/restart.csv", bySerial("M-10", 3));
    const held = await untilState("restart.csv", "held");
    await gateway.stop();
    const segments = join(rig.folder, "state/spool/segments");
    const segment = join(segments, `${held.id}.segment`);
    const { about } = trailerAtEnd(segment) ?? expect.fail("no trailer");
    const bytes = readFileSync(segment);
    bytes.write("?", about.offset);
    writeFileSync(segment, bytes);
    const id = await rig.variable("M-10");
    await open([trigger("standard")]);
    await untilState("restart.csv", "confirmed");
    expect(await rig.stored(id)).toEqual({ "2026-03-01": 3 });
    expect(await eventsOf("restart.csv")).toContainEqual(expect.stringContaining("run.rebuilt"));
  });
});

describe("many targets", () => {
  it("are resolved in few calls, ten thousand of them", async () => {
    const count = 10_000;
    const sources = Array.from({ length: count }, (_, at) => ({
      id: at + 1,
      name: `S${at}`,
      siteId: 1,
      serialNumber: `S${at}`,
    }));
    const variables = sources.map(({ id }) => ({
      id,
      name: "v",
      sourceId: id,
      mappingConfig: "v",
      unitId: 8,
    }));
    const calls: string[] = [];
    const base = await proxy((url) => {
      const list = url.pathname === "/sources" ? sources : url.pathname === "/variables" ? variables : null;
      if (list === null) return null;
      calls.push(url.pathname);
      const items = Number(url.searchParams.get("Paging.ItemsPerPage"));
      const from = Number(url.searchParams.get("Paging.PageNumber")) * items;
      return { status: 200, body: JSON.stringify(list.slice(from, from + items)) };
    });
    const client = rig.clientOf(base.url);
    const resolver = new TargetResolver(client, systemClock, 60_000);
    const targets = sources.map(({ name }) => ({ sourceSerialNumber: name, mappingConfig: "v" }));
    const found = await resolver.resolve(targets, never);
    expect([...found.values()].every(({ kind }) => kind === "one")).toBe(true);
    expect(calls.length).toBeLessThan(20);
    const before = calls.length;
    await Promise.all([resolver.resolve(targets.slice(0, 500), never), resolver.resolve(targets, never)]);
    expect(calls.length).toBe(before);
    resolver.close();
    await client.close();
    await base.close();
  });
});
