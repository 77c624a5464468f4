/**
 * Dates are stored to the millisecond; finer ones are cut to it. Two different dates that become equal by the cut, with
 * different values, would overwrite each other by chance: such readings of one operation are all discarded.
 */
import { readPushParts } from "#wire/index.ts";
import { ReadingColumns } from "../store/columns.ts";
import type { IngestTransaction, QueuedOperation } from "../store/store.ts";
import { decompressed } from "./body-compression.ts";
import { createResolver, ReadingJudge, versionOf } from "./judgement.ts";

export const COLLIDING =
  "the date, cut to the millisecond, is that of another reading of this operation with another value";

const EXAMPLE_CHARACTERS = 60;

/** Notice in the outcome, given once. Null: no date was cut. */
export class CutNotice {
  #count = 0;
  #first = "";

  add(date: string): void {
    if (this.#count === 0) this.#first = date.slice(0, EXAMPLE_CHARACTERS);
    this.#count += 1;
  }

  words(): string | null {
    if (this.#count === 0) return null;
    const dates =
      this.#count === 1 ? "1 date finer than a millisecond was" : `${this.#count} dates finer than a millisecond were`;
    return `${dates} cut to it, the first: ${JSON.stringify(this.#first)}`;
  }
}

/** The indexes of colliding readings among the storable ones. Reads the operation twice at most. */
export async function findColliding(
  transaction: IngestTransaction,
  operation: QueuedOperation,
  lastMs: number,
): Promise<ReadonlySet<number>> {
  const body = decompressed(operation.body);
  const { count, hasFiner } = survey(body);
  if (!hasFiner) return new Set();
  const columns = new ReadingColumns(count);
  const beyond: string[] = [];
  const { resolve } = createResolver(transaction, operation);
  for (const element of readPushParts(body)) {
    const variable = await resolve(element);
    if (typeof variable === "string") continue;
    const judge = new ReadingJudge(element, variable, lastMs);
    const position = columns.positionOf(variable);
    for (const reading of element.data) {
      if (judge.faultOf(reading) !== null) continue;
      const version = variable.isVersioned ? versionOf(element, reading) : undefined;
      const labels = version === undefined ? null : { version, tags: null, batchTags: null };
      columns.add(0, position, judge.atMs, reading.value, labels);
      beyond.push(judge.beyond);
    }
  }
  return collidingIn(columns, beyond);
}

/** A text with more than three decimals, which may be a date finer than a millisecond. */
const MAYBE_FINER = /[.,]\d{4}/;

function survey(body: Uint8Array): { readonly count: number; readonly hasFiner: boolean } {
  let count = 0;
  let hasFiner = false;
  for (const { data } of readPushParts(body)) {
    count += data.length;
    hasFiner ||= data.some(({ date }) => date.length >= 24 && MAYBE_FINER.test(date));
  }
  return { count, hasFiner };
}

function collidingIn(columns: ReadingColumns, beyond: readonly string[]): ReadonlySet<number> {
  const colliding = new Set<number>();
  const order = columns.order();
  for (let from = 0; from < order.length; ) {
    const first = order[from] ?? 0;
    let end = from + 1;
    while (end < order.length && isSamePoint(columns, first, order[end] ?? 0)) end += 1;
    const point = order.subarray(from, end);
    from = end;
    if (point.every((index) => beyond[index] === beyond[first])) continue;
    const byVersion = Map.groupBy(point, (index) => columns.labelsOf(index)?.version ?? null);
    for (const indices of byVersion.values())
      if (differ(columns, beyond, indices)) for (const index of indices) colliding.add(index);
  }
  return colliding;
}

function isSamePoint({ variable, atMs }: ReadingColumns, one: number, other: number): boolean {
  return variable[one] === variable[other] && atMs[one] === atMs[other];
}

/** Of one exact date the last value counts, as always; values of different dates must be equal. */
function differ({ value }: ReadingColumns, beyond: readonly string[], indices: readonly number[]): boolean {
  const last = new Map(indices.map((index) => [beyond[index], value[index]]));
  return new Set(last.values()).size > 1;
}
