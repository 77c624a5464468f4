/** Sketches a mapper for the files like a sample. */

import { CsvError } from "csv-parse/sync";
import { RejectedError } from "#core/errors.ts";
import { isFileError, isRowError } from "../../readers/row-error.ts";
import { type Proposal, propose } from "./propose.ts";
import { type SampleTable, sketchColumns, tableIn } from "./sample.ts";

export interface Sketch {
  readonly table: SampleTable;
  /** Null when the dates carry no zone and none was given: a wrong assumption would shift values silently. */
  readonly proposal: Proposal | null;
  /** Names of the columns whose dates carry no zone; empty when they carry one. */
  readonly unzoned: readonly string[];
}

/**
 * `zoneFor` is asked for the zone of dates that carry none, and returns an IANA or Windows name, or undefined. Throws a
 * `RejectedError` when no table is found in the file.
 */
export async function sketchFile(
  name: string,
  sample: SampleFile,
  zoneFor: (columns: readonly string[]) => Promise<string | undefined>,
): Promise<Sketch> {
  const table = await readSample(sample);
  const columns = sketchColumns(table);
  const unzoned = columns.date === null || columns.date.hasDesignator ? [] : columns.date.names;
  if (unzoned.length === 0) return { table, unzoned, proposal: propose({ name, table, columns, timeZone: undefined }) };
  const timeZone = await zoneFor(unzoned);
  return { table, unzoned, proposal: timeZone === undefined ? null : propose({ name, table, columns, timeZone }) };
}

// Reads a sample that a person gives, and refuses one that holds no table.

interface SampleFile {
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
