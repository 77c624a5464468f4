/**
 * NEM12: 200 names a data stream, 300 holds a day of it, 400 the qualities of its parts, 500 reads of the meter's
 * index.
 */
import { FileError, RowError, type Target } from "headgate/mapper";
import { inColumn } from "../_formats/columns.ts";
import type { Identifiers } from "../_formats/target.ts";
import { dayOf, momentOf } from "./dates.ts";
import { field, identifiersOf, type Quality, qualityOf, type Record, unitOf } from "./record.ts";
import type { Tools } from "./settings.ts";
import { qualityTags } from "./tags.ts";

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1440;
/** The specification has 5, 15 and 30; loggers and portals also write the others, which divide an hour too. */
const LENGTHS: ReadonlySet<number> = new Set([1, 5, 10, 15, 30, 60]);
const FIRST_VALUE = 2;

interface Stream {
  readonly row: number;
  readonly identifiers: Identifiers;
  readonly target: Target;
  readonly unit: string;
  /** Minutes. */
  readonly length: number;
  readonly count: number;
}

interface Day {
  readonly record: Record;
  readonly stream: Stream;
  /** Midnight, in epoch milliseconds. */
  readonly start: number;
  readonly values: Float64Array;
}

/** A day whose qualities come in 400 records. */
interface VariableDay extends Day {
  /** Interval up to which 400 records have given the quality. */
  covered: number;
  /** The day was refused, so its remaining records emit nothing. */
  refused: boolean;
}

export class IntervalReader {
  readonly #tools: Tools;
  #stream: Stream | undefined;
  /** Row of a 200 record that was refused: the 300 records that follow it have no target. */
  #refusedStream = 0;
  #variable: VariableDay | undefined;
  /** The day was refused, and its 400 records with it. */
  #refusedDay = false;
  nullIntervals = 0;

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  begin(): void {
    this.#stream = undefined;
    this.#refusedStream = 0;
    this.#refusedDay = false;
  }

  take(record: Record): void {
    if (record.kind === "400") {
      this.#takeQuality(record);
      return;
    }
    this.finish();
    if (record.kind === "200") this.#takeStream(record);
    else if (record.kind === "300") this.#takeDay(record);
    else this.#takeIndex(record);
  }

  /** Ends the day before: its 400 records must have given the quality of every interval. */
  finish(): void {
    const day = this.#variable;
    this.#variable = undefined;
    if (day === undefined || day.refused || day.covered === day.stream.count) return;
    this.#tools.reject(day.record.line, {
      column: "QualityMethod",
      message: `the quality is V, but 400 records give it for ${day.covered} of ${day.stream.count} intervals only`,
      hint: "Each interval of a day with quality V belongs to one 400 record; a part of the file may be missing.",
    });
  }

  #takeStream(record: Record): void {
    this.#stream = undefined;
    this.#refusedStream = record.row;
    this.#refusedDay = false;
    if (record.fields.length < 9)
      throw new RowError(`the 200 record has ${record.fields.length} fields, and needs at least 9`, {
        hint: "Cells are missing: was the file cut off here, or written only in part?",
      });
    const text = field(record, 8);
    const length = Number(text);
    if (!LENGTHS.has(length))
      throw new RowError(`the interval length "${text}" is none of 5, 15 and 30 minutes`, {
        column: "IntervalLength",
        text,
      });
    const identifiers = identifiersOf(record);
    this.#stream = {
      row: record.row,
      identifiers,
      target: this.#tools.targetOf(identifiers),
      unit: unitOf(record, 7),
      length,
      count: DAY_MINUTES / length,
    };
    this.#refusedStream = 0;
  }

  #streamOf(record: Record): Stream {
    if (this.#stream !== undefined) return this.#stream;
    if (this.#refusedStream > 0)
      throw new RowError(`the record belongs to the 200 record of line ${this.#refusedStream}, which was refused`);
    throw new FileError(`line ${record.row}: a ${record.kind} record, and no 200 record before it`, {
      row: record.row,
      column: "RecordIndicator",
      text: record.kind,
      hint: "A 200 record says which meter the values are of; was the file put together from parts?",
    });
  }

  #takeDay(record: Record): void {
    this.#refusedDay = true;
    const stream = this.#streamOf(record);
    const { count } = stream;
    const start = dayOf(record, 1, "IntervalDate", this.#tools);
    const at = FIRST_VALUE + count;
    const quality = this.#qualityAfterValues(record, stream);
    const day: Day = { record, stream, start, values: this.#valuesOf(record, count) };
    this.#refusedDay = false;
    if (quality.flag === "V") this.#variable = { ...day, covered: 0, refused: false };
    else this.#emit(day, 1, count, quality, field(record, at + 1), field(record, at + 2));
  }

  /** The field after the values is the quality only if the number of values matches the interval length. */
  #qualityAfterValues(record: Record, { count, length, row }: Stream): Quality {
    if (/^\s*[ASEFNV](?:\d\d)?\s*$/i.test(record.fields[FIRST_VALUE + count] ?? ""))
      return qualityOf(record, FIRST_VALUE + count, "QualityMethod", "ASEFNV");
    const found = record.fields.findIndex((text, at) => at >= FIRST_VALUE && /^\s*[A-Z]/i.test(text));
    const values = (found === -1 ? record.fields.length : found) - FIRST_VALUE;
    if (values === count) return qualityOf(record, found, "QualityMethod", "ASEFNV");
    throw new RowError(
      `the day has ${values} values, and ${count} are due at ${length} minutes (200 record of line ${row})`,
      { column: "IntervalValue", hint: "Values are missing or too many, or the record was cut off." },
    );
  }

  #valuesOf(record: Record, count: number): Float64Array {
    const values = new Float64Array(count);
    for (let at = 0; at < count; at += 1) {
      const text = record.fields[FIRST_VALUE + at] ?? "";
      values[at] = inColumn(`IntervalValue${at + 1}`, text, this.#tools.number);
    }
    return values;
  }

  #takeQuality(record: Record): void {
    const day = this.#variable;
    if (day === undefined) {
      if (this.#refusedDay) return;
      throw new RowError("a 400 record, and no 300 record with quality V before it", {
        column: "RecordIndicator",
        text: "400",
      });
    }
    if (day.refused) return;
    try {
      const { from, to } = rangeOf(record, day);
      const quality = qualityOf(record, 3, "QualityMethod", "ASEFN");
      this.#emit(day, from, to, quality, field(record, 4), field(record, 5));
      day.covered = to;
    } catch (thrown) {
      day.refused = true;
      throw thrown;
    }
  }

  #emit(day: Day, from: number, to: number, quality: Quality, reason: string, description: string): void {
    const { settings, emit, converter } = this.#tools;
    if (quality.flag === "N" && settings.nullData === "drop") {
      this.nullIntervals += to - from + 1;
      return;
    }
    const { target, unit: fileUnit, length } = day.stream;
    const unit = converter.unitOf(fileUnit);
    const tags = qualityTags(quality, reason, description, settings.qualityTags);
    const shift = settings.stamp === "end" ? 0 : 1;
    const at = day.record.line;
    for (let interval = from; interval <= to; interval += 1) {
      const date = new Date(day.start + (interval - shift) * length * MINUTE_MS);
      emit({
        target,
        date,
        value: converter.convert(day.values[interval - 1] ?? Number.NaN, fileUnit),
        unit,
        tags,
        at,
      });
    }
  }

  #takeIndex(record: Record): void {
    const stream = this.#streamOf(record);
    const { settings, emit, number, targetOf } = this.#tools;
    const text = field(record, 4);
    if (settings.indexReads === undefined || text === "") return;
    emit({
      target: targetOf(stream.identifiers, settings.indexReads),
      date: momentOf(record, 3, "ReadDateTime", this.#tools),
      value: inColumn("IndexRead", text, number),
      at: record.line,
    });
  }
}

/** StartInterval and EndInterval, which continue the record before without a gap. */
function rangeOf(record: Record, { covered, stream: { count } }: VariableDay): { from: number; to: number } {
  const from = field(record, 1);
  const to = field(record, 2);
  if (Number(from) !== covered + 1 || !/^\d+$/.test(from))
    throw new RowError(
      `the 400 record begins at interval "${from}", and ` +
        `${covered === count ? "the day is already complete" : `${covered + 1} is due`}`,
      { column: "StartInterval", text: from },
    );
  if (!/^\d+$/.test(to) || Number(to) < Number(from) || Number(to) > count)
    throw new RowError(`the 400 record ends at interval "${to}", which is not in ${from} to ${count}`, {
      column: "EndInterval",
      text: to,
    });
  return { from: Number(from), to: Number(to) };
}
