/** The column Tags of a script: one JSON object a row. */

type RowTags = Readonly<Record<string, string>> | null;

/** Rows that warnings name. */
const NAMED_ROWS = 5;
/** Characters of one cell: what it holds can take thirty times its memory. */
const CELL_LENGTH_MAX = 10_000;
/** Tags of one output, where rows beside each other have different ones. */
const TAGS_MAX = 2_000_000;
/** The version of a row is said by its own column; input tags that a script passes on carry it too. */
const RESERVED = "version";

/** A cell that is no JSON object of simple values drops the tags of its row alone, and is said in a warning. */
export class TagCells {
  #named: number[] = [];
  #bad = 0;
  #isAnyLong = false;
  #tags = 0;
  /** Rows often have the tags of the row before. */
  #last: { readonly text: string; readonly tags: RowTags | undefined } = { text: "", tags: null };

  /** `row` counts from 1. */
  tagsOf(cell: string | null, row: number): RowTags {
    const text = cell ?? "";
    if (text !== this.#last.text) {
      const isLong = text.length > CELL_LENGTH_MAX;
      this.#isAnyLong ||= isLong;
      this.#last = { text, tags: isLong ? undefined : parsed(text) };
      this.#tags += Object.keys(this.#last.tags ?? {}).length;
    }
    const { tags } = this.#last;
    if (tags !== undefined) return tags;
    this.#bad += 1;
    if (this.#bad <= NAMED_ROWS) this.#named.push(row);
    return null;
  }

  /** Why the output cannot be kept; null: it can. */
  get fault(): string | null {
    if (this.#tags <= TAGS_MAX) return null;
    return `the script gave more than ${TAGS_MAX} tags: give fewer rows, or fewer tags of each`;
  }

  get warnings(): readonly string[] {
    if (this.#bad === 0) return [];
    const others = this.#bad > NAMED_ROWS ? ` and ${this.#bad - NAMED_ROWS} others` : "";
    const long = this.#isAnyLong ? `, or longer than ${CELL_LENGTH_MAX} characters` : "";
    return [
      `Tags of ${this.#bad === 1 ? "row" : "rows"} ${this.#named.join(", ")}${others} are no JSON object with texts` +
        `${long}: the rows are stored without tags`,
    ];
  }
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
