/** The templates of master data, from the list of stored files to what a filled one creates. */
import ExcelJS from "exceljs";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { StoredFile } from "#wire/index.ts";
import { type By, type PlatformRig, SECOND, startRig } from "./rig.ts";

let rig: PlatformRig;
beforeAll(async () => {
  rig = await startRig();
  const fileNamePatternMatches = [{ filterType: "StartsWith", value: "master" }];
  const ingestionType = "UploadInStorage";
  await rig.post("/fileTrigger", { fileType: "OpisenseMasterData", ingestionType, fileNamePatternMatches });
});
afterAll(() => rig.close());

const templates = (by: By = {}): Promise<readonly StoredFile[]> =>
  rig.get("/storage", { Tag: "MasterDataTemplate" }, by);
async function content({ id }: StoredFile): Promise<Buffer> {
  const headers = { authorization: `Bearer ${await rig.token()}` };
  const response = await fetch(`${rig.url()}/storage/file?ids=${id}`, { headers });
  expect(response.status).toBe(200);
  return Buffer.from(await response.arrayBuffer());
}

test("are listed by their tag, for each account, and once", async () => {
  const first = await Promise.all([templates(), templates(), templates()]);
  for (const listed of first)
    expect(listed.map(({ fileName, cloudItemTypeId, state, via }) => [fileName, cloudItemTypeId, state, via])).toEqual(
      expect.arrayContaining([
        ["master-data-template.xlsx", "Excel", "unclaimed", "hub"],
        ["master-data-template.csv", "Text", "unclaimed", "hub"],
      ]),
    );
  expect(await templates()).toHaveLength(2);
  const theirs = await templates(SECOND);
  expect(theirs).toHaveLength(2);
  expect(theirs.map(({ id }) => id)).not.toEqual((await templates()).map(({ id }) => id));
  expect((await rig.call("GET", `/storage/${theirs[0]?.id}`)).status).toBe(404);
});

test("come back when they were removed, beside templates of the account", async () => {
  const before = await templates();
  await rig.upload("own", { Filename: "own.csv", Tag: "MasterDataTemplate" });
  await rig.call("DELETE", "/storage", { query: { ids: before.map(({ id }) => id) } });
  const names = (await templates()).map(({ fileName }) => fileName);
  expect(names.toSorted()).toEqual(["master-data-template.csv", "master-data-template.xlsx", "own.csv"]);
});

test("a filled workbook creates what its sheets name", async () => {
  const template = (await templates()).find(({ fileName }) => fileName === "master-data-template.xlsx");
  const book = new ExcelJS.Workbook();
  await book.xlsx.load((template === undefined ? Buffer.of() : await content(template)) as never);
  const fill = (sheet: string, row: Readonly<Record<string, string>>) => {
    const at = book.getWorksheet(sheet);
    const header = at?.getRow(1).values as readonly string[];
    expect(header).toEqual(expect.arrayContaining(Object.keys(row)));
    at?.addRow(header.slice(1).map((name) => row[name] ?? null));
  };
  fill("Sites", { site_name: "Filled", site_type: "School", site_time_zone: "Europe/Brussels" });
  // More digits than a number keeps.
  fill("Sources", { site_name: "Filled", source_ean: "541448860019734502", source_name: "Main" });
  fill("Variables", { source_ean: "541448860019734502", mapping_config: "index", unit: "kWh", quantity_type: "3" });
  const id = await rig.store("master.xlsx", new Uint8Array(await book.xlsx.writeBuffer()));
  await rig.became(id, "stored");
  const [source] = await rig.get("/sources", { Ean: "541448860019734502" });
  expect(source).toMatchObject({ name: "Main" });
  expect(await rig.get("/variables", { SourceId: source.id })).toMatchObject([{ quantityType: 3 }]);
});

test("a filled CSV file does, and an empty template changes nothing", async () => {
  const template = (await templates()).find(({ fileName }) => fileName === "master-data-template.csv");
  const header = Buffer.from(template === undefined ? "" : await content(template)).toString("utf8");
  const names = header.replace("\uFEFF", "").trim().split(";");
  const values: Readonly<Record<string, string>> = { site_name: "In CSV", site_type: "3", site_time_zone: "UTC" };
  const id = await rig.store("master.csv", `${header}${names.map((name) => values[name] ?? "").join(";")}\r\n`);
  await rig.became(id, "stored");
  const empty = await rig.store("master-empty.csv", header);
  expect((await rig.became(empty, "quarantined"))["reason"]).toMatch(/has a header and no rows/);
});
