/** Files of master data, from the upload to sites, sources and variables. */
import ExcelJS from "exceljs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { changeUser } from "#hub/store/people/users.ts";
import type { HubStore } from "#hub/store/store.ts";
import { openBrowser } from "../hub/browser.ts";
import { zip } from "./contents.ts";
import { type PlatformRig, SECOND, standardCsv, startRig } from "./rig.ts";

let rig: PlatformRig;
beforeAll(async () => {
  rig = await startRig();
  await masterDataTrigger("md_");
});
afterAll(() => rig.close());

const masterDataTrigger = (beginning: string, more: object = {}, by = {}) =>
  rig.call("POST", "/fileTrigger", {
    ...by,
    body: {
      fileType: "OpisenseMasterData",
      ingestionType: "UploadInStorage",
      fileNamePatternMatches: [{ filterType: "StartsWith", value: beginning }],
      ...more,
    },
  });

const PASSWORD = "a-long-password";
const HEADER =
  "site_name;site_type;site_time_zone;source_serial_number;energy_type;mapping_config;unit;granularity;quantity_type";
const FULL = (site: string, serial: string) =>
  `${site};Office;Europe/Brussels;${serial};Electricity;kWh;kWh;15 minutes;Integrated`;

const report = (id: number, query = {}) => rig.get(`/storage/${id}/report`, query);
const sitesNamed = async (name: string, by = {}) =>
  (await rig.get("/sites", { CustomFilter: `Name = '${name}'` }, by)) as { id: number; name: string }[];

type Cells = readonly (ExcelJS.CellValue | undefined)[];
async function book(sheets: Readonly<Record<string, readonly Cells[]>>): Promise<Uint8Array<ArrayBuffer>> {
  const made = new ExcelJS.Workbook();
  for (const [name, rows] of Object.entries(sheets)) made.addWorksheet(name).addRows(rows.map((row) => [...row]));
  return new Uint8Array(await made.xlsx.writeBuffer());
}

describe("a CSV file", () => {
  test("creates what the account does not have, and readings find it", async () => {
    const id = await rig.store("md_new.csv", `${HEADER}\n${FULL("Town hall", "TH-1")}\n${FULL("Town hall", "TH-2")}\n`);
    const file = await rig.became(id, "stored");
    expect(file["reason"]).toBe(`rows: 2 created, 0 changed, 0 unchanged (GET /storage/${id}/report)`);
    const [site] = await sitesNamed("Town hall");
    const sources = await rig.get("/sources", { SiteId: site?.id ?? 0 });
    expect(sources.map((one: { serialNumber: string }) => one.serialNumber)).toEqual(["TH-1", "TH-2"]);
    const [variable] = await rig.get("/variables", { SourceId: sources[0].id });
    expect(variable).toMatchObject({ unitId: 8, granularity: 15, granularityTimeBase: 2, quantityType: 2 });
    expect(variable).toMatchObject({ mappingConfig: "kWh", name: "kWh", variableTypeId: 131 });
    await rig.trigger("std_", "standard");
    await rig.became(await rig.store("std_1.csv", standardCsv("TH-1", "2026-03-01T00:00:00Z", 5)), "stored");
    expect(Object.values(await rig.values(variable.id))).toEqual([5]);
  });

  test("names a new variable of which nobody knows whether its values add up", async () => {
    const row = FULL("Silent", "SI-1").replace(/Integrated$/, "");
    const id = await rig.store("md_silent.csv", `${HEADER}\n${row}\n${FULL("Silent", "SI-2")}\n`);
    await rig.became(id, "stored");
    const { items } = (await report(id)) as { items: { notes: string[] }[] };
    expect(items.map(({ notes }) => notes)).toEqual([[expect.stringContaining("has no quantityType")], []]);
  });

  test("reports each row with what became of it", async () => {
    const first = await rig.store("md_r1.csv", `${HEADER}\n${FULL("Reported", "R-1")}\n`);
    await rig.became(first, "stored");
    const [site] = await sitesNamed("Reported");
    expect(await report(first)).toMatchObject({
      fileId: first,
      fileName: "md_r1.csv",
      dryRun: false,
      applied: true,
      rows: { created: 1, changed: 0, unchanged: 0, refused: 0 },
      items: [
        {
          row: 2,
          result: "created",
          entities: [
            { entity: "site", key: "Reported", id: site?.id, result: "created" },
            { entity: "source", key: "R-1", result: "created" },
            { entity: "variable", key: "kWh", result: "created" },
          ],
        },
      ],
    });
    const next = `${HEADER};site_city;source_tags\n${FULL("Reported", "R-1")};Liège;roof|new\n`;
    const second = await rig.store("md_r2.csv", next);
    await rig.became(second, "stored");
    const { items } = await report(second);
    expect(items[0].entities).toMatchObject([
      { entity: "site", result: "changed", fields: ["city"] },
      { entity: "source", result: "changed", fields: ["tags"] },
      { entity: "variable", result: "unchanged", fields: [] },
    ]);
    const third = await rig.store("md_r3.csv", next);
    await rig.became(third, "stored");
    expect(await report(third)).toMatchObject({ rows: { created: 0, changed: 0, unchanged: 1, refused: 0 } });
    expect(await rig.get(`/sites/${site?.id}`)).toMatchObject({ city: "Liège", name: "Reported" });
  });

  test.each([
    ["commas", (text: string) => text.replaceAll(";", ",")],
    ["a byte order mark", (text: string) => `\uFEFF${text}`],
    ["tabs", (text: string) => text.replaceAll(";", "\t")],
    ["a line that declares the delimiter", (text: string) => `sep=|\r\n${text.replaceAll(";", "|")}`],
  ])("may have %s", async (what, change) => {
    const id = await rig.store(`md_${what}.csv`, change(`${HEADER}\r\n${FULL(what, what)}\r\n`));
    await rig.became(id, "stored");
    expect(await sitesNamed(what)).toHaveLength(1);
  });

  test("moves a source, and renames a site by its id", async () => {
    await rig.became(
      await rig.store("md_m1.csv", `${HEADER}\n${FULL("Old", "M-1")}\n${FULL("New", "M-2")}\n`),
      "stored",
    );
    const [old] = await sitesNamed("Old");
    const [other] = await sitesNamed("New");
    await rig.became(await rig.store("md_m2.csv", "site_name,source_serial_number\nNew,M-1\n"), "stored");
    const [moved] = await rig.get("/sources", { SerialNumber: "M-1" });
    expect(moved.siteId).toBe(other?.id);
    await rig.became(await rig.store("md_m3.csv", `site_id,site_name\n${old?.id},Renamed\n`), "stored");
    expect(await rig.get(`/sites/${old?.id}`)).toMatchObject({ name: "Renamed", typeId: 3 });
  });
});

describe("a refused file", () => {
  const BAD = [
    [
      "an unknown type",
      `${HEADER}\nBad;Castle;Europe/Brussels;B-1;Electricity;kWh;kWh;1 hour;Integrated`,
      "site_type",
      /no id and no name of GET \/sitetypes/,
    ],
    ["an unknown unit", `${HEADER}\nBad;3;Europe/Brussels;B-1;1;kWh;furlongs;1 hour;2`, "unit", /GET \/units/],
    ["an unknown zone", `${HEADER}\nBad;3;Europe/Atlantis;B-1;1;kWh;kWh;1 hour;2`, "site_time_zone", /not a time zone/],
    ["a spacing", `${HEADER}\nBad;3;Europe/Brussels;B-1;1;kWh;kWh;often;2`, "granularity", /15 minutes/],
    ["missing fields", "site_name,site_city\nBad,Liège", null, /needs its typeId/],
    ["a source without a site", "source_serial_number,mapping_config,unit\nB-9,kWh,kWh", null, /needs its site/],
    ["a variable without a source", "mapping_config,unit\nkWh,kWh", null, /names no source of the variable/],
    ["a wrong header", "when,meter,energy\n1,2,3", "when", /there is no column "when"/],
    ["a column twice", "site_name,Site Name\na,b", "Site Name", /names site_name twice/],
    ["too few cells", `${HEADER}\nBad;3;Europe/Brussels`, null, /3 cells of 9: is the file cut off here/],
    ["no rows", `${HEADER}\n`, null, /has a header and no rows/],
    ["an id of nobody", "site_id,site_name\n987654,Bad", "site_id", /the account has none with this id/],
  ] as const;

  test.each(BAD)("with %s names the row and the column", async (what, content, column, words) => {
    const id = await rig.store(`bad ${what}.csv`, content);
    const told = await rig.call("POST", `/storage/${id}/dryRun`, { query: { Result: "refused" } });
    expect([told.status, told.body]).toMatchObject([200, { applied: false, rows: { refused: 1 } }]);
    expect(told.body.items[0].reasons).toEqual(
      expect.arrayContaining([{ column, message: expect.stringMatching(words) }]),
    );
  });

  test("has its good rows refused with it", async () => {
    const content = `${HEADER}\n${FULL("Half", "H-1")}\n${FULL("Half", "H-2").replace("Office", "Castle")}\n`;
    const id = await rig.store("md_half.csv", content);
    const { reason } = await rig.became(id, "quarantined");
    expect(reason).toMatch(
      /^HG-HUB-008: the cell is "Castle", .*; 1 of 2 rows are refused, so nothing .*row 3, column site_type/,
    );
    expect(await report(id)).toMatchObject({ applied: false, rows: { created: 1, refused: 1 } });
    expect(await sitesNamed("Half")).toEqual([]);
  });

  test("repeats a key, or contradicts itself", async () => {
    const rows = [FULL("Twice", "T-1"), FULL("Twice", "T-1"), FULL("Twice", "T-2").replace("Office", "School")];
    const id = await rig.store("md_twice.csv", `${HEADER}\n${rows.join("\n")}\n`);
    await rig.became(id, "quarantined");
    const { items } = await report(id);
    expect(items.map((one: { result: string }) => one.result)).toEqual(["created", "refused", "refused"]);
    expect(items[1].reasons).toEqual([{ column: null, message: expect.stringMatching(/^it repeats row 2: /) }]);
    expect(items[2].reasons).toEqual([
      { column: "site_type", message: expect.stringMatching(/has "5" here, and "3" in row 2/) },
    ]);
  });

  test("names one source in two ways", async () => {
    const content = "site_name,site_type,site_time_zone,serial_number,ean\nWays,3,UTC,W-1,541\nWays,,,,541\n";
    const id = await rig.store("md_ways.csv", content);
    expect((await rig.became(id, "quarantined"))["reason"]).toMatch(/row 2 gives it to the source W-1/);
  });

  test("does not see another account", async () => {
    await masterDataTrigger("md_", {}, SECOND);
    const theirs = await rig.post("/sites", { name: "Theirs", typeId: 3, timeZoneId: "UTC" }, SECOND);
    const id = await rig.store("md_theirs.csv", `site_id,site_name\n${theirs},Mine\n`);
    await rig.became(id, "quarantined");
    expect((await report(id)).items[0].reasons[0]).toMatchObject({ column: "site_id" });
    expect(await rig.get(`/sites/${theirs}`, undefined, SECOND)).toMatchObject({ name: "Theirs" });
    const { status } = await rig.call("GET", `/storage/${id}/report`, SECOND);
    expect(status).toBe(404);
  });

  test("was sent by someone who may not change structure", async () => {
    const id = await rig.store("md_pusher.csv", `${HEADER}\n${FULL("Pushed", "P-1")}\n`, { as: "pusher" });
    expect((await rig.became(id, "quarantined"))["reason"]).toMatch(/may not change structure: .* role Manager/);
    expect(await sitesNamed("Pushed")).toEqual([]);
  });
});

describe("a workbook", () => {
  const SITES = ["Site name", "Site type", "Site time zone"];
  test("has a sheet for each kind of entity", async () => {
    const content = await book({
      Sites: [SITES, ["Booked", "School", "Romance Standard Time"]],
      Sources: [
        ["site_name", "source_serial_number", "source_name"],
        ["Booked", 4711, "Main meter"],
      ],
      Variables: [
        ["source_serial_number", "mapping_config", "unit", "is_versioned"],
        [4711, "kWh", "kWh", true],
      ],
      Empty: [],
    });
    const id = await rig.store("md_book.xlsx", content);
    await rig.became(id, "stored");
    const { items, rows } = await report(id);
    expect(rows).toMatchObject({ created: 3, refused: 0 });
    expect(items.map(({ sheet, row }: { sheet: string; row: number }) => [sheet, row])).toEqual([
      ["Sites", 2],
      ["Sources", 2],
      ["Variables", 2],
    ]);
    const [source] = await rig.get("/sources", { SerialNumber: "4711" });
    expect(source.name).toBe("Main meter");
    expect(await rig.get("/variables", { SourceId: source.id })).toMatchObject([{ isVersioned: true }]);
  });

  test("has results of formulas, and is refused where there is none", async () => {
    const good = await book({ Sites: [SITES, [{ formula: 'A1&"!"', result: "Formula" }, 3, "UTC"]] });
    await rig.became(await rig.store("md_formula.xlsx", good), "stored");
    expect(await sitesNamed("Formula")).toHaveLength(1);
    const bad = await book({ Sites: [SITES, [{ formula: "1/0", result: { error: "#DIV/0!" } as never }, 3, "UTC"]] });
    const id = await rig.store("md_error.xlsx", bad);
    expect((await rig.became(id, "quarantined"))["reason"]).toMatch(/formula without a result/);
    expect(await report(id)).toMatchObject({ items: [{ sheet: "Sites", row: 2, reasons: [{ column: "Site name" }] }] });
  });

  test("is refused where the spreadsheet may have changed a number or made a date of it", async () => {
    const rows = [
      ["site_name", "serial_number"],
      ["x", 541448860019734500],
      [new Date("2026-03-01"), "y"],
    ];
    const id = await rig.store("md_digits.xlsx", await book({ Sheet1: rows as Cells[] }));
    await rig.became(id, "quarantined");
    const { items } = await report(id);
    const messages = items.flatMap((one: { reasons: { message: string }[] }) =>
      one.reasons.map(({ message }) => message),
    );
    expect(messages.join("\n")).toMatch(/digits the spreadsheet may have changed[\s\S]*is the date/);
  });
});

describe("a dry run", () => {
  test("by the metadata of the trigger", async () => {
    await masterDataTrigger("dry_", { metadata: { dryRun: true } });
    const id = await rig.store("dry_1.csv", `${HEADER}\n${FULL("Dry", "D-1")}\n`);
    expect((await rig.became(id, "stored"))["reason"]).toMatch(/^dry run, nothing was changed; rows: 1 created/);
    expect(await report(id)).toMatchObject({ dryRun: true, applied: false, rows: { created: 1 } });
    expect(await sitesNamed("Dry")).toEqual([]);
  });

  test("of any stored file", async () => {
    const id = await rig.store("unclaimed.csv", `${HEADER}\n${FULL("Dry", "D-1")}\n${FULL("", "D-2")}\n`);
    const { status, body } = await rig.call("POST", `/storage/${id}/dryRun`, { query: { Result: "refused" } });
    expect([status, body]).toMatchObject([200, { dryRun: true, applied: false, rows: { created: 1, refused: 1 } }]);
    expect(body.items).toMatchObject([{ row: 3, result: "refused" }]);
    expect(await sitesNamed("Dry")).toEqual([]);
    expect((await rig.call("GET", `/storage/${id}/report`)).status).toBe(404);
    expect((await rig.call("POST", `/storage/${id}/dryRun`, { as: "pusher" })).status).toBe(403);
  });

  test("of one account waits for at most one of the many of another account", async () => {
    const rows = Array.from({ length: 5_000 }, (_, nth) => FULL("Many", `M-${nth}`));
    const many = await rig.store("many.csv", `${HEADER}\n${rows.join("\n")}\n`);
    const one = await rig.store("one.csv", `${HEADER}\n${FULL("One", "O-1")}\n`, SECOND);
    const ended: string[] = [];
    const run = async (name: string, id: number, by = {}) => {
      expect((await rig.call("POST", `/storage/${id}/dryRun`, by)).status).toBe(200);
      ended.push(name);
    };
    // Both threads have started then.
    await Promise.all([run("A", many), run("B", one, SECOND)]);
    ended.length = 0;
    const queued = Array.from({ length: 10 }, () => run("A", many));
    await Promise.race(queued);
    const before = ended.length;
    await run("B", one, SECOND);
    expect(ended.indexOf("B") - before).toBeLessThanOrEqual(2);
    await Promise.all(queued);
  });
});

test("the report of thousands of rows is sent in parts, and pages lead over these", async () => {
  const rows = Array.from({ length: 2_300 }, (_, nth) => FULL("Long", nth % 1_150 === 1_000 ? "" : `L-${nth}`));
  const id = await rig.store("md_long.csv", `${HEADER}\n${rows.join("\n")}\n`);
  await rig.became(id, "quarantined");
  const asked = async (method: string, path: string, query = {}) => {
    const answer = await rig.call(method, `/storage/${id}/${path}`, { query: { IncludeItemsCount: true, ...query } });
    return { ...answer, count: Number(answer.headers.get("x-total-count")) };
  };
  const dry = await asked("POST", "dryRun");
  expect(dry.count).toBe(2_300);
  expect(dry.headers.get("content-length")).toBeNull();
  const all: { row: number; result: string }[] = dry.body.items;
  expect(all.map(({ row }) => row)).toEqual(rows.map((_, nth) => nth + 2));
  const refused = all.filter(({ result }) => result === "refused");
  expect(refused.map(({ row }) => row)).toEqual([1_002, 2_152]);
  for (const [query, expected] of [
    [{ "Paging.ItemsPerPage": 30, "Paging.PageNumber": 33 }, all.slice(990, 1_020)],
    [{ "Paging.ItemsPerPage": 500, "Paging.PageNumber": 4 }, all.slice(2_000)],
    [{ "Paging.ItemsPerPage": 1, "Paging.PageNumber": 9_000 }, []],
    [{ Result: "refused" }, refused],
    [{ Result: "refused", "Paging.ItemsPerPage": 1, "Paging.PageNumber": 1 }, refused.slice(1)],
  ] as const) {
    const page = await asked("POST", "dryRun", query);
    expect(page.body.items, JSON.stringify(query)).toEqual(expected);
    expect(page.count).toBe("Result" in query ? 2 : 2_300);
  }
  const kept = await asked("GET", "report", { "Paging.ItemsPerPage": 1_500, "Paging.PageNumber": 1 });
  expect(kept.body.items).toEqual(all.slice(1_500));
  expect((await asked("GET", "report")).headers.get("content-length")).toBeNull();
});

test("a file has the rights of who sent it, and not of a later user of that name", async () => {
  const sent = await rig.store("md_renamed.csv", `${HEADER}\n${FULL("Later", "LN-1")}\n`, { as: "pusher" });
  const refused = /pusher sent it and may not change structure/;
  expect((await rig.became(sent, "quarantined"))["reason"]).toMatch(refused);
  const { people } = rig.platform().inside.store as HubStore;
  const { id = 0 } = (await people.userByName("pusher")) ?? {};
  expect(await people.change(() => changeUser(id, { username: "former" }))).toBeNull();
  await rig.ok("POST", "/account/users", { body: { username: "pusher", password: PASSWORD, roles: ["Manager"] } });
  await rig.ok("POST", `/storage/${sent}/process`);
  expect((await rig.became(sent, "quarantined"))["reason"]).toMatch(refused);
  expect(await sitesNamed("Later")).toEqual([]);
});

test("a file in a ZIP has a report of its own", async () => {
  const files = {
    "md_a.csv": `${HEADER}\n${FULL("Zip A", "ZA")}\n`,
    "md_b.csv": `${HEADER}\n${FULL("Zip B", "ZB")}\n`,
  };
  const id = await rig.store("several.zip", await zip(files));
  await rig.became(id, "stored");
  const { status, body } = await rig.call("GET", `/storage/${id}/report`);
  expect([status, body.detail]).toEqual([400, expect.stringContaining("md_a.csv, md_b.csv")]);
  expect(await report(id, { File: "md_b.csv" })).toMatchObject({ fileName: "md_b.csv", rows: { created: 1 } });
});

test("users are created and changed by a manager, and refused where the manager could not do it", async () => {
  const good = await rig.store("md_users1.csv", "user_name,user_id,user_roles\nmanager,,Manager\nmd-user,77,User\n");
  await rig.became(good, "stored");
  const query = { "BusinessKeys.Name": "BusinessId", "BusinessKeys.Values": "77" };
  const [user] = await rig.get("/user/users", query);
  expect(user).toMatchObject({ username: "md-user", state: "Invited" });
  // The note of its row says that a link sets the password.
  const { link } = await rig.get("/user/updatePasswordLink", { UserId: user.id });
  const browser = openBrowser({ url: () => rig.platform().url });
  const { pathname, search, searchParams } = new URL(link);
  await browser.open(pathname + search);
  const words = "a first password of the own";
  await browser.send(pathname, { token: searchParams.get("token") ?? "", password: words, again: words });
  expect(await rig.get("/user/users", query)).toMatchObject([{ state: "Active" }]);
  const id = await rig.store("md_users2.csv", "user_name,user_roles\nnobody,Admin\n");
  expect((await rig.became(id, "quarantined"))["reason"]).toMatch(/cannot give the roles Admin/);
});

test("a trigger for master data names no mapper, and its settings are checked", async () => {
  const mapping = await masterDataTrigger("x_", { mapping: "standard" });
  expect([mapping.status, mapping.body.detail]).toEqual([400, expect.stringContaining("mapping")]);
  const settings = await masterDataTrigger("x_", { metadata: { delimeter: ";" } });
  expect([settings.status, settings.body.detail]).toEqual([400, expect.stringContaining("delimeter")]);
  const id = (await masterDataTrigger("x_")).body;
  expect(await rig.get(`/fileTrigger/${id}`)).toMatchObject({ mapping: null, mappingKnown: true });
});
