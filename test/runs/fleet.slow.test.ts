/** Two gateways in this process that share a ledger in PostgreSQL and their drops. */
import { appendFileSync, globSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadGatewayConfig } from "#gateway/config.ts";
import { pendingRuns } from "#gateway/runs/scheduler.ts";
import { HeadgateProcess } from "../e2e/processes.ts";
import { until } from "../e2e/wait.ts";
import { JumpingClock } from "../support/jumping-clock.ts";
import { FleetRig } from "./fleet-rig.ts";
import { drop, type GatewayRig, oneReading, trigger } from "./gateway-rig.ts";

let fleet: FleetRig;
let rig: GatewayRig;
beforeEach(async () => {
  fleet = await FleetRig.start();
  ({ rig } = fleet);
});
afterEach(() => fleet.close());

describe("a drop that a node does not know any more", () => {
  it("is polled by another node that does, which also takes the files that were claimed and not fetched", async () => {
    const variable = await rig.variable("a");
    const both = { drops: [drop("in"), drop("field")], triggers: [trigger("standard")] };
    // Its disk is as good as full: what is claimed is not fetched.
    const full = { spool: { path: "./state/spool-north", headroom: "900000GB" } };
    rig.put("field/a.csv", oneReading(variable, 1));
    const north = await fleet.start("north", { ...both, ...full });
    await until("north has claimed it", async () => (await north.ledger.runsIn(["claimed"])).length === 1);
    rig.put("field/b.csv", oneReading(variable, 2, "2026-03-02T00:00:00Z"));
    await until("north has claimed both", async () => (await north.ledger.runsIn(["claimed"])).length === 2);
    const south = await fleet.start("south", both);
    const polls = async () =>
      Object.fromEntries((await south.ledger.fleet.nodes()).map(({ node, drops }) => [node, drops]));
    expect(await polls()).toEqual({ north: ["field", "in"], south: [] });

    const fewer = { ...both, ...full, drops: [drop("in")] };
    expect(await north.exchange(loadGatewayConfig(fleet.configure("north", fewer)))).toMatchObject({
      status: "exchanged",
    });
    await until("south polls it", async () => (await polls())["south"]?.join() === "field");
    expect(await polls()).toEqual({ north: ["in"], south: ["field"] });
    await until("its files are delivered", async () => (await south.ledger.runsIn(["confirmed"])).length === 2);
    expect(await rig.stored(variable)).toEqual({ "2026-03-01": 1, "2026-03-02": 2 });
  });
});

describe("a file that a node finished", () => {
  it("is taken again by the node that polls its drop next, when it grows after the first has died", async () => {
    const variable = await rig.variable("a");
    const finish = { delivered: { archive: "archive" } };
    const sections = { drops: [drop("in", { finish })], triggers: [trigger("standard")] };
    const north = new HeadgateProcess(["gateway", "-c", fleet.configure("north", sections)]);
    await north.said("stderr", /gateway started/);
    const clock = new JumpingClock();
    const south = await fleet.start("south", sections, clock);
    rig.put("in/a.csv", oneReading(variable, 1));
    const events = async () =>
      (await south.ledger.trace("a.csv")).flatMap((file) => file.events.map(({ what }) => what));
    await until("north has archived it", async () => (await events()).includes("source.archived"));
    expect((await south.ledger.recentRuns(1))[0]?.node).toBe("north");
    await north.end("SIGKILL");
    const [archived = ""] = globSync("archive/a.*.csv", { cwd: join(rig.folder, "in") });
    appendFileSync(join(rig.folder, "in", archived), `${variable},2026-03-02T00:00:00Z,2\n`);
    await until("what came to it is stored", async () => {
      clock.jump(20_000);
      await south.pulse();
      return Object.keys(await rig.stored(variable)).length === 2;
    });
    expect(await events()).toEqual(expect.arrayContaining(["source.changed-later", "source.returned"]));
    expect((await south.ledger.recentRuns(1))[0]?.node).toBe("south");
  });
});

describe("a run of another living node", () => {
  it("keeps this node from being idle, so that `--until-idle` waits for it", async () => {
    const variable = await rig.variable("a");
    rig.put("in/a.csv", oneReading(variable, 1));
    const away = { services: [{ ...rig.service("hub"), push: "http://127.0.0.1:9/push" }] };
    const south = await fleet.start("south", away);
    await until("it is sent in vain", async () => (await south.ledger.runsIn(["delivering"])).length === 1);
    const north = await fleet.start("north", {});
    expect((await pendingRuns(north.ledger, 9, () => false)).map(({ path }) => path)).toEqual(["a.csv"]);
    await fleet.stop(south);
    await until("north has delivered it and is idle", () => north.isIdle());
    expect(await rig.stored(variable)).toEqual({ "2026-03-01": 1 });
  });
});

describe("a run whose segment is on the disk of a node that is gone", () => {
  it("waits at a node that does not know its drop, and is delivered by one that does", async () => {
    const variable = await rig.variable("a");
    const both = { drops: [drop("in"), drop("field")], triggers: [trigger("standard")] };
    const away = { services: [{ ...rig.service("hub"), push: "http://127.0.0.1:9/push" }] };
    rig.put("field/a.csv", oneReading(variable, 1));
    const south = await fleet.start("south", { ...both, ...away });
    await until("it is sent in vain", async () => (await south.ledger.runsIn(["delivering"])).length === 1);
    await fleet.stop(south);

    const north = await fleet.start("north", { ...both, drops: [drop("in")] });
    const waiting = await until("north says what it lacks", async () => {
      const [run] = await north.ledger.runsIn(["delivering"]);
      return run?.reason?.code === "HG-RUN-008" && run;
    });
    expect(waiting.reason?.message).toContain("the drop field is not in the configuration of this node");
    await fleet.start("west", both);
    await until("it is delivered", async () => (await north.ledger.run(waiting.id))?.state === "confirmed");
    expect((await north.ledger.run(waiting.id))?.node).toBe("west");
    expect(await rig.stored(variable)).toEqual({ "2026-03-01": 1 });
  });
});

describe("a run that another node mapped with a mapper and a table that are others by now", () => {
  it("is mapped again with the versions that it is bound to, which the nodes share", async () => {
    const variable = await rig.variable("a");
    const folder = join(rig.folder, "mappers", "acme");
    mkdirSync(join(folder, "parts"), { recursive: true });
    const write = (factor: number) => {
      writeFileSync(join(folder, "parts", "factor.ts"), `export const FACTOR = ${factor};\n`);
      writeFileSync(join(rig.folder, "factors.csv"), `meter,factor\nM,${factor}\n`);
    };
    writeFileSync(
      join(folder, "mapper.ts"),
      `import { defineMapper } from "headgate/mapper";
import { FACTOR } from "./parts/factor.ts";
export default defineMapper({ name: "acme", summary: "of a test", version: "1", async map({ file, emit, lookup }) {
  const [date, value] = (await file.text()).trim().split(",");
  const factor = FACTOR * Number((await lookup("factors")).get("M")?.factor);
  emit({ target: { variableId: ${variable} }, date, value: Number(value) * factor });
} });`,
    );
    write(2);
    const sections = {
      mappers: { folders: ["./mappers"] },
      lookups: [{ name: "factors", path: "./factors.csv", key: "meter" }],
      drops: [drop("in")],
      triggers: [trigger("acme", { mapper: "acme" })],
    };
    rig.put("in/a.csv", "2026-03-01T00:00:00Z,1\n");
    const away = { services: [{ ...rig.service("hub"), push: "http://127.0.0.1:9/push" }] };
    const south = await fleet.start("south", { ...sections, ...away });
    const run = await until("it is sent in vain", async () => (await south.ledger.runsIn(["delivering"]))[0]);
    await fleet.stop(south);

    write(3);
    const north = await fleet.start("north", sections);
    await until("it is at rest", async () => {
      const state = (await north.ledger.run(run.id))?.state ?? "";
      return ["confirmed", "quarantined"].includes(state);
    });
    expect(await north.ledger.run(run.id)).toMatchObject({ state: "confirmed", binding: run.binding });
    expect(await rig.stored(variable)).toEqual({ "2026-03-01": 4 });
    rig.put("in/b.csv", "2026-03-02T00:00:00Z,1\n");
    await until("new files take the new ones", async () => (await rig.stored(variable))["2026-03-02"] === 9);
  });
});

describe("the console of a node", () => {
  it("shows the files of other nodes as they change", async () => {
    await rig.variable("a");
    const sections = { drops: [drop("in")], triggers: [trigger("standard")] };
    const north = await fleet.start("north", sections);
    const south = await fleet.start("south", sections);
    await until("north polls the drop", async () =>
      (await north.ledger.fleet.nodes()).some((one) => one.drops[0] === "in"),
    );
    const stop = new AbortController();
    const live = await fetch(`${south.operationsUrl}/operations/live`, {
      headers: { authorization: `Bearer ${south.operationsToken}` },
      signal: stop.signal,
    });
    let seen = "";
    const reading = (async () => {
      for await (const part of live.body ?? []) seen += Buffer.from(part).toString();
    })().catch(() => undefined);
    try {
      await until("the stream has begun", async () => seen.includes("event: state"));
      rig.put("in/a.csv", "variable_id,date,value\n1,2026-03-01T00:00:00Z,oops\n");
      await until("south shows it", async () => /"path":"a.csv","drop":"in","state":"quarantined"/.test(seen));
    } finally {
      stop.abort();
      await reading;
    }
  });
});
