/** The actions of the console, each with its consequence before, through a gateway that runs. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Gateway } from "#gateway/gateway.ts";
import type { Run } from "#gateway/model.ts";
import { GatewayRig, oneReading, trigger, until } from "../../runs/gateway-rig.ts";
import { get, post } from "./console-rig.ts";

const BY = "command line";
let rig: GatewayRig;
let gateway: Gateway;
beforeEach(async () => {
  rig = await GatewayRig.start();
});
afterEach(() => rig.close());

async function untilState(path: string, ...states: string[]): Promise<Run> {
  let run: Run | undefined;
  await until(`${path} is ${states.join(" or ")}`, async () => {
    run = (await gateway.ledger.trace(path))[0]?.runs.at(-1)?.run;
    return run !== undefined && states.includes(run.state);
  });
  if (run === undefined) throw new Error("no run");
  return run;
}

const preview = (action: string, subjects: readonly object[], options = {}) =>
  post(gateway, "preview", { action, subjects, options });
const command = (name: string, subjects: readonly object[], options = {}, why = "") =>
  post(gateway, "commands", { command: name, subjects, options, why });
const eventsOf = async (run: Run) => (await gateway.ledger.events(run.arrivalId)).map(({ detail }) => detail);
const bySerial = (serial: string, value: number) =>
  `source_serialnumber,mapping_config,date,value\n${serial},v,2026-03-01T00:00:00Z,${value}\n`;
const lines = (...text: string[]) => trigger("lines", { mapper: "delimited", metadata: settings(text[0] ?? "value") });
const settings = (value: string) => ({
  timeZone: "UTC",
  date: { column: "when", format: "yyyy-MM-dd" },
  target: { variableId: "{id}" },
  value,
});

describe("a replay", () => {
  it("shows each reading that differs, with corrected settings, and then sends it for every file", async () => {
    const [one, two] = [await rig.variable("a"), await rig.variable("b")];
    rig.put("in/a.csv", `id,when,wrong,right\n${one},2026-03-01,1,10\n`);
    rig.put("in/b.csv", `id,when,wrong,right\n${two},2026-03-01,2,20\n`);
    gateway = await rig.open({ triggers: [lines("wrong")] });
    const runs = [await untilState("a.csv", "confirmed"), await untilState("b.csv", "confirmed")];
    const subjects = [...runs.map(({ id }) => ({ run: id })), { run: "none" }];
    const corrected = { settings: settings("right") };
    const shown = await preview("replay", subjects, corrected);
    expect(shown.items).toMatchObject([
      {
        status: "ok",
        words: "1 of 1 reading is sent: 0 new, 1 with another value, 0 as before",
        detail: {
          readings: { mapped: 1, sent: 1, changed: 1 },
          differences: [{ target: `variableId=${one}`, before: 1, after: 10 }],
        },
      },
      { status: "ok", detail: { differences: [{ target: `variableId=${two}`, before: 2, after: 20 }] } },
      { status: "refused", code: "HG-CLI-002", detail: null },
    ]);
    expect(await rig.stored(one)).toEqual({ "2026-03-01": 1 });
    const done = await command("replay", subjects, corrected, "wrong column");
    expect(done.items.map(({ status }: { status: string }) => status)).toEqual(["ok", "ok", "refused"]);
    await until("both are sent", async () =>
      [await rig.stored(one), await rig.stored(two)].every((stored, at) => stored["2026-03-01"] === [10, 20][at]),
    );
    expect(await gateway.ledger.run(done.items[0].run)).toMatchObject({
      replay: { of: runs[0]?.id, by: BY, why: "wrong column" },
    });
  });

  it("says that a file before it sends other values for the same dates", async () => {
    const variable = await rig.variable("a");
    rig.put("in/north.csv", `id,when,value,new\n${variable},2026-03-01,1,1.5\n${variable},2026-03-02,1,7\n`);
    gateway = await rig.open({ triggers: [lines("value")] });
    const north = await untilState("north.csv", "confirmed");
    rig.put("in/south.csv", `id,when,value,new\n${variable},2026-03-01,1,1.6\n${variable},2026-03-02,1,7\n`);
    const south = await untilState("south.csv", "confirmed");
    const options = { settings: settings("new"), overwrite: true };
    const { items } = await preview("replay", [{ run: north.id }, { run: south.id }], options);
    expect(items[0].words).not.toContain("replace it");
    expect(items[1].words).toContain("1 replaces another value of north.csv, sent before");
  });

  it("is refused in words while the file is in progress, and where it cannot be mapped", async () => {
    const variable = await rig.variable("a");
    rig.put("in/a.csv", `id,when,value\n${variable},2026-03-01,1\n`);
    gateway = await rig.open({ triggers: [lines("value")] });
    const run = await untilState("a.csv", "confirmed");
    const [wrong] = (await preview("replay", [{ run: run.id }], { settings: settings("missing") })).items;
    expect(wrong).toMatchObject({ status: "refused", code: "HG-CLI-006", detail: null });
    expect(wrong.words).toContain("missing");
    const [other] = (await preview("replay", [{ run: run.id }], { trigger: "none" })).items;
    expect(other).toMatchObject({ status: "refused", words: expect.stringContaining("there is no trigger none") });
  });

  it("follows the rule for rows that was shown, and is refused where the file would be quarantined", async () => {
    const variable = await rig.variable("a");
    const good = Array.from({ length: 20 }, (_, day) => `${variable},2026-03-${String(day + 1).padStart(2, "0")},1\n`);
    rig.put("in/a.csv", `id,when,value\n${good.join("")}${variable},2026-03-21,bad\n`);
    gateway = await rig.open({ triggers: [lines("value")] });
    const run = await untilState("a.csv", "quarantined");
    const subjects = [{ run: run.id }];
    for (const options of [{}, { rows: "strict" }]) {
      expect((await preview("replay", subjects, options)).items).toMatchObject([{ code: "HG-CLI-006" }]);
      const [refused] = (await command("replay", subjects, options)).items;
      expect(refused).toMatchObject({ status: "refused", code: "HG-CLI-006", run: null });
      expect(refused.words).toContain("bad");
    }
    expect((await gateway.ledger.runOf(run.arrivalId))?.id).toBe(run.id);
    const lenient = { rows: "lenient" };
    expect((await preview("replay", subjects, lenient)).items).toMatchObject([{ status: "ok" }]);
    expect((await command("replay", subjects, lenient)).items).toMatchObject([{ status: "ok" }]);
    const replayed = await untilState("a.csv", "confirmed");
    expect(replayed).toMatchObject({ binding: { rows: "lenient" }, points: { stored: 20, rejected: 1 } });
  });
});

describe("previews of replays", () => {
  const TOKEN = "a token that may read";
  const ENDLESS = `import { defineMapper } from "headgate/mapper";
export default defineMapper({
  name: "endless",
  version: "1.0.0",
  summary: "Never ends",
  async map() {
    for (;;);
  },
});
`;
  let replayed: Run;
  beforeEach(async () => {
    const variable = await rig.variable("a");
    rig.put("mappers/endless/mapper.js", ENDLESS);
    rig.put("in/a.csv", `id,when,value\n${variable},2026-03-01,1\n`);
    const tokens = [{ name: "script", token: TOKEN, rights: ["read"] }];
    gateway = await rig.open({
      triggers: [lines("value")],
      operations: { listen: "127.0.0.1:0", access: { tokens } },
    });
    replayed = await untilState("a.csv", "confirmed");
  });

  const ask = async (by: string, options: object, signal: AbortSignal | null = null) => {
    const isScript = by === "script";
    const answer = await fetch(`${gateway.operationsUrl}/operations/preview`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${isScript ? TOKEN : gateway.operationsToken}`,
        "content-type": "application/json",
        ...(isScript ? {} : { "x-headgate-by": by }),
      },
      body: JSON.stringify({ action: "replay", subjects: [{ run: replayed.id }], options }),
      signal,
    });
    return { status: answer.status, ...((await answer.json()) as object) };
  };

  it("take another trigger, mapper or settings from operators alone", async () => {
    for (const options of [
      { mapper: "endless" },
      { trigger: "lines" },
      { settings: settings("value") },
      { rows: "lenient" },
    ])
      expect(await ask("script", options)).toMatchObject({ status: 403, code: "HG-OPS-014" });
    expect(await ask("script", {})).toMatchObject({ status: 200, items: [{ status: "ok" }] });
    expect(await ask("ann", { settings: settings("value") })).toMatchObject({ status: 200, items: [{ status: "ok" }] });
  });

  it("end with a newer one of the same person, and when the client has gone", async () => {
    const first = ask("ann", { mapper: "endless" });
    const second = ask("ann", {});
    expect(await first).toMatchObject({ status: 409, code: "HG-OPS-010" });
    expect(await second).toMatchObject({ status: 200, items: [{ status: "ok" }] });

    const leave = new AbortController();
    const left = ["bob", "eve"].map((by) => ask(by, { mapper: "endless" }, leave.signal));
    const waiting = ask("ann", {});
    leave.abort();
    expect((await Promise.allSettled(left)).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(await waiting).toMatchObject({ status: 200, items: [{ status: "ok" }] });
  });
});

describe("held runs", () => {
  const TEMPLATE = {
    when: "ordered",
    site: { name: "Plant", typeId: 10, timeZoneId: "UTC" },
    source: { name: "Meter {source}" },
    variable: { name: "{mappingConfig} of {source}", unit: "kWh" },
  };

  it("have missing structure shown and then created, by name, and are delivered", async () => {
    rig.put("in/new.csv", bySerial("M-1", 5));
    gateway = await rig.open({ triggers: [trigger("standard", { provision: TEMPLATE })] });
    const held = await untilState("new.csv", "held");
    await until("it is in the inbox", async () => (await get(gateway, "attention")).total === 1);
    const [group] = (await get(gateway, "attention")).groups;
    expect(group.examples[0].actions).toEqual(["provision", "recheck", "release", "replay", "cancel", "forget"]);
    const [shown] = (await preview("provision", [{ run: held.id }])).items;
    expect(shown).toMatchObject({ status: "ok", detail: { count: 3, impossible: [] } });
    expect(shown.detail.creates[1]).toContain("source Meter M-1");
    expect((await rig.client.getSources({}, AbortSignal.timeout(5_000))).items).toEqual([]);
    expect((await command("provision", [{ run: held.id }], {}, "a new meter")).items[0].status).toBe("ok");
    await untilState("new.csv", "confirmed");
    expect(await eventsOf(held)).toContainEqual(
      expect.stringContaining(`created by ${BY}: a new meter: 1 site (Plant)`),
    );
  });

  it("share a site, which the first of them would create", async () => {
    rig.put("in/a.csv", bySerial("M-1", 5));
    rig.put("in/b.csv", bySerial("M-2", 5));
    rig.put("in/c.csv", bySerial("M-1", 6));
    gateway = await rig.open({ triggers: [trigger("standard", { provision: TEMPLATE })] });
    const subjects = [];
    for (const file of ["a.csv", "b.csv", "c.csv"]) subjects.push({ run: (await untilState(file, "held")).id });
    const { items } = await preview("provision", subjects);
    expect(items.map(({ detail }: { detail: { count: number } }) => detail.count)).toEqual([3, 2, 0]);
    expect(items[1].words).toBe(
      "2 would be created at the service; 1 that it needs would be created for files before it",
    );
  });

  it("are released with what would be discarded, checked again and cancelled, each by name", async () => {
    const variable = await rig.variable("known");
    rig.put("in/a.csv", `${bySerial("known", 1)}M-2,v,2026-03-01T00:00:00Z,2\n`);
    rig.put("in/b.csv", bySerial("M-3", 3));
    gateway = await rig.open({});
    const [a, b] = [await untilState("a.csv", "held"), await untilState("b.csv", "held")];
    const subjects = [{ run: a.id }, { run: b.id }];
    const shown = await preview("release", subjects);
    expect(shown.items).toMatchObject([
      { status: "ok", detail: { readings: 2, discards: 1, overtaken: null } },
      { status: "ok", words: expect.stringContaining("the service would discard 1 of them") },
    ]);
    const [refused] = (await command("release", [{ run: a.id }])).items;
    expect(refused).toMatchObject({ status: "refused", code: "HG-GUARD-009" });
    expect((await preview("recheck", subjects)).items.map(({ status }: { status: string }) => status)).toEqual([
      "ok",
      "ok",
    ]);
    const [checked] = (await command("recheck", [{ run: b.id }], {}, "is it there")).items;
    expect(checked.words).toMatch(/^checked at .* UTC: nothing has changed, it is held: 1 target.*M-3/);
    expect(await eventsOf(b)).toContain(`checked again by ${BY}: is it there`);
    expect((await preview("cancel", [{ run: b.id }])).items).toMatchObject([
      { status: "ok", detail: { acceptedPoints: 0, unanswered: 0 } },
    ]);
    await command("cancel", [{ run: b.id }], {}, "not ours");
    expect((await gateway.ledger.run(b.id))?.reason?.message).toBe(`cancelled by ${BY}: not ours`);
    expect((await preview("cancel", [{ run: b.id }])).items).toMatchObject([{ status: "refused", code: "HG-RUN-011" }]);
    expect((await command("release", [{ run: a.id }], { discard: true })).items).toMatchObject([{ status: "ok" }]);
    await until("the other reading is stored", async () => (await rig.stored(variable))["2026-03-01"] === 1);
    expect(await eventsOf(a)).toContainEqual(expect.stringContaining(`released by ${BY}`));
  });
});

describe("files, drops and triggers", () => {
  it("a file is forgotten after the counts were shown", async () => {
    const variable = await rig.variable("a");
    rig.put("in/a.csv", oneReading(variable, 1));
    gateway = await rig.open({});
    const first = await untilState("a.csv", "confirmed");
    await until("it is idle", () => gateway.isIdle());
    const subject = { drop: "in", path: "a.csv" };
    const [shown] = (await preview("forget", [subject])).items;
    expect(shown).toMatchObject({ status: "ok", detail: { versions: 1, runs: 1, acceptedPoints: 1 } });
    expect((await preview("forget", [{ drop: "in", path: "b.csv" }])).items).toMatchObject([{ status: "refused" }]);
    expect((await preview("forget", [{ run: first.id }])).items[0].detail).toEqual(shown.detail);
    await command("forget", [subject], {}, "a test");
    expect((await gateway.ledger.forgottenFiles("a.csv"))[0]).toMatchObject({ by: BY, why: "a test" });
  });

  it("a drop and a trigger are paused and resumed, and only those that exist", async () => {
    gateway = await rig.open({});
    const subjects = [
      { kind: "drop", name: "in" },
      { kind: "trigger", name: "standard" },
      { kind: "drop", name: "out" },
    ];
    const statuses = ({ items }: { items: readonly { status: string }[] }) => items.map(({ status }) => status);
    expect(statuses(await preview("pause", subjects))).toEqual(["ok", "ok", "refused"]);
    expect(await gateway.ledger.pauses()).toEqual([]);
    expect(statuses(await command("pause", subjects, {}, "the server moves"))).toEqual(["ok", "ok", "refused"]);
    expect(await gateway.ledger.pauses()).toMatchObject([
      { kind: "drop", by: BY, why: "the server moves" },
      { kind: "trigger", name: "standard" },
    ]);
    expect((await preview("resume", subjects.slice(0, 1))).items[0].words).toBe("the drop in is resumed");
    expect(statuses(await command("resume", subjects.slice(0, 2)))).toEqual(["ok", "ok"]);
    expect(await gateway.ledger.pauses()).toEqual([]);
    expect(statuses(await preview("pause", [{ run: "x" }]))).toEqual(["refused"]);
  });
});
