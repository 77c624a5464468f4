/**
 * Remembers the place of each row: readers stamp each row, and a tracker follows the row that a loop has
 * reached, so that every error can name its place.
 */
import type { RowPlace } from "./contract.ts";

/**
 * Returns its argument, so that a subclass can put private fields on an existing object: this is cheaper than
 * a WeakMap, and invisible to authors of mappers.
 */
class Given {
  constructor(given: object) {
    // biome-ignore lint/correctness/noConstructorReturn: this is what the class is for
    return given;
  }
}

class Stamped extends Given {
  readonly #row: number;
  readonly #sheet: string | undefined;

  constructor(given: object, row: number, sheet: string | undefined) {
    super(given);
    this.#row = row;
    this.#sheet = sheet;
  }

  static placeOf(given: object): RowPlace | undefined {
    return #row in given ? { row: given.#row, sheet: given.#sheet } : undefined;
  }

  static rowOf(given: object): number {
    return #row in given ? given.#row : 0;
  }

  static sheetOf(given: object): string | undefined {
    return #row in given ? given.#sheet : undefined;
  }
}

/** Stamps a row with its place; once for each object. */
export function stampPlace(row: object, number: number, sheet?: string): void {
  new Stamped(row, number, sheet);
}

/** Place of a row that a reader handed out. */
export const placeOf = Stamped.placeOf;

/** Follows the row that the loop of the mapper has reached. */
export class RowTracker {
  /** Line of the current row; 0 outside a loop. */
  row = 0;
  sheet: string | undefined;
  /** The latest row, for an error that left the loop; undefined before the first row. */
  latest: object | undefined;

  enter(row: object): void {
    this.latest = row;
    this.row = Stamped.rowOf(row);
    this.sheet = Stamped.sheetOf(row);
  }

  leave(): void {
    this.row = 0;
    this.sheet = undefined;
  }

  /** Makes an iteration over a chunk of rows report each row to the tracker. */
  watch<Row extends object>(rows: Row[]): readonly Row[] {
    const tracker = this;
    Object.defineProperty(rows, Symbol.iterator, {
      value: (): IterableIterator<Row> => {
        let index = 0;
        const step: { done: boolean; value: Row | undefined } = { done: false, value: undefined };
        return {
          next() {
            const row = rows[index];
            index += 1;
            step.value = row;
            if (row === undefined) {
              step.done = true;
              tracker.leave();
            } else tracker.enter(row);
            return step as IteratorResult<Row>;
          },
          return() {
            tracker.leave();
            return { done: true, value: undefined };
          },
          [Symbol.iterator]() {
            return this;
          },
        };
      },
    });
    return rows;
  }
}
