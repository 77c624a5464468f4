interface Place {
  readonly sheet?: string | undefined;
  readonly row?: number | undefined;
  readonly column?: string | undefined;
  readonly text?: string | undefined;
}

/** `sheet Export, row 42, column value`, between `before` and `after`; empty when no place is known. */
export function placeWords(place: Place | undefined, before = "", after = ": "): string {
  const { sheet, row, column } = place ?? {};
  const words = Object.entries({ sheet, row, column }).filter(([, value]) => value !== undefined);
  const texts = words.map(([kind, value]) => (kind === "column" ? columnWords(String(value)) : `${kind} ${value}`));
  return words.length === 0 ? "" : `${before}${texts.join(", ")}${after}`;
}

/** `column value`; a column without a name is called `column 3` already. */
export function columnWords(column: string): string {
  return /^column \d/.test(column) ? column : `column ${column}`;
}

/** ` (found "1,5")`, unless the message has it already. */
export function foundWords(message: string, place: Place | undefined): string {
  const text = place?.text;
  return text === undefined || message.includes(text) ? "" : ` (found ${JSON.stringify(text)})`;
}
