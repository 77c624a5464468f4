/** `headgate mapper new`: what it makes of samples of each kind works at once, and says when it has to be told more. */
import { execFile } from "node:child_process";
import { access, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import exceljs from "exceljs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { digestMapper, loadMapper, mapPath, mapperContract } from "#mapping/authoring/kit/index.ts";
import { propose } from "#mapping/authoring/sketch/propose.ts";
import { sketchColumns } from "#mapping/authoring/sketch/sample.ts";
import { readSample } from "#mapping/authoring/sketch/sketch.ts";
import { writeMapper } from "#mapping/authoring/sketch/write.ts";
import { BUNDLED_FOLDER } from "#mapping/workers/bundled.ts";

const run = promisify(execFile);
const main = resolve(import.meta.dirname, "../../src/main.ts");
let site: string;
const headgate = (...args: string[]) =>
  run(process.execPath, [main, ...args], { cwd: site }).catch((thrown: { code: number; stderr: string }) => thrown);

beforeAll(async () => {
  site = await realpath(await mkdtemp(join(tmpdir(), "headgate-")));
  await mkdir(join(site, "mappers"));
});
afterAll(() => rm(site, { recursive: true, force: true }));

const HOURS = [0, 1, 2, 3, 4, 5];
const two = (hour: number) => String(hour).padStart(2, "0");
const FIRST = { date: "2026-02-28T23:00:00Z", value: 1.5 };

interface Sample {
  readonly name: string;
  readonly file: string;
  readonly content: string | Buffer;
  readonly zone?: string;
  readonly target: Readonly<Record<string, string>>;
}

const SAMPLES: readonly Sample[] = [
  {
    name: "semicolons-and-preamble",
    file: "export.csv",
    content: `Exported by LoggerSoft;\n\nMeter;When;Energy [kWh];State\n${HOURS.map((hour) => `M-7;01/03/2026 ${two(hour)}:00;${hour + 1},5;${hour % 2 ? "ok" : ""}`).join("\n")}\n`,
    zone: "Europe/Paris",
    target: { sourceSerialNumber: "M-7", mappingConfig: "Energy [kWh]" },
  },
  {
    name: "registers-in-rows",
    file: "long.csv",
    content: Buffer.from(
      `Zähler,Kanal,Zeit,Wert\n${HOURS.map((hour) => `Süd,A+,2026-03-01T${two(hour)}:00:00+01:00,${hour + 1}.5`).join("\r\n")}\r\n`,
      "latin1",
    ),
    target: { sourceSerialNumber: "Süd", mappingConfig: "A+" },
  },
  {
    name: "day-and-time-apart",
    file: "apart.txt",
    content: `Datum\tUhrzeit\tWasser (m³)\n${HOURS.map((hour) => `01.03.2026\t${two(hour)}:00\t${hour + 1}.5`).join("\n")}\n`,
    zone: "Europe/Paris",
    target: { sourceSerialNumber: "METER-1", mappingConfig: "Wasser (m³)" },
  },
  {
    name: "records",
    file: "records.json",
    content: JSON.stringify({
      unit: "kWh",
      readings: HOURS.map((hour) => ({
        meter: { serial: "J-1" },
        time: `2026-02-28T${two(23)}:00:00Z`.replace("28T23", hour === 0 ? "28T23" : `28T${two(23 - hour)}`),
        value: hour + 1.5,
      })),
    }),
    target: { sourceSerialNumber: "J-1", mappingConfig: "value" },
  },
  {
    name: "lines-filled-up-before-the-header",
    file: "filled.csv",
    content: `Water;19.04.26;\n;;\nDay;Time;Reading\n${HOURS.map((hour) => `01.03.26;${two(hour)}:00;${hour + 1},5`).join("\n")}\n`,
    zone: "Europe/Paris",
    target: { sourceSerialNumber: "METER-1", mappingConfig: "Reading" },
  },
  {
    name: "names-that-repeat-and-lack",
    file: "names.csv",
    content: `When;State;State;Energy kWh;\n${HOURS.map((hour) => `2026-03-01 ${two(hour)}:00:00;ok;fine;${hour + 1}.5;x`).join("\n")}\n`,
    zone: "Europe/Paris",
    target: { sourceSerialNumber: "METER-1", mappingConfig: "Energy kWh" },
  },
  {
    name: "records-within-an-object",
    file: "within.json",
    content: JSON.stringify({
      energy: {
        unit: "Wh",
        measuredBy: "meter",
        "of the day": HOURS.map((hour) => ({ date: `2026-03-01 ${two(hour)}:00:00`, value: hour + 1.5 })),
      },
    }),
    zone: "Europe/Paris",
    target: { sourceSerialNumber: "METER-1", mappingConfig: "value" },
  },
  {
    name: "lines-of-records",
    file: "lines.ndjson",
    content: HOURS.map(
      (hour) =>
        `${JSON.stringify({ device: "N-1", ts: `2026-03-01T${two(hour)}:00:00+01:00`, reading: hour + 1.5 })}\n`,
    ).join(""),
    target: { sourceSerialNumber: "N-1", mappingConfig: "reading" },
  },
  {
    name: "elements",
    file: "feed.xml",
    content: `<?xml version="1.0"?><feed xmlns="urn:x"><head/>${HOURS.map((hour) => `<point serial="X-1"><at>2026-03-01T${two(hour)}:00:00+01:00</at><reading>${hour + 1}.5</reading></point>`).join("")}</feed>`,
    target: { sourceSerialNumber: "X-1", mappingConfig: "reading" },
  },
];

describe.each(SAMPLES)("a sample of $name", ({ name, file, content, zone, target }) => {
  it("becomes a mapper whose first case has its readings, and settings with the same result without code", async () => {
    const path = join(site, file);
    await writeFile(path, content);
    const { written, declarative } = await make(name, path, zone);
    expect(written.first?.outcome).toEqual([{ ...target, data: expect.arrayContaining([FIRST]) }]);
    const expected = written.first?.outcome as { data: unknown[] }[];
    expect(expected[0]?.data).toHaveLength(HOURS.length);
    const own = await loadMapper(written.modulePath, await digestMapper(written.modulePath));
    const settings = parse(
      await readFile(join(site, "mappers", name, "cases/first/settings.yaml"), "utf8").catch(() => "{}"),
    );
    for (const check of mapperContract(own, { path, settings })) await check.run();
    if (declarative === null) return;
    const bundled = join(BUNDLED_FOLDER, declarative.mapper, "mapper.ts");
    const mapper = await loadMapper(bundled, await digestMapper(bundled));
    const { elements, reason } = await mapPath(mapper, path, { settings: declarative.settings });
    expect(reason).toBeNull();
    expect(elements).toEqual(expected);
  });
});

async function make(name: string, path: string, timeZone: string | undefined) {
  const table = await readSample({ path: path, subject: path, hint: "" });
  const proposal = propose({ name, table, columns: sketchColumns(table), timeZone });
  const written = await writeMapper({
    name,
    folder: join(site, "mappers"),
    source: proposal.source,
    sample: { path, reader: table.reader, settings: proposal.settings },
  });
  return { written, declarative: proposal.declarative };
}

it("creates a mapper of a workbook", async () => {
  const book = new exceljs.Workbook();
  const sheet = book.addWorksheet("Data");
  sheet.addRow(["Report of the month"]);
  sheet.addRow(["Station", "Moment", "Energy kWh"]);
  for (const hour of HOURS) sheet.addRow(["W-1", new Date(Date.UTC(2026, 2, 1, hour)), hour + 1.5]);
  await book.xlsx.writeFile(join(site, "book.xlsx"));
  const { written } = await make("book", join(site, "book.xlsx"), "Europe/Paris");
  expect(written.first?.outcome).toEqual([
    { sourceSerialNumber: "W-1", mappingConfig: "Energy kWh", data: expect.arrayContaining([FIRST]) },
  ]);
});

it("shows the created files, the mapper that needs no code, and the next step", async () => {
  const made = await headgate("mapper", "new", "shown", "--sample", "export.csv", "--time-zone", "Europe/Paris");
  expect("stdout" in made ? made.stdout : made.stderr).toMatch(
    /made mappers\/shown\/mapper\.ts\ncase mappers\/shown\/cases\/first: 6 points of 1 target\ncheck the dates fit dd\/MM\/yyyy HH:mm and MM\/dd\/yyyy HH:mm[^\n]*\n\nThe bundled mapper delimited[\s\S]*mapper: delimited[\s\S]*Next:\n/,
  );
});

it("makes a mapper that refuses a file with a renamed column, and drops nothing in silence", async () => {
  const write = (name: string, header: string) =>
    writeFile(
      join(site, name),
      `${header}\n${HOURS.map((hour) => `2026-03-01T0${hour}:00:00Z,${hour},${hour % 2 ? "" : 5}`).join("\n")}\n`,
    );
  await write("two.csv", "Time,A kWh,B kWh");
  await headgate("mapper", "new", "two-columns", "--sample", "two.csv");
  expect(await readFile(join(site, "mappers/two-columns/mapper.ts"), "utf8")).not.toContain("??");
  const settings = ["-m", "two-columns", "-s", '{"meter":"M-1"}'];
  expect(await headgate("map", "two.csv", ...settings, "--summary")).toMatchObject({
    stdout: expect.stringContaining("9 points"),
  });
  await write("renamed.csv", "Time,A kWh,B kwh (new)");
  expect(await headgate("map", "renamed.csv", ...settings)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /row 1, column B kWh: the header has no column "B kWh"[\s\S]*The columns are: Time, A kWh/,
    ),
  });
});

it("requests the zone of local dates rather than assume one, and changes nothing", async () => {
  const failed = await headgate("mapper", "new", "no-zone", "--sample", "export.csv");
  expect(failed).toMatchObject({ code: 2, stderr: expect.stringContaining("--time-zone") });
  await expect(readFile(join(site, "mappers/no-zone/mapper.ts"))).rejects.toThrow("ENOENT");
});

it("creates an empty mapper that loads, without a sample, and never over another", async () => {
  await headgate("mapper", "new", "empty-one");
  const path = join(site, "mappers/empty-one/mapper.ts");
  expect((await loadMapper(path, await digestMapper(path))).name).toBe("empty-one");
  expect(await headgate("mapper", "new", "empty-one")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("already"),
  });
  expect(await headgate("mapper", "new", "Not a name")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("hyphens"),
  });
});

it.each([
  [["standard"], "comes with Headgate"],
  [["acme", "--sample", "nowhere.csv"], "there is no such file"],
  [["acme", "--sample", "mappers"], "this is a directory"],
])("refuses %j, and creates nothing", async (args, why) => {
  expect(await headgate("mapper", "new", ...args)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(why),
  });
  await expect(access(join(site, "mappers", args[0] ?? ""))).rejects.toThrow("ENOENT");
});

it("does not treat a mapper that exits during its cases as a success", async () => {
  const folder = join(site, "exiting/exits");
  await mkdir(join(folder, "cases/first"), { recursive: true });
  await writeFile(
    join(folder, "mapper.ts"),
    'import { defineMapper } from "headgate/mapper";\nexport default defineMapper({ name: "exits", summary: "", map: () => process.exit(0) });\n',
  );
  await writeFile(join(folder, "cases/first/input.csv"), "a\n");
  expect(await headgate("mapper", "test", "exits", "--folder", join(site, "exiting"))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("failed: test mapper exits"),
  });
});

it("runs cases with the rights that a mapper has in the gateway", async () => {
  const folder = join(site, "reaching/reaches");
  await mkdir(join(folder, "cases/first"), { recursive: true });
  await writeFile(
    join(folder, "mapper.ts"),
    `import { execFileSync } from "node:child_process";
import { defineMapper } from "headgate/mapper";
export default defineMapper({ name: "reaches", summary: "", map: ({ emit }) => {
  execFileSync(process.execPath, ["-e", ""]);
  emit({ target: { variableId: 7 }, date: "2026-03-01T00:00:00Z", value: 1 });
} });
`,
  );
  await writeFile(join(folder, "cases/first/input.csv"), "a\n");
  const points = [{ variableId: 7, data: [{ date: "2026-03-01T00:00:00Z", value: 1 }] }];
  await writeFile(join(folder, "cases/first/expected.json"), JSON.stringify(points));
  const tested = await headgate("mapper", "test", "reaches", "--folder", join(site, "reaching"));
  expect(tested).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/with the rights that the gateway gives it: .*other programs/),
  });
});

it("reports a sample without a table", async () => {
  await writeFile(join(site, "letter.txt"), "Dear reader,\nthis is no table.\n");
  expect(await headgate("mapper", "new", "letter", "--sample", "letter.txt")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("no table of rows"),
  });
});

describe("an ambiguous date of a sample", () => {
  const sketch = (days: readonly string[]) =>
    sketchOf(["t,kWh", ...days.map((day, nth) => `${day} 00:00,${nth}.5`)].join("\n"));
  const sketchOf = async (content: string) => {
    const path = join(site, "days.csv");
    await writeFile(path, `${content}\n`);
    const table = await readSample({ path: path, subject: path, hint: "" });
    const columns = sketchColumns(table);
    return { columns, proposal: propose({ name: "days", table, columns, timeZone: "Europe/Paris" }) };
  };

  it("is read in the order that fits most rows, not the first ones", async () => {
    const days = Array.from({ length: 13 }, (_, nth) => `04/${two(nth + 1)}/2026`);
    expect((await sketch(days)).columns.date).toMatchObject({ format: "MM/dd/yyyy HH:mm" });
    expect((await sketch(days)).proposal.assumed).toEqual([]);
  });

  it("is assumed with a warning, in the output and in the source, where both orders fit", async () => {
    const { columns, proposal } = await sketch(["03/04/2026", "04/04/2026", "05/04/2026"]);
    expect(columns.date).toMatchObject({ format: "dd/MM/yyyy HH:mm", other: "MM/dd/yyyy HH:mm" });
    expect(proposal.assumed[0]).toContain("the sample does not decide between them");
    expect(proposal.source).toContain("fits both dd/MM/yyyy HH:mm and MM/dd/yyyy HH:mm");
  });
});
