/** Runs of small files take steps as lists, and end as each would by itself. */
import { hash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLog } from "#core/log.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { type Gateway, startGateway } from "#gateway/gateway.ts";
import { findReadings } from "#gateway/spool/search.ts";
import { openSpool } from "#gateway/spool/spool.ts";
import { drop, GatewayRig, oneReading, trigger, until } from "./gateway-rig.ts";
import { headgate } from "./in-process.ts";

interface GroupLine {
  readonly runs: number;
  readonly results: number;
}

let rig: GatewayRig;
let groups: GroupLine[];
beforeEach(async () => {
  rig = await GatewayRig.start();
  groups = [];
});
afterEach(() => rig.close());

const log = createLog("debug", {
  write(line) {
    const said = JSON.parse(line) as GroupLine & { readonly msg: string };
    if (/a step as a list$/.test(said.msg)) groups.push(said);
  },
});

const dayOf = (index: number) => `2026-03-${String(index + 1).padStart(2, "0")}`;
const GOOD = 20;

function layGood(variable: number): void {
  for (let index = 0; index < GOOD; index += 1)
    rig.put(`in/good-${String(index).padStart(2, "0")}.csv`, oneReading(variable, index, `${dayOf(index)}T00:00:00Z`));
}

const goodValues = () => Object.fromEntries(Array.from({ length: GOOD }, (_, index) => [dayOf(index), index]));

async function storiesOf(gateway: Gateway, name: string): Promise<readonly string[]> {
  const [file] = await gateway.ledger.trace(name);
  // A listing may be under way while a file is archived.
  return (file?.events ?? []).flatMap(({ what }) => (what === "arrival.gone" ? [] : [what]));
}

describe("files that lie at a drop side by side", () => {
  it("are taken in and archived as a list, each with its full life in the ledger", async () => {
    const variable = await rig.variable("meter");
    layGood(variable);
    const gateway = await rig.open({ drops: [drop("in", { finish: { delivered: { archive: "archive" } } })] }, log);
    await until("all is done", () => gateway.isIdle());
    expect(await rig.stored(variable)).toEqual(goodValues());
    expect(groups.some(({ results }) => results > 1)).toBe(true);
    const query = { fields: { variableId: variable } };
    const atMs = Date.parse(`${dayOf(7)}T00:00:00Z`);
    const found = await Array.fromAsync(findReadings(join(rig.folder, "state/spool"), { ...query, atMs }));
    expect(found).toMatchObject([{ row: 2, value: 7, sequence: "1" }]);
    const stories = new Set<string>();
    for (const run of await gateway.ledger.recentRuns(GOOD)) {
      expect(run).toMatchObject({ state: "confirmed", points: { mapped: 1, accepted: 1, stored: 1 } });
      stories.add((await storiesOf(gateway, run.id)).join(" "));
    }
    expect([...stories]).toEqual([
      "arrival.settling arrival.matched run.claimed run.fetched run.mapping run.mapped " +
        "run.delivering batch.sending batch.accepted run.accepted source.archived " +
        "outcome.read-back run.confirmed",
    ]);
  });

  it("end one by one where something is wrong with them, with the reason, and keep no other back", async () => {
    const variable = await rig.variable("meter");
    rig.put("in/again.csv", oneReading(variable, 77, "2026-04-01T00:00:00Z"));
    const first = await rig.open({}, log);
    await until("the first is done", () => first.isIdle());
    await first.stop();
    rig.put("in/again.csv", oneReading(variable, 77, "2026-04-01T00:00:00Z"), new Date("2026-03-02"));
    rig.put("in/broken.csv", "variable_id,date,value\n1,2026-03-01T00:00:00Z,many\n");
    rig.put("in/empty.csv", "variable_id,date,value\n");
    layGood(variable);
    const gateway = await rig.open({}, log);
    await until("all is done", () => gateway.isIdle());
    expect(await rig.stored(variable)).toEqual({ ...goodValues(), "2026-04-01": 77 });
    expect(await rig.versions(variable)).toBe(GOOD + 1);
    const runs = await gateway.ledger.recentRuns(GOOD + 3);
    const stateOf = (path: string) => runs.find((run) => run.path === path);
    expect(stateOf("again.csv")).toMatchObject({ state: "cancelled", reason: { code: "HG-RUN-001" } });
    expect(stateOf("broken.csv")).toMatchObject({
      state: "quarantined",
      reason: { place: { row: 2, column: "value" } },
    });
    expect(stateOf("empty.csv")).toMatchObject({ state: "empty" });
    const spooled = ["inputs", "kept"].flatMap((name) => readdirSync(join(rig.folder, "state/spool", name)));
    for (const path of ["again.csv", "broken.csv", "empty.csv"])
      expect(spooled, `a replay of ${path} has its input`).toContainEqual(
        expect.stringMatching(new RegExp(`^${stateOf(path)?.id}(\\.input(\\.zst)?)?$`)),
      );
    expect(groups.some(({ runs: all, results }) => all > GOOD && results === all)).toBe(true);
  });

  it("leave nothing that looks sent when they came before", async () => {
    const variable = await rig.variable("meter");
    layGood(variable);
    const gateway = await rig.open(
      {
        drops: [drop("in", { finish: { delivered: { archive: "archive" } } })],
        push: { confirm: { by: "none" } },
      },
      log,
    );
    await until("all is done", () => gateway.isIdle());
    layGood(variable);
    const cancelled = async () => (await gateway.ledger.runsIn(["cancelled"])).length;
    await until("all are known", async () => (await cancelled()) === GOOD && (await gateway.isIdle()));
    expect(groups.length).toBeGreaterThan(1);
    const kept = readdirSync(join(rig.folder, "state/spool/kept")).filter((name) => name.endsWith(".segment"));
    expect(kept.length).toBe(GOOD);
  });

  it("leave nothing that seems sent when they were mapped before a crash and fail or are cancelled then", async () => {
    for (const name of ["broken", "given-up"])
      rig.put(`in/${name}.csv`, "variable_id,date,value\n1,2026-03-01T00:00:00Z,many\n");
    const path = "./state/spool";
    const before = await rig.open({ spool: { path, headroom: "1000000GB" } });
    const waiting = async () => (await before.ledger.runsIn(["claimed"])).filter(({ reason }) => reason !== null);
    await until("they wait for room", async () => (await waiting()).length === 2);
    const runs = await waiting();
    await before.stop();
    for (const { id } of runs) writeFileSync(join(rig.folder, path, "segments", `${id}.segment`), "[]");
    const idOf = (name: string) => runs.find((run) => run.path === name)?.id ?? expect.fail(name);
    expect(await headgate("cancel", idOf("given-up.csv"), "--yes", "-c", rig.config)).toMatchObject({
      code: 0,
    });
    const gateway = await rig.open({ spool: { path } });
    await until("one is aside", async () => (await gateway.ledger.runsIn(["quarantined"])).length === 1);
    await until("all is done", () => gateway.isIdle());
    expect(readdirSync(join(rig.folder, path, "segments"))).toEqual([]);
    expect(readdirSync(join(rig.folder, path, "kept"))).toEqual([`${idOf("broken.csv")}.input`]);
  });

  it("have what was fetched as their inputs, and not what an attempt before had brought of it", async () => {
    const variable = await rig.variable("meter");
    layGood(variable);
    rig.configure({});
    const intakeRule = { isClosed: () => true, byGroups: false };
    const before = await startGateway(loadGatewayConfig(rig.config), { log, intakeRule });
    const claimed = () => before.ledger.runsIn(["claimed"]);
    await until("all are claimed", async () => (await claimed()).length === GOOD);
    const runs = await claimed();
    await before.stop();
    const path = join(rig.folder, "state/spool");
    for (const { id } of runs) writeFileSync(join(path, "inputs", id), "variable_id,da");
    const gateway = await rig.open({}, log);
    await until("all is done", () => gateway.isIdle());
    expect(groups.some(({ results }) => results > 1)).toBe(true);
    const done = await gateway.ledger.recentRuns(GOOD);
    await gateway.stop();
    const keepInputs = { age: 1e12, size: 1e12 };
    const spool = await openSpool({ path, budget: 1e9, headroom: 0, keepInputs });
    for (const { id, sha256 } of done) {
      const input = (await spool.openInput(id, "kept")) ?? expect.fail("no input");
      expect(hash("sha256", await text(input))).toBe(sha256);
    }
    await spool.close();
  });

  it("are mapped alone when one of them ends the process of its mapper", async () => {
    const variable = await rig.variable("meter");
    mkdirSync(join(rig.folder, "mappers"));
    writeFileSync(
      join(rig.folder, "mappers", "deadly.ts"),
      `import { defineMapper } from "headgate/mapper";
export default defineMapper({ name: "deadly", summary: "", async map({ file, emit }) {
  if (file.name === "good-03.csv") process.exit(7);
  const [variableId, date, value] = (await file.text()).split("\\n")[1].split(",");
  emit({ target: { variableId: Number(variableId) }, date, value: Number(value) });
} });`,
    );
    layGood(variable);
    const gateway = await rig.open({ triggers: [trigger("deadly", { mapper: "deadly" })] }, log);
    await until("all is done", () => gateway.isIdle());
    const { [dayOf(3)]: _deadly, ...others } = goodValues();
    expect(await rig.stored(variable)).toEqual(others);
    const [bad] = await gateway.ledger.recentRuns(1, ["quarantined"]);
    expect(bad).toMatchObject({ path: "good-03.csv", reason: { code: "HG-MAP-011" } });
  });

  it("are mapped while the mapping of one of them does not end", async () => {
    const variable = await rig.variable("meter");
    mkdirSync(join(rig.folder, "mappers"));
    writeFileSync(
      join(rig.folder, "mappers", "endless.ts"),
      `import { defineMapper } from "headgate/mapper";
export default defineMapper({ name: "endless", summary: "", async map({ file, emit }) {
  if (file.name === "good-03.csv") for (;;);
  const [variableId, date, value] = (await file.text()).split("\\n")[1].split(",");
  emit({ target: { variableId: Number(variableId) }, date, value: Number(value) });
} });`,
    );
    layGood(variable);
    const sections = {
      triggers: [trigger("endless", { mapper: "endless" })],
      workers: { count: 2, timeLimit: "1h" },
    };
    const gateway = await rig.open(sections, log);
    // The later ones of the lane wait with their delivery, as the targets of that one are not known.
    const mapped = async () => await gateway.ledger.recentRuns(GOOD, ["mapped", "accepted", "confirmed"]);
    await until("the others are mapped", async () => (await mapped()).length === GOOD - 1);
    expect(await gateway.ledger.recentRuns(GOOD, ["mapping"])).toMatchObject([{ path: "good-03.csv" }]);
  });

  it("end as each would when one of them is cancelled while their list is in progress", async () => {
    const variable = await rig.variable("meter");
    mkdirSync(join(rig.folder, "mappers"));
    writeFileSync(
      join(rig.folder, "mappers", "slow.ts"),
      `import { defineMapper } from "headgate/mapper";
export default defineMapper({ name: "slow", summary: "", async map({ file, emit }) {
  for (const end = performance.now() + 300; performance.now() < end; ) await new Promise(setImmediate);
  const [variableId, date, value] = (await file.text()).split("\\n")[1].split(",");
  emit({ target: { variableId: Number(variableId) }, date, value: Number(value) });
} });`,
    );
    layGood(variable);
    const gateway = await rig.open({ triggers: [trigger("slow", { mapper: "slow" })] }, log);
    const claimed = () => gateway.ledger.runsIn(["claimed"]);
    await until("all are claimed", async () => (await claimed()).length === GOOD);
    const given = (await claimed()).find(({ path }) => path === "good-05.csv") ?? expect.fail("not claimed");
    expect(await headgate("cancel", given.id, "--yes", "-c", rig.config)).toMatchObject({ code: 0 });
    await until("all is done", () => gateway.isIdle());
    const { [dayOf(5)]: _given, ...others } = goodValues();
    expect(await rig.stored(variable)).toEqual(others);
    expect(await rig.versions(variable)).toBe(GOOD - 1);
    expect(await gateway.ledger.run(given.id)).toMatchObject({ state: "cancelled" });
    const spool = join(rig.folder, "state/spool");
    expect(readdirSync(join(spool, "segments"))).toEqual([]);
  });

  it("stay where they lie when they cannot be archived, and say so one by one", async () => {
    const variable = await rig.variable("meter");
    layGood(variable);
    // The place of the archive is taken by a file.
    rig.put("in/archive", "");
    const archiving = { exclude: ["archive"], finish: { delivered: { archive: "archive" } } };
    const sections = { drops: [drop("in", archiving)] };
    const gateway = await rig.open(sections, log);
    await until("all are told to wait", async () => {
      const runs = await gateway.ledger.recentRuns(GOOD, ["accepted", "confirmed"]);
      return runs.length === GOOD && runs.every(({ reason }) => reason !== null);
    });
    expect(readdirSync(join(rig.folder, "in")).filter((name) => name.endsWith(".csv"))).toHaveLength(GOOD);
    rmSync(join(rig.folder, "in/archive"));
    await gateway.stop();
    const next = await rig.open(sections, log);
    await until("all is done", () => next.isIdle());
    expect(existsSync(join(rig.folder, "in/archive"))).toBe(true);
    expect(readdirSync(join(rig.folder, "in")).filter((name) => name.endsWith(".csv"))).toEqual([]);
    expect(await rig.versions(variable)).toBe(GOOD);
  });
});
