/** Files that are missing at their drop for a while, and back: none is lost, and nothing of one is delivered twice. */
import { mkdirSync, renameSync, statSync, utimesSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "#core/clock.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import type { Gateway } from "#gateway/gateway.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { openLedger } from "#gateway/ledger/open.ts";
import type { Run } from "#gateway/model.ts";
import { list } from "../ledger/fixtures.ts";
import { drop, GatewayRig, oneReading, trigger, until } from "./gateway-rig.ts";
import { headgate } from "./in-process.ts";

type Sections = Readonly<Record<string, unknown>>;

let rig: GatewayRig;
let proxy: Server | null = null;
beforeEach(async () => {
  rig = await GatewayRig.start();
});
afterEach(async () => {
  await rig.close();
  proxy?.closeAllConnections();
  proxy?.close();
  proxy = null;
});

const idle = (gateway: Gateway) => until("the gateway is idle", () => gateway.isIdle());
const place = (path: string) => join(rig.folder, path);
const away = (path: string) => {
  mkdirSync(place("elsewhere"), { recursive: true });
  renameSync(place(`in/${path}`), place(`elsewhere/${path}`));
};
const back = (path: string) => renameSync(place(`elsewhere/${path}`), place(`in/${path}`));

/** The arrivals at a path, oldest first. */
async function isGone(gateway: Gateway, path: string): Promise<boolean> {
  const arrivals = await gateway.ledger.arrivalsAt(path);
  return arrivals.length > 0 && arrivals.every(({ goneAt }) => goneAt !== null);
}

/** As a gateway leaves its ledger that was killed between the claim of these files and their fetch. */
async function claimedBefore(files: Readonly<Record<string, string>>, sections: Sections): Promise<void> {
  rig.put("in/first.csv", "variable_id,date,value\n");
  const gateway = await rig.open(sections);
  await idle(gateway);
  await gateway.stop();
  for (const [path, content] of Object.entries(files)) rig.put(`in/${path}`, content);
  await claim(Object.keys(files));
}

/** With the binding of the latest run. */
async function claim(paths: readonly string[]): Promise<void> {
  await withLedger(async (ledger) => {
    const [{ binding, lane }] = (await ledger.recentRuns(1)) as [Run];
    const poll = await ledger.beginPoll("in");
    for (const path of paths) {
      const { size, mtimeNs } = statSync(place(`in/${path}`), { bigint: true });
      const [sighted] = await poll.record([{ path, size: Number(size), mtime: String(mtimeNs) }]);
      await ledger.openRun(sighted?.arrival.id ?? 0, binding, lane);
    }
    await poll.abandon();
  });
}

async function withLedger(work: (ledger: Ledger) => Promise<unknown>): Promise<void> {
  const ledger = await openLedger(loadGatewayConfig(rig.config).ledger, { clock: systemClock });
  try {
    await work(ledger);
  } finally {
    await ledger.close();
  }
}

/** Before the hub: refuses pushes that hold the value 666. Answers its address. */
async function refusing(): Promise<string> {
  const forward = async (request: IncomingMessage) => {
    const body = await buffer(request);
    if (body.includes("666")) return { status: 400, type: "application/json", body: '{"title":"666 is refused"}' };
    const { host: _host, connection: _connection, "content-length": _length, ...headers } = request.headers;
    const answer = await fetch(`${rig.hub.url}${request.url}`, {
      method: request.method ?? "GET",
      headers: headers as Record<string, string>,
      ...(body.length === 0 ? {} : { body: new Uint8Array(body) }),
    });
    return {
      status: answer.status,
      type: answer.headers.get("content-type") ?? "",
      body: await answer.text(),
    };
  };
  proxy = createServer((request, response) => {
    forward(request).then(
      ({ status, type, body }) => response.writeHead(status, { "content-type": type }).end(body),
      () => response.destroy(),
    );
  });
  await new Promise<void>((resolve) => proxy?.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}

describe("a file that is missing for a moment", () => {
  it("when it is to be fetched is taken when it is back, alone and in a group of small files", async () => {
    const variables = [await rig.variable("one"), await rig.variable("two"), await rig.variable("three")];
    const paths = ["one.csv", "two.csv", "three.csv"];
    const files = paths.map((path, at) => [path, oneReading(variables[at] ?? 0, at + 1)]);
    await claimedBefore(Object.fromEntries(files), {});
    for (const path of paths) away(path);
    await withLedger((ledger) => ledger.pause({ kind: "drop", name: "in", by: "test", why: "no listing now" }));
    const gateway = await rig.open({});
    await until("no run is under way", async () => (await gateway.ledger.runsIn(["claimed"])).length === 0);
    for (const path of paths) back(path);
    expect((await headgate("resume", "in", "-c", rig.config)).code).toBe(0);
    for (const [at, variable] of variables.entries())
      await until(`${paths[at]} is stored`, async () => (await rig.stored(variable))["2026-03-01"] === at + 1);
    await idle(gateway);
    for (const path of paths) {
      const [away, taken] = await gateway.ledger.arrivalsAt(path);
      expect(await gateway.ledger.runOf(away?.id ?? 0)).toMatchObject({
        state: "cancelled",
        reason: { code: "HG-RUN-002" },
      });
      expect(await gateway.ledger.runOf(taken?.id ?? 0)).toMatchObject({ state: "confirmed" });
    }
  });

  it("and that is listed again before its first run is fetched is delivered once, alone and in a group", async () => {
    const paths = ["one.csv", "two.csv", "three.csv"];
    const variables = await Promise.all(paths.map((path) => rig.variable(path, true)));
    const files = paths.map((path, at) => [path, oneReading(variables[at] ?? 0, at + 1)]);
    await claimedBefore(Object.fromEntries(files), {});
    await withLedger((ledger) => list(ledger, "in", []));
    const gateway = await rig.open({});
    for (const [at, path] of paths.entries()) {
      await until(`${path} is at rest twice`, async () => {
        const arrivals = await gateway.ledger.arrivalsAt(path);
        return arrivals.length === 2 && arrivals.every(({ goneAt }) => goneAt !== null);
      });
      await idle(gateway);
      expect(await rig.versions(variables[at] ?? 0), path).toBe(1);
    }
  });

  it("when another version lay there as it was to be fetched is taken when the first is back", async () => {
    const variable = await rig.variable("stale");
    await claimedBefore({ "stale.csv": oneReading(variable, 2) }, {});
    away("stale.csv");
    rig.put("in/stale.csv", oneReading(variable, 1), new Date("2026-02-01"));
    const gateway = await rig.open({ drops: [drop("in", { every: "1h" })] });
    await until("the first run is given up", async () => {
      const [first] = await gateway.ledger.arrivalsAt("stale.csv");
      return (await gateway.ledger.runOf(first?.id ?? 0))?.state === "cancelled";
    });
    back("stale.csv");
    await until("the version that is back is stored", async () => {
      await gateway.isIdle();
      return (await rig.stored(variable))["2026-03-01"] === 2;
    });
  });

  it("when it is to be archived is not delivered again when it is back", async () => {
    const variable = await rig.variable("finish", true);
    const sections = { push: { confirm: { by: "read-back", pollEvery: "50ms" } } };
    rig.put("in/finish.csv", oneReading(variable, 1));
    for (const duplicates of ["skip", "process"]) {
      const leave = { drops: [drop("in", { duplicates, finish: { delivered: "leave" } })], ...sections };
      const gateway = await rig.open(leave);
      await idle(gateway);
      away("finish.csv");
      await until("it has gone", () => isGone(gateway, "finish.csv"));
      back("finish.csv");
      await until("it is known again", async () => {
        const arrivals = await gateway.ledger.arrivalsAt("finish.csv");
        return arrivals.some(({ goneAt, state }) => goneAt === null && state === "duplicate");
      });
      await idle(gateway);
      expect(await rig.versions(variable)).toBe(1);
    }
  });

  it("while it is to be archived is archived when it is back, and not delivered again", async () => {
    const push = { guard: { remember: "50ms", recheck: "1h", recheckMax: "1h" } };
    const drops = [drop("in", { finish: { delivered: { archive: "archive" } } })];
    const row = "late,v,2026-03-01T00:00:00Z,1";
    rig.put("in/late.csv", `source_serialnumber,mapping_config,date,value\n${row}\n`);
    const gateway = await rig.open({ drops, triggers: [trigger("standard", { guard: "hold" })], push });
    await until("it is held", async () => (await gateway.ledger.runsIn(["held"])).length === 1);
    away("late.csv");
    const variable = await rig.variable("late");
    const [held] = await gateway.ledger.runsIn(["held"]);
    const { code, stderr } = await headgate("recheck", held?.id ?? "", "-c", rig.config);
    expect(code, stderr).toBe(0);
    const eventsOf = async (arrivalId: number) => (await gateway.ledger.events(arrivalId)).map(({ what }) => what);
    await until("it is missing at its end", async () => (await eventsOf(held?.arrivalId ?? 0)).includes("source.gone"));
    back("late.csv");
    await until("it is archived", async () => {
      const arrivals = await gateway.ledger.arrivalsAt("late.csv");
      const events = await Promise.all(arrivals.map(({ id }) => eventsOf(id)));
      return events.flat().some((what) => what === "source.archived" || what === "source.aside");
    });
    await idle(gateway);
    expect(await rig.stored(variable)).toEqual({ "2026-03-01": 1 });
    expect((await gateway.ledger.recentRuns(9)).map(({ state, points }) => [state, points.accepted])).toEqual([
      ["cancelled", 0],
      ["confirmed", 1],
    ]);
  });
});

describe("what was accepted of a file", () => {
  const days = Array.from({ length: 9 }, (_, day) => `2026-03-0${day + 1}T00:00:00Z`);
  const partly = (variable: number) =>
    `variable_id,date,value\n${days.map((date, at) => `${variable},${date},${at === 8 ? 666 : at}\n`).join("")}`;

  it("is not delivered again when the file rests in quarantine, goes away and returns", async () => {
    const variable = await rig.variable("partly", true);
    const services = [rig.service("hub", await refusing())];
    rig.put("in/partly.csv", partly(variable));
    const gateway = await rig.open({ services });
    await idle(gateway);
    const [run] = await gateway.ledger.recentRuns(1);
    expect(run).toMatchObject({ state: "quarantined", points: { mapped: 9, accepted: 8 } });
    expect(await rig.versions(variable)).toBe(8);

    away("partly.csv");
    await until("it has gone", () => isGone(gateway, "partly.csv"));
    back("partly.csv");
    await until("it lies there again", async () => !(await isGone(gateway, "partly.csv")));
    await idle(gateway);
    await until("the earlier arrival has returned", async () => {
      const [earlier] = await gateway.ledger.arrivalsAt("partly.csv");
      return earlier?.goneAt === null;
    });
    await idle(gateway);
    expect(await rig.versions(variable)).toBe(8);
    expect(await gateway.summary()).toMatchObject({ files: { quarantined: 1 } });
    expect((await gateway.concerns()).join("\n")).toContain("partly.csv at in is quarantined");
    const { stdout } = await headgate("trace", "partly.csv", "-c", rig.config);
    expect(stdout).toContain(`run ${run?.id} rests quarantined, 8 of its 9 readings were accepted`);
    const next = JSON.parse((await headgate("quarantine", "-c", rig.config, "--json")).stdout);
    expect(next).toMatchObject([{ run: run?.id, isAt: "partly.csv" }]);
  });

  it("is not delivered again by the same bytes with another time", async () => {
    const variable = await rig.variable("again", true);
    const services = [rig.service("hub", await refusing())];
    rig.put("in/again.csv", partly(variable));
    const gateway = await rig.open({ services });
    await idle(gateway);
    rig.put("in/again.csv", partly(variable), new Date("2026-04-01"));
    await until("the new version is known to hold the same bytes", async () => {
      const arrivals = await gateway.ledger.arrivalsAt("again.csv");
      return arrivals.some(({ state }) => state === "duplicate");
    });
    await idle(gateway);
    expect(await rig.versions(variable)).toBe(8);
    expect(await gateway.summary()).toMatchObject({ files: { quarantined: 1 } });
  });

  it("is not delivered again of a held file that went away, returned and was let go", async () => {
    const variable = await rig.variable("held", true);
    const guarded = { triggers: [trigger("standard", { guard: "hold" })] };
    const push = {
      confirm: { by: "read-back", pollEvery: "50ms" },
      guard: { recheck: "1h", recheckMax: "1h" },
    };
    rig.put("in/held.csv", `${oneReading(variable, 1)}999999,2026-03-01T00:00:00Z,1\n`);
    const gateway = await rig.open({ ...guarded, push });
    await until("it is held", async () => (await gateway.ledger.runsIn(["held"])).length === 1);
    away("held.csv");
    await until("it has gone", () => isGone(gateway, "held.csv"));
    back("held.csv");
    await until("it lies there again", async () => !(await isGone(gateway, "held.csv")));
    await until("nothing of it is under way", () => gateway.isIdle());
    const held = await gateway.ledger.runsIn(["held"]);
    expect(held).toHaveLength(1);
    const { code, stderr } = await headgate("release", held[0]?.id ?? "", "--yes", "-c", rig.config);
    expect(code, stderr).toBe(0);
    await until("its reading is stored", async () => (await rig.stored(variable))["2026-03-01"] === 1);
    await until("all that was accepted is", async () => (await gateway.ledger.runsIn(["delivering"])).length === 0);
    expect(await rig.versions(variable)).toBe(1);
  });

  it("has a held file that returned with another time finished as its own when it was let go", async () => {
    const variable = await rig.variable("touched", true);
    const push = { guard: { recheck: "1h", recheckMax: "1h" } };
    const drops = [drop("in", { finish: { delivered: { archive: "archive" } } })];
    rig.put("in/touched.csv", `${oneReading(variable, 1)}999999,2026-03-01T00:00:00Z,1\n`);
    const gateway = await rig.open({ drops, triggers: [trigger("standard", { guard: "hold" })], push });
    await until("it is held", async () => (await gateway.ledger.runsIn(["held"])).length === 1);
    away("touched.csv");
    await until("it has gone", () => isGone(gateway, "touched.csv"));
    utimesSync(place("elsewhere/touched.csv"), new Date("2026-04-01"), new Date("2026-04-01"));
    back("touched.csv");
    await until("it lies there again", async () => !(await isGone(gateway, "touched.csv")));
    await idle(gateway);
    const [held] = await gateway.ledger.runsIn(["held"]);
    const { code, stderr } = await headgate("release", held?.id ?? "", "--yes", "-c", rig.config);
    expect(code, stderr).toBe(0);
    const ends = async () =>
      (await gateway.ledger.events(held?.arrivalId ?? 0)).filter(({ what }) => what.startsWith("source."));
    await until("its source is finished", async () => (await ends()).length > 0);
    expect((await ends()).map(({ what }) => what)).toEqual(["source.archived"]);
  });
});

it("a file that is listed and missing each time that it is fetched rests where a person sees it", async () => {
  const variable = await rig.variable("flickering");
  const sections = { drops: [drop("in", { every: "1h" })] };
  await claimedBefore({ "flickering.csv": oneReading(variable, 1) }, sections);
  let gateway: Gateway | null = null;
  for (let time = 1; time <= 6; time += 1) {
    away("flickering.csv");
    gateway = await rig.open(sections);
    await idle(gateway);
    if (time === 6) break;
    await gateway.stop();
    back("flickering.csv");
    await claim(["flickering.csv"]);
  }
  const [latest] = (await gateway?.ledger.recentRuns(1)) ?? [];
  expect(latest).toMatchObject({ state: "quarantined", reason: { code: "HG-RUN-017" } });
});
