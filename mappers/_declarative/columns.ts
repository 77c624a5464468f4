/** The columns of a file, found by name or number. */
import { FileError } from "headgate/mapper";

export interface Columns {
  /** Position from 0. Throws a `FileError` that lists the columns, or suggests a similar one. */
  find(reference: string | number): number;
  /** The name in errors. */
  name(at: number): string;
  /** Names with their positions, for patterns. */
  entries(): readonly { readonly name: string; readonly at: number }[];
  /** Required number of cells of a row; undefined without a header, until the first row or a setting says it. */
  readonly width: number | undefined;
  /** Only without a header. */
  readonly unheaded?: Unheaded | undefined;
}

interface Unheaded {
  /** Number of cells up to the last column that was asked for. */
  readonly needed: number;
  setWidth(cells: number): void;
}

const NAMES_SHOWN = 12;

/**
 * Columns under one or several rows of names. A column's name is its names from top to bottom, joined by a blank; one
 * of them is enough where no other column has it.
 */
export function headedColumns(rows: readonly (readonly string[])[]): Columns {
  const width = Math.max(0, ...rows.map((row) => row.length));
  const stacks = Array.from({ length: width }, (_, at) => rows.map((row) => (row[at] ?? "").trim()));
  const names = stacks.map((stack) => stack.filter((name) => name !== "").join(" "));
  // A delimiter at the end of the header makes an empty column, which does not count.
  const needed = names.findLastIndex((name) => name !== "") + 1;
  return {
    width: needed,
    name: (at) => names[at] || `column ${at + 1}`,
    entries: () => names.map((name, at) => ({ name, at })),
    find(reference) {
      if (typeof reference === "number") {
        if (reference <= width) return reference - 1;
        throw new FileError(`there is no column ${reference}: the header has ${width} columns`, {
          text: shownNames(names),
        });
      }
      const found = placeOf(reference, names, stacks);
      if (found !== undefined) return found;
      if (/^\d+$/.test(reference) && Number(reference) >= 1 && Number(reference) <= width) return Number(reference) - 1;
      throw notFound(reference, names);
    },
  };
}

/** Columns of a file without a header, by number alone. `width`: cells of a row, where a setting says it. */
export function numberedColumns(width?: number | undefined): Columns {
  let cells = width;
  let needed = 0;
  return {
    get width() {
      return cells;
    },
    unheaded: {
      get needed() {
        return needed;
      },
      setWidth(count) {
        cells = count;
      },
    },
    name: (at) => `column ${at + 1}`,
    entries: () => [],
    find(reference) {
      if (/^[1-9]\d{0,4}$/.test(String(reference))) {
        needed = Math.max(needed, Number(reference));
        return Number(reference) - 1;
      }
      throw new FileError(`the file has no header, so there is no column ${JSON.stringify(reference)}`, {
        hint: "Name columns by their number, from 1; or set `headerRows` if there is a header.",
      });
    },
  };
}

/**
 * The single column of that name; then the one with that name in one of its rows; then a match without regard to case
 * and blanks.
 */
function placeOf(
  reference: string,
  names: readonly string[],
  stacks: readonly (readonly string[])[],
): number | undefined {
  const wanted = reference.trim();
  const plain = plainOf(wanted);
  for (const fits of [
    (at: number) => names[at] === wanted,
    (at: number) => stacks[at]?.includes(wanted) === true,
    (at: number) => plainOf(names[at] ?? "") === plain,
  ]) {
    const places = names.flatMap((_, at) => (fits(at) ? [at] : []));
    if (places.length > 1)
      throw new FileError(`the header names the column ${wanted} ${places.length} times`, {
        column: wanted,
        hint: `Name it by its number instead: ${places.map((at) => at + 1).join(" or ")}.`,
      });
    if (places[0] !== undefined) return places[0];
  }
  return undefined;
}

function plainOf(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[\s_]+/g, " ")
    .trim();
}

function notFound(wanted: string, names: readonly string[]): FileError {
  const near = nearest(wanted, names);
  const only = names.length === 1 ? (names[0] ?? "") : "";
  const delimiter = [";", "\t", "|", ","].find((mark) => only.includes(mark));
  const hint =
    delimiter !== undefined
      ? `The whole header is one column: is the delimiter ${JSON.stringify(delimiter)}?`
      : near !== undefined
        ? `Is ${JSON.stringify(near)} meant?`
        : `The columns are: ${shownNames(names)}.`;
  return new FileError(`the header has no column ${JSON.stringify(wanted)}`, {
    column: wanted,
    text: shownNames(names),
    hint,
  });
}

function shownNames(names: readonly string[]): string {
  const more = names.length - NAMES_SHOWN;
  return names.slice(0, NAMES_SHOWN).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** The name with the fewest differing letters, if it is similar enough. */
export function nearest(wanted: string, names: readonly string[]): string | undefined {
  const plain = plainOf(wanted);
  let best: string | undefined;
  let least = Math.max(2, Math.floor(plain.length / 3)) + 1;
  for (const name of names) {
    const distance = differences(plain, plainOf(name));
    if (distance < least) {
      best = name;
      least = distance;
    }
  }
  return best;
}

/** Number of letters to add, drop or change to turn one text into the other (Levenshtein). */
function differences(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let at = 1; at <= one.length; at += 1) {
    const next = [at];
    for (let to = 1; to <= other.length; to += 1) {
      const change = (row[to - 1] ?? 0) + (one[at - 1] === other[to - 1] ? 0 : 1);
      next.push(Math.min(change, (row[to] ?? 0) + 1, (next[to - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
