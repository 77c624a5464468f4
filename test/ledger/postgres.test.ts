import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { backupLedger, openLedger, restoreLedger } from "../../src/ledger/open.ts";
import { ledgerOptions, type PostgresLedgerOptions } from "../../src/ledger/options.ts";
import { openPostgresLedger } from "../../src/ledger/postgres/open.ts";
import { InvariantError, TransientError } from "../../src/support/errors.ts";
import { openTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { ledgerConformance } from "./conformance.ts";
import { BINDING, claimed, deliver, entry, list, mapped, outcome, steppingClock } from "./fixtures.ts";

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

ledgerConformance("PostgreSQL", (clock) => openPostgresLedger(freshOptions(), { clock }));

const open = (options: PostgresLedgerOptions, readOnly = false) =>
  openPostgresLedger(options, { clock: steppingClock(), readOnly });

describe("a ledger in PostgreSQL", () => {
  it("is brought up once, by nodes that start together, and holds everything when opened again", async () => {
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

  it("is refused when it is missing, newer, something else, or not for this user", async () => {
    const options = freshOptions();
    await expect(open(options, true)).rejects.toMatchObject({ name: "ConfigError", code: "HG-LEDG-002" });
    await (await open(options)).close();
    await database.query(`INSERT INTO ${options.schema}.ledger_schema VALUES (999)`);
    await expect(open(options)).rejects.toMatchObject({ code: "HG-LEDG-003" });
    await expect(open(options, true)).rejects.toMatchObject({ code: "HG-LEDG-003" });
    await database.query(`DROP TABLE ${options.schema}.ledger_schema`);
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

  it("can be read beside its writers, and not be changed by who only reads", async () => {
    const options = freshOptions();
    const writer = await open(options);
    const run = await claimed(writer, "a.csv");
    const reader = await open(options, true);
    expect((await reader.run(run.id))?.state).toBe("claimed");
    await expect(reader.advanceRun(run.id, "claimed", "fetched")).rejects.toThrow(InvariantError);
    await reader.close();
    await writer.close();
  });

  it("goes on with new connections when the server ended the old ones, and tells what may pass", async () => {
    const options = freshOptions();
    const ledger = await open(options);
    const run = await claimed(ledger, "a.csv");
    const kick = () =>
      database.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'headgate%' AND datname = current_database()",
      );
    for (let round = 0; round < 5; round += 1) {
      const writes = Promise.allSettled([
        ledger.noteRun(run.id, { event: "test", detail: String(round) }),
        kick(),
        ledger.run(run.id),
      ]);
      for (const result of await writes)
        if (result.status === "rejected") expect(result.reason).toBeInstanceOf(TransientError);
    }
    await until(
      async () => (await ledger.noteRun(run.id, { event: "test", detail: "at last" })).id === run.id,
    );
    expect((await ledger.events(run.arrivalId)).at(-1)?.detail).toBe("at last");
    await ledger.close();
  });

  it("keeps text that PostgreSQL itself would refuse", async () => {
    const ledger = await open(freshOptions());
    const run = await mapped(ledger, "a.csv");
    await ledger.advanceRun(run.id, "mapped", "delivering");
    const id = `${run.id}-1`;
    await ledger.advanceBatch(id, "ready", "sending", { attempted: true });
    const sent = await ledger.advanceBatch(id, "sending", "accepted", { answer: "200 \0 fine \ud800" });
    expect(sent.answer).toBe("200 \u{fffd} fine \u{fffd}");
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
  it("leave each other alone when one of them fails", async () => {
    const ledger = await open(freshOptions());
    const { sightings } = await list(ledger, "field", [entry("a"), entry("b"), entry("c")]);
    const [a, b, c] = sightings.map(({ arrival }) => arrival.id);
    const results = await Promise.allSettled([
      ledger.openRun(a ?? 0, BINDING, "lane"),
      ledger.openRun(987_654, BINDING, "lane"),
      ledger.advanceArrival(b ?? 0, "matched", "must not be"),
      ledger.openRun(c ?? 0, BINDING, "lane"),
    ]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"]);
    expect((await ledger.runsIn(["claimed"])).map(({ path }) => path)).toEqual(["a", "c"]);
    await ledger.close();
  });

  it("are done again when another node was in the way, so that no count is lost", async () => {
    const options = freshOptions();
    const [here, there] = [await open(options), await open({ ...options, node: "south" })];
    const targets = Array.from({ length: 20 }, (_, index) => String(index + 1));
    const run = await mapped(here, "a.csv", {
      batches: targets.map((sequence) => ({ sequence, offset: 0, length: 1, points: 10, digest: sequence })),
      points: 200,
      rejected: [],
      rejectedCount: 0,
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
