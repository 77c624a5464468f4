import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import ExcelJS from "exceljs";
import { describe, expect, it } from "vitest";
import { runCase } from "#mapping/authoring/cases.ts";
import type { LookupFile } from "#mapping/contract.ts";
import { createLookups } from "#mapping/lookup.ts";
import { inputFile, mapWith, temporaryFolder } from "./kit.ts";

const TABLE = "tag,meter,unit,factor\nA1 , M-1,kWh,10\n\nB2,M-2,MWh,1\n";

async function openTable(content: string | Uint8Array, facts: Partial<LookupFile> = {}) {
  const path = await inputFile(content, "table.csv");
  const open = createLookups([{ name: "tags", path, format: "csv", ...facts }], new AbortController().signal);
  return await open("tags");
}

describe("a lookup table", () => {
  it("returns rows by the key column, trimmed, and by the first column unless another is named", async () => {
    const byTag = await openTable(TABLE);
    expect(byTag.size).toBe(2);
    expect(byTag.get("A1")).toEqual({ tag: "A1", meter: "M-1", unit: "kWh", factor: "10" });
    expect(byTag.get("C3")).toBeUndefined();
    expect((await openTable(TABLE, { key: "meter" })).require(" M-2 ")["tag"]).toBe("B2");
  });

  it("names the nearest column where one is read that it lacks", async () => {
    const row = (await openTable(TABLE)).require("A1");
    expect(() => row["Meters"]).toThrow(
      expect.objectContaining({
        message: 'the lookup "tags" has no column "Meters"',
        hint: expect.stringContaining('Is "meter" meant?'),
      }),
    );
    expect("Meters" in row).toBe(false);
  });

  it("is read as declared: delimiter and encoding", async () => {
    const bytes = Buffer.from("Zähler;Ziel\nKüche;7\n", "latin1");
    const table = await openTable(bytes, { delimiter: ";", encoding: "windows-1252", key: "Zähler" });
    expect(table.require("Küche")["Ziel"]).toBe("7");
  });

  it("is read from a sheet of a workbook, with numbers as keys", async () => {
    const workbook = new ExcelJS.Workbook();
    workbook.addWorksheet("notes").addRow(["nothing"]);
    workbook.addWorksheet("map").addRows([
      ["channel", "target", "active"],
      [12, "M-12", true],
      [13, "M-13", false],
    ]);
    const path = join(await temporaryFolder(), "table.xlsx");
    await workbook.xlsx.writeFile(path);
    const files: LookupFile[] = [{ name: "tags", path, format: "xlsx", sheet: "map", key: "channel" }];
    const table = await createLookups(files, new AbortController().signal)("tags");
    expect(table.require("12")).toEqual({ channel: "12", target: "M-12", active: "true" });
  });

  it.each<[string, string, Partial<LookupFile>, string]>([
    ["a key twice", "tag,a\nX,1\nY,2\nX,3\n", {}, 'the key "X" is in row 2 and again in row 4'],
    ["a row without key", "tag,a\nX,1\n,2\n", {}, 'row 3 has no key in column "tag"'],
    ["no key column", "tag,a\nX,1\n", { key: "Tag" }, 'no column "Tag"; there are "tag", "a"'],
    ["a column twice", "tag,a,a\nX,1,2\n", {}, 'two of its columns are called "a"'],
    ["a short row", "tag,a\nX\n", {}, "row 2 has 1 cell where the header has 2"],
    ["nothing", "", {}, "it is empty"],
    ["another encoding", "tag,a\nX,\ufffd\n", { encoding: "klingon" }, "klingon"],
    ["other content than bound", TABLE, { digest: "0".repeat(64) }, "not the one that this run was made with"],
    ["a fault known before", TABLE, { fault: "there is no such file" }, "there is no such file"],
  ])("is refused with %s", async (_, content, facts, message) => {
    await expect(openTable(content, facts)).rejects.toThrow(message);
  });

  it("of the same digest is reused for the next file, and cannot be changed by a mapper", async () => {
    const digest = createHash("sha256").update(TABLE).digest("hex");
    const first = await openTable(TABLE, { digest });
    expect(await openTable(TABLE, { digest })).toBe(first);
    expect(() => Object.assign(first.require("A1"), { meter: "M-9" })).toThrow(TypeError);
    expect(await openTable(TABLE, { digest, key: "meter" })).not.toBe(first);
  });
});

describe("lookup", () => {
  async function mapTags(content: string, table = TABLE) {
    const path = join(await temporaryFolder(), "t.csv");
    await writeFile(path, table);
    return await mapWith(
      async ({ file, eachRow, lookup, number, unit, emit }) => {
        const tags = await lookup("tags");
        await eachRow(file.csv({ columns: true }), (row) => {
          const known = tags.require(row["tag"] ?? "");
          emit({
            target: { sourceSerialNumber: known["meter"] ?? "", mappingConfig: "energy" },
            date: row["at"] ?? "",
            value: unit(number(row["value"] ?? ""), known["unit"] ?? "", "kWh"),
            unit: "kWh",
          });
        });
      },
      { content, lookups: [{ name: "tags", path, format: "csv" }] },
    );
  }

  it("leads from tags to targets and units", async () => {
    const { elements, result } = await mapTags(
      "tag,at,value\nA1,2026-03-01T00:00:00Z,1.5\nB2,2026-03-01T00:00:00Z,1.5\n",
    );
    expect(elements.map(({ sourceSerialNumber, data }) => [sourceSerialNumber, data[0]?.value])).toEqual([
      ["M-1", 1.5],
      ["M-2", 1500],
    ]);
    expect(result).toMatchObject({ targets: [{ unit: "kWh" }, { unit: "kWh" }] });
  });

  it("refuses a row whose key is not in the table, with column, text and the nearest key", async () => {
    const { result } = await mapTags("tag,at,value\nA1,2026-03-01T00:00:00Z,1\nA11,2026-03-01T00:00:00Z,2\n");
    expect(result).toMatchObject({
      status: "failed",
      reason: {
        message: 'the lookup "tags" has no "A11" in its column "tag"',
        hint: expect.stringContaining('is "A1" meant'),
        place: { row: 3, column: "tag", text: "A11" },
      },
    });
  });

  it("fails the file, not the mapper, when the table is faulty or not configured", async () => {
    expect((await mapTags("tag\n", "tag\nA\nA\n")).result).toMatchObject({
      reason: { code: "HG-MAP-030", message: expect.stringContaining('the key "A" is in row 2') },
    });
    const { result } = await mapWith(async ({ lookup }) => void (await lookup("tags")));
    expect(result).toMatchObject({
      reason: { code: "HG-MAP-030", message: expect.stringContaining("no lookup is configured") },
    });
  });
});

describe("a golden case", () => {
  it("has its tables, by their first column unless its settings name another", async () => {
    const folder = join(await temporaryFolder(), "tagged");
    const lookups = join(folder, "cases", "one", "lookups");
    await mkdir(lookups, { recursive: true });
    await writeFile(
      join(folder, "mapper.ts"),
      `import { defineMapper } from "headgate/mapper";
       export default defineMapper({ name: "tagged", summary: "s", async map({ lookup, emit }) {
         const byTag = (await lookup("tags")).require("A1");
         const byMeter = (await lookup("meters")).require("M-1");
         emit({ target: { variableId: Number(byTag.id) }, date: "2026-03-01T00:00:00Z", value: Number(byMeter.factor) });
       } });`,
    );
    await writeFile(join(folder, "cases", "one", "input.csv"), "");
    await writeFile(
      join(folder, "cases", "one", "settings.yaml"),
      `$lookups:\n  meters: { key: meter, delimiter: ";" }\n`,
    );
    await writeFile(join(lookups, "tags.csv"), "tag,id\nA1,7\n");
    await writeFile(join(lookups, "meters.csv"), "factor;meter\n10;M-1\n");
    const { actual } = await runCase(join(folder, "mapper.ts"), "one");
    expect(actual).toEqual([{ variableId: 7, data: [{ date: "2026-03-01T00:00:00Z", value: 10 }] }]);
  });
});
