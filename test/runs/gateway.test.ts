import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Gateway } from "#gateway/gateway.ts";
import { askOperations } from "../support/operations.ts";
import { drop, GatewayRig, oneReading, trigger, until } from "./gateway-rig.ts";

let rig: GatewayRig;
beforeEach(async () => {
  rig = await GatewayRig.start();
});
afterEach(() => rig.close());

const idle = (gateway: Gateway) => until("the gateway is idle", () => gateway.isIdle());

/** The parts that health says are not ready. */
async function notReady(gateway: Gateway): Promise<string[]> {
  const answer = await askOperations(gateway, "/health/ready");
  const { parts } = (await answer.json()) as { parts: { part: string; ready: boolean }[] };
  expect(answer.status).toBe(parts.every(({ ready }) => ready) ? 200 : 503);
  return parts.filter(({ ready }) => !ready).map(({ part }) => part);
}

describe("what waits in one place hides nothing that is ready in another", () => {
  it("delivers to a service that answers while hundreds of files wait for one that does not", async () => {
    const variable = await rig.variable("alive");
    for (let index = 0; index < 450; index++) rig.put(`dead/${index}.csv`, oneReading(1, index));
    rig.put("in/alive.csv", oneReading(variable, 5));
    const gateway = await rig.open({
      services: [rig.service("dead", "http://127.0.0.1:9"), rig.service("hub")],
      drops: [drop("dead"), drop("in")],
      triggers: [
        trigger("t-dead", { drops: ["dead"], service: "dead" }),
        trigger("t-alive", { drops: ["in"], service: "hub" }),
      ],
    });
    await until("the living service has its point", async () => (await rig.stored(variable))["2026-03-01"] === 5);
    await until("health names the service that does not answer", async () =>
      (await notReady(gateway)).includes("service dead"),
    );
    expect(await notReady(gateway)).not.toContain("service hub");
  });

  it("takes up the files of a drop while hundreds of another wait that is not configured any more", async () => {
    const variable = await rig.variable("left");
    for (let index = 0; index < 450; index++) rig.put(`old/${index}.csv`, oneReading(variable, index));
    const first = await rig.open({
      drops: [drop("old")],
      services: [rig.service("hub", "http://127.0.0.1:9")],
    });
    await until(
      "all are claimed",
      async () => (await first.ledger.runsIn(["claimed", "fetched", "mapped"])).length >= 300,
    );
    rig.put("in/new.csv", oneReading(variable, 7, "2026-03-02T00:00:00Z"));
    await rig.open({ drops: [drop("in")], services: [rig.service("hub")] });
    await until("the new file is stored", async () => (await rig.stored(variable))["2026-03-02"] === 7);
  });
});

describe("a mapper that cannot be loaded", () => {
  it("keeps back the files of its own trigger and no others, also at the next start", async () => {
    const variable = await rig.variable("sound");
    mkdirSync(join(rig.folder, "mappers"));
    writeFileSync(join(rig.folder, "mappers/broken.ts"), "export default {{{");
    const triggers = [
      trigger("broken", {
        mapper: "broken",
        fileNamePatternMatches: [{ filterType: "StartsWith", value: "brk_" }],
      }),
      trigger("standard"),
    ];
    rig.put("in/brk_1.csv", "x");
    rig.put("in/std_1.csv", oneReading(variable, 1));
    let gateway = await rig.open({ triggers });
    await idle(gateway);
    expect(await gateway.summary()).toMatchObject({ files: { delivered: 1, quarantined: 1 } });
    rig.put("in/brk_2.csv", "y");
    gateway = await rig.open({ triggers });
    await idle(gateway);
    const [run] = await gateway.ledger.recentRuns(1, ["quarantined"]);
    expect(run).toMatchObject({ path: "brk_2.csv", reason: { code: "HG-MAP-003" } });
  });
});

describe("a mapper that changed while files waited", () => {
  it("keeps no file back, and maps the new ones as it is now", async () => {
    const variable = await rig.variable("rebound");
    mkdirSync(join(rig.folder, "mappers"));
    const mapper = (value: number) => `
      import { defineMapper, z } from "headgate/mapper";
      export default defineMapper({ name: "own", summary: "s", settings: z.strictObject({}),
        map: ({ emit }) => emit({ target: { variableId: ${variable} }, date: "2026-03-01T00:00:00Z", value: ${value} }) });`;
    writeFileSync(join(rig.folder, "mappers/own.ts"), mapper(1));
    const triggers = [trigger("own", { mapper: "own" })];
    rig.put("in/a.csv", "a");
    const first = await rig.open({ triggers });
    // Held in `claimed`, as when the process ends in the middle of a backlog.
    await until("the file is claimed", async () => (await first.ledger.recentRuns(1)).length === 1);
    await first.stop();
    writeFileSync(join(rig.folder, "mappers/own.ts"), mapper(2));
    rig.put("in/b.csv", "b");
    const second = await rig.open({ triggers });
    await idle(second);
    expect((await second.summary()).files.quarantined).toBeUndefined();
    expect((await rig.stored(variable))["2026-03-01"]).toBe(2);
  });
});

describe("several versions of a file", () => {
  it("delivers a version that comes back after another", async () => {
    const variable = await rig.variable("aba");
    const gateway = await rig.open({ drops: [drop("in", { finish: { delivered: "leave" } })] });
    for (const [index, value] of [1, 2, 1].entries()) {
      rig.put("in/aba.csv", oneReading(variable, value), new Date(Date.UTC(2026, 2, 1, index)));
      await until(`version ${index} is stored`, async () => {
        const runs = await gateway.ledger.recentRuns(10, ["confirmed"]);
        return runs.length === index + 1 && (await rig.stored(variable))["2026-03-01"] === value;
      });
    }
  });

  it("delivers what came while nobody looked in the order of its times, whatever the names", async () => {
    const variable = await rig.variable("order");
    rig.put("in/c.csv", oneReading(variable, 1), new Date("2026-08-01T00:00:00Z"));
    rig.put("in/a.csv", oneReading(variable, 3), new Date("2026-08-03T00:00:00Z"));
    rig.put("in/b.csv", oneReading(variable, 2), new Date("2026-08-02T00:00:00Z"));
    const gateway = await rig.open({});
    await idle(gateway);
    expect((await rig.stored(variable))["2026-03-01"]).toBe(3);
    // What a later file corrected was not lost by the service.
    expect((await gateway.summary()).files).toEqual({ delivered: 3 });
  });

  it("needs nobody any more once a corrected file took the place of a quarantined one", async () => {
    const variable = await rig.variable("corrected");
    rig.put("in/a.csv", "variable_id,date,value\n1,2026-03-01T00:00:00Z,many\n");
    let gateway = await rig.open({});
    await idle(gateway);
    expect(await gateway.concerns()).toEqual([expect.stringContaining("a.csv at in is quarantined")]);
    rig.put("in/a.csv", oneReading(variable, 4), new Date("2026-03-02T00:00:00Z"));
    gateway = await rig.open({});
    await idle(gateway);
    expect(await gateway.concerns()).toEqual([]);
  });
});

describe("the rule for unmatched files", () => {
  it("archives them under a name of their own", async () => {
    rig.put("in/odd.txt", "hello");
    const gateway = await rig.open({ drops: [drop("in", { finish: { unmatched: { archive: "odd" } } })] });
    await until("it is archived", async () => existsSync(join(rig.folder, "in/odd")));
    await idle(gateway);
    expect(readdirSync(join(rig.folder, "in/odd"))).toEqual([expect.stringMatching(/^odd\.unmatched-\d+\.txt$/)]);
    expect((await gateway.summary()).files).toEqual({ unmatched: 1 });
  });
});
