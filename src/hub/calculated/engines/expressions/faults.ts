/** Faults of an expression, with their place in it. */

export interface ExpressionFault {
  readonly message: string;
  /** From 1, in the formula as it is written, with its leading `=`. */
  readonly column: number;
}

/** A fault after which nothing else of the expression can be checked. */
export class UnreadableExpression extends Error {
  readonly column: number;

  constructor(message: string, column: number) {
    super(message);
    this.column = column;
  }
}
