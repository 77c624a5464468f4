/** Why a row is refused; `text` is the content of the cell. */
export interface RowFault {
  readonly message: string;
  readonly column?: string | undefined;
  readonly text?: string | undefined;
  readonly hint?: string | undefined;
}

/** Refuses one row of the file, by an object that remembers its place; reading continues. */
export type RefuseRow = (row: object, fault: RowFault) => void;
