/** The readings that the mapper emits for a row, recorded for rows of which more may follow. */
import type { Reading } from "../mapper.ts";
import type { Group } from "../reading-index.ts";

export interface EmittedReading extends Pick<Reading, "version" | "tags" | "batchTags"> {
  readonly group: Group;
  /** Epoch milliseconds; NaN for a date that is not known yet. */
  readonly date: number;
  readonly value: number;
  /** Line in the file; 0 when unknown. */
  readonly row: number;
  /** Index of the sheet; 0 when there is none. */
  readonly sheet: number;
}

export class Emitted {
  isRecorded = false;
  #readings: EmittedReading[] = [];

  add(reading: EmittedReading): void {
    this.#readings.push(reading);
  }

  /** The readings since the last call. */
  take(): readonly EmittedReading[] {
    const readings = this.#readings;
    this.#readings = [];
    return readings;
  }
}
