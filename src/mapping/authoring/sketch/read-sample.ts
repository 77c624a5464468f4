/** Reads a sample that a person gives, and refuses one that holds no table. */
import { CsvError } from "csv-parse/sync";
import { RejectedError } from "#core/errors.ts";
import { isFileError, isRowError } from "../../readers/row-error.ts";
import { type SampleTable, tableIn } from "./sample.ts";

export interface SampleFile {
  readonly path: string;
  /** How the person knows it: the path may be of a copy. */
  readonly subject: string;
  /** Advice where it holds no table. */
  readonly hint: string;
}

/** Throws a `RejectedError` when no table is found in the file. */
export async function readSample({ path, subject, hint }: SampleFile): Promise<SampleTable> {
  const refused = (message: string, cause?: unknown) =>
    new RejectedError("HG-CLI-006", { operation: "read sample", subject, message, hint, cause });
  try {
    const table = await tableIn(path);
    if (table !== null && table.rows.length > 0) return table;
  } catch (thrown) {
    if (!isFaultOfFile(thrown)) throw thrown;
    throw refused(`the sample cannot be read: ${thrown.message}`, thrown);
  }
  throw refused("no table of rows is found in the file");
}

/** The text of a field name in JSON, or the quotes of a CSV, can be wrong too. */
function isFaultOfFile(thrown: unknown): thrown is Error {
  return isFileError(thrown) || isRowError(thrown) || thrown instanceof CsvError || thrown instanceof SyntaxError;
}
