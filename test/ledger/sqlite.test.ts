import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "#core/clock.ts";
import { InvariantError } from "#core/errors.ts";
import { silentLog } from "#core/log.ts";
import { openLedger } from "#gateway/ledger/open.ts";
import { ledgerOptions } from "#gateway/ledger/options.ts";
import { openSqliteLedger } from "#gateway/ledger/sqlite/open.ts";
import { aloneConformance } from "./alone-conformance.ts";
import { ledgerConformance } from "./conformance.ts";
import { BINDING, claimed, deliver, entry, list, mapped, record, steppingClock } from "./fixtures.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-"));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

ledgerConformance("SQLite", (clock) => openSqliteLedger({ path: join(folder, "ledger.sqlite"), clock }));

describe("exclusive work at a ledger in SQLite", () =>
  aloneConformance(async () => {
    const means = { path: join(folder, "ledger.sqlite"), clock: systemClock };
    return [await openSqliteLedger(means), await openSqliteLedger({ ...means, readOnly: true })];
  }));

describe("an SQLite ledger's file", () => {
  const open = (readOnly = false, log = silentLog) =>
    openSqliteLedger({ path: join(folder, "state", "ledger.sqlite"), clock: steppingClock(), readOnly, log });

  it("is created with its folder, for its own user and group, and keeps its records when opened again", async () => {
    const first = await open();
    const run = await mapped(first, "a.csv");
    const told = await first.trace("a.csv");
    await first.close();
    expect((await stat(join(folder, "state", "ledger.sqlite"))).mode & 0o007).toBe(0);
    const second = await open();
    expect(await second.trace("a.csv")).toEqual(told);
    expect((await claimed(second, "b.csv")).id > run.id).toBe(true);
    await second.close();
  });

  it("belongs to one owner at a time", async () => {
    const owner = await open();
    await expect(open()).rejects.toMatchObject({ code: "HG-LEDG-001", name: "ConfigError" });
    await owner.close();
    await (await open()).close();
  });

  it("can be read beside its owner, who continues to write, and not be changed", async () => {
    const owner = await open();
    const reader = await open(true);
    const run = await claimed(owner, "a.csv");
    expect((await reader.run(run.id))?.state).toBe("claimed");
    await expect(reader.advanceRun(run.id, "claimed", "fetched")).rejects.toThrow(InvariantError);
    await reader.close();
    await owner.close();
  });

  it("can be read without an owner", async () => {
    const owner = await open();
    const run = await claimed(owner, "a.csv");
    await owner.close();
    const reader = await open(true);
    expect((await reader.recentRuns(1))[0]?.id).toBe(run.id);
    await reader.close();
  });

  it("forgets and counts files, and finds the latest of a trigger, without reading every record", async () => {
    const ledger = await open();
    const run = await deliver(ledger, await mapped(ledger, "a.csv"));
    const finished = { at: "2026-03-01T00:00:00.000Z", left: true };
    await ledger.noteRun(run.id, { finished, settled: true });
    const prepare = vi.spyOn(DatabaseSync.prototype, "prepare");
    expect(await ledger.prune("2999-01-01T00:00:00.000Z", 10)).toBe(1);
    await ledger.tally("2026-01-01T00:00:00.000Z");
    expect(await ledger.latestRunOf("none")).toBeNull();
    const asked = prepare.mock.calls.map(([sql]) => sql).filter((sql) => /^\s*(SELECT|DELETE|UPDATE)/.test(sql));
    prepare.mockRestore();
    await ledger.close();
    const db = new DatabaseSync(join(folder, "state", "ledger.sqlite"));
    const steps = asked.flatMap((sql) =>
      db
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map(({ detail }) => String(detail)),
    );
    db.close();
    expect(asked.length).toBeGreaterThan(8);
    // What lies at the drops is counted, one by one.
    const counted = /^SCAN (arrivals USING .*INDEX arrivals_(lying|inside)|bindings|worked_on|CONSTANT ROW)$/;
    const isLong = (step: string) => step.startsWith("SCAN") || /^SEARCH (runs|arrivals)[^(]*$/.test(step);
    expect(steps.filter((step) => isLong(step) && !counted.test(step))).toEqual([]);
  });

  it("keeps one binding for the files of many senders", async () => {
    const ledger = await open();
    const own = { ...BINDING, sender: "meters, by SFTP", operationPrefix: "file-1" };
    const first = await claimed(ledger, "a.csv", "lane", own);
    const other = { ...BINDING, sender: "lab, by FTP", operationPrefix: "file-2" };
    const second = await claimed(ledger, "b.csv", "lane", other);
    expect((await ledger.run(first.id))?.binding).toEqual(own);
    expect((await ledger.run(second.id))?.binding).toEqual(other);
    await ledger.close();
    expect(read("SELECT count(*) AS count FROM bindings")).toEqual([{ count: 1 }]);
    const again = await open();
    for (const [prefix, path] of [
      ["file-1", "a.csv"],
      ["file-2", "b.csv"],
    ] as const)
      expect((await again.trace(prefix)).map(({ arrival }) => arrival.path)).toEqual([path]);
    const mapper = { ...BINDING.mapper, version: "2.0.0" };
    const rebound = await again.noteRun(first.id, { bound: { mapper }, event: "run.rebound", detail: "" });
    expect(rebound.binding).toEqual({ ...own, mapper });
    await again.close();
  });

  it("is refused when it is missing, newer, of another schema, or something else", async () => {
    await expect(open(true)).rejects.toMatchObject({ code: "HG-LEDG-002" });
    await (await open()).close();
    for (const sql of [
      "INSERT INTO ledger_schema VALUES (999, '999-later.sql', '')",
      "DELETE FROM ledger_schema WHERE version = 999; UPDATE ledger_schema SET digest = ''",
      "DROP TABLE ledger_schema",
    ]) {
      change(sql);
      for (const readOnly of [false, true])
        await expect(open(readOnly), sql).rejects.toMatchObject({ code: "HG-LEDG-003" });
    }
    change("PRAGMA application_id = 1");
    await expect(open()).rejects.toMatchObject({ code: "HG-LEDG-002" });
  });

  it("is at the configured path", async () => {
    const options = ledgerOptions.parse({ kind: "sqlite", path: join(folder, "here.sqlite") });
    await (await openLedger(options, { clock: steppingClock() })).close();
    expect((await stat(join(folder, "here.sqlite"))).isFile()).toBe(true);
    expect(ledgerOptions.parse(undefined)).toMatchObject({ kind: "sqlite", path: "./state/ledger.sqlite" });
  });

  function read(sql: string): readonly object[] {
    const db = new DatabaseSync(join(folder, "state", "ledger.sqlite"));
    const rows = db.prepare(sql).all();
    db.close();
    return rows.map((row) => ({ ...row }));
  }

  function change(sql: string): void {
    const db = new DatabaseSync(join(folder, "state", "ledger.sqlite"));
    db.exec(sql);
    db.close();
  }
});

describe("a ledger that was changed by hand", () => {
  it("reports contradictions, and repairs those that the remaining records determine", async () => {
    const path = join(folder, "l.sqlite");
    const first = await openSqliteLedger({ path, clock: steppingClock() });
    const run = await deliver(first, await mapped(first, "a.csv"));
    const other = await mapped(first, "b.csv", record(["B"]));
    await first.close();
    const db = new DatabaseSync(path);
    db.exec(`PRAGMA foreign_keys = OFF; UPDATE runs SET accepted = 3 WHERE id = '${run.id}';
      UPDATE arrivals SET run_id = NULL WHERE id = ${other.arrivalId}; DELETE FROM batches WHERE run_id = '${other.id}';
      INSERT INTO run_targets VALUES ('nobody', 1)`);
    db.close();
    const ledger = await openSqliteLedger({ path, clock: steppingClock() });
    const found = await ledger.check();
    expect(found.map(({ subject, repair }) => [subject, repair]).sort()).toEqual(
      [
        ["file", null],
        [`run ${other.id}`, null],
        [`run ${run.id}`, "recount"],
        [`arrival ${other.arrivalId}`, "relink"],
      ].sort(),
    );
    for (const fault of found) await ledger.repair(fault);
    expect((await ledger.check()).map(({ repair }) => repair)).toEqual([null, null]);
    expect((await ledger.run(run.id))?.points.accepted).toBe(10);
    expect((await ledger.events(run.arrivalId)).at(-1)?.what).toBe("ledger.repaired");
    await ledger.close();
  });
});

describe("writes that share a commit", () => {
  it("are committed by a close that comes before their turn", async () => {
    const path = join(folder, "l.sqlite");
    const ledger = await openSqliteLedger({ path, clock: steppingClock() });
    const { sightings } = await list(ledger, "field", [entry("a")]);
    const pending = ledger.openRun(sightings[0]?.arrival.id ?? 0, BINDING, "lane");
    await ledger.close();
    const run = await pending;
    const again = await openSqliteLedger({ path, clock: steppingClock() });
    expect((await again.run(run.id))?.state).toBe("claimed");
    await expect(ledger.noteRun(run.id, {})).rejects.toThrow(InvariantError);
    await again.close();
  });
});
