/** Reads the points of inputs: of each variable and period once, however many aliases and parts ask for them. */
import { isOfParts } from "#wire/index.ts";
import { Buckets } from "../../data/buckets.ts";
import { collectPeriods } from "../../data/periods.ts";
import type { PointRange, PointRow, SampleRange } from "../../store/records.ts";
import type { PointStore } from "../../store/store.ts";
import type { InputVariable } from "../engines/engine.ts";
import { DefinitionFault, type PlannedInput } from "./formulas.ts";

export type InputColumns = Pick<InputVariable, "atMs" | "values" | "versions" | "tags">;

export interface ReadingParts {
  readonly points: Pick<PointStore, "read" | "pieces">;
  /** Rows that one part may read. */
  readonly rowsMax: number;
  readonly signal: AbortSignal;
}

export interface AskedColumns {
  readonly input: PlannedInput;
  readonly unitId: number;
  readonly convert: ((value: number) => number) | null;
  readonly range: PointRange;
  readonly zone: string;
}

export class InputReader {
  readonly #parts: ReadingParts;
  /** Of this part, and of absolute periods, which the next part asks for again. */
  readonly #known = new Map<string, InputColumns>();
  readonly #absolute = new Set<string>();

  constructor(parts: ReadingParts) {
    this.#parts = parts;
  }

  async columns(asked: AskedColumns): Promise<InputColumns> {
    const { input, unitId, range } = asked;
    const { facts, reach, aggregate } = input;
    const key = JSON.stringify([facts.id, unitId, reach.granularity, aggregate, range.fromMs, range.lastMs]);
    const known = this.#known.get(key) ?? (await this.#read(asked));
    this.#known.set(key, known);
    if (reach.period.kind === "absolute") this.#absolute.add(key);
    return known;
  }

  endPart(): void {
    for (const key of this.#known.keys()) if (!this.#absolute.has(key)) this.#known.delete(key);
  }

  async #read({ input, convert, range, zone }: AskedColumns): Promise<InputColumns> {
    const { facts, reach, aggregate, alias } = input;
    const { points, rowsMax, signal } = this.#parts;
    const held = this.#known.values().reduce((sum, { atMs }) => sum + atMs.length, 0);
    const columns = new GrowingColumns();
    const limited = async function* <Piece>(pieces: AsyncIterable<Piece>) {
      for await (const piece of pieces) {
        signal.throwIfAborted();
        yield piece;
        if (held + columns.length > rowsMax) throw new DefinitionFault(wordsOfRows(alias, rowsMax));
      }
    };
    const { granularity } = reach;
    if (granularity === "Raw" || aggregate === null) {
      for await (const chunk of limited(points.read(facts, range)))
        for (const row of chunk) columns.addRow(row, convert);
      return columns.finished();
    }
    // Without rollups, since a formula may read so many points, whether they are rolled up or not.
    const parts = { buckets: new Buckets(granularity, zone), convert, isOfParts: isOfParts(aggregate) };
    const pieces = (bounds: SampleRange) => limited(points.pieces(facts, bounds));
    for await (const periods of collectPeriods({ pieces, rollups: [] }, range, parts)) {
      for (const { bucket, sums } of periods) {
        // An aggregate that no number can hold is left out, as in /data.
        const [value] = Object.values(sums.columns([aggregate]));
        if (typeof value === "number") columns.add(bucket.startMs ?? range.fromMs ?? sums.earliestMs, value);
      }
    }
    return columns.finished();
  }
}

function wordsOfRows(alias: string, rowsMax: number): string {
  return (
    `the formula reads more than ${rowsMax} points at once (counted up to the input ${alias}): ` +
    "let it read a shorter period, or a granularity; the operator of the hub can raise calculated.inputRows"
  );
}

type Tags = Readonly<Record<string, string>>;

/** Tags repeat from point to point: equal ones are kept once. */
const TAGS_KEPT = 10_000;

class GrowingColumns {
  readonly #atMs: number[] = [];
  readonly #values: number[] = [];
  readonly #versions: (string | null)[] = [];
  readonly #tags: (Tags | null)[] = [];
  readonly #equal = new Map<string, Tags>();
  #hasVersions = false;
  #hasTags = false;

  get length(): number {
    return this.#atMs.length;
  }

  add(atMs: number, value: number): void {
    this.#atMs.push(atMs);
    this.#values.push(value);
  }

  addRow(row: PointRow, convert: ((value: number) => number) | null): void {
    const value = convert === null ? row.value : convert(row.value);
    if (convert !== null && !Number.isFinite(value)) return;
    const tags = this.#tagsOf(row);
    this.add(row.atMs, value);
    this.#versions.push(row.version);
    this.#tags.push(tags);
    this.#hasVersions ||= row.version !== null;
    this.#hasTags ||= tags !== null;
  }

  finished(): InputColumns {
    return {
      atMs: Float64Array.from(this.#atMs),
      values: Float64Array.from(this.#values),
      versions: this.#hasVersions ? this.#versions : null,
      tags: this.#hasTags ? this.#tags : null,
    };
  }

  /** "Each input Tags object also holds the reserved key version" (rule 4). */
  #tagsOf({ version, tags, batchTags }: PointRow): Tags | null {
    if (version === null && tags === null && batchTags === null) return null;
    const all = { ...batchTags, ...tags, ...(version === null ? {} : { version }) };
    const key = JSON.stringify(all);
    const known = this.#equal.get(key);
    if (known !== undefined) return known;
    if (this.#equal.size < TAGS_KEPT) this.#equal.set(key, all);
    return all;
  }
}
