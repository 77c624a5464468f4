/**
 * NEM13: 250 holds the previous and the current read of a register and the quantity between; 550 names the orders
 * behind them.
 */
import { FileError, RowError } from "headgate/mapper";
import { inColumn } from "../_formats/columns.ts";
import { momentOf } from "./dates.ts";
import { field, identifiersOf, qualityOf, type Record, unitOf } from "./record.ts";
import type { Tools } from "./settings.ts";
import { qualityTags } from "./tags.ts";

export class AccumulationReader {
  readonly #tools: Tools;
  #seen = false;

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  begin(): void {
    this.#seen = false;
  }

  take(record: Record): void {
    if (record.kind === "550") {
      if (this.#seen) return;
      throw new FileError(`line ${record.row}: a 550 record, and no 250 record before it`, {
        row: record.row,
        column: "RecordIndicator",
        text: "550",
      });
    }
    this.#seen = true;
    this.#takeReads(record);
  }

  #takeReads(record: Record): void {
    if (record.fields.length < 20)
      throw new RowError(`the 250 record has ${record.fields.length} fields, and needs at least 20`, {
        hint: "Cells are missing: was the file cut off here, or written only in part?",
      });
    const { settings, targetOf, converter } = this.#tools;
    const identifiers = identifiersOf(record);
    const target = targetOf(identifiers);
    const fileUnit = unitOf(record, 19);
    const unit = converter.unitOf(fileUnit);
    const convert = (value: number) => converter.convert(value, fileUnit);
    const previous = this.#readAt(record, 8, "Previous");
    const current = this.#readAt(record, 13, "Current");
    if (previous.date.epochMilliseconds > current.date.epochMilliseconds)
      throw new RowError("the previous read is later than the current one", {
        column: "PreviousRegisterReadDateTime",
        text: field(record, 9),
      });
    const at = record.line;
    if (settings.accumulated !== "quantity")
      for (const { date, value, tags } of [previous, current])
        if (value !== null) this.#tools.emit({ target, date, value: convert(value), unit, tags, at });
    if (settings.accumulated === "reads") return;
    this.#tools.emit({
      target: settings.accumulated === "both" ? targetOf(identifiers, settings.quantitySuffix) : target,
      date: current.date,
      value: convert(this.#numberAt(record, 18, "Quantity")),
      unit,
      tags: current.tags,
      at,
    });
  }

  /**
   * Read, date, quality, reason and its text, from field `at` on. The read may be empty, when only the quantity is
   * known.
   */
  #readAt(record: Record, at: number, which: "Previous" | "Current") {
    const quality = qualityOf(record, at + 2, `${which}QualityMethod`, "ASEFN");
    const read = field(record, at);
    const empty = read === "" || (quality.flag === "N" && this.#tools.settings.nullData === "drop");
    return {
      date: momentOf(record, at + 1, `${which}RegisterReadDateTime`, this.#tools),
      value: empty ? null : this.#numberAt(record, at, `${which}RegisterRead`),
      tags: qualityTags(quality, field(record, at + 3), field(record, at + 4), this.#tools.settings.qualityTags),
    };
  }

  #numberAt(record: Record, at: number, column: string): number {
    return inColumn(column, field(record, at), this.#tools.number);
  }
}
