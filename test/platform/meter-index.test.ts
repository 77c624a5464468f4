/** Files of meter indexes, from the upload to stored points. */
import ExcelJS from "exceljs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type By, type PlatformRig, SECOND, startRig } from "./rig.ts";

let rig: PlatformRig;
let index: number;
beforeAll(async () => {
  rig = await startRig();
  await indexTrigger("OpisenseManualLoad", "manual_", { timeZone: "Europe/Brussels", mappingConfig: "kWh" });
  await indexTrigger("IndexIs", "91_", { timeZone: "+01:00" });
  index = await rig.variable("M-1");
});
afterAll(() => rig.close());

const indexTrigger = (fileType: string, beginning: string, metadata: object, by: By = {}) => {
  const fileNamePatternMatches = [{ filterType: "StartsWith", value: beginning }];
  const body = { fileType, ingestionType: "UploadInStorage", fileNamePatternMatches, metadata };
  return rig.post("/fileTrigger", body, by);
};

test("a workbook of indexes that a person read is stored", async () => {
  const book = new ExcelJS.Workbook();
  const sheet = book.addWorksheet("Readings");
  sheet.addRow(["Serial number", "Reading date", "Index"]);
  sheet.addRow(["M-1", new Date("2026-03-01"), 1200.5]);
  sheet.addRow(["M-1", new Date("2026-04-01"), 1310]);
  sheet.getColumn(2).numFmt = "dd/mm/yyyy";
  await rig.became(await rig.store("manual_march.xlsx", new Uint8Array(await book.xlsx.writeBuffer())), "stored");
  expect(await rig.values(index)).toMatchObject({
    "2026-03-01T00:00:00+01:00": 1200.5,
    "2026-04-01T00:00:00+02:00": 1310,
  });
});

test.each([
  [";", ""],
  [",", "\uFEFF"],
])("a CSV file of a metering company with %s is stored, in the time of winter", async (delimiter, mark) => {
  const day = delimiter === ";" ? "2026-07-01" : "2026-07-02";
  const rows = [
    ["serial number", "mapping config", "date", "index"],
    ["M-1", "kWh", `${day} 00:15`, "77.5"],
  ];
  const content = mark + rows.map((row) => row.join(delimiter)).join("\r\n");
  await rig.became(await rig.store(`91_${day}.csv`, content), "stored");
  expect((await rig.values(index))[`${day}T01:15:00+02:00`]).toBe(77.5);
});

test("an index that falls quarantines the file with its row and column", async () => {
  const id = await rig.store("manual_fall.csv", "serial_number,date,index\nM-1,2025-01-01,10\nM-1,2025-01-02,9\n");
  const { reason } = await rig.became(id, "quarantined");
  expect(reason).toMatch(
    /the index 9 is lower than the earlier one, 10 of .*an index only grows.*row 3, column index/s,
  );
  expect(Object.keys(await rig.values(index)).filter((date) => date < "2026")).toEqual([]);
});

test("a meter of another account is unknown", async () => {
  const theirs = await rig.variable("M-2", SECOND);
  const id = await rig.store("manual_theirs.csv", "serial_number,date,index\nM-2,2026-01-01,1\n");
  await rig.became(id, "discarded");
  expect(await rig.values(theirs, SECOND)).toEqual({});
});
