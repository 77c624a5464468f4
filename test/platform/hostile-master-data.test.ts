/** Contents that are no master data, or only look like it: each is refused with a reason, and changes nothing. */
import { randomBytes } from "node:crypto";
import ExcelJS from "exceljs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type PlatformRig, startRig } from "./rig.ts";

let rig: PlatformRig;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.close());

const HEADER = "site_name;site_type;site_time_zone";
const bytes = (content: string, encoding: BufferEncoding = "utf8") => new Uint8Array(Buffer.from(content, encoding));

async function dryRun(name: string, content: string | Uint8Array<ArrayBuffer>) {
  const id = await rig.store(name, content);
  return await rig.call("POST", `/storage/${id}/dryRun`, { query: { Result: "refused" } });
}

test.each([
  ["random bytes", () => new Uint8Array(randomBytes(100_000)), /./],
  ["an archive that is none", () => bytes("PK\x03\x04 and nothing else"), /./],
  ["a workbook of the old format", () => bytes("d0cf11e0a1b11ae1", "hex"), /./],
  ["zeros", () => new Uint8Array(10_000), /./],
  ["an open quote", () => bytes(`${HEADER}\n"Open;3;UTC\n`), /quote/],
  ["another encoding", () => bytes(`${HEADER}\nLiège;3;UTC\n`, "latin1"), /encoding|UTF-8/i],
  ["a name beyond all bounds", () => bytes(`${HEADER}\n${"x".repeat(5_000)};3;UTC\n`), /longer than 4000/],
  ["a name with a control character", () => bytes(`${HEADER}\nBe\x07ll;3;UTC\n`), /not text/],
  ["names of objects as columns", () => bytes("__proto__;constructor\n1;2\n"), /no column "__proto__"/],
  ["thousands of columns", () => bytes(`${Array.from({ length: 5_000 }, (_, at) => `c${at}`).join(";")}\n1\n`), /c0/],
] as const)("%s", async (name, content, words) => {
  const { status, body } = await dryRun(`${name}.csv`, content());
  expect([status, body.applied, body.rows.created]).toEqual([200, false, 0]);
  expect(body.items[0].reasons[0].message).toMatch(words);
  expect(body.items[0].reasons.length).toBeLessThan(50);
});

test("UTF-16 of a spreadsheet program is read", async () => {
  const { body } = await dryRun("utf16.csv", bytes(`\uFEFF${HEADER}\r\nLiège;3;UTC\r\n`, "utf16le"));
  expect(body).toMatchObject({ rows: { created: 1, refused: 0 } });
});

test("a sheet of a user's own is not taken for the help of the template", async () => {
  const book = new ExcelJS.Workbook();
  book.addWorksheet("Help").addRows([["site_name"], ["Own"]]);
  const { body } = await dryRun("help.xlsx", new Uint8Array(await book.xlsx.writeBuffer()));
  expect(body.items).toMatchObject([{ sheet: "Help", row: 2, result: "refused" }]);
});

test("keys that other objects have are kept as they are", async () => {
  const header = `${HEADER};source_serial_number;source_custom.__proto__;source_custom.constructor`;
  const id = await rig.store("keys.csv", `${header}\nKeys;3;UTC;__proto__;one;two\n`);
  const { body } = await rig.call("POST", `/storage/${id}/dryRun`);
  const [source] = body.items[0].entities.filter(({ entity }: { entity: string }) => entity === "source");
  expect(source).toMatchObject({ key: "__proto__", result: "created" });
  expect(source.fields).toEqual(expect.arrayContaining(["clientData.__proto__", "clientData.constructor"]));
});
