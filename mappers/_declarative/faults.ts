/** Row faults that know their column. */
import { RowError } from "headgate/mapper";

/** Says in which column the fault is, and what would help if nothing else is said. */
export function inColumn(thrown: unknown, column: string, hint?: string): unknown {
  if (!(thrown instanceof RowError)) return thrown;
  const { text } = thrown;
  const better = thrown.hint ?? hint;
  return new RowError(thrown.message, {
    column: thrown.column ?? column,
    ...(text === undefined ? {} : { text }),
    ...(better === undefined ? {} : { hint: better }),
  });
}
