/** Row faults that know their column, and those that wait. */
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

/** Does it now, and gives or throws what came of it when asked for. */
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
