/** Gaps in the record numbers: records that the logger stored and the file lacks. */
import { type MapContext, RowError } from "headgate/mapper";
import type { Settings } from "./settings.ts";

/** Record numbers restart here. */
const RECORDS = 2 ** 32;

export class RecordNumbers {
  readonly #gaps: Settings["gaps"];
  #last: number | undefined;
  #missing = 0;
  #resets = 0;

  constructor(gaps: Settings["gaps"]) {
    this.#gaps = gaps;
  }

  /** Throws a `RowError` for a gap where gaps are refused. */
  take(text: string): void {
    if (this.#gaps === "ignore") return;
    const record = Number(text);
    if (!/^\d+$/.test(text)) throw new RowError(`"${text}" is no record number`, { column: "RECORD", text });
    const last = this.#last;
    this.#last = record;
    if (last === undefined || record === (last + 1) % RECORDS) return;
    if (record <= last) {
      this.#resets += 1;
      return;
    }
    this.#missing += record - last - 1;
    if (this.#gaps === "reject")
      throw new RowError(`the records ${last + 1} to ${record - 1} are missing before this one`, {
        column: "RECORD",
        text,
        hint: "Collect the table again; `gaps: warn` takes the file as it is.",
      });
  }

  note(finding: MapContext<Settings>["finding"]): void {
    const gaps = "records are missing in the file, by the gaps between its record numbers";
    if (this.#missing > 0) finding({ kind: "recordGaps", message: gaps, count: this.#missing, attention: true });
    const resets = "the record numbers start again";
    if (this.#resets > 0) finding({ kind: "recordResets", message: resets, count: this.#resets, attention: true });
  }
}
