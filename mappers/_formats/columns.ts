/** Faults with their column. */
import { RowError } from "headgate/mapper";

/** Adds the column to a fault that `read` throws. */
export function inColumn<Value>(column: string, text: string, read: (text: string) => Value): Value {
  try {
    return read(text);
  } catch (thrown) {
    if (!(thrown instanceof RowError)) throw thrown;
    const { message, hint } = thrown;
    throw new RowError(text.trim() === "" ? `${column} is empty` : message, {
      column,
      text,
      ...(hint === undefined || text.trim() === "" ? {} : { hint }),
    });
  }
}
