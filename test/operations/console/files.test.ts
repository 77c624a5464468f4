/** The inbox and the files of the console, through a gateway that runs. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import ExcelJS from "exceljs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { GatewayRig, oneReading, trigger, until } from "../../runs/gateway-rig.ts";
import { askOperations } from "../../support/operations.ts";
import { get, refusal } from "./console-rig.ts";

let rig: GatewayRig;
beforeEach(async () => {
  rig = await GatewayRig.start();
});
afterEach(() => rig.close());

const day = (number: number) => `2026-03-${String(number).padStart(2, "0")}T00:00:00Z`;
const HOSTILE = "<script>alert(1)</script>\u202e";

describe("attention", () => {
  it("groups files by cause, with place, reason and what helps, until newer versions have come", async () => {
    const variable = await rig.variable("a");
    for (const [name, value] of [
      ["one", "many"],
      ["two", "few"],
      ["three", HOSTILE],
    ])
      rig.put(`in/${name}.csv`, `variable_id,date,value\n${variable},${day(1)},"${value?.replaceAll('"', '""')}"\n`);
    rig.put("in/other.csv", `variable_id,date,amount\n${variable},${day(1)},1\n`);
    rig.put("in/stray.txt", "nothing claims me");
    const gateway = await rig.open({});
    await until("it is idle", () => gateway.isIdle());
    const { total, groups } = await get(gateway, "attention");
    expect(total).toBe(5);
    expect(groups.map(({ kind, count }: { kind: string; count: number }) => [kind, count])).toEqual([
      ["quarantined", 3],
      ["quarantined", 1],
      ["unmatched", 1],
    ]);
    expect(groups[2].title).toBe('No trigger claims "stray.txt"');
    const stray = await get(gateway, `attention/items?group=${groups[2].key}`);
    expect(stray.items[0].reason).toContain("standard");
    const [numbers] = groups;
    expect(numbers).toMatchObject({
      drops: ["in"],
      triggers: ["standard"],
      mapper: expect.stringContaining("standard"),
    });
    expect(numbers.title).toContain("…");
    expect(numbers.title).not.toContain("many");
    const first = await get(gateway, `attention/items?group=${numbers.key}&limit=2`);
    const rest = await get(
      gateway,
      `attention/items?group=${numbers.key}&limit=2&after=${encodeURIComponent(first.next)}`,
    );
    const items = [...first.items, ...rest.items];
    expect(rest.next).toBeNull();
    expect(items.map(({ path }) => path).sort()).toEqual(["one.csv", "three.csv", "two.csv"]);
    expect(items.find(({ path }) => path === "three.csv")).toMatchObject({
      state: "quarantined",
      place: { row: 2, column: "value", text: expect.stringContaining("<script>alert(1)</script>") },
      currentPlace: "three.csv",
      actions: ["replay", "cancel", "forget"],
    });
    rig.put("in/one.csv", oneReading(variable, 1), new Date("2026-03-02T00:00:00Z"));
    await until("the new version is delivered", async () => (await rig.stored(variable))["2026-03-01"] === 1);
    await until("it is no longer in the inbox", async () => (await get(gateway, "attention")).total === 4);
    expect(await refusal(gateway, "attention/items?group=none")).toMatchObject({ status: 404, code: "HG-OPS-004" });
  });
});

describe("files", () => {
  it("are found by a part of the path, state, drop, trigger, run, operationId, target and time", async () => {
    const variable = await rig.variable("a");
    rig.put("in/2026/North_1.csv", oneReading(variable, 1));
    rig.put("in/2026/south_2.csv", oneReading(variable, 2, day(2)), new Date("2026-03-02T00:00:00Z"));
    rig.put("in/2026/south_3.csv", "variable_id,date,value\n1,2,3\n", new Date("2026-03-03T00:00:00Z"));
    await rig.variable("M-17");
    const bySerial = `source_serialnumber,mapping_config,date,value\nM-17,v,${day(1)},1\n`;
    rig.put("in/meters.csv", bySerial, new Date("2026-03-04T00:00:00Z"));
    rig.put("in/stray.txt", "nothing claims me");
    const gateway = await rig.open({});
    await until("it is idle", () => gateway.isIdle());
    const names = async (query: string) =>
      (await get(gateway, `files?${query}`)).files.map(({ name }: { name: string }) => name).sort();
    expect(await names("")).toEqual(["North_1.csv", "meters.csv", "south_2.csv", "south_3.csv", "stray.txt"]);
    expect(await names("q=north_")).toEqual(["North_1.csv"]);
    expect(await names("q=2026/s")).toEqual(["south_2.csv", "south_3.csv"]);
    expect(await names("q=h%25_")).toEqual([]);
    expect(await names("state=quarantined")).toEqual(["south_3.csv"]);
    expect(await names("state=delivered&q=south")).toEqual(["south_2.csv"]);
    expect(await names("state=unmatched")).toEqual(["stray.txt"]);
    expect(await names("trigger=standard&drop=in&q=2026")).toEqual(["North_1.csv", "south_2.csv", "south_3.csv"]);
    expect(await names("trigger=other")).toEqual([]);
    expect(await names("drop=out")).toEqual([]);
    expect(await names("from=2000-01-01T00:00:00.000Z&to=2000-01-02T00:00:00.000Z")).toEqual([]);
    expect(await names("from=2000-01-01T00:00:00.000Z")).toHaveLength(5);
    expect(await names("from=2000-01-01&to=2000-01-02T00:00:00%2B01:00")).toEqual([]);
    expect(await names("from=2000-01-01T00:00:00%2B01:00")).toHaveLength(5);
    for (const wrong of ["from=x", "to=9999-99-99", "from=2026-02-30", "to=2026-03-01T01:00:00"])
      expect(await refusal(gateway, `files?${wrong}`)).toMatchObject({ status: 400, code: "HG-OPS-006" });
    expect(await names(`q=variableId%3D${variable}`)).toEqual(["North_1.csv", "south_2.csv"]);
    expect(await names("q=M-17")).toEqual(["meters.csv"]);
    expect(await names("q=M-18")).toEqual([]);
    const [{ id, run }] = (await get(gateway, "files?q=North")).files;
    expect(await names(`q=${run}`)).toEqual(["North_1.csv"]);
    expect(await names(`q=${run}-1`)).toEqual(["North_1.csv"]);
    const parts = [await get(gateway, "files?limit=3")];
    parts.push(await get(gateway, `files?limit=3&after=${parts[0].next}`));
    expect(parts.flatMap(({ files }) => files)).toHaveLength(5);
    expect(parts[1].next).toBeNull();
    expect((await get(gateway, `files/${id}`)).arrival).toMatchObject({ state: "delivered", trigger: "standard" });
    expect(await refusal(gateway, "files/999")).toMatchObject({ status: 404 });
  });

  it("show their life, their input with the refused row, their readings and what was sent", async () => {
    const variable = await rig.variable("a");
    const text = `variable_id,date,value\n${variable},${day(1)},1.5\n${variable},${day(2)},many\n`;
    rig.put("in/a.csv", text);
    const gateway = await rig.open({ triggers: [trigger("standard", { rows: "lenient", rejectShare: 1 })] });
    await until("it is idle", () => gateway.isIdle());
    const [{ id }] = (await get(gateway, "files")).files;
    const page = await get(gateway, `files/${id}`);
    expect(page).toMatchObject({
      runs: [{ run: { state: "confirmed", points: { mapped: 1 } }, batches: [{ state: "accepted", points: 1 }] }],
      input: { kept: true, where: "spool", format: "text" },
      currentPlace: expect.stringContaining("archive/a."),
      versions: [],
      counts: { runs: 1, versions: 0, entries: 0 },
      actions: ["replay", "forget"],
    });
    expect(page.runs[0].rejected).toMatchObject([{ place: { row: 3, column: "value" } }]);
    expect(page.runs[0].rejectedCount).toBe(1);
    const whats = page.events.map(({ what }: { what: string }) => what);
    expect(whats).toEqual(expect.arrayContaining(["run.claimed", "run.mapped", "run.confirmed"]));
    expect(page.events[0].sinceMs).toBeNull();
    expect(page.events[1].sinceMs).toBeGreaterThanOrEqual(0);
    expect(await get(gateway, `files/${id}/input?from=2&rows=1`)).toMatchObject({
      kind: "text",
      encoding: "utf-8",
      lines: [{ row: 2, text: `${variable},${day(1)},1.5`, cut: 0 }],
      isLast: false,
      marks: [],
    });
    expect(await get(gateway, `files/${id}/input`)).toMatchObject({
      isLast: true,
      marks: [{ row: 3, column: "value", reason: expect.any(String) }],
    });
    const download = await askOperations(gateway, `/operations/files/${id}/input/file`);
    expect(download.headers.get("content-disposition")).toContain("attachment");
    expect(download.headers.get("content-type")).toBe("application/octet-stream");
    expect(await download.text()).toBe(text);
    const target = `variableId=${variable}`;
    expect(await get(gateway, `files/${id}/readings`)).toMatchObject({
      targets: [{ target, points: 1, unit: null }],
      readings: [{ target, date: expect.stringContaining("2026-03-01"), value: 1.5, row: 2, sheet: null }],
      isCut: false,
    });
    const payload = await get(gateway, `files/${id}/payload`);
    expect(JSON.parse(payload.text)).toMatchObject([{ variableId: variable, data: [{ value: 1.5 }] }]);
    const origin = await get(gateway, `readings?target=${encodeURIComponent(target)}&date=${day(1)}`);
    expect(origin.found).toMatchObject([{ file: id, path: "a.csv", row: 2, value: 1.5, run: page.arrival.run }]);
    // By its operation, also where the service has more names of the variable than the file; and no other reading.
    const { operationId } = origin.found[0];
    const exactly = (fields: string) =>
      get(gateway, `readings?target=${encodeURIComponent(fields)}&date=${day(1)}&operationId=${operationId}`);
    expect(await exactly(`${target} sourceSerialNumber=M-1 mappingConfig=kWh`)).toEqual(origin);
    expect((await exactly(`variableId=${variable + 1} sourceSerialNumber=M-1`)).found).toEqual([]);
    const other = `readings?target=${target}&date=${day(1)}&operationId=another`;
    expect((await get(gateway, other)).found).toEqual([]);
    expect(await refusal(gateway, `readings?target=meter&date=${day(1)}`)).toMatchObject({ status: 400 });
    expect(await refusal(gateway, `files/${id}/payload?batch=9`)).toMatchObject({ status: 404 });
  });

  it("show what is still at its drop alone, and say of what is gone that it is", async () => {
    rig.put("in/stray.txt", "nothing claims me\n");
    const gateway = await rig.open({});
    await until("it is seen", async () => (await get(gateway, "files?state=unmatched")).files.length === 1);
    const [{ id }] = (await get(gateway, "files")).files;
    expect(await get(gateway, `files/${id}`)).toMatchObject({
      arrival: { state: "unmatched", run: null },
      input: { kept: false, where: "drop", format: null },
      actions: ["forget"],
    });
    expect((await get(gateway, `files/${id}/input`)).lines).toEqual([{ row: 1, text: "nothing claims me", cut: 0 }]);
    expect(await refusal(gateway, `files/${id}/readings`)).toMatchObject({ status: 404 });
    rmSync(join(rig.folder, "in/stray.txt"));
    await until("it is gone", async () => (await get(gateway, `files/${id}`)).input.where === null);
    expect(await refusal(gateway, `files/${id}/input`)).toMatchObject({ status: 404, code: "HG-OPS-004" });
    expect(await refusal(gateway, `files/${id}/input/file`)).toMatchObject({ status: 404 });
  });

  it("show lines of any length and encoding as text, and the rows of a workbook", async () => {
    const variable = await rig.variable("a");
    const header = "variable_id,date,value\n";
    rig.put("in/long.csv", `${header}${HOSTILE}${"x".repeat(1_000_000)}\r\n\r\nend`);
    rig.put("in/latin.csv", Buffer.from(`${header}Zähler,1,2\n`, "latin1"));
    rig.put("in/zero.csv", Buffer.from([0, 1, 2]));
    const workbook = new ExcelJS.Workbook();
    const sheet = workbook.addWorksheet("March");
    sheet.addRows([["meter", "date", "value"], [], [HOSTILE, new Date(day(1)), 1.5]]);
    rig.put("in/book.xlsx", new Uint8Array(await workbook.xlsx.writeBuffer()));
    const patterns = [".csv", ".xlsx"].map((value) => ({ filterType: "EndsWith", value }));
    const gateway = await rig.open({ triggers: [trigger("standard", { fileNamePatternMatches: patterns })] });
    await until("it is idle", () => gateway.isIdle());
    expect(variable).toBeGreaterThan(0);
    const input = async (name: string, query = "") => {
      const [{ id }] = (await get(gateway, `files?q=${name}`)).files;
      return get(gateway, `files/${id}/input${query}`);
    };
    const long = await input("long");
    expect(long.lines.map(({ row }: { row: number }) => row)).toEqual([1, 2, 3, 4]);
    expect(long.lines[1].text.startsWith(HOSTILE)).toBe(true);
    expect(long.lines[1].text).toHaveLength(2_000);
    expect(long.lines[1].cut).toBe(HOSTILE.length + 1_000_000 - 2_000);
    expect(await input("latin")).toMatchObject({ encoding: "windows-1252", lines: [{}, { text: "Zähler,1,2" }] });
    expect(await input("zero")).toMatchObject({ kind: "binary" });
    expect(await input("book", "?from=2")).toMatchObject({
      kind: "table",
      sheets: ["March"],
      sheet: "March",
      rows: [{ row: 3, cells: [HOSTILE, "2026-03-01T00:00:00", "1.5"] }],
      isLast: true,
    });
  });
});
