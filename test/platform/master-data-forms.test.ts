/** Values of forms in files of master data. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type PlatformRig, startRig } from "./rig.ts";

let rig: PlatformRig;
const HEADER = "site_name;site_type;site_time_zone;source_serial_number";
beforeAll(async () => {
  rig = await startRig();
  const fields = [
    { name: "Power", type: "Number", required: true },
    { name: "Signed", type: "Date" },
    { name: "Phones", isList: true },
    { name: "Tariff", type: "Number", timeSliced: true },
    { name: "Parent", type: "Reference" },
  ];
  const groups = [{ name: "Main", fields }];
  for (const entityType of ["Site", "Source"])
    await rig.call("POST", "/form", { body: { name: "Contract", entityType, groups } });
  await rig.call("POST", "/fileTrigger", {
    body: {
      fileType: "OpisenseMasterData",
      ingestionType: "UploadInStorage",
      fileNamePatternMatches: [{ filterType: "StartsWith", value: "md_" }],
    },
  });
});
afterAll(() => rig.close());

let files = 0;
/** The reports of the rows. */
async function applied(columns: string, cells: string, state: "stored" | "quarantined" = "stored") {
  files += 1;
  const id = await rig.store(`md_${files}.csv`, `${HEADER};${columns}\n${cells}\n`);
  await rig.became(id, state);
  return (await rig.get(`/storage/${id}/report`)).items;
}
const source = async (SerialNumber: string, query = {}) =>
  (await rig.get("/sources", { SerialNumber, DisplayLevel: "Site", ...query }))[0];

test("cells are values of the types of their fields, on sources and sites; the same file changes nothing", async () => {
  const columns = [
    "source_custom.contract.main.POWER",
    "source_custom.Contract.Main.Signed",
    "source_custom.Contract.Main.Phones",
    "source_custom.Contract.Main.Tariff",
    "site_custom.Contract.Main.Power",
    "site_custom.Contract.Main.Tariff",
    "source_custom.Other",
    "source_custom.Free.Main.Note",
  ].join(";");
  const cells = "F1;Office;Europe/Brussels;F-1;36.5;2026-03-01;112|113;0.25;9;1;b;n";
  const before = Date.now();
  const [created] = await applied(columns, cells);
  expect(created).toMatchObject({ result: "created", reasons: [] });
  const shown = await source("F-1");
  const main = { Power: 36.5, Signed: "2026-03-01", Phones: ["112", "113"], Tariff: 0.25 };
  expect(shown.clientData).toEqual({ Contract: { Main: main }, Other: "b", Free: { Main: { Note: "n" } } });
  expect(shown.site.clientData).toEqual({ Contract: { Main: { Power: 9, Tariff: 1 } } });
  const slices = `/sources/${shown.id}/attributes/Contract/Main/Tariff/slices`;
  const [slice] = await rig.get(slices);
  expect(Date.parse(slice.EffectiveDate)).toBeGreaterThanOrEqual(before);
  expect((await applied(columns, cells))[0]).toMatchObject({ result: "unchanged" });
  const [changed] = await applied("source_custom.Contract.Main.Tariff", "F1;;;F-1;0.5");
  expect(changed.entities).toContainEqual(
    expect.objectContaining({ entity: "source", result: "changed", fields: ["clientData.Contract.Main.Tariff"] }),
  );
  expect(await rig.get(slices)).toMatchObject([{ Value: 0.25 }, { Value: 0.5 }]);
  expect((await source("F-1")).clientData.Contract.Main).toEqual({ ...main, Tariff: 0.5 });
});

test.each([
  ["source_custom.Contract.Main.Power", "much", 'must be a number, and not "much"'],
  ["source_custom.Contract.Main.Price", "1", "the form Contract has no such field"],
  ["source_custom.Contract", "1", "the form Contract has no such field"],
  ["source_custom.Contract.Main.Signed", "2026-03-01", "is required where the form Contract has values"],
])("%s = %s is refused with its column", async (column, cell, words) => {
  const serial = `R-${column}-${cell}`;
  const [row] = await applied(column, `R;Office;UTC;${serial};${cell}`, "quarantined");
  expect(row.reasons).toEqual([expect.objectContaining({ message: expect.stringContaining(words) })]);
  if (!words.includes("required")) expect(row.reasons[0].column).toBe(column);
  expect(await source(serial)).toBeUndefined();
});

test("a header that names one field in two cases is refused", async () => {
  const columns = "source_custom.Contract.Main.Power;source_custom.contract.main.power";
  const [refused] = await applied(columns, "F1;Office;Europe/Brussels;F-2;1;2", "quarantined");
  expect(refused.reasons).toMatchObject([{ message: expect.stringContaining("twice") }]);
});

test("a reference must be of the account", async () => {
  const columns = "source_custom.Contract.Main.Power;source_custom.Contract.Main.Parent";
  await applied("source_custom.Contract.Main.Power", "P;Office;UTC;P-1;1");
  const parent = await source("P-1");
  const [row] = await applied(columns, "P;Office;UTC;P-2;1;987654", "quarantined");
  expect(row.reasons[0].message).toContain("no source 987654 in this account");
  await applied(columns, `P;Office;UTC;P-2;1;${parent.id}`);
  expect((await source("P-2")).clientData.Contract.Main.Parent).toBe(parent.id);
});
