import { readFile } from "node:fs/promises";
import { join } from "node:path";
import exceljs from "exceljs";
import { describe, expect, it } from "vitest";
import { loadMapper } from "#mapping/load-mapper.ts";
import { mapFile } from "#mapping/map-file.ts";
import { locateMapper } from "#mapping/mapper-files.ts";
import { placeOf } from "#mapping/readers/row-place.ts";
import { createMemorySink } from "#mapping/segment/memory-sinks.ts";
import { BUNDLED_FOLDER } from "#mapping/workers/bundled.ts";
import { collect, inputFile, openFile, WIDE, zipOf } from "../mapping/kit.ts";

async function workbook(fill: (book: exceljs.Workbook) => void): Promise<Uint8Array> {
  const book = new exceljs.Workbook();
  fill(book);
  return new Uint8Array(await book.xlsx.writeBuffer());
}

const QUARTER = new Date("2026-03-29T02:15:00Z");

describe("the workbook reader", () => {
  it("names the nearest column where one is read that the header lacks", async () => {
    const bytes = await workbook((book) =>
      book.addWorksheet("Data").addRows([
        ["When", "Energy"],
        [1, 2],
      ]),
    );
    const { file } = await openFile(bytes, "book.xlsx");
    const [row] = await collect(file.xlsx({ columns: true }));
    expect(() => row?.["Energie"]).toThrow(
      expect.objectContaining({ row: 1, sheet: "Data", hint: expect.stringContaining('Is "Energy" meant?') }),
    );
  });

  it.each([false, true])("reads cells of every kind, dates as wall time (1904: %s)", async (date1904) => {
    const bytes = await workbook((book) => {
      book.properties.date1904 = date1904;
      const sheet = book.addWorksheet("Data");
      sheet.addRow(["when", "value", "text", "flag", "formula"]);
      sheet.addRow([QUARTER, 1.5, { richText: [{ text: "a" }, { text: "b" }] }, true, { formula: "B2*2", result: 3 }]);
      sheet.getCell("A2").numFmt = "yyyy-mm-dd hh:mm";
    });
    const { file } = await openFile(bytes, "book.xlsx");
    const [row] = await collect(file.xlsx({ columns: true }));
    expect(row).toEqual({
      when: { kind: "date", local: "2026-03-29T02:15:00" },
      value: 1.5,
      text: "ab",
      flag: true,
      formula: 3,
    });
  });

  it("shows times as the sheet does: to the second, without the milliseconds of sums", async () => {
    const bytes = await workbook((book) => {
      const sheet = book.addWorksheet("Data");
      sheet.addRow([new Date(QUARTER.getTime() + 21), new Date(QUARTER.getTime() + 21)]);
      sheet.getCell("A1").numFmt = "dd/mm/yyyy hh:mm:ss";
      sheet.getCell("B1").numFmt = "hh:mm:ss.000";
    });
    const { file } = await openFile(bytes, "book.xlsx");
    expect((await collect(file.xlsx()))[0]).toEqual([
      { kind: "date", local: "2026-03-29T02:15:00" },
      { kind: "date", local: "2026-03-29T02:15:00.021" },
    ]);
  });

  it("finds sheets by name and number, and the header, and knows the rows", async () => {
    const bytes = await workbook((book) => {
      book.addWorksheet("Cover").addRow(["nothing here"]);
      const sheet = book.addWorksheet("März");
      sheet.getCell("A1").value = "Report";
      sheet.getRow(3).values = ["id", null, "v"];
      sheet.getRow(6).values = [1, null, 2];
    });
    for (const sheet of ["März", 2]) {
      const { file } = await openFile(bytes, "book.xlsx");
      const [row] = await collect(file.xlsx({ columns: true, sheet, headerRow: 3 }));
      expect(row).toEqual({ id: 1, v: 2 });
      expect(placeOf(row ?? {})).toEqual({ row: 6, sheet: "März" });
    }
    const { file } = await openFile(bytes, "book.xlsx");
    await expect(collect(file.xlsx({ sheet: "April" }))).rejects.toMatchObject({
      hint: 'Its sheets are: "Cover", "März".',
    });
  });

  it("leaves hidden sheets out of the count, and reads them by name", async () => {
    const bytes = await workbook((book) => {
      book.addWorksheet("Lists", { state: "veryHidden" }).addRow(["secret"]);
      book.addWorksheet("Data").addRow(["seen"]);
      book.addWorksheet("Notes", { state: "hidden" }).addRow(["hidden"]);
    });
    const { file } = await openFile(bytes, "book.xlsx");
    expect(await collect(file.xlsx())).toEqual([["seen"]]);
    expect(await collect(file.xlsx({ sheet: "Lists" }))).toEqual([["secret"]]);
    expect(await file.sheets()).toEqual(["Data"]);
    expect(await file.sheets({ hidden: true })).toEqual(["Lists", "Data", "Notes"]);
    await expect(collect(file.xlsx({ sheet: 2 }))).rejects.toMatchObject({
      hint: 'Its sheets are: "Data". Hidden sheets, which are read only by name, are: "Lists", "Notes".',
    });
  });

  it("joins a header of several rows with merged cells", async () => {
    const bytes = await workbook((book) => {
      const sheet = book.addWorksheet("Data");
      sheet.getRow(2).values = ["Day", "Meter A", null, "Meter B"];
      sheet.mergeCells("B2:C2");
      sheet.mergeCells("A2:A3");
      sheet.getRow(3).values = [null, "kWh", "kW", "kWh"];
      sheet.getRow(4).values = ["x", 1, 2, 3];
    });
    const { file } = await openFile(bytes, "book.xlsx");
    const rows = await collect(file.xlsx({ columns: true, headerRow: 2, headerRows: 2 }));
    expect(rows.map((row) => ({ ...row }))).toEqual([
      { Day: "x", "Meter A kWh": 1, "Meter A kW": 2, "Meter B kWh": 3 },
    ]);
  });

  it("refuses names that cannot be distinguished, and cells in columns without a name", async () => {
    const sheetOf = (...rows: unknown[][]) =>
      workbook((book) => {
        book.addWorksheet("Data").addRows(rows);
      });
    const twice = await openFile(await sheetOf(["v", "v"], [1, 2]), "book.xlsx");
    await expect(collect(twice.file.xlsx({ columns: true }))).rejects.toMatchObject({
      message: 'the header names columns 1 and 2 both "v"',
      sheet: "Data",
      row: 1,
    });
    expect(await collect(twice.file.xlsx({ columns: true, duplicates: "number" }))).toEqual([{ v: 1, "v (2)": 2 }]);
    const bare = await openFile(await sheetOf(["v"], [1], [2, "note"]), "book.xlsx");
    await expect(collect(bare.file.xlsx({ columns: true }))).rejects.toMatchObject({
      row: 3,
      column: "column 2",
      text: "note",
    });
    expect(await collect(bare.file.xlsx({ columns: true, unnamed: "skip" }))).toEqual([{ v: 1 }, { v: 2 }]);
  });

  it.each([
    ["text", "date,value\n", "it is not an archive"],
    ["nothing", "", "it is empty"],
    ["a cut-off archive", "PK\u0003\u0004\u0014\u0000", "its end is missing"],
    ["an older workbook", Buffer.from("d0cf11e0a1b11ae1", "hex"), "it is an old binary workbook or document"],
    ["an archive of something else", zipOf({ "readme.txt": "x" }), "an archive, but not a workbook"],
  ])("refuses a file that is not a workbook: %s", async (_, content, message) => {
    const { file } = await openFile(content, "book.xlsx");
    for (const read of [() => collect(file.xlsx()), () => file.sheets()])
      await expect(read()).rejects.toMatchObject({
        unreadable: true,
        message: expect.stringContaining(message),
        hint: expect.any(String),
      });
  });

  it("detects a byte of a sheet that changed on the way", async () => {
    const bytes = smallBook("<worksheet><sheetData><row><c><v>1234</v></c></row></sheetData></worksheet>");
    bytes.write("5", bytes.indexOf("1234"));
    const { file } = await openFile(bytes, "book.xlsx");
    await expect(collect(file.xlsx())).rejects.toThrow('the checksum of "xl/worksheets/sheet7.xml" does not agree');
  });
});

async function mapStandard(bytes: Uint8Array, settings: Record<string, unknown>, name = "data.xlsx") {
  const sink = createMemorySink();
  const modulePath = (await locateMapper([BUNDLED_FOLDER], "standard")) ?? "";
  const result = await mapFile({
    inputPath: await inputFile(bytes, "data.xlsx"),
    fileName: name,
    filePath: "data.xlsx",
    mapper: await loadMapper(modulePath, "0".repeat(64)),
    settings,
    rows: "strict",
    limits: WIDE,
    sink,
    signal: new AbortController().signal,
  });
  const elements = sink.bodies.flatMap((body) => JSON.parse(body.toString("utf8")));
  return { result, elements };
}

/** A workbook of one sheet, with parts named by absolute paths as some libraries do. */
function smallBook(sheet: string | null, parts: Readonly<Record<string, string>> = {}): Buffer {
  return zipOf({
    ...parts,
    ...(sheet === null ? {} : { "xl/worksheets/sheet7.xml": sheet }),
    "xl/workbook.xml": `<workbook xmlns:r="r"><sheets><sheet name="Übersicht" sheetId="3" r:id="R1"/></sheets></workbook>`,
    "xl/_rels/workbook.xml.rels": `<Relationships><Relationship Id="R1" Type="x/worksheet" Target="/xl/worksheets/sheet7.xml"/></Relationships>`,
  });
}

describe("a workbook written by other programs", () => {
  const DATA = `<sheetData><row r="2"><c r="B2"><v>1.5</v></c></row></sheetData>`;

  const cell = (cells: string) => `<worksheet><sheetData><row>${cells}</row></sheetData></worksheet>`;

  it.each([
    ["a number", "<c><v>-1.5E2</v></c>", -150],
    ["blanks in place of a number", "<c><v> </v></c>", null],
    [
      "a rich text in the cell",
      `<c t="inlineStr"><is><r><t>a</t></r><r><t xml:space="preserve"> b</t></r></is></c>`,
      "a b",
    ],
    ["a plain text in the cell", `<c t="inlineStr"><is><t>1 &lt; 2</t></is></c>`, "1 < 2"],
    ["a text with how it is pronounced", `<c t="inlineStr"><is><t>東京</t><rPh><t>x</t></rPh></is></c>`, "東京"],
    ["a text between line ends", `<c t="inlineStr">\n<is>\n<t>a</t>\n</is>\n</c>`, "a"],
    ["CDATA", `<c t="inlineStr"><is><t><![CDATA[a&b]]></t></is></c>`, "a&b"],
    ["characters that XML cannot hold", `<c t="str"><v>a_x000D_b_x005F_x000A_</v></c>`, "a\rb_x000A_"],
    ["a text that looks like an entity", `<c t="str"><v>&amp;lt;</v></c>`, "&lt;"],
    ["true", `<c t="b"><v>1</v></c>`, true],
    ["true of a formula", `<c t="b"><f>1=1</f><v>1</v></c>`, true],
    ["an error", `<c t="e"><v>#N/A</v></c>`, "#N/A"],
    ["an error of a formula", `<c t="e"><f>1/0</f><v>#DIV/0!</v></c>`, "#DIV/0!"],
    ["a formula that was never calculated", `<c><f>A2*2</f></c>`, "#NOT CALCULATED"],
    ["a formula that gives no text", `<c t="str"><f>""</f><v></v></c>`, null],
    ["a date as text", `<c t="d"><v>2026-03-29T02:15:00</v></c>`, { kind: "date", local: "2026-03-29T02:15:00" }],
    ["a day as text", `<c t="d"><v>2026-03-29</v></c>`, { kind: "date", local: "2026-03-29T00:00:00" }],
    ["a date with a zone, which stays text", `<c t="d"><v>2026-03-29T02:15:00Z</v></c>`, "2026-03-29T02:15:00Z"],
    ["what is not a number", "<c><v>1,5</v></c>", "1,5"],
  ])("reads %s", async (_, written, value) => {
    const { file } = await openFile(smallBook(cell(`<c><v>1</v></c>${written}<c><v>2</v></c>`)), "book.xlsx");
    expect(await collect(file.xlsx())).toEqual([[1, value, 2]]);
  });

  it("counts rows and cells without a reference, and reads names with a prefix", async () => {
    const sheet =
      `<x:worksheet xmlns:x="x"><x:sheetData><x:row><x:c><x:v>1</x:v></x:c></x:row><x:row ` +
      `r="4"><x:c ` +
      `r="C4"><x:v>2</x:v></x:c><x:c><x:v>3</x:v></x:c></x:row><x:row><x:c><x:v>4</x:v></x:c></x:row></x:sheetData></x:worksheet>`;
    const { file } = await openFile(smallBook(sheet), "book.xlsx");
    const rows = await collect(file.xlsx());
    expect(rows).toEqual([[1], [null, null, 2, 3], [4]]);
    expect(rows.map((row) => placeOf(row)?.row)).toEqual([1, 4, 5]);
  });

  it("is read when all of its names have prefixes, and not misled by extensions", async () => {
    const main = 'xmlns:x="http://schemas.openxmlformats.org/spreadsheetml/2006/main"';
    const bytes = zipOf({
      "xl/workbook.xml": `<x:workbook ${main}><x:workbookPr/><x:sheets><x:sheet name="Data" sheetId="1" q:id="R1" xmlns:q="q"/></x:sheets><x:extLst><x:ext><y:workbookPr date1904="1"/></x:ext></x:extLst></x:workbook>`,
      "xl/_rels/workbook.xml.rels": `<Relationships><Relationship Id="R1" Type="x/worksheet" Target="sheet.xml"/></Relationships>`,
      "xl/styles.xml": `<x:styleSheet ${main}><x:numFmts><x:numFmt numFmtId="164" formatCode="yyyy&quot;.&quot;mm"/></x:numFmts><x:cellXfs><x:xf numFmtId="0"/><x:xf numFmtId="164"/><x:xf numFmtId="22"/></x:cellXfs></x:styleSheet>`,
      "xl/sheet.xml": `<x:worksheet ${main}><x:sheetData><x:row><x:c s="1"><x:v>46000</x:v></x:c><x:c s="2"><x:v>46000.5</x:v></x:c><x:c s="0"><x:v>46000</x:v></x:c></x:row></x:sheetData></x:worksheet>`,
    });
    const { file } = await openFile(bytes, "book.xlsx");
    expect(await collect(file.xlsx())).toEqual([
      [{ kind: "date", local: "2025-12-09T00:00:00" }, { kind: "date", local: "2025-12-09T12:00:00" }, 46_000],
    ]);
  });

  it("has the name of a sheet and the count of days as written", async () => {
    const bytes = zipOf({
      "xl/workbook.xml": `<workbook><workbookPr date1904="true"/><sheets><sheet name="&amp;lt; 5 kW" r:id="R1"/></sheets></workbook>`,
      "xl/_rels/workbook.xml.rels": `<Relationships><Relationship Id="R1" Type="x/worksheet" Target="sheet.xml"/></Relationships>`,
      "xl/styles.xml": `<styleSheet><cellStyleXfs><xf numFmtId="0"/></cellStyleXfs><cellXfs><xf numFmtId="14"/></cellXfs><dxfs><dxf><numFmt numFmtId="14" formatCode="0"/></dxf></dxfs></styleSheet>`,
      "xl/sheet.xml": cell(`<c s="0"><v>44538</v></c>`),
    });
    const { file } = await openFile(bytes, "book.xlsx");
    expect(await file.sheets()).toEqual(["&lt; 5 kW"]);
    expect(await collect(file.xlsx({ sheet: "&lt; 5 kW" }))).toEqual([
      [{ kind: "date", local: "2025-12-09T00:00:00" }],
    ]);
  });

  it("has rich texts as a whole, without their pronunciation", async () => {
    const strings =
      `<sst><si><r><t>Zäh</t></r><r><t>ler</t></r></si><si><t>東京</t><rPh sb="0" ` +
      `eb="2"><t>トウキョウ</t></rPh></si>\n<si><t/></si></sst>`;
    const sheet = cell(`<c t="s"><v>0</v></c><c t="s"><v>1</v></c><c t="s"><v>2</v></c><c><v>1</v></c>`);
    const { file } = await openFile(smallBook(sheet, { "xl/sharedStrings.xml": strings }), "book.xlsx");
    expect(await collect(file.xlsx())).toEqual([["Zähler", "東京", null, 1]]);
  });

  it("is read whatever the order and the names of its parts", async () => {
    const { file } = await openFile(smallBook(`<worksheet>${DATA}</worksheet>`), "book.xlsx");
    const rows = await collect(file.xlsx({ sheet: "Übersicht" }));
    expect(rows).toEqual([[null, 1.5]]);
    expect(placeOf(rows[0] ?? [])).toEqual({ row: 2, sheet: "Übersicht" });
  });

  it.each([
    ["its sheet is missing", null, "missing in the workbook"],
    ["its sheet is a chart", "<chartsheet/>", 'the sheet "Übersicht" is a chart'],
    ["its sheet is something else", "<html/>", "is not a worksheet but <html>"],
    ["its sheet is empty", "", "root element"],
    ["its sheet is not XML", `<worksheet>${DATA}`, "unclosed tag"],
    ["a cell names a text that there is not", cell(`<c t="s"><v>7</v></c>`), "names text 7 of 0"],
    ["a cell is beyond the last column", cell(`<c r="ZZZZ1"><v>7</v></c>`), "has a cell at ZZZZ1"],
    ["a cell has no place", cell(`<c r="12"><v>7</v></c>`), "has a cell at 12"],
    ["a row has no number", "<worksheet><sheetData><row r='x'/></sheetData></worksheet>", "the number x"],
    ["a part has a DOCTYPE", `<!DOCTYPE a><worksheet>${DATA}</worksheet>`, "DOCTYPE"],
  ])("is refused, and does not count as empty, when %s", async (_, sheet, message) => {
    const { file } = await openFile(smallBook(sheet), "book.xlsx");
    await expect(collect(file.xlsx())).rejects.toMatchObject({
      unreadable: true,
      message: expect.stringContaining(message),
    });
  });

  it("is refused when it was cut off", async () => {
    const bytes = await workbook((book) => book.addWorksheet("Data").addRow([1]));
    const { file } = await openFile(bytes.subarray(0, bytes.length - 100), "book.xlsx");
    await expect(collect(file.xlsx())).rejects.toMatchObject({ unreadable: true });
  });

  it("keeps every row and every character through many chunks", async () => {
    const bytes = await workbook((book) => {
      const sheet = book.addWorksheet("Data");
      for (let row = 0; row < 3000; row += 1) sheet.addRow([`Zähler-ÄÖÜß-漢字-${row}`, row]);
    });
    const { file } = await openFile(bytes, "book.xlsx");
    expect(await collect(file.xlsx())).toEqual(
      Array.from({ length: 3000 }, (_, row) => [`Zähler-ÄÖÜß-漢字-${row}`, row]),
    );
  });
});

describe("the standard mapper on a workbook", () => {
  const standard = (when: unknown, value: unknown = 1.5) =>
    workbook((book) => {
      const sheet = book.addWorksheet("Data");
      sheet.addRow(["Date", "VALUE", "Source_Serial_Number", "mapping_config", "version", "tags"]);
      sheet.addRow([when, value, 4711, "kWh", "v1", "quality:good|by:hand"]);
    });

  it("reads date cells in the zone of the settings, and text cells as in a CSV file", async () => {
    for (const when of [new Date("2026-07-01T02:00:00Z"), "2026-07-01T02:00:00", "2026-07-01T00:00:00Z"]) {
      const { elements, result } = await mapStandard(await standard(when), { timeZone: "Europe/Brussels" });
      expect(result).toMatchObject({ status: "mapped", rejected: [] });
      expect(elements).toEqual([
        {
          sourceSerialNumber: "4711",
          mappingConfig: "kWh",
          data: [
            {
              date: "2026-07-01T00:00:00Z",
              value: 1.5,
              version: "v1",
              tags: { quality: "good", by: "hand" },
            },
          ],
        },
      ]);
    }
  });

  it("requests the zone when date cells have none, with the line to add", async () => {
    const { result } = await mapStandard(await standard(new Date("2026-07-01T02:00:00Z")), {});
    expect(result).toMatchObject({
      status: "failed",
      reason: {
        code: "HG-MAP-015",
        hint: expect.stringContaining("`timeZone: Europe/Brussels`"),
        place: { sheet: "Data", row: 2, column: "Date" },
      },
    });
  });

  it("recognizes a workbook by its bytes, whatever the name of the file", async () => {
    const { elements } = await mapStandard(await standard("2026-07-01T00:00:00Z"), {}, "export.dat");
    expect(elements).toHaveLength(1);
  });

  const identified = (column: string, identifier: unknown, config: unknown = "kWh") =>
    workbook((book) => {
      const sheet = book.addWorksheet("Data");
      sheet.addRow(["date", "value", column, "mapping_config"]);
      sheet.addRow(["2026-07-01T00:00:00Z", 1, "1000000000000000", "kWh"]);
      sheet.addRow(["2026-07-01T00:00:00Z", 2, identifier, config]);
    });

  it.each([
    ["more digits than a spreadsheet keeps", "source_ean", Number("541448820000000017"), "kWh", "source_ean"],
    ["the digits of a text that came before", "source_ean", 1e15, "kWh", "source_ean"],
    ["a fraction", "source_serial_number", 12.5, "kWh", "source_serial_number"],
    ["an exponent", "meter_number", 1e22, "kWh", "meter_number"],
    ["a date", "source_name", QUARTER, "kWh", "source_name"],
    ["a fraction for a mapping", "source_name", "A", 1.5, "mapping_config"],
  ])("refuses an identifier cell that holds %s", async (_, column, identifier, config, at) => {
    const { result } = await mapStandard(await identified(column, identifier, config), {});
    expect(result).toMatchObject({
      status: "failed",
      rejectedCount: 1,
      reason: { hint: expect.stringContaining("as text"), place: { sheet: "Data", row: 3, column: at } },
    });
  });

  it("accepts whole numbers that a spreadsheet keeps for their digits, and ids while they are exact", async () => {
    const { elements } = await mapStandard(await identified("source_ean", 999_999_999_999_999, 5), {});
    expect(elements[1]).toMatchObject({ sourceEan: "999999999999999", mappingConfig: "5" });
    for (const column of ["variable_id", "source_id"]) {
      const { result } = await mapStandard(await identified(column, 2 ** 53), {});
      expect(result).toMatchObject({ reason: { place: { row: 3, column } } });
    }
  });

  it.each([
    ["has another header", ["Report of March"], { row: 1, sheet: "Cover", text: "Report of March" }],
    ["is empty", [], undefined],
  ])("names the sheets and the setting when the first sheet %s", async (_, cells, place) => {
    const bytes = await workbook((book) => {
      book.addWorksheet("Cover").addRow(cells);
      book.addWorksheet("Data").addRow(["date", "value", "variable_id"]);
    });
    const { result } = await mapStandard(bytes, {});
    expect(result).toMatchObject({ reason: { code: "HG-MAP-015", ...(place && { place }) } });
    expect(result.status === "failed" && result.reason.hint).toMatch(/`sheet`; there are "Cover", "Data"/);
  });

  it("names sheet, row and column of an invalid value", async () => {
    const { result } = await mapStandard(await standard("2026-07-01T00:00:00Z", "#N/A"), {});
    expect(result).toMatchObject({
      reason: { place: { sheet: "Data", row: 2, column: "VALUE", text: "#N/A" } },
    });
  });
});

describe("the folder of a mapper", () => {
  it("has a README", async () => {
    for (const name of ["standard", "helios-logger"])
      expect(await readFile(join(BUNDLED_FOLDER, name, "README.md"), "utf8")).toContain(`# ${name}`);
  });
});
