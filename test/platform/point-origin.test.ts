/** From a stored point to the row of the file that it came from. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { workbook } from "./contents.ts";
import { type PlatformRig, SECOND, standardCsv, startRig } from "./rig.ts";

const DATE = "2026-03-01T00:00:00Z";

let rig: PlatformRig;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.close());

const originOf = (VariableId: number) => rig.get("/data/origin", { VariableId, Date: DATE });

test("a point of a file names the file, who sent it, and its row", async () => {
  const [variableId, other] = [await rig.variable("P-1"), await rig.variable("P-2")];
  await rig.trigger("rows_", "standard");
  const lines = [standardCsv("P-2", DATE, 1), standardCsv("P-1", "2026-02-28T00:00:00Z", 1).split("\n")[1]];
  const content = `${lines.join("")}\n${standardCsv("P-1", DATE, 1).split("\n")[1]}\n`;
  const file = await rig.store("rows_1.csv", content);
  await rig.became(file, "stored");
  const named = { value: 1, user: "manager", file: { id: file, fileName: "rows_1.csv", createdBy: "manager" } };
  expect(await originOf(variableId)).toMatchObject([{ ...named, row: 4, sheet: null }]);
  expect(await originOf(other)).toMatchObject([{ ...named, row: 2 }]);
  const { status } = await rig.call("GET", "/data/origin", {
    ...SECOND,
    query: { VariableId: variableId, Date: DATE },
  });
  expect(status).toBe(404);
});

test("a point of a workbook names its sheet, too", async () => {
  const variableId = await rig.variable("P-3");
  await rig.trigger("sheet_", "standard");
  const rows = [
    ["date", "value", "source_serial_number", "mapping_config"],
    ["2026-02-28T00:00:00Z", 2, "P-3", "kWh"],
    [DATE, 2, "P-3", "kWh"],
  ];
  const file = await rig.store("sheet_1.xlsx", await workbook(rows));
  await rig.became(file, "stored");
  expect(await originOf(variableId)).toMatchObject([{ file: { id: file }, row: 3, sheet: expect.any(String) }]);
});
