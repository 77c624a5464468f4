/** Faults with the column that they are in. */
import { RowError } from "headgate/mapper";

/** Says in which column the fault is that `read` throws. */
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
