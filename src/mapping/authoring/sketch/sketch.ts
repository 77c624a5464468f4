/** Sketches a mapper for the files like a sample. */
import { sketchColumns } from "./columns.ts";
import { type Proposal, propose } from "./propose.ts";
import { readSample, type SampleFile } from "./read-sample.ts";
import type { SampleTable } from "./sample.ts";

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
