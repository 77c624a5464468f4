/** From here on a spreadsheet has replaced the last digits of a number by zeros, without a trace. */
const DIGITS_LOST_FROM = 1e15;

/**
 * Thrown for a fault of one row. Inside `eachRow` it becomes a rejected row with its place, and mapping
 * continues; outside it ends the file, which goes into quarantine with the row and column as far as they are
 * known.
 */
export class RowError extends Error {
  readonly column: string | undefined;
  /** The offending text. */
  readonly text: string | undefined;
  readonly hint: string | undefined;

  constructor(message: string, facts: { column?: string; text?: string; hint?: string } = {}) {
    super(message);
    this.name = "RowError";
    this.column = facts.column;
    this.text = facts.text;
    this.hint = facts.hint;
  }
}

/**
 * Thrown for a fault of the whole file: mapping stops and the file goes into quarantine with message, hint and place.
 */
export class FileError extends Error {
  readonly hint: string | undefined;
  readonly sheet: string | undefined;
  readonly row: number | undefined;
  readonly column: string | undefined;
  /** The offending text. */
  readonly text: string | undefined;

  constructor(
    message: string,
    facts: {
      hint?: string;
      sheet?: string;
      row?: number;
      column?: string;
      text?: string;
      cause?: unknown;
    } = {},
  ) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = "FileError";
    this.hint = facts.hint;
    this.sheet = facts.sheet;
    this.row = facts.row;
    this.column = facts.column;
    this.text = facts.text;
  }
}

/** A file that a reader cannot read in the format that the mapper expects. */
export class UnreadableError extends FileError {
  readonly unreadable = true;
}

// A mapper may have loaded another copy of this module, so these checks compare names and not identities.

export function isRowError(thrown: unknown): thrown is RowError {
  return thrown instanceof Error && thrown.name === "RowError";
}

export function isFileError(thrown: unknown): thrown is FileError {
  return thrown instanceof Error && thrown.name === "FileError";
}

export function isUnreadable(thrown: unknown): thrown is UnreadableError {
  return isFileError(thrown) && "unreadable" in thrown;
}

/** Why a row is refused; `text` is the content of the cell. */
export interface RowFault {
  readonly message: string;
  readonly column?: string | undefined;
  readonly text?: string | undefined;
  readonly hint?: string | undefined;
}

/** Refuses one row of the file, by an object that remembers its place; reading continues. */
export type RefuseRow = (row: object, fault: RowFault) => void;

/** Whether a number in a cell certainly has the digits that were typed: a whole one that is not too large. */
export function hasTypedDigits(number: number): boolean {
  return Number.isInteger(number) && Math.abs(number) < DIGITS_LOST_FROM;
}
