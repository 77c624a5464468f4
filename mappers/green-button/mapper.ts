/** Green Button: ESPI usage information as an Atom feed. */
import { defineMapper, FileError, RowError, type XmlElement } from "headgate/mapper";
import { inColumn } from "../_formats/columns.ts";
import { targetMaker } from "../_formats/target.ts";
import { unitConverter } from "../_formats/units.ts";
import { type Entry, readEntry, Tree } from "./feed.ts";
import { type Series, SeriesFinder } from "./series.ts";
import { settings } from "./settings.ts";
import { tagsOf } from "./tags.ts";

export default defineMapper({
  name: "green-button",
  summary: "Green Button files (ESPI Atom XML): electricity, gas and water by interval",
  version: "1.0.0",
  conflicts: "refuse",
  settings,

  async map({ file, settings, emit, reject, eachRow, unit, finding }) {
    const tree = new Tree();
    const finder = new SeriesFinder(tree, targetMaker(settings.target, settings.rename));
    const converter = unitConverter(settings.units, unit);
    /** Positions of the entries whose series was not known yet when they came. */
    const waiting = new Set<number>();
    let moneyBlocks = 0;

    function takeReading(reading: XmlElement, series: Series, start: number, block: Span | undefined): number {
      const period = reading.child("timePeriod");
      const from = period === undefined ? start : seconds(period, "start");
      const duration = durationOf(period, series);
      const value = inColumn("value", reading.textOf("value") ?? "", integer);
      if (Number.isNaN(from)) throw new RowError("the reading has no timePeriod, and no default gives its start");
      if (settings.stamp === "end" && duration === 0)
        throw new RowError("the reading has no duration, so its end is not known", { column: "duration" });
      if (settings.declared === "check") checkDeclared(from, duration, series, block);
      const { target } = series;
      // Scaled by its decimal text, so that 703 with a power of -3 is exactly 0.703.
      const scaled = Number(`${value}e${series.power}`);
      emit({
        target,
        date: new Date((settings.stamp === "start" ? from : from + duration) * 1000),
        value: converter.convert(scaled, series.unit),
        unit: converter.unitOf(series.unit),
        tags: tagsOf(reading, series.defaultQuality, settings.qualityTags),
        at: reading,
      });
      return duration === 0 ? Number.NaN : from + duration;
    }

    function takeBlock(block: XmlElement, series: Series): void {
      const interval = block.child("interval");
      let start = interval === undefined ? Number.NaN : seconds(interval, "start");
      const length = interval?.child("duration") === undefined ? 0 : seconds(interval, "duration");
      const span = length > 0 ? { start, end: start + length } : undefined;
      for (const reading of block.all("IntervalReading")) {
        try {
          start = takeReading(reading, series, start, span);
        } catch (thrown) {
          if (!(thrown instanceof RowError)) throw thrown;
          const { message, column, hint } = thrown;
          reject(
            { row: reading.row, ...(thrown.text === undefined ? {} : { text: thrown.text }) },
            { message, ...(column === undefined ? {} : { column }), ...(hint === undefined ? {} : { hint }) },
          );
          start = Number.NaN;
        }
      }
    }

    /** False when the entry has to wait until the whole feed was read. */
    function takeBlocks(entry: Entry, atEnd: boolean): boolean {
      const blocks = entry.resources.filter(({ name }) => name === "IntervalBlock");
      if (blocks.length === 0) return true;
      const series = finder.find(entry, atEnd);
      if (series === "unknown" && !atEnd) return false;
      if (series === "unknown") throw unlinked(entry, tree);
      if (series === "money") moneyBlocks += blocks.length;
      else for (const block of blocks) takeBlock(block, series);
      return true;
    }

    let entries = 0;
    await eachRow(file.xml({ elements: "entry" }), (element) => {
      const position = entries++;
      const entry = readEntry(element);
      tree.add(entry);
      if (!takeBlocks(entry, false)) waiting.add(position);
    });
    if (entries === 0)
      throw new FileError("the file holds no Atom entry, so it is no Green Button file", {
        hint:
          "Green Button files are XML with a <feed> of <entry> elements; what utilities offer as CSV " +
          "under that name takes the mapper `delimited`.",
      });
    let again = 0;
    if (waiting.size > 0)
      await eachRow(file.xml({ elements: "entry" }), (element) => {
        if (waiting.has(again++)) takeBlocks(readEntry(element), true);
      });
    if (moneyBlocks > 0)
      finding({ kind: "costs", message: "interval blocks of costs were left out", count: moneyBlocks });
  },
});

/** Seconds since 1970. */
interface Span {
  readonly start: number;
  readonly end: number;
}

/** Days and what is longer have no fixed length. */
const SHORTEST_DAY = 22 * 3600;
/** Blocks of a day are written as 24 hours, also when the clock changes. */
const CLOCK_CHANGE = 2 * 3600;

/** Throws a `RowError` for a reading that is not what its type and its block declare. */
function checkDeclared(from: number, duration: number, { intervalLength }: Series, block: Span | undefined): void {
  const hint = "If the reading is right, set `declared: ignore`.";
  if (
    intervalLength > 0 &&
    duration > 0 &&
    duration !== intervalLength &&
    Math.min(duration, intervalLength) < SHORTEST_DAY
  )
    throw new RowError(`the reading lasts ${duration} seconds, and intervalLength of its type is ${intervalLength}`, {
      column: "duration",
      hint,
    });
  if (block === undefined || (from >= block.start && from + duration <= block.end + CLOCK_CHANGE)) return;
  throw new RowError(
    `the reading from ${from} is outside of the interval of its block, ${block.start} to ${block.end}`,
    {
      column: "timePeriod",
      hint,
    },
  );
}

function seconds(period: XmlElement, name: string): number {
  return inColumn(name, period.textOf(name) ?? "", integer);
}

function durationOf(period: XmlElement | undefined, series: Series): number {
  return period?.child("duration") === undefined ? series.intervalLength : seconds(period, "duration");
}

/** ESPI writes values and times as whole numbers. */
function integer(text: string): number {
  const value = Number(text);
  if (/^[+-]?\d+$/.test(text.trim()) && Number.isSafeInteger(value)) return value;
  throw new RowError(`"${text}" is not a whole number`, { text });
}

function unlinked(entry: Entry, tree: Tree): RowError {
  const { meterReadings } = tree;
  const reading = meterReadings.above(entry) ?? meterReadings.only;
  if (reading === undefined)
    return new RowError(
      `the interval block belongs to none of the ${meterReadings.all.length} meter readings of the file`,
      {
        column: "link",
        text: entry.up,
        hint: 'Its link rel="up" has to lead to a MeterReading; is a part of the feed missing?',
      },
    );
  return new RowError(
    `the meter reading "${reading.entry.title}" of line ${reading.entry.element.row} names no reading ` +
      "type of the file, so the unit of its values is not known",
    { column: "link", text: reading.entry.related.join(" ") },
  );
}
