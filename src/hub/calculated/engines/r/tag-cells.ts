/** The column Tags of a script: one JSON object a row. */

type RowTags = Readonly<Record<string, string>> | null;

/** Rows that warnings name. */
const NAMED_ROWS = 5;
/** The version of a row is said by its own column; input tags that a script passes on carry it too. */
const RESERVED = "version";

/** A cell that is no JSON object of simple values drops the tags of its row alone, and is said in `warnings`. */
export function tagCells(rows: readonly number[], cells: readonly (string | null)[], warnings: string[]): RowTags[] {
  const bad: number[] = [];
  const known = new Map<string, RowTags | undefined>();
  const tags = rows.map((row) => {
    const text = cells[row] ?? "";
    if (!known.has(text)) known.set(text, parsed(text));
    const found = known.get(text);
    if (found === undefined) bad.push(row + 1);
    return found ?? null;
  });
  if (bad.length > 0) warnings.push(warningOf(bad));
  return tags;
}

function warningOf(bad: readonly number[]): string {
  const named = bad.slice(0, NAMED_ROWS).join(", ");
  const others = bad.length > NAMED_ROWS ? ` and ${bad.length - NAMED_ROWS} others` : "";
  return (
    `Tags of ${bad.length === 1 ? "row" : "rows"} ${named}${others} are no JSON object with texts: ` +
    "the rows are stored without tags"
  );
}

/** The types of the language do not know the third parameter yet. */
type ParseWithSource = (
  text: string,
  reviver: (key: string, value: unknown, place: { source?: string }) => unknown,
) => unknown;

/** Numbers stay as they are written: 1.10 is not 1.1. */
function asWritten(_key: string, value: unknown, { source }: { readonly source?: string }): unknown {
  return typeof value === "number" ? (source ?? String(value)) : value;
}

/** Null without tags; undefined when the text is no object of simple values. */
function parsed(text: string): RowTags | undefined {
  if (text.trim() === "") return null;
  let value: unknown;
  try {
    value = (JSON.parse as ParseWithSource)(text, asWritten);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const entries = Object.entries(value).filter(([key, one]) => key !== RESERVED && one !== null);
  if (entries.some(([, one]) => typeof one === "object")) return undefined;
  if (entries.length === 0) return null;
  return Object.fromEntries(entries.map(([key, one]) => [key, String(one)]));
}
