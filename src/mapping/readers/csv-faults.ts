/** Why the records of a CSV file cannot be read, with the line of the row. */
import { UnreadableError } from "./row-error.ts";

/**
 * The parser counts lines from the start of its block, and a blank CRLF line twice; the line of the row
 * replaces its number.
 */
export function invalidCsv(fault: Error, row: number): UnreadableError {
  const message = fault.message.replace(/ at line \d+/, ` at line ${row}`);
  return new UnreadableError(`line ${row} is not valid CSV: ${message}`, {
    row,
    hint:
      "A quote inside a quoted cell is written twice. Does the file use another delimiter than the mapper expects, " +
      "or no quoting (declare `quote: null`)?",
    cause: fault,
  });
}

export function quoteNotClosed(row: number, cause: Error): UnreadableError {
  return new UnreadableError(`a quote that opens in the row at line ${row} is not closed`, {
    row,
    hint: "Close the quote, or declare `quote: null` if the file has no quoting.",
    cause,
  });
}

export function rowTooLong(row: number, rowBytesMax: number, cause?: Error): UnreadableError {
  return new UnreadableError(`the row at line ${row} is longer than ${rowBytesMax} bytes`, {
    row,
    hint:
      "Is a quote in it not closed (declare `quote: null` if the file has no quoting), " +
      "or is the file not CSV at all? " +
      "A mapper for longer rows raises `rowBytesMax`.",
    cause,
  });
}
