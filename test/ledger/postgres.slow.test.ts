import { hostname } from "node:os";
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "#core/clock.ts";
import { InvariantError, isLeaseLost, TransientError } from "#core/errors.ts";
import { createLog, silentLog } from "#core/log.ts";
import type { FleetWatch } from "#gateway/ledger/fleet.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { backupLedger, openLedger, restoreLedger } from "#gateway/ledger/open.ts";
import { ledgerOptions, type PostgresLedgerOptions } from "#gateway/ledger/options.ts";
import { openPostgresLedger } from "#gateway/ledger/postgres/open.ts";
import type { Run } from "#gateway/model.ts";
import { hastyUser, openTestDatabase, type TestDatabase, watchCommits } from "../support/postgres.ts";
import { aloneConformance } from "./alone-conformance.ts";
import { ledgerConformance } from "./conformance.ts";
import { BINDING, claimed, deliver, entry, list, mapped, outcome, record, steppingClock } from "./fixtures.ts";

let database: TestDatabase;
let schemas = 0;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(async () => {
  await database.drop();
});

/** In a schema of its own. */
function freshOptions(change: Partial<PostgresLedgerOptions> = {}): PostgresLedgerOptions {
  schemas += 1;
  const parsed = ledgerOptions.parse({
    kind: "postgres",
    url: database.url,
    schema: `ledger_${schemas}`,
    node: "north",
  });
  if (parsed.kind !== "postgres") throw new Error("these are options of PostgreSQL");
  return { ...parsed, ...change };
}

/** Those of ledgers. */
function endConnections() {
  return database.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE " +
      "'headgate%' AND datname = current_database()",
  );
}

ledgerConformance("PostgreSQL", (clock) => openPostgresLedger(freshOptions(), { clock }));

describe("exclusive work at a ledger in PostgreSQL", () => {
  aloneConformance(async () => {
    const options = freshOptions();
    const first = await openPostgresLedger(options, { clock: systemClock });
    return [first, await openPostgresLedger({ ...options, node: "south" }, { clock: systemClock })];
  });

  it("is notified when its turn is lost with the connection, and another may begin", async () => {
    const options = freshOptions();
    const ledger = await openPostgresLedger(options, { clock: systemClock });
    const work = ledger.fleet.alone(
      "key",
      async (signal) => {
        await database.query(
          "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND " +
            "database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        );
        if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        expect(await ledger.fleet.alone("key", async () => "another", new AbortController().signal)).toBe("another");
        signal.throwIfAborted();
      },
      new AbortController().signal,
    );
    await expect(work).rejects.toMatchObject({ name: "TransientError", code: "HG-LEDG-008" });
    await ledger.close();
  });
});

const open = (options: PostgresLedgerOptions, readOnly = false, log = silentLog) =>
  openPostgresLedger(options, { clock: steppingClock(), readOnly, log });

describe("a ledger in PostgreSQL", () => {
  it("is migrated once, by nodes that start together, and keeps its records when opened again", async () => {
    const options = freshOptions();
    const nodes = await Promise.all(["a", "b", "c"].map((node) => open({ ...options, node })));
    const [first, second] = nodes;
    if (first === undefined || second === undefined) throw new Error("they did not open");
    const run = await mapped(first, "a.csv");
    const told = await first.trace("a.csv");
    expect(await second.trace("a.csv")).toEqual(told);
    for (const node of nodes) await node.close();
    const again = await open(options);
    expect(await again.trace("a.csv")).toEqual(told);
    expect((await claimed(again, "b.csv")).id > run.id).toBe(true);
    await again.close();
  });

  it("waits for the disk at each commit, also where its role is configured not to", async () => {
    const { url } = await hastyUser(database);
    const options = freshOptions({ url });
    const told: string[] = [];
    const ledger = await openPostgresLedger(options, {
      clock: systemClock,
      log: createLog("warn", { write: (line) => void told.push(line) }),
    });
    const commits = await watchCommits(database, options.schema);
    await mapped(ledger, "a.csv");
    await ledger.shared?.content.keep("lookup", "table", async () => Buffer.from("bytes"));
    const seen = await commits();
    expect(Object.keys(seen)).toEqual(["on"]);
    expect(seen["on"]).toEqual(expect.arrayContaining(["arrivals", "runs", "stored_files"]));
    const server = (await database.query("SHOW fsync"))[0]?.["fsync"];
    expect(told.filter((line) => line.includes("fsync = off: a crash"))).toHaveLength(server === "off" ? 1 : 0);
    await ledger.close();
  });

  it("is refused when it is missing, newer, of another schema, something else, or not for this user", async () => {
    const options = freshOptions();
    await expect(open(options, true)).rejects.toMatchObject({ name: "ConfigError", code: "HG-CLI-003" });
    await (await open(options)).close();
    const records = `${options.schema}.ledger_schema`;
    for (const sql of [
      `INSERT INTO ${records} VALUES (999, '999-later.sql', '')`,
      `DELETE FROM ${records} WHERE version = 999; UPDATE ${records} SET digest = ''`,
      `ALTER TABLE ${records} DROP COLUMN file, DROP COLUMN digest`,
    ]) {
      await database.query(sql);
      for (const readOnly of [false, true])
        await expect(open(options, readOnly), sql).rejects.toMatchObject({ code: "HG-LEDG-003" });
    }
    await database.query(`DROP TABLE ${records}`);
    await expect(open(options)).rejects.toMatchObject({ code: "HG-LEDG-002" });
    for (const url of [database.url.replace("secret", "wrong"), `${database.url}_not_there`])
      await expect(open({ ...options, url })).rejects.toMatchObject({
        name: "ConfigError",
        code: "HG-LEDG-002",
      });
    const nobody = database.url.replace(/:\d+\//, ":1/");
    const refused = await open({ ...options, url: nobody }).catch((thrown: unknown) => thrown);
    expect(refused).toMatchObject({ name: "TransientError", code: "HG-LEDG-008" });
    expect(String(refused)).not.toContain("secret");
  });

  it("can be read beside its writers, and not be changed by readers", async () => {
    const options = freshOptions();
    const writer = await open(options);
    const run = await claimed(writer, "a.csv");
    const reader = await open(options, true);
    expect((await reader.run(run.id))?.state).toBe("claimed");
    await expect(reader.advanceRun(run.id, "claimed", "fetched")).rejects.toThrow(InvariantError);
    await reader.close();
    await writer.close();
  });

  it("continues with new connections when the server ended the old ones, and reports passing faults", async () => {
    const options = freshOptions();
    const ledger = await open(options);
    const run = await claimed(ledger, "a.csv");
    for (let round = 0; round < 5; round += 1) {
      const writes = Promise.allSettled([
        ledger.noteRun(run.id, { event: "test", detail: String(round) }),
        endConnections(),
        ledger.run(run.id),
      ]);
      for (const result of await writes)
        if (result.status === "rejected") expect(result.reason).toBeInstanceOf(TransientError);
    }
    await until(async () => (await ledger.noteRun(run.id, { event: "test", detail: "at last" })).id === run.id);
    expect((await ledger.events(run.arrivalId)).at(-1)?.detail).toBe("at last");
    await ledger.close();
  });

  it("continues reads when the server ended their connections", async () => {
    const ledger = await open(freshOptions());
    const { id } = await claimed(ledger, "a.csv");
    for (let round = 0; round < 5; round += 1) {
      const reads = Array.from({ length: 200 }, () => ledger.run(id));
      const [read] = await Promise.all([Promise.all(reads), endConnections()]);
      expect(read.map((run) => run?.id)).toEqual(reads.map(() => id));
    }
    await ledger.close();
  });

  it("keeps text that PostgreSQL itself would refuse", async () => {
    const ledger = await open(freshOptions());
    const run = await mapped(ledger, "a.csv");
    await ledger.advanceRun(run.id, "mapped", "delivering");
    const id = `${run.id}-1`;
    await ledger.advanceBatch(id, "ready", "sending", { attempted: true });
    await ledger.advanceBatch(id, "sending", "accepted", { answer: "200 \0 fine \ud800" });
    const [sent] = await ledger.batches(run.id);
    expect(sent?.answer).toBe("200 \u{fffd} fine \u{fffd}");
    await ledger.close();
  });

  it("names the server's own tools for copies, with the whole command and without the password", async () => {
    const options = freshOptions();
    const refused = await backupLedger(options, "/tmp/it's here.dump").catch((thrown: unknown) => thrown);
    expect(refused).toMatchObject({ name: "ConfigError", code: "HG-LEDG-009" });
    expect(String(refused)).toMatch(
      /pg_dump --host=127.0.0.1 --port=\d+ --username=postgres --dbname=\S+ --schema=ledger_\d+/,
    );
    expect(String(refused)).toContain(`--file='/tmp/it'\\''s here.dump'`);
    expect(String(refused)).not.toContain("secret");
    await expect(restoreLedger(options, "/tmp/x", steppingClock())).rejects.toMatchObject({
      code: "HG-LEDG-009",
    });
    await (await openLedger(options, { clock: steppingClock() })).close();
  });
});

describe("writes that share a commit in PostgreSQL", () => {
  it("are repeated after a conflict with another node, so that no count is lost", async () => {
    const options = freshOptions();
    const [here, there] = [await open(options), await open({ ...options, node: "south" })];
    const targets = Array.from({ length: 20 }, (_, index) => String(index + 1));
    const run = await mapped(here, "a.csv", {
      batches: targets.map((sequence) => ({ sequence, offset: 0, length: 1, points: 10, digest: sequence })),
      points: 200,
      rejected: [],
      rejectedCount: 0,
      findings: [],
      targets: [],
      detail: "",
    });
    await deliver(here, run);
    await Promise.all(
      targets.map((sequence, index) =>
        (index % 2 === 0 ? here : there).recordOutcome(outcome(`${run.id}-${sequence}`, 10)),
      ),
    );
    expect((await here.run(run.id))?.points.stored).toBe(200);
    await here.close();
    await there.close();
  });
});

describe("two nodes that decide about the order of a lane at the same moment", () => {
  const STARTS = [
    [0, 0],
    [0, 2],
    [0, 5],
    [2, 0],
    [0, 100],
    [100, 0],
  ] as const;

  it("never deliver a held run and a later one of its targets concurrently", async () => {
    const options = freshOptions();
    const [here, there] = [await open(options), await open({ ...options, node: "south" })];
    const ends = new Set<string>();
    for (let round = 0; round < 12; round += 1) {
      const targets = record([`T-${round}`]);
      const held = await mapped(here, `held-${round}.csv`, targets);
      await here.advanceRun(held.id, "mapped", "held");
      const later = await mapped(here, `later-${round}.csv`, targets);
      const to = round % 2 === 0 ? "mapped" : "delivering";
      // At once, and with some start for either: that each comes first is not to depend on how fast they are.
      const [resumeMs, beginMs] = STARTS[Math.trunc(round / 2)] ?? [0, 0];
      await Promise.all([
        setTimeout(resumeMs).then(() => here.resumeHeld(held.id, to, [], "")),
        setTimeout(beginMs).then(() => there.beginDelivery(later.id, "")),
      ]);
      const states = [(await here.run(held.id))?.state, (await here.run(later.id))?.state];
      ends.add(states.join(" "));
    }
    for (const end of ends) expect(["held delivering", "mapped mapped", "delivering mapped"]).toContain(end);
    expect(ends.size, "each came first at times").toBeGreaterThan(1);
    await here.close();
    await there.close();
  });
});

describe("nodes that share a ledger in PostgreSQL", () => {
  /** A lapse is noticed within a third of it; a test process that is not scheduled for so long must not lose it. */
  const LEASE_MS = 6_000;
  const silent = { onLost: () => undefined, onLeft: () => undefined };
  const join = (options: PostgresLedgerOptions, node: string, watch: FleetWatch = silent) =>
    openPostgresLedger({ ...options, node, lease: LEASE_MS }, { clock: systemClock, watch });
  /** What another node does once the lease has lapsed. */
  const giveUp = (options: PostgresLedgerOptions, node: string) =>
    database.query(
      `UPDATE ${options.schema}.sessions SET ended_at = clock_timestamp() WHERE node = $1 AND ended_at IS NULL`,
      [node],
    );

  it("poll a drop one at a time, and the other takes it when the first ends", async () => {
    const options = freshOptions();
    const [north, south] = [await join(options, "north"), await join(options, "south")];
    expect(await north.fleet.holdDrop("field")).toBeNull();
    expect(await south.fleet.holdDrop("field")).toBe("north");
    expect(await north.fleet.holdDrop("field")).toBeNull();
    await list(north, "field", [entry("a")]);
    const poll = await south.beginPoll("field");
    await expect(poll.record([entry("b")])).rejects.toSatisfy(isLeaseLost);
    await expect(poll.complete()).rejects.toSatisfy(isLeaseLost);
    await poll.abandon();
    await expect(south.fleet.assertDrop("field")).rejects.toMatchObject({ code: "HG-LEDG-010" });
    expect(await north.fleet.nodes()).toMatchObject([
      { node: "north", alive: true, drops: ["field"] },
      { node: "south", alive: true, drops: [] },
    ]);
    await north.close();
    expect(await south.fleet.holdDrop("field")).toBeNull();
    expect((await list(south, "field", [])).gone).toHaveLength(1);
    await south.close();
  });

  it("release a drop with its unfetched runs, and write nothing of it afterwards", async () => {
    const options = freshOptions();
    const [north, south] = [await join(options, "north"), await join(options, "south")];
    await north.fleet.holdDrop("field");
    const { sightings } = await list(north, "field", [entry("a"), entry("b")]);
    const [claimedRun, fetchedRun] = await Promise.all(
      sightings.map(async ({ arrival }) => {
        const run = await north.openRun(arrival.id, BINDING, "lane");
        return (await north.fleet.holdRun(run)) ?? run;
      }),
    );
    if (claimedRun === undefined || fetchedRun === undefined) throw new Error("no runs");
    await north.advanceRun(fetchedRun.id, "claimed", "fetched");
    const poll = await north.beginPoll("field");
    await south.fleet.releaseDrop("field");
    expect(await south.fleet.holdDrop("field"), "it is another's").toBe("north");
    await north.fleet.releaseDrop("field");
    expect(await south.fleet.holdDrop("field")).toBeNull();
    expect(await south.fleet.holdRun(claimedRun)).toMatchObject({ node: "south" });
    expect(await south.fleet.holdRun(fetchedRun), "its bytes are in the spool of north").toBeNull();
    for (const refused of [
      () => poll.record([entry("c")]),
      () => north.fleet.assertDrop("field"),
      () => north.advanceRun(claimedRun.id, "claimed", "fetched"),
    ])
      await expect(refused()).rejects.toSatisfy(isLeaseLost);
    expect(await south.fleet.releaseRun(claimedRun.id)).toBe(true);
    expect(await south.fleet.releaseRun(fetchedRun.id), "it is another's").toBe(false);
    expect(await north.fleet.holdRun(claimedRun)).toMatchObject({ node: "north" });
    await north.close();
    await south.close();
  });

  it("end a node whose lease has lapsed, by the clock of the server", async () => {
    const options = freshOptions();
    await (await open(options)).close();
    const { schema } = options;
    await database.query(`INSERT INTO ${schema}.sessions (node, host, pid, until)
      VALUES ('ghost', 'elsewhere', 1, clock_timestamp() + interval '1 s')`);
    await database.query(`INSERT INTO ${schema}.drop_holders SELECT 'field', id FROM ${schema}.sessions`);
    const left = Promise.withResolvers<string>();
    const north = await join(options, "north", { ...silent, onLeft: (node) => left.resolve(node) });
    expect(await north.fleet.holdDrop("field")).toBe("ghost");
    expect(await left.promise).toBe("ghost");
    expect(await north.fleet.holdDrop("field")).toBeNull();
    await north.close();
  });

  it("are forgotten some days after they ended, with their drops that no node took", async () => {
    const options = freshOptions();
    await (await open(options)).close();
    const { schema } = options;
    await database.query(`INSERT INTO ${schema}.sessions (node, host, pid, until, ended_at)
      SELECT 'old-' || days, 'elsewhere', 1, clock_timestamp(), clock_timestamp() - days * interval '1 day' FROM unnest(ARRAY[0, 3, 9]) AS days`);
    await database.query(`INSERT INTO ${schema}.drop_holders SELECT node, id FROM ${schema}.sessions`);
    const north = await join(options, "north");
    const names = async (sql: string) => (await database.query(sql)).map(({ name }) => name);
    expect(await names(`SELECT node AS name FROM ${schema}.sessions ORDER BY id`)).toEqual(["old-0", "north"]);
    expect(await names(`SELECT drop_name AS name FROM ${schema}.drop_holders`)).toEqual(["old-0"]);
    expect(await north.fleet.holdDrop("old-9")).toBeNull();
    await north.close();
  });

  it("work on a run one at a time, and every write of the other is refused", async () => {
    const options = freshOptions();
    const [north, south] = [await join(options, "north"), await join(options, "south")];
    await north.fleet.holdDrop("field");
    const run = await mapped(north, "a.csv");
    expect(await north.fleet.holdRun(run)).toMatchObject({ id: run.id, node: "north" });
    expect(await south.fleet.holdRun(run)).toBeNull();
    expect(await south.runsIn(["mapped"], { ours: true })).toEqual([]);
    expect(await south.groupsOf(["mapped"], "drop", { ours: true })).toEqual([]);
    expect(await north.runsIn(["mapped"], { ours: true })).toHaveLength(1);
    for (const refused of [
      () => south.advanceRun(run.id, "mapped", "delivering"),
      () => south.noteRun(run.id, { settled: true }),
      () => south.beginDelivery(run.id, ""),
      () => south.advanceBatch(`${run.id}-1`, "ready", "sending"),
      () => south.acceptBatch(`${run.id}-1`, "200", { service: "main" }),
      () => advanceOne(south, run),
      () => south.fleet.assertRun(run.id),
    ])
      await expect(refused()).rejects.toSatisfy(isLeaseLost);
    expect((await deliver(north, run)).state).toBe("accepted");
    await north.close();
    await south.close();
  });

  it("lose their drops and runs when their lease lapsed, and write nothing of them when they wake up", async () => {
    const options = freshOptions();
    const north = await join(options, "north");
    await north.fleet.holdDrop("field");
    const run = await mapped(north, "a.csv");
    await north.fleet.holdRun(run);
    const poll = await north.beginPoll("field");
    const left = Promise.withResolvers<string>();
    const south = await join(options, "south", { ...silent, onLeft: (node) => left.resolve(node) });
    await giveUp(options, "north");
    await expect(north.fleet.assertRun(run.id)).rejects.toSatisfy(isLeaseLost);
    expect(await left.promise).toBe("north");
    expect(await south.fleet.holdDrop("field")).toBeNull();
    expect(await south.fleet.holdRun(run)).toMatchObject({ id: run.id, state: "mapped", node: "south" });
    for (const refused of [
      () => north.advanceRun(run.id, "mapped", "delivering"),
      () => poll.record([entry("b")]),
      () => north.fleet.assertDrop("field"),
    ])
      await expect(refused()).rejects.toSatisfy(isLeaseLost);
    expect((await deliver(south, run)).state).toBe("accepted");
    expect((await south.events(run.arrivalId)).map(({ what }) => what)).toContain("run.taken");
    await north.close();
    await south.close();
  });

  it("begin again under another fence after their lease lapsed, when no node took their runs", async () => {
    const options = freshOptions();
    const south = await join(options, "south");
    const lost = Promise.withResolvers<void>();
    const east = await join(options, "east", { ...silent, onLost: () => lost.resolve() });
    await east.fleet.holdDrop("field");
    const { sightings } = await list(east, "field", [entry("a")]);
    await giveUp(options, "east");
    await lost.promise;
    // Nobody has taken it meanwhile, so it may have it again, under another fence.
    expect(await east.fleet.holdDrop("field")).toBeNull();
    expect((await east.openRun(sightings[0]?.arrival.id ?? 0, BINDING, "lane")).state).toBe("claimed");
    await south.close();
    await east.close();
  });

  it("have names of their own, and an ended node may return at once", async () => {
    const options = freshOptions();
    const other = await join(options, "north");
    await database.query(`UPDATE ${options.schema}.sessions SET host = 'elsewhere'`);
    await expect(join(options, "north")).rejects.toMatchObject({ name: "ConfigError", code: "HG-LEDG-011" });
    await other.close();
    await database.query(
      `INSERT INTO ${options.schema}.sessions (node, host, pid, until)
        VALUES ('north', $1, 999999999, clock_timestamp() + interval '1 hour')`,
      [hostname()],
    );
    await (await join(options, "north")).close();
  });
});

async function advanceOne(ledger: Ledger, run: Run): Promise<void> {
  const [advanced] = await ledger.advanceRuns([{ id: run.id, from: "mapped", through: [{ to: "delivering" }] }]);
  if (advanced?.run === null && advanced.why === "fault") throw advanced.thrown;
}

async function until(done: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 100; tries += 1) {
    const reached = await done().catch((thrown: unknown) => {
      if (thrown instanceof TransientError) return false;
      throw thrown;
    });
    if (reached) return;
  }
  throw new Error("it did not come so far");
}
