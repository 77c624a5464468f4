import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "#core/clock.ts";
import type { Binding } from "#gateway/model.ts";
import { openLookupStore } from "#gateway/runs/lookups.ts";
import { GatewayRig, trigger, until } from "./gateway-rig.ts";

const DAY_MS = 86_400_000;

describe("the lookup tables of runs", () => {
  let folder: string;
  let table: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "headgate-"));
    table = join(folder, "tags.csv");
    writeFileSync(table, "tag,id\nA,1\n");
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const open = () => openLookupStore([{ name: "tags", path: table, key: "tag" }], folder, systemClock);
  const bindingOf = (lookups: Binding["lookups"]) => ({ lookups }) as Binding;
  const kept = () => readdirSync(join(folder, "lookups"));

  it("are bound by the digest of their bytes, and copied to the spool once for each content", async () => {
    const store = await open();
    const [first] = await store.bind();
    expect(await store.bind()).toEqual([first]);
    writeFileSync(table, "tag,id\nA,2\n");
    utimesSync(table, new Date(), new Date("2026-03-01T00:00:00Z"));
    const [second] = await store.bind();
    expect(kept().sort()).toEqual([first?.digest, second?.digest].sort());
    const [file] = await store.filesFor(bindingOf([first ?? never()]));
    expect(file).toMatchObject({ path: join(folder, "lookups", first?.digest ?? ""), digest: first?.digest });
  });

  it("are copied once by drops that claim side by side", async () => {
    const store = await open();
    const bound = await Promise.all(Array.from({ length: 20 }, () => store.bind()));
    expect(new Set(bound.map(([one]) => one?.digest)).size).toBe(1);
    expect(kept()).toEqual([bound[0]?.[0]?.digest]);
  });

  it("are no fault of the file when the spool cannot be written: it is claimed later", async () => {
    const store = await open();
    rmSync(join(folder, "lookups"), { recursive: true });
    writeFileSync(join(folder, "lookups"), "");
    await expect(store.bind()).rejects.toMatchObject({ name: "TransientError", code: "HG-SPOOL-003" });
    rmSync(join(folder, "lookups"));
    expect((await store.bind())[0]?.digest).toMatch(/^[0-9a-f]{64}$/);
  });

  it("say why they could not be read, which keeps back only who asks for them", async () => {
    rmSync(table);
    const store = await open();
    const bound = await store.bind();
    expect(bound).toMatchObject([{ digest: null, fault: `there is no file ${table}` }]);
    expect(await store.filesFor(bindingOf(bound))).toMatchObject([{ fault: `there is no file ${table}` }]);
    writeFileSync(table, "tag,id\n");
    expect((await store.bind())[0]?.digest).toMatch(/^[0-9a-f]{64}$/);
  });

  it("are looked for at their own place when the spool lost them, to be verified by the digest", async () => {
    const store = await open();
    const bound = await store.bind();
    rmSync(join(folder, "lookups", bound[0]?.digest ?? ""));
    expect(await store.filesFor(bindingOf(bound))).toMatchObject([{ path: table, digest: bound[0]?.digest }]);
  });

  it("are forgotten after the time in which a run may need them, and copied again when bound again", async () => {
    const store = await open();
    await store.bind();
    expect(await store.prune(Date.now() - DAY_MS)).toBe(0);
    expect(await store.prune(Date.now() + DAY_MS)).toBe(1);
    expect(kept()).toEqual([]);
    const [again] = await store.bind();
    expect(kept()).toEqual([again?.digest]);
  });
});

describe("a table that is edited while files are under way", () => {
  let rig: GatewayRig;
  beforeEach(async () => {
    rig = await GatewayRig.start();
  });
  afterEach(() => rig.close());

  it("changes nothing for files claimed before, also when they are mapped again, and applies to the next", async () => {
    const [one, two] = [await rig.variable("one"), await rig.variable("two")];
    mkdirSync(join(rig.folder, "mappers"));
    writeFileSync(
      join(rig.folder, "mappers/own.ts"),
      `import { defineMapper } from "headgate/mapper";
       export default defineMapper({ name: "own", summary: "s", async map({ file, lookup, emit }) {
         const tags = await lookup("tags");
         const value = Number(await file.text());
         emit({ target: { variableId: Number(tags.require("A").id) }, date: "2026-03-01T00:00:00Z", value });
       } });`,
    );
    const sections = {
      triggers: [trigger("own", { mapper: "own" })],
      lookups: [{ name: "tags", path: "./tags.csv", key: "tag" }],
    };
    rig.put("tags.csv", `tag,id\nA,${one}\n`);
    rig.put("in/a.csv", "1");
    const first = await rig.open({ ...sections, services: [rig.service("hub", "http://127.0.0.1:9")] });
    await until("it is mapped", async () => (await first.ledger.runsIn(["mapped", "delivering"])).length === 1);
    await first.stop();
    for (const name of readdirSync(join(rig.folder, "state/spool/segments")))
      rmSync(join(rig.folder, "state/spool/segments", name));
    rig.put("tags.csv", `tag,id\nA,${two}\n`, new Date("2026-03-02T00:00:00Z"));
    rig.put("in/b.csv", "2");
    const second = await rig.open(sections);
    await until("the gateway is idle", () => second.isIdle());
    expect(await second.summary()).toMatchObject({ files: { delivered: 2 } });
    expect((await rig.stored(one))["2026-03-01"]).toBe(1);
    expect((await rig.stored(two))["2026-03-01"]).toBe(2);
    const runs = await second.ledger.recentRuns(2);
    expect(new Set(runs.map(({ binding }) => binding.lookups?.[0]?.digest)).size).toBe(2);
    expect(existsSync(join(rig.folder, "state/spool/lookups"))).toBe(true);
  });
});

function never(): never {
  throw new Error("there is no table");
}
