/** A store from before the ids of public clients: each unit and type keeps its name (`docs/hub-choices.md`). */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningHub, startHub } from "../../src/hub/hub.ts";
import { hubOptions } from "../../src/hub/options.ts";
import type { HubStore } from "../../src/hub/store/store.ts";
import { createLog } from "../../src/support/log.ts";
import { LITTLE_HASHING as hashCost } from "../support/hash-cost.ts";
import { callsOf, type HubCalls, rawOptions, temporaryDirectory } from "./fixture.ts";
import { writeOldStore } from "./old-store.ts";

/** The ids of the earlier lists, by the names that they had. */
const UNITS = {
  "Normal cubic meter": 28,
  "Degree Celsius": 51,
  "British thermal unit": 31,
  Percent: 101,
  "Kilowatt-hour": 8,
};
const SOURCE_TYPES = { "Lift pump": 72, "Pushed Data": 114, "Electricity meter": 1 };
const VARIABLE_TYPES = { "Total index": 18, "Active power": 25, "General consumption": 0 };
const METADATA = { columns: { "1.8.0": { variableTypeId: 18 }, "1.7.0": { variableTypeId: "25" } }, unitId: 280 };

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let running: RunningHub;
let hub: HubCalls;
const logged: string[] = [];
beforeAll(async () => {
  directory = await temporaryDirectory();
  const rows = [
    "INSERT INTO account (id, name) VALUES (1, 'First')",
    "INSERT INTO site (account_id, name, type_id, time_zone_id) VALUES (1, 'Site', 3, 'UTC')",
    ...Object.entries(SOURCE_TYPES).map(
      ([name, id]) =>
        `INSERT INTO source (account_id, site_id, name, source_type_id, tags) VALUES (1, 1, '${name}', ${id}, '[]')`,
    ),
    ...Object.entries(UNITS).map(([name, id]) => variable(name, 0, id)),
    ...Object.entries(VARIABLE_TYPES).map(([name, id]) => variable(name, id, 8)),
    view("SourceTypeId = 114"),
    view("Name = ''SourceTypeId'' and sourcetypeid<>''72'' or SourceTypeId = 7214"),
    `INSERT INTO file_trigger (account_id, name, file_type, ingestion_type, trigger_type, patterns, combination, state,
       token, mapping, metadata, creation_ms, created_by, last_edit_ms, edited_by)
     VALUES (1, 'T', 'CustomFormat', 'SendViaFtp', 'Added', '[]', 'And', 'Active',
       '01234567-89ab-cdef-0123-456789abcdef', 'm', '${JSON.stringify(METADATA)}', 0, 'm', 0, 'm')`,
  ];
  await writeOldStore(directory.path, "referential-ids", rows);
  const log = createLog("warn", { write: (line) => void logged.push(line) });
  running = await startHub(hubOptions.parse(rawOptions(directory.path)), { log, hashCost });
  hub = callsOf(() => running.url);
});
afterAll(async () => {
  await running.close();
  await directory.remove();
});

function variable(name: string, type: number, unit: number): string {
  return `INSERT INTO variable (account_id, source_id, name, variable_type_id, unit_id, tags)
    VALUES (1, 1, '${name}', ${type}, ${unit}, '[]')`;
}

function view(filter: string): string {
  return `INSERT INTO view (account_id, name, entity_type, custom_filter) VALUES (1, 'V', 'Source', '${filter}')`;
}

const namesOf = async (path: string) => {
  const list: { id: number; name: string }[] = await hub.get(path);
  return new Map(list.map(({ id, name }) => [id, name]));
};

test("every source and variable has the unit and the type of before, by name", async () => {
  const [units, types, sourceTypes] = [
    await namesOf("/units"),
    await namesOf("/variableTypes"),
    await namesOf("/sourceTypes"),
  ];
  const sources: { name: string; sourceTypeId: number }[] = await hub.get("/sources");
  expect(sources.map(({ sourceTypeId }) => sourceTypes.get(sourceTypeId))).toEqual(Object.keys(SOURCE_TYPES));
  const variables: { name: string; unitId: number; variableTypeId: number }[] = await hub.get("/variables");
  const count = Object.keys(UNITS).length;
  expect(variables.slice(0, count).map(({ unitId }) => units.get(unitId))).toEqual(Object.keys(UNITS));
  expect(variables.slice(count).map(({ variableTypeId }) => types.get(variableTypeId))).toEqual(
    Object.keys(VARIABLE_TYPES),
  );
});

test("views and settings of file triggers name the new ids", async () => {
  const found = await hub.get("/sources", { ViewId: 1 });
  expect(found).toMatchObject([{ name: "Pushed Data", sourceTypeId: 72 }]);
  const views = await hub.get("/views");
  expect(views[1].customFilter).toBe("Name = 'SourceTypeId' and sourcetypeid<>'114' or SourceTypeId = 7214");
  const [{ metadata }] = await hub.get("/fileTrigger");
  expect(metadata).toEqual({
    columns: { "1.8.0": { variableTypeId: 25 }, "1.7.0": { variableTypeId: "18" } },
    unitId: 280,
  });
});

test("the log reports the change once, and the store keeps the report", async () => {
  const reports = logged.filter((line) => line.includes("ids of units and types changed"));
  expect(reports).toHaveLength(1);
  for (const words of [
    "unitId 51 is 28 now (1)",
    "sourceTypeId 114 is 72 now (1)",
    "view 1 names",
    "fileTrigger 1 names",
  ])
    expect(reports[0]).toContain(words);
  const { referentialChanges } = running.inside.store as HubStore;
  expect(await referentialChanges.takeUnlogged()).toEqual([]);
  expect(await referentialChanges.list()).toContainEqual({
    accountId: 1,
    field: "unitId",
    oldId: 101,
    newId: 31,
    entities: 1,
  });
});
