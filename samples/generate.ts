/**
 * Writes the files of the scenario into `samples/drops/` and `samples/sent/`. They are committed; run this again only to change them:
 * `node samples/generate.ts`. Everything is computed from the seeds below, so the same content comes out each time
 * (only the workbook, a zip, carries the time of writing).
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import ExcelJS from "exceljs";

const root = join(import.meta.dirname, "drops");

function write(path: string, content: string | Uint8Array): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
}

/** Numbers in [0, 1) that look random and are the same each time (mulberry32). */
function noise(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

function* instants(from: string, to: string, minutes: number): Generator<Temporal.Instant> {
  const end = Temporal.Instant.from(to);
  for (let at = Temporal.Instant.from(from); Temporal.Instant.compare(at, end) < 0; at = at.add({ minutes })) yield at;
}

/** Energy of a building in kWh per interval: a base, a bump in working hours, and noise. */
function load(at: Temporal.Instant, base: number, peak: number, random: () => number): string {
  const local = at.toZonedDateTimeISO("Europe/Brussels");
  const working = local.dayOfWeek <= 5 && local.hour >= 7 && local.hour < 19;
  return (
    base +
    (working ? peak * Math.sin(((local.hour - 7 + local.minute / 60) / 12) * Math.PI) : 0) +
    random() * base * 0.2
  ).toFixed(3);
}

/** The platform's own format, a month of four meters by quarter-hours. */
function standardBuilding(): void {
  const lines = ["source_serial_number,mapping_config,date,value"];
  const meters = ["BRU-E-001", "BRU-E-002", "BRU-E-003", "BRU-G-001"];
  for (const [index, meter] of meters.entries()) {
    const random = noise(100 + index);
    const config = meter.includes("-G-") ? "gas" : "active-energy";
    for (const at of instants("2026-03-01T00:00:00Z", "2026-03-29T00:00:00Z", 15)) {
      lines.push(`${meter},${config},${at.toString()},${load(at, 2 + index, 8 - index, random)}`);
    }
  }
  write("local/standard_building_2026-03.csv", `${lines.join("\n")}\n`);
}

/** A forecast that came twice: the same dates under two versions, with tags; excess columns, header in capitals, CRLF. */
function standardForecast(): void {
  const lines = ["SOURCE_SERIAL_NUMBER,MAPPING_CONFIG,DATE,VALUE,VERSION,TAGS,COMMENT"];
  for (const [run, version] of ["2026-04-01 morning", "2026-04-01 evening"].entries()) {
    const random = noise(200 + run);
    for (const at of instants("2026-04-02T00:00:00Z", "2026-04-04T00:00:00Z", 60)) {
      const quality = random() > 0.9 ? "estimated" : "modelled";
      lines.push(
        `BRU-F-001,forecast,${at.toString()},${load(at, 10, 35, random)},${version},model:nwp-7|quality:${quality},"run ${run + 1}, hourly"`,
      );
    }
  }
  write("local/standard_forecast_2026-04-02.csv", `${lines.join("\r\n")}\r\n`);
}

/** A workbook in the standard format, with dates as a spreadsheet keeps them. */
async function standardClimate(): Promise<void> {
  const book = new ExcelJS.Workbook();
  book.created = book.modified = new Date("2026-04-01T06:00:00Z");
  const sheet = book.addWorksheet("Export");
  sheet.addRow(["Source_SerialNumber", "Mapping_Config", "Date", "Value", "Tags"]);
  sheet.getColumn(3).numFmt = "yyyy-mm-dd hh:mm";
  for (const [index, config] of ["temperature", "humidity"].entries()) {
    const random = noise(300 + index);
    for (const at of instants("2026-03-01T00:00:00Z", "2026-03-15T00:00:00Z", 60)) {
      const hour = at.toZonedDateTimeISO("UTC").hour;
      const value =
        index === 0
          ? 8 + 6 * Math.sin(((hour - 8) / 24) * 2 * Math.PI) + random()
          : 70 - 15 * Math.sin((hour / 24) * 2 * Math.PI) + random() * 4;
      sheet.addRow(["BRU-C-001", config, new Date(at.epochMilliseconds), Number(value.toFixed(2)), "station:roof"]);
    }
  }
  write("local/climate_2026-03.xlsx", new Uint8Array(await book.xlsx.writeBuffer()));
}

/** Semicolons, decimal comma, and times without a designator: the trigger's metadata tells the zone. */
function tenants(): void {
  const lines = ["\uFEFFsource_ean;mapping_config;date;value;tariff"];
  for (const [index, ean] of ["541448820000000017", "541448820000000024", "541448820000000031"].entries()) {
    const random = noise(400 + index);
    for (const at of instants("2026-02-01T00:00:00Z", "2026-02-08T00:00:00Z", 60)) {
      const local = at.toZonedDateTimeISO("Europe/Brussels");
      const text = local.toPlainDateTime().toString({ smallestUnit: "second" });
      lines.push(
        `${ean};offtake;${text};${load(at, 0.4, 1.1, random).replace(".", ",")};${local.hour < 7 ? "low" : "normal"}`,
      );
    }
  }
  write("ftp/tenants_2026-W06.csv", `${lines.join("\r\n")}\r\n`);
}

/** A small file in a folder below the drop's root. */
function water(path: string, from: string, to: string, begin: number, seed: number): void {
  const lines = ["meter_number,variable_type_id,date,value"];
  const random = noise(seed);
  let index = begin;
  for (const at of instants(from, to, 24 * 60)) {
    index += 3 + random() * 2;
    lines.push(`W-77120,6,${at.toString()},${index.toFixed(1)}`);
  }
  write(path, `${lines.join("\n")}\n`);
}

/** A vendor's export: a day in local time by quarter-hours, through a change of daylight saving; one meter or two side by side. */
function helios(path: string, day: string, meters: readonly string[], seed: number): void {
  const random = noise(seed);
  const start = Temporal.PlainDate.from(day).toZonedDateTime("Europe/Berlin");
  const lines = ["Zeitpunkt;Zähler;Wirkarbeit kWh;Status"];
  for (const at of instants(start.toInstant().toString(), start.add({ days: 1 }).toInstant().toString(), 15)) {
    const local = at.toZonedDateTimeISO("Europe/Berlin");
    const pad = (part: number) => String(part).padStart(2, "0");
    const when = `${pad(local.day)}.${pad(local.month)}.${local.year} ${pad(local.hour)}:${pad(local.minute)}:00`;
    const sun = Math.max(0, Math.sin(((local.hour + local.minute / 60 - 7) / 11) * Math.PI));
    for (const meter of meters) {
      lines.push(
        `${when};${meter};${(sun * 3 * (0.6 + 0.4 * random())).toFixed(3).replace(".", ",")};${random() > 0.97 ? "E" : "G"}`,
      );
    }
  }
  write(path, `${lines.join("\r\n")}\r\n`);
}

/** Somebody edited a number by hand: the file goes to quarantine, with row and column. */
function broken(): void {
  const lines = ["source_serial_number,mapping_config,date,value"];
  const random = noise(600);
  for (const at of instants("2026-03-20T00:00:00Z", "2026-03-21T00:00:00Z", 15)) {
    const value = lines.length === 42 ? "12.4?" : load(at, 2, 6, random);
    lines.push(`BRU-E-001,active-energy,${at.toString()},${value}`);
  }
  write("local/standard_corrected_2026-03-20.csv", `${lines.join("\n")}\n`);
}

function unmatched(): void {
  write(
    "local/README from the installer.txt",
    "The loggers were changed on 2026-03-12.\nSerial numbers are on the doors of the cabinets.\n",
  );
}

standardBuilding();
standardForecast();
await standardClimate();
tenants();
water("ftp/water/standard_water_2026-02.csv", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", 812.4, 500);
water("../sent/standard_water_2026-03.csv", "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z", 924.1, 501);
helios("sftp/helios_roof-east_2026-10-25.csv", "2026-10-25", ["HL-2207"], 700);
helios("sftp/helios_roof-west_2026-03-29.csv", "2026-03-29", ["HL-2208", "HL-2209"], 701);
helios("../sent/helios_roof-east_2026-10-26.csv", "2026-10-26", ["HL-2207"], 702);
broken();
unmatched();
