/** Row faults with their column, and deferred row faults. */
import { RowError } from "headgate/mapper";

/** Adds the column to the fault, and the hint if it has none. */
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

/** Runs the work now; the returned function returns or throws its result. */
export function attempt<Result>(work: () => Result): () => Result {
  try {
    const result = work();
    return () => result;
  } catch (thrown) {
    return () => {
      throw thrown;
    };
  }
}
