/** A place in a file, after a line end, at which reading may continue elsewhere. */

/** Where reading continues: a position, or null for the end of the file. */
export type NextPlace = number | null;

export class Cut {
  readonly at: number;
  readonly #otherwise: NextPlace;
  readonly #decide: (line: number) => Promise<NextPlace>;
  /** Whether the bytes that were handed out last end there. */
  isNext = false;
  /** Whether a reader came there without a decision: within a row, or not in the loop over rows. */
  wasPassed = false;
  #next: NextPlace;
  #isDecided = false;

  /**
   * `decide` is called when a row begins there, at the given line, and all rows before it were taken. `otherwise` is
   * where reading continues when no row does.
   */
  constructor(at: number, otherwise: NextPlace, decide: (line: number) => Promise<NextPlace>) {
    this.at = at;
    this.#otherwise = otherwise;
    this.#decide = decide;
    this.#next = otherwise;
  }

  async reach(line: number): Promise<void> {
    this.isNext = false;
    this.#next = await this.#decide(line);
    this.#isDecided = true;
  }

  /** Where reading continues. */
  pass(): NextPlace {
    const next = this.#next;
    this.wasPassed ||= !this.#isDecided;
    this.#isDecided = false;
    this.isNext = false;
    this.#next = this.#otherwise;
    return next;
  }
}
