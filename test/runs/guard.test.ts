import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Gateway } from "../../src/gateway.ts";
import type { Run, RunState } from "../../src/model.ts";
import type { DataQuery } from "../../src/wire/index.ts";
import { GatewayRig, oneReading, trigger, until } from "./gateway-rig.ts";

const never = new AbortController().signal;
const PUSH = {
  confirm: { by: "read-back", pollEvery: "50ms" },
  retry: { initial: "50ms", max: "200ms", quickAttempts: 1 },
  guard: { remember: "100ms", recheck: "50ms", recheckMax: "200ms" },
};
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
  it("holds a run whose variable is missing, and lets it go on by itself once that was created", async () => {
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
      { what: "ambiguous", words: expect.stringContaining(`variables ${one}, ${two} are all meant`) },
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
      targets: [
        { what: "unit", words: expect.stringContaining(`declared in Wh, but variable ${id} stores kWh`) },
      ],
    });
    expect(await rig.stored(id)).toEqual({ "2026-03-01": 5 });
    await gateway.ledger.advanceRun(held.id, "held", "cancelled");
  });

  it("warns of dates beyond the limits and of second versions, and pushes", async () => {
    const id = await rig.variable("M-4", true);
    await open([trigger("standard")], {
      services: [{ ...rig.service("hub"), ingestion: { past: "3650d" } }],
    });
    rig.put("in/warned.csv", `${oneReading(id, 1, "1999-01-01T00:00:00Z")}${id},2040-01-01T00:00:00Z,2\n`);
    await untilState("warned.csv", "confirmed");
    const warned = (await eventsOf("warned.csv")).filter((event) => event.startsWith("run.warned"));
    expect(warned).toEqual([expect.stringMatching(/dates up to 2040-01-01.*HG-GUARD-003.*HG-GUARD-004/)]);
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
    expect(await eventsOf("warn.csv")).toContainEqual(
      expect.stringMatching(/^run.warned: 1 target is missing/),
    );
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
    await until(
      "the reason is known",
      async () => (await runOf("waits.csv"))?.reason?.code === "HG-GUARD-006",
    );
    expect(await runOf("waits.csv")).toMatchObject({
      state: "mapped",
      reason: { message: expect.stringContaining("targets cannot be checked now") },
    });
    expect(await gateway.isIdle()).toBe(false);
    const health = await fetch(`${gateway.operationsUrl}/health/ready`);
    expect(health.status).toBe(503);
    expect(await health.text()).toContain("targets cannot be checked now");
    isAway = false;
    await untilState("waits.csv", "confirmed");
    expect(await rig.stored(id)).toEqual({ "2026-03-01": 5 });
    await gateway.stop();
    await base.close();
  });

  it("goes by the rule of the trigger when the user may not read", async () => {
    await rig.variable("M-7");
    const base = await proxy((url) => (url.pathname === "/sources" ? { status: 403, body: "{}" } : null));
    const services = [{ ...rig.service("hub"), base: base.url }];
    const strict = trigger("strict", { guard: { unreadable: "hold" }, drops: ["in"] });
    await open(
      [
        { ...strict, fileNamePatternMatches: [{ filterType: "StartsWith", value: "strict" }] },
        trigger("standard"),
      ],
      { services },
    );
    rig.put("in/unread.csv", bySerial("M-7", 5));
    rig.put("in/strict.csv", bySerial("M-7", 6, "2026-03-02T00:00:00Z"));
    expect((await untilState("strict.csv", "held")).reason).toMatchObject({ code: "HG-GUARD-005" });
    await until("it is pushed", async () =>
      ["accepted", "confirmed"].includes((await runOf("unread.csv"))?.state ?? ""),
    );
    expect(await eventsOf("unread.csv")).toContainEqual(
      expect.stringMatching(/^run.warned: pushed unchecked:.*403/),
    );
    await gateway.stop();
    await base.close();
  });
});
