/**
 * Files of master data are compared outside of writes, and again where others changed what they found; many entities
 * are created and changed in slices.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fitOf } from "#hub/forms/definition.ts";
import { processMasterData } from "#hub/master-data/process.ts";
import { hubOptions } from "#hub/options.ts";
import { type Database, rows as databaseRows } from "#hub/store/database.ts";
import { createMasterDataStore } from "#hub/store/master-data.ts";
import { openStore } from "#hub/store/open.ts";
import { createUser } from "#hub/store/people/users.ts";
import { createPool } from "#hub/store/postgres/database.ts";
import { postgresDatabase } from "#hub/store/postgres/driver.ts";
import { openDatabase, statements, write } from "#hub/store/sqlite/database.ts";
import { sqliteDatabase } from "#hub/store/sqlite/driver.ts";
import type { HubStore } from "#hub/store/store.ts";
import { StructureHeld } from "#hub/store/structure-hold.ts";
import type { RowResult } from "#wire/index.ts";
import { rawOptions, temporaryDirectory } from "./fixture.ts";

const SITE = { typeId: 3, timeZoneId: "UTC" };
const LIMITS = { site: 9_999, source: 9_999, variable: 9_999, membership: 9_999 };
const SENDER = { id: 1, username: "manager", memberships: [{ accountId: 1, roles: ["Admin"], businessId: null }] };

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let store: HubStore;
let database: Database;
let closeDatabase: () => Promise<void>;
beforeAll(async () => {
  directory = await temporaryDirectory();
  const options = hubOptions.parse(rawOptions(directory.path)).store;
  store = await openStore(options);
  await store.identity.putAccount({ id: 1, name: "First" });
  await store.identity.putAccount({ id: 2, name: "Second" });
  if (options.kind === "sqlite") {
    const file = openDatabase({ path: options.path, migrations: null, timeoutMs: 20 });
    database = sqliteDatabase(statements(file), (work) => write(file, work));
    closeDatabase = async () => file.close();
  } else {
    const pool = createPool(options, { max: 2 });
    database = postgresDatabase(pool);
    closeDatabase = () => pool.end();
  }
});
afterAll(async () => {
  await closeDatabase();
  await store.close();
  await directory.remove();
});

let runs = 0;
/** `meanwhile`: what happens after each comparison, before the file is applied; `wrote`: after each of its writes. */
async function applied(
  content: string,
  meanwhile: (time: number) => Promise<unknown>,
  wrote: (time: number) => unknown = () => undefined,
) {
  runs += 1;
  const path = join(directory.path, `${runs}.csv`);
  await writeFile(path, content);
  let times = 0;
  let writes = 0;
  const looking: Database = {
    ...database,
    async write(work) {
      const result = await database.write(work);
      writes += 1;
      await wrote(writes);
      return result;
    },
    async snapshot(work) {
      const found = await database.snapshot(work);
      times += 1;
      await meanwhile(times);
      return found;
    },
  };
  const job = { accountId: 1, fileId: runs, fileName: "file.csv", run: `run ${runs}`, path, atMs: 0 };
  const facts = {
    ...job,
    settings: { encoding: "utf-8", dryRun: false },
    sender: SENDER as never,
    limits: LIMITS as never,
  };
  const report = await processMasterData(facts, createMasterDataStore(looking), new AbortController().signal);
  return { times, results: report.items.map(({ result }): RowResult => result), report };
}
const once = (work: () => Promise<unknown>) => async (time: number) => (time === 1 ? await work() : undefined);

const CHAIN = "site_name;site_type;site_time_zone;source_serial_number;mapping_config;unit;is_versioned\n";

test("another account writes between the comparison and the change, which needs no other look", async () => {
  const { times, results } = await applied(`${CHAIN}One;School;UTC;S1;kWh;kWh;\n`, () =>
    store.structure.createSite(2, { name: "Other", ...SITE }),
  );
  expect([times, results]).toEqual([1, ["created"]]);
});

test("a site that the account got meanwhile is found, and not created twice", async () => {
  const { times, results } = await applied(
    "site_name;site_type;site_time_zone\nTwo;School;UTC\n",
    once(() => store.structure.createSite(1, { name: "Two", ...SITE })),
  );
  expect(times).toBe(2);
  expect(results).not.toEqual(["created"]);
  const { rows } = await store.structure.sites(1, {}, { offset: 0, limit: null });
  expect(rows.filter(({ name }) => name === "Two")).toHaveLength(1);
});

test("a user whom another account made meanwhile is refused, and so is the whole file", async () => {
  const user = { username: "anna", email: null, firstName: null, lastName: null, state: "Invited" } as const;
  const people = { ...user, passwordHash: null, origin: "people" } as const;
  const { times, results, report } = await applied(
    "user_name;user_roles;site_name;site_type;site_time_zone\nanna;User;;;\n;;Three;School;UTC\n",
    once(() => store.people.change(() => createUser(people))),
  );
  expect([times, results, report.applied]).toEqual([2, ["refused", "created"], false]);
});

test("the first points of a variable, which come meanwhile, forbid that it gets versions", async () => {
  const variables = await store.structure.variables(1, {}, { offset: 0, limit: null });
  const id = variables.rows[0]?.id ?? 0;
  const { times, results } = await applied(
    `${CHAIN}One;;;S1;kWh;;true\n`,
    once(() => database.run("INSERT INTO point (variable_id, at_ms, value, origin_id) VALUES (?, 0, 1, 1)", id)),
  );
  expect([times, results]).toEqual([2, ["refused"]]);
});

test("a file waits for another time where the structure changes after each look", async () => {
  const change = (time: number) => store.structure.createSite(1, { name: `More ${time}`, ...SITE });
  await expect(applied("site_name;site_type;site_time_zone\nFour;School;UTC\n", change)).rejects.toThrow(StructureHeld);
  const { rows } = await store.structure.sites(1, {}, { offset: 0, limit: null });
  expect(rows.map(({ name }) => name)).not.toContain("Four");
});

test("a dry run reads users without holding them", async () => {
  const path = join(directory.path, "dry.csv");
  await writeFile(path, "user_name;user_roles\nbert;User\n");
  const job = {
    accountId: 1,
    fileId: 0,
    fileName: "dry.csv",
    run: null,
    path,
    atMs: 0,
    settings: { encoding: "utf-8", dryRun: true },
  };
  const facts = { ...job, sender: SENDER as never, limits: LIMITS as never };
  const report = await processMasterData(facts, createMasterDataStore(database), new AbortController().signal);
  expect(report).toMatchObject({ applied: false, rows: { created: 1 } });
});

const never = async () => undefined;
/** A site, and a source with a variable for each number. */
const chains = (site: string, count: number) =>
  CHAIN + Array.from({ length: count }, (_, at) => `${site};School;UTC;${site}-${at};kWh;kWh;\n`).join("");

async function sourcesOf(site: string): Promise<readonly number[]> {
  const { rows } = await store.structure.sources(1, {}, { offset: 0, limit: null });
  return rows.filter(({ siteName }) => siteName === site).map(({ id }) => id);
}

test("many entities are created in slices: a write of another account waits for two", async () => {
  let now = 0;
  let other: Promise<number> | undefined;
  let own: Promise<number> | undefined;
  const { times, results } = await applied(chains("Many", 1_000), never, (time) => {
    now = time;
    if (time !== 2) return;
    other = store.structure.createSite(2, { name: "Other", ...SITE }).then(() => now);
    own = store.structure.createSite(1, { name: "Own", ...SITE }).then(() => now);
  });
  // The begin, a slice of sites, four of sources and four of variables, the end.
  expect([times, now, results.every((result) => result === "created")]).toEqual([1, 11, true]);
  expect(await other).toBeLessThanOrEqual(4);
  expect(await own).toBe(11);
  expect(await sourcesOf("Many")).toHaveLength(1_000);
  const again = await applied(chains("Many", 1_000), never);
  expect(again.report.rows).toEqual({ created: 0, changed: 0, unchanged: 1_000, refused: 0 });
});

test("slices are undone where a user of the file was made meanwhile, and the file is compared again", async () => {
  const facts = { username: "carl", email: null, firstName: null, lastName: null, state: "Invited" } as const;
  const rows = chains("Undone", 400).replaceAll("\n", ";;\n").replace(";;\n", ";user_name;user_roles\n");
  const { times, report } = await applied(`${rows};;;;;;;carl;User\n`, never, async (time) => {
    if (time === 2) await store.people.change(() => createUser({ ...facts, passwordHash: null, origin: "people" }));
  });
  expect([times, report.applied, report.rows]).toMatchObject([2, false, { created: 400, refused: 1 }]);
  expect(await sourcesOf("Undone")).toEqual([]);
  expect((await store.structure.sites(1, {}, { offset: 0, limit: null })).rows.map(({ name }) => name)).not.toContain(
    "Undone",
  );
});

test("a hub that starts removes what an unfinished file has created, but no variable that got points", async () => {
  const content = chains("Ended", 700);
  const ending = applied(content, never, (time) => {
    if (time === 7) database = { ...database, write: () => Promise.reject(new Error("the hub has ended")) };
  });
  const living = database;
  await expect(ending).rejects.toThrow("the hub has ended");
  database = living;
  const left = await sourcesOf("Ended");
  expect(left.length).toBeGreaterThan(300);
  const { rows } = await store.structure.variables(1, { sourceIds: left }, { offset: 0, limit: null });
  await living.run("INSERT INTO point (variable_id, at_ms, value, origin_id) VALUES (?, 0, 1, 1)", rows[0]?.id ?? 0);
  // A thread may still work on it.
  await store.reports.undoPlans(false);
  expect(await sourcesOf("Ended")).toEqual(left);
  await store.reports.undoPlans(true);
  expect(await sourcesOf("Ended")).toEqual([rows[0]?.sourceId]);
  const { report } = await applied(content, never);
  expect(report.rows).toEqual({ created: 699, changed: 0, unchanged: 1, refused: 0 });
});

/** The chains of a site with other names: each row changes a source and a variable. */
const renamed = (site: string, count: number, name: string) =>
  CHAIN.replace(
    "\n",
    ";source_name;variable_name;source_custom.Contract.Main.Tariff;source_custom.Contract.Main.Power\n",
  ) +
  Array.from({ length: count }, (_, at) => {
    const value = `${name} ${at}`;
    return `${site};School;UTC;${site}-${at};kWh;kWh;;${value};${value};${value};${value}\n`;
  }).join("");

async function everything(): Promise<object> {
  const all = { offset: 0, limit: null };
  const [{ rows: sources }, { rows: variables }] = await Promise.all([
    store.structure.sources(1, {}, all),
    store.structure.variables(1, {}, all),
  ]);
  const slices = await database.ask(() =>
    databaseRows("SELECT field_id, source_id, from_ms, value FROM attribute_slice ORDER BY source_id, from_ms"),
  );
  return { sources, variables, slices };
}

describe("many changes", () => {
  beforeAll(async () => {
    const facts = { id: null, displayOrder: 0, isList: false, required: false, options: null, referenceTo: null };
    const field = (name: string, timeSliced: boolean) => ({ ...facts, name, type: 1, timeSliced });
    const group = { id: null, name: "Main", displayHeader: null, displayOrder: 0 };
    const groups = [{ ...group, fields: [field("Tariff", true), field("Power", false)] }];
    const form = { name: "Contract", type: 0, displayOrder: 0, entityType: "Source", groups } as const;
    await store.forms.create(1, form, fitOf(true), 9);
  });

  test("are written in slices: a write of another account waits for two", async () => {
    let now = 0;
    let other: Promise<number> | undefined;
    let own: Promise<number> | undefined;
    const { times, report } = await applied(renamed("Many", 1_000, "One"), never, (time) => {
      now = time;
      if (time !== 2) return;
      other = store.structure.createSite(2, { name: "Other", ...SITE }).then(() => now);
      own = store.structure.createSite(1, { name: "Own", ...SITE }).then(() => now);
    });
    // The begin, four slices of sources and four of variables, the end.
    expect([times, now, report.rows]).toMatchObject([1, 10, { changed: 1_000 }]);
    expect(await other).toBeLessThanOrEqual(4);
    expect(await own).toBe(10);
    const again = await applied(renamed("Many", 1_000, "One"), never);
    expect(again.report.rows).toEqual({ created: 0, changed: 0, unchanged: 1_000, refused: 0 });
  });

  test("are undone where a user of the file was made meanwhile, and the file is compared again", async () => {
    const before = await everything();
    const facts = { username: "dora", email: null, firstName: null, lastName: null, state: "Invited" } as const;
    const rows = renamed("Many", 1_000, "Two").replaceAll("\n", ";;\n").replace(";;\n", ";user_name;user_roles\n");
    const { times, report } = await applied(`${rows};;;;;;;;;;;dora;User\n`, never, async (time) => {
      if (time === 2) await store.people.change(() => createUser({ ...facts, passwordHash: null, origin: "people" }));
    });
    expect([times, report.applied, report.rows]).toMatchObject([2, false, { changed: 1_000, refused: 1 }]);
    expect(await everything()).toEqual(before);
  });

  test("of a file that a hub did not finish are undone when one starts", async () => {
    const before = await everything();
    const content = renamed("Many", 1_000, "Three");
    const living = database;
    const ending = applied(content, never, (time) => {
      if (time === 7) database = { ...database, write: () => Promise.reject(new Error("the hub has ended")) };
    });
    await expect(ending).rejects.toThrow("the hub has ended");
    database = living;
    expect(await everything()).not.toEqual(before);
    await store.reports.undoPlans(true);
    expect(await everything()).toEqual(before);
    expect((await applied(content, never)).report.rows).toMatchObject({ changed: 1_000 });
  });
});
