/** The part of the contract of mappers by which plain rows are read from the bytes of a file. */

/**
 * Which cells of a row say what, for `eachRow`: rows of plain cells are then read from the bytes of the file, many
 * times as fast. A cell is plain when it is not quoted, has no blanks around it, and holds a date in the declared
 * format or a number of digits with the declared mark. Columns are positions from 0, or names for rows by names.
 *
 * The first row with given texts in `by` is handed to `take`, which shows what its readings have beside date and
 * value; so is every row that is not plain, gives no reading, is refused, or stands near a change of the clock.
 * Therefore `take` remains the only definition of a row. It must emit the same readings for the same texts in `by`, but
 * for date and value, which are those of the cells: a row whose readings have others is not taken as an example.
 */
export interface RowPlan {
  /** Number of cells; needed for rows without names. Rows of other lengths are handed to `take`. */
  readonly width?: number | undefined;
  readonly date: {
    readonly column: number | string;
    /**
     * `iso` (default), or a format as of `time.local`; or several, of which one has to fit: a date to which they give
     * different meanings is handed to `take`.
     */
    readonly format?: string | readonly string[] | undefined;
    /** Zone of dates without designator. Such dates are handed to `take` when it is absent. */
    readonly zone?: string | undefined;
    /** `take` reads such dates by the policy `byOrder`, with a series that depends on `by` alone. */
    readonly byOrder?: boolean | undefined;
  };
  /** Columns of values, in the order in which `take` emits their readings. */
  readonly values: readonly (number | string)[];
  /**
   * For rows of a day, with a column an interval: the date is a calendar day in a format without time, `zone` is
   * needed, and all readings of a row have one target. Days around a change of the clock are handed to `take`.
   */
  readonly day?:
    | {
        /** Minutes from midnight to the date of each of the `values`. */
        readonly minutes: readonly number[];
        /** Columns with the status of each of the `values`, on which alone its version and tags depend beside `by`. */
        readonly status?: readonly (number | string)[] | undefined;
      }
    | undefined;
  /**
   * Default false. `take` needs nothing of other rows but those at the head of the file, such as the header, and `map`
   * does nothing after the last row. A large file may then be mapped by two threads, each with its own call of `map`:
   * one of them receives the head and the later rows. When it refuses a row or logs a line, its part is mapped again by
   * the first.
   */
  readonly independent?: boolean | undefined;
  /** Decimal mark of the values. Default `.`. */
  readonly decimal?: "." | "," | undefined;
  /** All other columns on which the readings of a row depend: target, version, tags, unit, status. */
  readonly by: readonly (number | string)[];
  /**
   * Texts of cells without a value, for which `take` emits nothing. `count` is called with the number of such cells.
   */
  readonly missing?: { readonly texts: readonly string[]; readonly count: (cells: number) => void } | undefined;
}
