/** Where the column of a refused row stands in its line: apart from the view, which only a browser can load. */

const DELIMITERS = [";", "\t", ",", "|"];

interface Range {
  readonly from: number;
  /** Excluded. */
  readonly to: number;
}

/** The fields of a line with their places; quotes keep delimiters within a field. */
export function fieldsOf(line: string, delimiter: string): readonly Range[] {
  const fields: Range[] = [];
  let [from, isQuoted] = [0, false];
  for (let at = 0; at <= line.length; at += 1) {
    if (line[at] === '"') isQuoted = !isQuoted;
    if (at < line.length && (isQuoted || line[at] !== delimiter)) continue;
    fields.push({ from, to: at });
    from = at + 1;
  }
  return fields;
}

export function bare(text: string): string {
  return text
    .trim()
    .replace(/^"(.*)"$/, "$1")
    .trim();
}

/** Null when no line is a header that names the column, or the row is shorter than its header. */
export function columnIn(line: string, column: string, header: readonly string[]): Range | null {
  for (const head of header)
    for (const delimiter of DELIMITERS) {
      const fields = fieldsOf(head, delimiter);
      if (fields.length < 2) continue;
      const at = fields.findIndex(({ from, to }) => bare(head.slice(from, to)) === column.trim());
      if (at >= 0) return fieldsOf(line, delimiter)[at] ?? null;
    }
  return null;
}

/** The cell of a table: by its letters (`AB`), or by the name in one of the first rows. */
export function cellOf(column: string, header: readonly (readonly string[])[]): number | null {
  for (const row of header) {
    const at = row.findIndex((cell) => cell.trim() === column.trim());
    if (at >= 0) return at;
  }
  if (!/^[A-Z]{1,3}$/.test(column)) return null;
  return [...column].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1;
}

/** `A`, …, `Z`, `AA`: the letters of a column, from 0. */
export function lettersOf(at: number): string {
  const rest = Math.floor(at / 26);
  return `${rest === 0 ? "" : lettersOf(rest - 1)}${String.fromCharCode(65 + (at % 26))}`;
}
