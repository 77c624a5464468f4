/** Mappers whose files need no zone at a hub: that of the source of each reading counts. */
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { PushElement } from "#gateway/model.ts";
import { listCases } from "#mapping/authoring/case-files.ts";
import { caseSample } from "#mapping/authoring/cases.ts";
import type { IdZones, ZoneFile, ZoneTable } from "#mapping/contract.ts";
import { loadMapper } from "#mapping/load-mapper.ts";
import { type MapFileRequest, mapFile } from "#mapping/map-file.ts";
import { digestMapper, locateMapper, mapperNames } from "#mapping/mapper-files.ts";
import { createMemorySink } from "#mapping/segment/memory-sinks.ts";
import { BUNDLED_FOLDER } from "#mapping/workers/bundled.ts";
import { inputFile, temporaryFolder, WIDE } from "../mapping/kit.ts";

const KINDS = ["sourceSerialNumber", "sourceEan", "sourceName", "meterNumber"] as const;
const NONE: ZoneTable = {
  zones: [],
  ids: { variableId: [], sourceId: [] },
  texts: { sourceSerialNumber: [], sourceEan: [], sourceName: [], meterNumber: [] },
};

/** Two sources by their serial numbers, two variables by their ids, and a name that sources in both zones have. */
const TWO: ZoneTable = {
  zones: ["Europe/Paris", "America/New_York"],
  ids: {
    variableId: [
      [4, 5, 0],
      [7, 9, 1],
    ],
    sourceId: [],
  },
  texts: {
    ...NONE.texts,
    sourceSerialNumber: [
      ["P-1", 0],
      ["N-1", 1],
    ],
    sourceName: [["Both", 0, 1]],
  },
};

async function zoneFile(table: ZoneTable): Promise<ZoneFile> {
  const text = JSON.stringify(table);
  const path = join(await temporaryFolder(), "zones");
  await writeFile(path, text);
  return { path, digest: createHash("sha256").update(text).digest("hex") };
}

async function modulePathOf(name: string): Promise<string> {
  return (await locateMapper([BUNDLED_FOLDER], name)) ?? "";
}

type More = Partial<Pick<MapFileRequest, "settings" | "rows" | "fileName" | "zones">>;

async function mapped(name: string, inputPath: string, more: More) {
  const modulePath = await modulePathOf(name);
  const sink = createMemorySink();
  const result = await mapFile({
    ...{ inputPath, fileName: "input.csv", filePath: "input.csv", settings: {}, rows: "strict" },
    ...{ mapper: await loadMapper(modulePath, await digestMapper(modulePath)), limits: WIDE, sink },
    ...more,
    signal: new AbortController().signal,
  });
  const elements = sink.bodies.flatMap((body) => JSON.parse(body.toString("utf8")) as PushElement[]);
  return { result, elements };
}

describe("with all sources in the zone of the settings, the result is the same without the setting", async () => {
  const cases: { readonly mapper: string; readonly name: string }[] = [];
  for (const mapper of await mapperNames([BUNDLED_FOLDER])) {
    const modulePath = await modulePathOf(mapper);
    const { sourceZone } = await loadMapper(modulePath, await digestMapper(modulePath));
    if (sourceZone !== true) continue;
    for (const name of await listCases(modulePath)) {
      const { settings, expectsReadings, hasLookups } = await caseSample(modulePath, name);
      const hasZone = typeof settings["timeZone"] === "string" && !settings["timeZone"].includes("{");
      if (hasZone && expectsReadings && !hasLookups) cases.push({ mapper, name });
    }
  }

  test.each(cases)("$mapper: $name", async ({ mapper, name }) => {
    const { path, settings, rows, fileName = path } = await caseSample(await modulePathOf(mapper), name);
    const { timeZone, ...others } = settings;
    const before = await mapped(mapper, path, { settings, rows, fileName });
    expect(before.result.status).toBe("mapped");
    const table = tableOf(before.elements, String(timeZone));
    const now = await mapped(mapper, path, { settings: others, rows, fileName, zones: await zoneFile(table) });
    expect(now).toEqual(before);
  });
});

function tableOf(elements: readonly PushElement[], zone: string): ZoneTable {
  const texts = KINDS.map((kind) => {
    const values = new Set(elements.map((element) => element[kind]).filter((value) => value !== undefined));
    return [kind, [...values].map((value) => [value, 0])];
  });
  const everyId: IdZones = [[0, Number.MAX_SAFE_INTEGER, 0]];
  return {
    zones: [zone],
    ids: { variableId: everyId, sourceId: everyId },
    texts: Object.fromEntries(texts),
  } as ZoneTable;
}

const HEADER = "date,value,source_serial_number,mapping_config\n";

async function standard(rows: string, more: More = {}, header = HEADER) {
  const zones = await zoneFile(TWO);
  return await mapped("standard", await inputFile(`${header}${rows}\n`), { zones, ...more });
}

const datesOf = (elements: readonly PushElement[]) => elements.map(({ data }) => data.map(({ date }) => date));

test("each reading has the zone of its own source, and a designator is binding", async () => {
  const rows = ["P-1", "N-1"].flatMap((meter) => [
    `2026-03-01T00:00:00,1,${meter},kWh`,
    `2026-07-01T00:00:00,1,${meter},kWh`,
    `2026-08-01T00:00:00Z,1,${meter},kWh`,
  ]);
  const { elements } = await standard(rows.join("\n"));
  expect(datesOf(elements)).toEqual([
    ["2026-02-28T23:00:00Z", "2026-06-30T22:00:00Z", "2026-08-01T00:00:00Z"],
    ["2026-03-01T05:00:00Z", "2026-07-01T04:00:00Z", "2026-08-01T00:00:00Z"],
  ]);
});

test("a variable is in the zone of its source, and one row of two zones is at two instants", async () => {
  const columns = { date: { column: "when", format: ["dd/MM/yyyy HH:mm", "yyyy-MM-dd HH:mm"] } };
  const values = [4, 9].map((id) => ({ column: `v${id}`, target: { variableId: String(id) } }));
  const input = await inputFile("when,v4,v9\n13/07/2026 00:00,1,2\n2026-07-14 00:00,1,2\n");
  const settings = { ...columns, values };
  const { elements } = await mapped("delimited", input, { settings, zones: await zoneFile(TWO) });
  expect(datesOf(elements)).toEqual([
    ["2026-07-12T22:00:00Z", "2026-07-13T22:00:00Z"],
    ["2026-07-13T04:00:00Z", "2026-07-14T04:00:00Z"],
  ]);
});

test("the zone of the settings comes first", async () => {
  const { elements } = await standard("2026-03-01T00:00:00,1,N-1,kWh", { settings: { timeZone: "UTC" } });
  expect(datesOf(elements)).toEqual([["2026-03-01T00:00:00Z"]]);
});

test("a row is refused whose source is not known, or known in several zones", async () => {
  const { result, elements } = await standard("2026-03-01T00:00:00,1,X-9,kWh\n2026-03-01T00:00:00,1,P-1,kWh", {
    rows: "lenient",
  });
  expect(datesOf(elements)).toEqual([["2026-02-28T23:00:00Z"]]);
  expect(result.rejected).toMatchObject([
    {
      place: { row: 2 },
      message: 'the date has no zone, and there is no source with sourceSerialNumber "X-9" that has one',
      hint: expect.stringMatching(/Create the source .* `timeZone: Europe\/Brussels`$/),
    },
  ]);
  const both = await standard("2026-03-01T00:00:00,1,Both,kWh", {}, "date,value,source_name,mapping_config\n");
  expect(both.result).toMatchObject({
    reason: {
      message: 'the date has no zone, and the sources with sourceName "Both" are in Europe/Paris and America/New_York',
    },
  });
  const id = await standard("2026-03-01T00:00:00,1,6", {}, "date,value,variable_id\n");
  expect(id.result).toMatchObject({ reason: { message: expect.stringContaining("no variable with variableId 6") } });
});

test("a change of the clock follows the rule of the mapper, in the zone of each source", async () => {
  const repeated = "2026-10-25T02:30:00,1,P-1,kWh";
  const skipped = "2026-03-08T02:30:00,1,N-1,kWh";
  expect((await standard(repeated)).result).toMatchObject({
    reason: { message: '"2026-10-25T02:30:00" occurs twice in Europe/Paris because of daylight saving' },
  });
  expect((await standard(skipped)).result).toMatchObject({
    reason: { message: '"2026-03-08T02:30:00" does not occur in America/New_York because of daylight saving' },
  });
  const later = await standard(`${repeated}\n${skipped}`, { settings: { dst: "later" } });
  expect(datesOf(later.elements)).toEqual([["2026-10-25T01:30:00Z"], ["2026-03-08T07:30:00Z"]]);
  const hours = ["01:30", "02:30", "02:30", "03:30"];
  const both = hours.flatMap((hour) => ["P-1", "N-1"].map((one) => `2026-10-25T${hour}:00,1,${one},kWh`)).join("\n");
  const inOrder = await standard(both, { settings: { dst: "byOrder" } });
  expect(datesOf(inOrder.elements)).toEqual([
    ["2026-10-24T23:30:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"],
    ["2026-10-25T05:30:00Z", "2026-10-25T06:30:00Z", "2026-10-25T07:30:00Z"],
  ]);
});

test("a run without the zones is to be bound to them only when a date needs them", async () => {
  const local = "2026-03-01T00:00:00,1,P-1,kWh";
  const asked = await standard(local, { zones: null, rows: "lenient" });
  expect(asked.result).toMatchObject({ status: "failed", reason: { code: "HG-MAP-019" } });
  const instant = await standard("2026-03-01T00:00:00Z,1,X-9,kWh", { zones: null });
  expect(instant.result).toMatchObject({ status: "mapped", points: 1 });
});

test("where no hub knows the zones, the mapper asks for the setting as ever", async () => {
  const { result } = await standard("2026-03-01T00:00:00,1,P-1,kWh", { zones: undefined });
  expect(result).toMatchObject({
    reason: {
      code: "HG-MAP-015",
      message: 'the date "2026-03-01T00:00:00" has no designator, and no time zone is set',
    },
  });
  const named = await standard("2026-03-01T00:00:00,1,P-1,kWh", { zones: undefined, settings: { timeZone: "source" } });
  expect(named.result).toMatchObject({
    reason: { code: "HG-MAP-015", message: expect.stringContaining("known only to a hub") },
  });
});

test("a table that is lost or changed is not replaced by another", async () => {
  const zones = await zoneFile(TWO);
  await writeFile(zones.path, JSON.stringify(NONE));
  const changed = await standard("2026-03-01T00:00:00,1,P-1,kWh", { zones: { ...zones, digest: "0".repeat(64) } });
  expect(changed.result).toMatchObject({ reason: { code: "HG-MAP-030" } });
  const lost = await standard("2026-03-01T00:00:00,1,P-1,kWh", {
    zones: { path: `${zones.path}-none`, digest: "1".repeat(64) },
  });
  expect(lost.result).toMatchObject({ reason: { code: "HG-MAP-030", message: expect.stringContaining("ENOENT") } });
});
