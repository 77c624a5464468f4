/** A file of a hundred thousand rows of master data. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type PlatformRig, startRig } from "./rig.ts";

const ROWS = 100_000;
const LIMIT_MS = 240_000;
const LAST = { "Paging.ItemsPerPage": 1, "Paging.PageNumber": ROWS - 1 };

const HEADER = "site_name,site_type,site_time_zone,source_serial_number,mapping_config,unit,variable_name\n";

function rowsOf(count: number, name: string): string {
  const rows: string[] = [];
  for (let at = 0; at < count; at += 1)
    rows.push(
      `Site ${Math.floor(at / 4) % 500},3,Europe/Brussels,S-${Math.floor(at / 4)},C${at % 4},kWh,${name} ${at}\n`,
    );
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

  const ended = async (id: number) => {
    let answered = 0;
    while (["received", "processing"].includes((await rig.get(`/storage/${id}`)).state)) answered += 1;
    const { state } = await rig.get(`/storage/${id}`);
    return { state, answered, ...(await rig.get(`/storage/${id}/report`, LAST)) };
  };

  test("is created, unchanged the next time, and refused as a whole for its last row", {
    timeout: LIMIT_MS,
  }, async () => {
    const first = await ended(await rig.store("md_1.csv", rowsOf(ROWS, "New")));
    expect(first).toMatchObject({ state: "stored", applied: true, rows: { created: ROWS, refused: 0 } });
    expect(first.items).toMatchObject([{ row: ROWS + 1, result: "created" }]);
    // The hub answers other requests meanwhile.
    expect(first.answered).toBeGreaterThan(10);
    const query = { IncludeItemsCount: true, "Paging.ItemsPerPage": 1 };
    const { headers } = await rig.call("GET", "/sources", { query });
    expect(headers.get("x-total-count")).toBe(String(ROWS / 4));
    const again = await ended(await rig.store("md_2.csv", rowsOf(ROWS, "New")));
    expect(again.rows).toEqual({ created: 0, changed: 0, unchanged: ROWS, refused: 0 });
    const bad = `${rowsOf(ROWS - 1, "Other")}Site 1,Castle,UTC,S-1,C9,kWh,Bad\n`;
    const refused = await ended(await rig.store("md_3.csv", bad));
    expect(refused).toMatchObject({ state: "quarantined", applied: false, rows: { changed: ROWS - 1, refused: 1 } });
    expect(refused.items).toMatchObject([
      { row: ROWS + 1, reasons: expect.arrayContaining([expect.objectContaining({ column: "site_type" })]) },
    ]);
  });
});
