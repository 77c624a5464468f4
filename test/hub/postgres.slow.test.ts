/** What only a store on PostgreSQL has: several hubs over one schema, a server that may be away, partitions. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createLog, silentLog as log } from "#core/log.ts";
import { isDatabaseTrouble } from "#core/sql/trouble.ts";
import { type RunningHub, startHub } from "#hub/hub.ts";
import { hubOptions } from "#hub/options.ts";
import { openStore } from "#hub/store/open.ts";
import { createPool, transact } from "#hub/store/postgres/database.ts";
import { hastyUser, type TestDatabase, watchCommits } from "../support/postgres.ts";
import { callsOf, createChain, type HubCalls, rawOptions, temporaryDirectory, usePostgres } from "./fixture.ts";

const RUNNER = fileURLToPath(new URL("./run-hub.ts", import.meta.url));
const LEAN = {
  clients: [{ id: "gateway", secret: "gateway-secret" }],
  users: [{ username: "manager", password: "manager-password", accounts: [1], roles: ["Manager"] }],
};

let database: TestDatabase;
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let hubs: RunningHub[] = [];
let child: ChildProcess | null = null;

beforeAll(async () => {
  database = await usePostgres();
});
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(async () => {
  if (child !== null && child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
  for (const hub of hubs) await hub.close();
  hubs = [];
  await directory.remove();
});

const optionsWith = (more: object = {}) => hubOptions.parse(rawOptions(directory.path, { ...LEAN, ...more }));

async function start(more: object = {}): Promise<HubCalls> {
  const hub = await startHub(optionsWith(more), { log });
  hubs.push(hub);
  return callsOf(() => hub.url);
}

/** A hub of the same schema that ends as by a power cut when it passes the point. */
async function startDoomed(fault: string): Promise<HubCalls> {
  child = spawn(process.execPath, [RUNNER, JSON.stringify(rawOptions(directory.path, LEAN))], {
    env: { ...process.env, HEADGATE_FAULT: fault },
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (child.stdout === null) throw new Error("no output");
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  const { url } = JSON.parse(line) as { url: string };
  return callsOf(() => url);
}

const data = Array.from({ length: 300 }, (_, value) => ({
  date: new Date(Date.UTC(2026, 2, 1) + value * 900_000).toISOString(),
  value,
}));

describe("several hubs over one schema", () => {
  test.each(["hub.ingest.before", "hub.ingest.after"])(
    "an operation that a hub acknowledged before it was killed at %s is stored once by another hub",
    async (fault) => {
      const hub = await start();
      const { variableIds } = await createChain(hub, { variables: [{ isVersioned: true }] });
      const [variableId = 0] = variableIds;
      const doomed = await startDoomed(fault);
      const ended = once(child ?? process, "exit");
      const answered: string[] = [];
      const push = async (version: string) => {
        await doomed.post("/push/api/data", [{ variableId, version, data }], {
          query: { operationId: version },
        });
        answered.push(version);
      };
      // The other hub looks at the queue now and then, and may be the first to see what comes: then some more comes.
      for (let round = 0; child?.signalCode === null && round < 3; round += 1) {
        await Promise.allSettled([push(`first ${round}`), push(`second ${round}`)]);
        await Promise.race([ended, Promise.all(answered.map((version) => hub.settled(version)))]);
      }
      await ended;
      expect(child?.signalCode).toBe("SIGKILL");
      expect(answered.length).toBeGreaterThan(0);
      for (const version of answered) {
        expect(await hub.settled(version)).toMatchObject({ stored: data.length, replaced: 0 });
        const rows = await hub.get("/data", { VariableId: variableId, VersionTag: version });
        expect(rows.map((row: { rawValue: number }) => row.rawValue)).toEqual(data.map(({ value }) => value));
      }
    },
  );

  test("pushes to one variable through two hubs leave the value of the one that was acknowledged last", async () => {
    const [first, second] = [await start(), await start()];
    const { variableIds } = await createChain(first);
    const [variableId = 0] = variableIds;
    const operations: string[] = [];
    for (let value = 0; value < 12; value += 1) {
      const body = [{ variableId, data: [{ date: "2026-03-01T00:00:00Z", value }] }];
      operations.push((await (value % 2 === 0 ? first : second).post("/push/api/data", body)).operationId);
    }
    const outcomes = await Promise.all(operations.map((operationId) => first.settled(operationId)));
    expect(outcomes.map(({ replaced }) => replaced)).toEqual([0, ...operations.slice(1).map(() => 1)]);
    expect(await second.get("/data", { VariableId: variableId })).toMatchObject([{ rawValue: 11 }]);
  });
});

test("hubs that share a folder share the files, while both take and remove the same content", async () => {
  const two = [await start(), await start()] as const;
  const rounds = two.map(async (hub, at) => {
    const other = two[1 - at] ?? hub;
    for (let round = 0; round < 10; round += 1) {
      const { body: id } = await hub.upload("shared", "x.csv");
      const { body: kept } = await hub.upload("shared", "kept.csv");
      await other.ok("DELETE", "/storage", { query: { ids: id } });
      expect((await other.call("GET", "/storage/file", { query: { ids: kept } })).body).toBe("shared");
      if (round < 9) await hub.ok("DELETE", "/storage", { query: { ids: kept } });
    }
  });
  await Promise.all(rounds);
  expect(await two[0].get("/storage")).toHaveLength(2);
});

test("points are in partitions of one month, and far ones in two of their own", async () => {
  const hub = await start({ limits: { futureHorizon: "3000000d" } });
  const { variableIds } = await createChain(hub, { variables: [{ isVersioned: true }] });
  const dates = ["0101-06-01", "1989-12-31", "1990-01-01", "2026-02-28", "2026-03-01", "2100-01-01", "9999-12-31"];
  const readings = dates.map((date, value) => ({ date: `${date}T00:00:00Z`, value }));
  await hub.push([{ variableId: variableIds[0], data: readings }]);
  const rows = await hub.get("/data", { VariableId: variableIds[0] ?? 0, PagingOrder: "DESC" });
  expect(rows.map((row: { rawValue: number }) => row.rawValue)).toEqual(readings.map(({ value }) => value).reverse());
  const { store } = optionsWith();
  const schema = store.kind === "postgres" ? store.schema : "";
  for (const table of ["point", "point_version"]) {
    const filled = await database.query(
      `SELECT tableoid::regclass::text AS name, count(*)::int AS total FROM ${schema}.${table} GROUP BY 1 ORDER BY 1`,
    );
    expect(filled.map(({ name, total }) => [String(name).replace(`${schema}.`, ""), total])).toEqual([
      [`${table}_1990_01`, 1],
      [`${table}_2026_02`, 1],
      [`${table}_2026_03`, 1],
      [`${table}_before_1990`, 2],
      [`${table}_from_2100`, 2],
    ]);
  }
});

test("texts with half a surrogate pair do not break filters", async () => {
  const hub = await start();
  const source = { tags: ["half \ud83d", "whole"], clientData: { Form: { Main: { Note: "half \ude00" } } } };
  const { sourceId } = await createChain(hub, { source });
  const found = async (query: object) => (await hub.get("/sources", { ...query })).map(({ id }: { id: number }) => id);
  expect(await found({ Tags: "whole" })).toEqual([sourceId]);
  expect(await found({ CustomFilter: '"Form"."Main"."Note" startswith half' })).toEqual([sourceId]);
});

describe("a store that cannot be opened", () => {
  const storeWith = (change: (url: URL) => void) => {
    const url = new URL(database.url);
    change(url);
    return { store: { kind: "postgres", url: url.href } };
  };

  test.each([
    ["a wrong password", (url: URL) => (url.password = "wrong"), "authentication failed", "ConfigError"],
    ["an unknown database", (url: URL) => (url.pathname = "/nowhere"), '"nowhere" does not exist', "ConfigError"],
    ["a port where nothing listens", (url: URL) => (url.port = "1"), "ECONNREFUSED", "TransientError"],
  ])("%s is reported without the password", async (_what, change, words, name) => {
    const starting = startHub(optionsWith(storeWith(change)), { log });
    await expect(starting).rejects.toMatchObject({
      name,
      code: "HG-HUB-001",
      subject: expect.stringMatching(/^postgres:\/\/postgres@127\.0\.0\.1:\d+\/\w+$/),
      message: expect.stringContaining(words),
    });
  });

  test.each([
    ["a newer version wrote", "INSERT INTO migration VALUES (999, '999-later.sql', '')"],
    ["another state of it made", "UPDATE migration SET digest = ''"],
  ])("a schema that %s is refused and not changed", async (_who, change) => {
    await (await startHub(optionsWith(), { log })).close();
    const { store } = optionsWith();
    const schema = store.kind === "postgres" ? store.schema : "";
    await database.query(change.replace("migration", `${schema}.migration`));
    await expect(startHub(optionsWith(), { log })).rejects.toMatchObject({ code: "HG-HUB-002" });
  });
});

test("a hub continues after the server ended its connections, and its accepted pushes are stored", async () => {
  const hub = await start();
  const { variableIds } = await createChain(hub);
  const end = () =>
    database.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND " +
        "application_name = 'headgate-hub'",
    );
  // More than one of them waits in the pool.
  await Promise.all(Array.from({ length: 8 }, () => hub.get("/sites", {})));
  for (const _round of [1, 2, 3]) {
    await end();
    expect(await hub.push([{ variableId: variableIds[0], data }])).toMatchObject({ stored: data.length });
  }
});

test("a connection that ends in the middle of a transaction fails the transaction, not the process", async () => {
  await start();
  const { store } = optionsWith();
  if (store.kind !== "postgres") throw new Error("this file is about PostgreSQL");
  const pool = createPool(store, { max: 1 });
  const broken = transact(pool, async ({ get }) => {
    const pid = (await get("SELECT pg_backend_pid() AS pid"))?.["pid"];
    await database.query("SELECT pg_terminate_backend($1, 5000)", [pid]);
    // The event of the client comes before the next statement finds out.
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    await get("SELECT 1");
  });
  await expect(broken).rejects.toSatisfy(isDatabaseTrouble);
  expect(await transact(pool, ({ get }) => get("SELECT 1 AS one"))).toEqual({ one: 1 });
  await pool.end();
});

test("a hub that is closed twice closes once, also its store", async () => {
  const hub = await startHub(optionsWith(), { log });
  await Promise.all([hub.close(), hub.close()]);
  const store = await openStore(optionsWith().store);
  await Promise.all([store.close(), store.close()]);
});

test("commits wait for the disk, also where the role of the hub is configured not to", async () => {
  const { url } = await hastyUser(database);
  const { store } = optionsWith();
  const schema = store.kind === "postgres" ? store.schema : "";
  const told: string[] = [];
  const options = optionsWith({ store: { kind: "postgres", url, schema } });
  const hub = await startHub(options, { log: createLog("warn", { write: (line) => void told.push(line) }) });
  hubs.push(hub);
  const commits = await watchCommits(database, schema);
  const calls = callsOf(() => hub.url);
  const { variableIds } = await createChain(calls, { variables: [{ isVersioned: true }] });
  expect(await calls.push([{ variableId: variableIds[0], data }])).toMatchObject({ stored: data.length });
  const seen = await commits();
  expect(Object.keys(seen)).toEqual(["on"]);
  expect(seen["on"]).toEqual(
    expect.arrayContaining(["body", "operation", "outcome", "point", "point_version", "source"]),
  );
  // What no session can mend: the server of the tests runs without fsync.
  const server = (await database.query("SHOW fsync"))[0]?.["fsync"];
  expect(told.filter((line) => line.includes("fsync = off: a crash"))).toHaveLength(server === "off" ? 1 : 0);
});

test("a push that the store refuses does not count towards the quota", async () => {
  const accounts = [{ id: 1, name: "First", limits: { pointsPerDay: data.length } }];
  const options = optionsWith({ accounts });
  const hub = await startHub(options, { log });
  hubs.push(hub);
  const calls = callsOf(() => hub.url);
  const { variableIds } = await createChain(calls);
  const body = [{ variableId: variableIds[0], data }];
  const schema = options.store.kind === "postgres" ? options.store.schema : "";
  await database.query(`ALTER TABLE ${schema}.body RENAME COLUMN bytes TO away`);
  expect(await calls.call("POST", "/push/api/data", { body })).toMatchObject({ status: 500 });
  await database.query(`ALTER TABLE ${schema}.body RENAME COLUMN away TO bytes`);
  expect(await calls.push(body)).toMatchObject({ stored: data.length });
});

test("failures of the server are distinguished from faults of the data", () => {
  const withCode = (code: string) => Object.assign(new Error("of the database"), { code });
  for (const code of ["57P01", "08006", "53100", "40P01", "55P03", "25006", "ECONNREFUSED", "ECONNRESET"])
    expect(isDatabaseTrouble(withCode(code)), code).toBe(true);
  for (const code of ["22P02", "23505", "42P01", "22021"]) expect(isDatabaseTrouble(withCode(code)), code).toBe(false);
  expect(isDatabaseTrouble(new Error("Connection terminated unexpectedly"))).toBe(true);
  expect(isDatabaseTrouble(new Error("anything else"))).toBe(false);
});
