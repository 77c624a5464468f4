/** A store of an earlier version becomes compact in the background, without losing a point. */
import { expect, test } from "vitest";
import { startHub } from "../../../src/hub/hub.ts";
import { hubOptions } from "../../../src/hub/options.ts";
import { row } from "../../../src/hub/store/database.ts";
import type { HubStore } from "../../../src/hub/store/store.ts";
import { createLog } from "../../../src/support/log.ts";
import { callsOf, rawOptions, temporaryDirectory, until } from "../fixture.ts";
import { writeOldStore } from "../old-store.ts";

const POINTS = 5_000;
const STEP_MS = 900_000;
const BEGIN_MS = Date.UTC(2020, 0, 1);
const valueAt = (index: number) => (index * 37) % 1_000;

function rowsFrom(from: number, tags: string): string {
  const values = Array.from({ length: 500 }, (_, at) => {
    const index = from + at;
    return `(1, ${BEGIN_MS + index * STEP_MS}, ${valueAt(index)}, ${tags})`;
  });
  return `INSERT INTO point (variable_id, at_ms, value, tags) VALUES ${values.join(", ")}`;
}

const SITE = "INSERT INTO site (account_id, name, type_id, time_zone_id) VALUES (1, 'Site', 3, 'Europe/Paris')";
const SOURCE = "INSERT INTO source (account_id, site_id, name, source_type_id, tags) VALUES (1, 1, 'Meter', 1, '[]')";
const VARIABLE = `INSERT INTO variable (account_id, source_id, name, variable_type_id, unit_id, tags)
  VALUES (1, 1, 'Energy', 0, 8, '[]')`;
const ACCOUNT = "INSERT INTO account (id, name) VALUES (1, 'Old')";
const OWN = {
  sqlite: ["INSERT INTO structure_change (account_id, changes) VALUES (1, 0)"],
  postgres: [
    "INSERT INTO structure_change (account_id, changes) VALUES (1, 0)",
    "INSERT INTO lane (account_id) VALUES (1)",
    `CREATE TABLE point_2020 PARTITION OF point FOR VALUES FROM (${BEGIN_MS}) TO (${BEGIN_MS + 366 * 86_400_000})`,
  ],
};

test("points of an earlier version are packed after the start, and read as before", async () => {
  const directory = await temporaryDirectory();
  const parts = Array.from({ length: POINTS / 500 }, (_, part) =>
    rowsFrom(part * 500, part === 4 ? `'{"a":"b"}'` : "NULL"),
  );
  const rows = [SITE, SOURCE, VARIABLE, ...parts];
  await writeOldStore(directory.path, "blocks", {
    sqlite: [ACCOUNT, ...OWN.sqlite, ...rows],
    postgres: [ACCOUNT, ...OWN.postgres, ...rows],
  });
  const running = await startHub(hubOptions.parse(rawOptions(directory.path)), { log: createLog("silent") });
  const hub = callsOf(() => running.url);
  try {
    const count = async (table: string) => {
      let total = 0;
      await (running.inside.store as HubStore).people.change(function* () {
        total = Number((yield* row(`SELECT count(*) AS total FROM ${table}`))?.["total"]);
      });
      return total;
    };
    // 500 with tags stay rows.
    await until(async () => ((await count("point")) === 500 ? true : undefined));
    expect(await count("point_block")).toBeGreaterThan(4);
    const found = await hub.get("/data", { VariableId: 1, DisplayLevel: "ValueVariableDate" });
    expect(found.map((one: { rawValue: number }) => one.rawValue)).toEqual(
      Array.from({ length: POINTS }, (_, at) => valueAt(at)),
    );
  } finally {
    await running.close();
    await directory.remove();
  }
});
