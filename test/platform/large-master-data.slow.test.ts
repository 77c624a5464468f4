/** A file of a hundred thousand rows of master data. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type PlatformRig, startRig } from "./rig.ts";

const ROWS = 100_000;
const LIMIT_MS = 240_000;

const HEADER = "site_name,site_type,site_time_zone,source_serial_number,mapping_config,unit,variable_name\n";

function rowsOf(count: number, name: string): string {
  const rows: string[] = [];
  for (let at = 0; at < count; at += 1)
    rows.push(`Site ${at % 500},3,Europe/Brussels,S-${Math.floor(at / 4)},C${at % 4},kWh,${name} ${at}\n`);
  return HEADER + rows.join("");
}

describe("a file of 100,000 rows", () => {
  let rig: PlatformRig;
  beforeAll(async () => {
    rig = await startRig();
    const fileNamePatternMatches = [{ filterType: "StartsWith", value: "md_" }];
    await rig.post("/fileTrigger", {
      fileType: "OpisenseMasterData",
      ingestionType: "UploadInStorage",
      fileNamePatternMatches,
    });
  });
  afterAll(() => rig.close());

  const became = async (id: number, state: string) => {
    const file = () => rig.get(`/storage/${id}`);
    await expect.poll(async () => (await file()).state, { timeout: LIMIT_MS }).toBe(state);
    return await rig.get(`/storage/${id}/report`, { "Paging.ItemsPerPage": 1, "Paging.PageNumber": ROWS - 1 });
  };

  test("is created, unchanged the next time, and refused as a whole for its last row", {
    timeout: LIMIT_MS,
  }, async () => {
    const first = await became(await rig.store("md_1.csv", rowsOf(ROWS, "New")), "stored");
    expect(first).toMatchObject({ applied: true, rows: { created: ROWS, refused: 0 } });
    expect(first.items).toMatchObject([{ row: ROWS + 1, result: "created" }]);
    const { headers } = await rig.call("GET", "/sources", {
      query: { IncludeItemsCount: true, "Paging.ItemsPerPage": 1 },
    });
    expect(headers.get("x-total-count")).toBe(String(ROWS / 4));
    const again = await became(await rig.store("md_2.csv", rowsOf(ROWS, "New")), "stored");
    expect(again.rows).toEqual({ created: 0, changed: 0, unchanged: ROWS, refused: 0 });
    const bad = `${rowsOf(ROWS - 1, "Other")}Site 1,Castle,,S-1,C9,kWh,Bad\n`;
    const refused = await became(await rig.store("md_3.csv", bad), "quarantined");
    expect(refused).toMatchObject({ applied: false, rows: { changed: ROWS - 1, refused: 1 } });
    expect(refused.items).toMatchObject([{ row: ROWS + 1, reasons: [{ column: "site_type" }] }]);
  });

  test("answers other requests meanwhile", { timeout: LIMIT_MS }, async () => {
    const id = await rig.store("md_4.csv", rowsOf(ROWS, "Changed"));
    let answered = 0;
    while ((await rig.get(`/storage/${id}`)).state !== "stored") {
      await rig.get("/sites", { "Paging.ItemsPerPage": 1 });
      answered += 1;
    }
    expect(answered).toBeGreaterThan(10);
  });
});
