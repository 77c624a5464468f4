/**
 * The ends of variables: their newest blocks, and whether a row is later. They stay known between groups, since the
 * writer's connection alone adds points.
 */
import type { BlockKey } from "../blocks/parts.ts";
import { keyOf } from "../blocks/store-segment.ts";
import { FAR_MS } from "../point-rows.ts";
import type { Statements } from "./database.ts";

/** Some 20 MB. */
const ENDS_MAX = 100_000;

interface End {
  /** The newest block; null: there is none. */
  readonly newest: BlockKey | null;
  /** Whether no row is later; null: not known. */
  isLast: boolean | null;
}

export class Ends {
  readonly #tools: Statements;
  readonly #ends = new Map<number, End>();

  constructor(tools: Statements) {
    this.#tools = tools;
  }

  /** Null: the variable has no block. */
  newestOf(id: number): BlockKey | null {
    return this.#endOf(id).newest;
  }

  /** Whether the variable has no row later than its newest block. */
  isLast(id: number): boolean {
    const end = this.#endOf(id);
    end.isLast ??= this.#tools.get(LATER_ROW, id, end.newest?.lastMs ?? -FAR_MS) === undefined;
    return end.isLast;
  }

  /** No row is later than this block. */
  note(id: number, newest: BlockKey): void {
    this.#know(id, { newest, isLast: true });
  }

  /** Rows were added, perhaps later ones. */
  noteRows(id: number): void {
    const end = this.#ends.get(id);
    if (end !== undefined) end.isLast = null;
  }

  forget(id: number): void {
    this.#ends.delete(id);
  }

  forgetAll(): void {
    this.#ends.clear();
  }

  #endOf(id: number): End {
    const known = this.#ends.get(id);
    if (known !== undefined) return known;
    const newest = this.#tools.get(NEWEST_BLOCK, id);
    return this.#know(id, { newest: newest === undefined ? null : keyOf(newest), isLast: null });
  }

  #know(id: number, end: End): End {
    const isFull = this.#ends.size >= ENDS_MAX && !this.#ends.has(id);
    const oldest = isFull ? this.#ends.keys().next().value : undefined;
    if (oldest !== undefined) this.#ends.delete(oldest);
    this.#ends.set(id, end);
    return end;
  }
}

const NEWEST_BLOCK = `SELECT variable_id, first_ms, last_ms, points FROM point_block WHERE variable_id = ?
  ORDER BY first_ms DESC LIMIT 1`;
const LATER_ROW = "SELECT 1 FROM point WHERE variable_id = ? AND at_ms > ? LIMIT 1";
