/**
 * The rows that a mapper or a reader refused, the first ones in full and all of them counted; and the findings about a
 * file, counted by kind and message.
 */

import type { ErrorCode } from "#core/errors.ts";
import { REGISTER } from "#core/register.ts";
import type { Where } from "./mapper.ts";
import type { MappingFinding, Place, Reason, RejectedReason, RejectedRow } from "./model.ts";
import type { RowPlace } from "./readers/contract.ts";
import { isRowError, type RowError, type RowFault } from "./readers/row-error.ts";
import { placeOf, type RowTracker } from "./readers/row-place.ts";

/** Limit on the refused rows that are kept in full. */
export const REJECTED_ROWS_MAX = 100;
/** Limit on file content in errors. */
const TEXT_CHARACTERS_MAX = 200;
/** Limit on messages and hints, which may quote file content. */
const WORDS_CHARACTERS_MAX = 400;

/** Limit on the reasons that are counted separately; later ones share one count. */
const REASONS_MAX = 20;
const OTHER_REASONS = "other reasons";

/** Limit on the findings of a file that are counted separately; later ones share one count. */
export const FINDINGS_MAX = 50;
/** Limits on the words of a mapper. */
const KIND_CHARACTERS_MAX = 60;
const MESSAGE_CHARACTERS_MAX = 400;

const FURTHER = { kind: "further", message: "further findings" };

export function percent(share: number): string {
  return `${Number((share * 100).toPrecision(3))} %`;
}

export class Rejections {
  readonly rows: RejectedRow[] = [];
  /** Number of refusals; one row may have several. */
  count = 0;
  #refusedRows = 0;
  #takenRows = 0;
  #latestRefused: Place = {};
  #latestTaken = 0;
  readonly #reasons = new Map<string, { readonly message: string; readonly column?: string; count: number }>();

  /** Records that a row gave a reading; 0 when the row is not known. */
  taken(row: number): void {
    if (row !== 0 && row === this.#latestTaken) return;
    this.#latestTaken = row;
    this.#takenRows += 1;
  }

  /** Number of rows that gave a reading. */
  get takenRows(): number {
    return this.#takenRows;
  }

  /** Adds rows that gave readings in another thread. */
  takenElsewhere(rows: number): void {
    this.#takenRows += rows;
  }

  /** Share of refused rows, from 0 to 1; rows that gave nothing and were not refused do not count. */
  get share(): number {
    return this.count === 0 ? 0 : this.#refusedRows / (this.#refusedRows + this.#takenRows);
  }

  get refusedRows(): number {
    return this.#refusedRows;
  }

  /** Most frequent reason first. */
  byReason(): readonly RejectedReason[] {
    return [...this.#reasons.values()].sort((a, b) => b.count - a.count);
  }

  #countReason(fault: RowFault, column: string | undefined): void {
    const message = kindOf(fault);
    const key = `${column ?? ""}\0${message}`;
    const known =
      this.#reasons.get(key) ?? (this.#reasons.size < REASONS_MAX ? undefined : this.#reasons.get(OTHER_REASONS));
    if (known !== undefined) known.count += 1;
    else if (this.#reasons.size < REASONS_MAX)
      this.#reasons.set(key, {
        message: shorten(message, WORDS_CHARACTERS_MAX),
        ...(column === undefined ? {} : { column: shorten(column) }),
        count: 1,
      });
    else this.#reasons.set(OTHER_REASONS, { message: OTHER_REASONS, count: 1 });
  }

  /** Refuses a row that counted as taken. */
  addTaken(place: Place, fault: RowFault): void {
    const before = this.#refusedRows;
    this.add(place, fault);
    this.#takenRows = Math.max(0, this.#takenRows - (this.#refusedRows - before));
  }

  add(place: Place, fault: RowFault): void {
    this.count += 1;
    const { row, sheet } = this.#latestRefused;
    if (place.row === undefined || place.row !== row || place.sheet !== sheet) this.#refusedRows += 1;
    this.#latestRefused = place;
    this.#countReason(fault, fault.column ?? place.column);
    if (this.rows.length >= REJECTED_ROWS_MAX) return;
    this.rows.push({
      code: "HG-MAP-005",
      ...boundReason({
        message: fault.message,
        hint: fault.hint,
        place: { ...place, column: fault.column ?? place.column, text: fault.text ?? place.text },
      }),
    });
  }
}

interface FoundOnce {
  readonly kind: string;
  readonly message: string;
  readonly place?: Place | undefined;
  readonly count?: number | undefined;
  readonly attention?: boolean | undefined;
}

type Counted = { -readonly [Name in keyof MappingFinding]: MappingFinding[Name] };

export class Findings {
  readonly #found = new Map<string, Counted>();
  readonly #onFound: () => void;

  /** `onFound` is called with each finding. */
  constructor(onFound: () => void = () => undefined) {
    this.#onFound = onFound;
  }

  add({ kind, message, place, count, attention }: FoundOnce): void {
    this.#onFound();
    const finding = this.#of(String(kind), String(message));
    finding.count += typeof count === "number" && count > 1 ? Math.trunc(count) : 1;
    if (attention === true) finding.attention = true;
    if (place === undefined) return;
    // Results are compared with those that were read back from JSON.
    const bound = Object.fromEntries(Object.entries(boundPlace(place)).filter(([, part]) => part !== undefined));
    finding.first ??= bound;
    finding.last = bound;
  }

  #of(kind: string, message: string): Counted {
    const key = `${kind}\0${message}`;
    const known = this.#found.get(key);
    if (known !== undefined) return known;
    if (this.#found.size >= FINDINGS_MAX && kind !== FURTHER.kind) return this.#of(FURTHER.kind, FURTHER.message);
    const finding: Counted = {
      kind: shorten(kind, KIND_CHARACTERS_MAX),
      message: shorten(message, MESSAGE_CHARACTERS_MAX),
      count: 0,
    };
    this.#found.set(key, finding);
    return finding;
  }

  /** In the order in which they were found. */
  list(): readonly MappingFinding[] {
    return [...this.#found.values()].map((finding) => ({ ...finding }));
  }
}

/** The message without its quotations, so that rows with the same fault count as one reason. */
function kindOf({ message, text }: RowFault): string {
  const unquoted = text === undefined || text === "" ? message : message.replaceAll(`"${text}"`, "…");
  return unquoted.replaceAll(/"[^"]*"/g, "…").replaceAll(/(?<![\w.:+-])[+-]?\d[\d.,:]*(?!\w)/g, "…");
}

interface Words {
  readonly message: string;
  readonly hint?: string | undefined;
  readonly place?: Place | undefined;
}

/** All texts of an error, made safe for a line of a log and of a table, whatever the file contains. */
function boundReason<Given extends Words>(given: Given): Given {
  const { message, hint, place } = given;
  return {
    ...given,
    message: shorten(message, WORDS_CHARACTERS_MAX),
    ...(hint === undefined ? {} : { hint: shorten(hint, WORDS_CHARACTERS_MAX) }),
    ...(place === undefined ? {} : { place: boundPlace(place) }),
  };
}

export function reasonOf(code: ErrorCode, message: string, place?: Place, hint?: string): Reason {
  const words = { code, message, hint: hint ?? REGISTER[code].hint };
  return boundReason(place === undefined ? words : { ...words, place });
}

export function boundPlace(place: Place): Place {
  const { sheet, column, text } = place;
  return {
    ...place,
    ...(sheet === undefined ? {} : { sheet: shorten(sheet) }),
    ...(column === undefined ? {} : { column: shorten(column) }),
    ...(text === undefined ? {} : { text: shorten(text) }),
  };
}

/** The start of a text; control characters and marks that change the writing direction are escaped. */
export function shorten(text: string, charactersMax = TEXT_CHARACTERS_MAX): string {
  const escaped = text
    .slice(0, charactersMax + 1)
    .replace(UNSEEN, (sign) => ESCAPES[sign] ?? `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
  if (escaped.length <= charactersMax && text.length <= charactersMax) return escaped.toWellFormed();
  return `${escaped.slice(0, charactersMax).replace(/[\ud800-\udbff]$|\\(?:u[0-9a-f]{0,3})?$/, "")}…`.toWellFormed();
}

const ESCAPES: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
const UNSEEN = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/**
 * The place that a mapper names: a row of a reader, or a place as an object; without either, the current row of the
 * loop.
 */
export function placeAt(where: Where | undefined, tracker: RowTracker): Place {
  if (typeof where === "object" && where !== null) {
    const stamped: RowPlace | undefined = placeOf(where);
    if (stamped !== undefined) return stamped;
    const { row, sheet, column, text } = where as Partial<Record<keyof Place, unknown>>;
    if (typeof row === "number")
      return {
        row,
        sheet: typeof sheet === "string" ? sheet : undefined,
        column: typeof column === "string" ? column : undefined,
        text: typeof text === "string" ? text : undefined,
      };
  }
  return tracker.row === 0 ? {} : { row: tracker.row, sheet: tracker.sheet };
}

/** The fault of a `RowError`; when the mapper did not name the column, it is found by its text. */
export function rowFault(thrown: RowError, row: object | undefined): RowFault {
  const { message, text, hint } = thrown;
  return {
    message,
    text,
    hint,
    column: thrown.column ?? (row === undefined ? undefined : columnOf(row, text)),
  };
}

export { isRowError };

/** The only column of the row that holds this text. */
function columnOf(row: object, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const holding = Object.entries(row).filter(([, cell]) => cell === text || wallText(cell) === text);
  const [only] = holding;
  if (only === undefined || holding.length > 1) return undefined;
  return Array.isArray(row) ? `column ${Number(only[0]) + 1}` : only[0];
}

function wallText(cell: unknown): unknown {
  return typeof cell === "object" && cell !== null && "local" in cell ? cell.local : undefined;
}
