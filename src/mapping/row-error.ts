/** Thrown for a fault of one row: it becomes a rejected row, and mapping goes on where the mapper catches it or hands rows one by one. */
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
