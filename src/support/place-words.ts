interface Place {
  readonly sheet?: string | undefined;
  readonly row?: number | undefined;
  readonly column?: string | undefined;
}

/** `sheet Export, row 42, column value`, between `before` and `after`; empty when no place is known. */
export function placeWords(place: Place | undefined, before = "", after = ": "): string {
  const { sheet, row, column } = place ?? {};
  const words = Object.entries({ sheet, row, column }).filter(([, value]) => value !== undefined);
  return words.length === 0 ? "" : `${before}${words.map((one) => one.join(" ")).join(", ")}${after}`;
}
