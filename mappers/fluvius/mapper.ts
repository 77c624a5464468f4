/** Consumption histories of Fluvius, the grid operator of Flanders: quarter-hours, hours, days. */
import { defineMapper, FileError, RowError, SOURCE_ZONE, type Target, type TextCells } from "headgate/mapper";
import { inColumn } from "../_formats/columns.ts";
import { type Tags, tagKeeper } from "../_formats/tags.ts";
import { targetMaker } from "../_formats/target.ts";
import { unitConverter } from "../_formats/units.ts";
import { AutumnHour } from "./autumn.ts";
import { type Columns, findColumns } from "./columns.ts";
import { settings } from "./settings.ts";
import { Times } from "./times.ts";
import { calorificOf, GOOD, registerOf, statusOf } from "./words.ts";

export default defineMapper({
  name: "fluvius",
  summary: "Fluvius consumption histories (Belgium): electricity and gas by quarter-hour, hour and day",
  version: "1.0.0",
  sourceZone: true,
  conflicts: "refuse",
  settings,

  async map({ file, settings, emit, reject, eachRow, number, time, unit, finding }) {
    const targetOf = targetMaker(settings.target, settings.rename);
    const { convert, unitOf } = unitConverter(settings.units, unit);
    const registers = new Map<string, string>();
    const keep = tagKeeper();
    let missing = 0;
    let columns: Columns | undefined;
    const times = new Map<string, Times>();
    const lengths = new Map<string, number>();
    const autumn = new AutumnHour<TextCells>((cells, start) => {
      try {
        takeReading(cells, start);
      } catch (thrown) {
        if (!(thrown instanceof RowError)) throw thrown;
        refuse(cells, thrown);
      }
    }, refuse);

    /** Refuses a row other than the current one. */
    function refuse(cells: TextCells, { message, column, hint }: RowError): void {
      reject(cells, {
        message,
        column: column ?? columns?.name("fromDate") ?? "",
        ...(hint === undefined ? {} : { hint }),
      });
    }

    function targetAt(cells: TextCells, { name, text }: Columns): Target {
      const ean = eanOf(text(cells, "ean"), name("ean"));
      const registerName = text(cells, "register");
      let register = registers.get(registerName);
      if (register === undefined) {
        register = registerOf(registerName);
        registers.set(registerName, register);
      }
      return targetOf({
        ean,
        meter: text(cells, "meter"),
        register,
        registerName,
        unit: text(cells, "unit"),
      });
    }

    function timesOf(cells: TextCells, columns: Columns): Times {
      const { timeZone } = settings;
      const zone = timeZone === SOURCE_ZONE ? time.zone(timeZone, targetAt(cells, columns)) : timeZone;
      const known = times.get(zone) ?? new Times(time, zone, columns);
      times.set(zone, known);
      return known;
    }

    function takeReading(cells: TextCells, start: number): void {
      if (columns === undefined) return;
      const volume = columns.text(cells, "volume");
      if (volume === "") {
        missing += 1;
        return;
      }
      const unitName = columns.text(cells, "unit");
      const value = inColumn(columns.name("volume"), volume, (text) => number(text, { decimal: settings.decimal }));
      emit({
        target: targetAt(cells, columns),
        date: new Date(settings.stamp === "start" ? start : timesOf(cells, columns).endOf(cells, start)),
        value: convert(value, unitName),
        unit: unitOf(unitName),
        tags: tagsOf(cells, columns),
        at: cells,
      });
    }

    function tagsOf(cells: TextCells, { text }: Columns): Tags | undefined {
      if (settings.qualityTags === "none") return undefined;
      const all = settings.qualityTags === "all";
      return keep(`${text(cells, "status")}|${text(cells, "calorific")}`, () => {
        const quality = statusOf(text(cells, "status"));
        const calorific = calorificOf(text(cells, "calorific"));
        return {
          ...(quality !== "" && (all || !GOOD.has(quality)) ? { quality } : {}),
          ...(calorific !== "" && (all || calorific !== "final") ? { calorificValue: calorific } : {}),
        };
      });
    }

    function takeRow(cells: TextCells): void {
      if (columns === undefined) {
        columns = findColumns(cells, settings.columns);
        return;
      }
      const extra = cells.slice(columns.width).some((cell) => cell.trim() !== "");
      if (cells.length < columns.width || extra)
        throw new RowError(`the row has ${cells.length} cells where the header has ${columns.width}`, {
          hint: extra ? "A cell too many: was the table changed?" : "Cells are missing: was the file cut off here?",
        });
      const start = timesOf(cells, columns).startOf(cells);
      const meter = `${columns.text(cells, "ean")}|${columns.text(cells, "meter")}`;
      const series = `${meter}|${columns.text(cells, "register")}|${columns.text(cells, "unit")}`;
      checkLength(series, timesOf(cells, columns).lengthOf(cells, !("at" in start)), columns);
      if ("at" in start) {
        autumn.pass(series, start.at);
        takeReading(cells, start.at);
      } else autumn.hold(series, { row: cells, ...start });
    }

    /** Throws a `RowError` for an interval of another length than the first of its series. */
    function checkLength(series: string, minutes: number | undefined, { name }: Columns): void {
      const usual = lengths.get(series);
      if (minutes === undefined || minutes === usual) return;
      if (usual === undefined) lengths.set(series, minutes);
      else
        throw new RowError(`the interval is ${minutes} minutes long, and those before it ${usual} minutes`, {
          column: name("untilTime"),
        });
    }

    // Identifiers are written as formulas (="…"), which are not quoted cells.
    await eachRow(file.csv({ delimiter: ";", quote: null, encoding: settings.encoding }), takeRow);
    if (columns === undefined) throw new FileError("the file is empty: it has no header");
    autumn.finish();
    if (missing > 0) finding({ kind: "missing", message: "intervals without a volume were left out", count: missing });
  },
});

/** The code inside `="541448800000000000"`, a formula that keeps spreadsheets from changing it. Throws a `RowError`. */
function eanOf(text: string, column: string): string {
  const ean = text.replace(/^=?\s*"?/, "").replace(/"$/, "");
  if (/^\d{18}$/.test(ean)) return ean;
  throw new RowError(ean === "" ? `${column} is empty` : `"${ean}" is no EAN code: it has 18 digits`, {
    column,
    text: ean,
    ...(/[eE]\+/.test(ean) ? { hint: "A spreadsheet changed it: take the file as Fluvius wrote it." } : {}),
  });
}
