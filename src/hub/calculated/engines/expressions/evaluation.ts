/** One run of an expression over its inputs: columns of numbers, no object for each row. */
import { findUnit, UNITS } from "#wire/index.ts";
import { conversionOf } from "../../../data/conversion.ts";
import type { InputForm } from "../engine.ts";
import { comparesTexts, wordsOf } from "./check.ts";
import { ROW_FUNCTIONS, type Row } from "./row-functions.ts";
import { type Aligned, commonVersion, datesOf, MIXED, pointsAt, type Series, valuesAt } from "./series.ts";
import { SERIES_FUNCTIONS, type SeriesFunction } from "./series-functions.ts";
import type { Call, Term } from "./syntax.ts";

/** An alias of the formula. */
export type Source =
  | { readonly kind: "variable"; readonly series: Series; readonly unitId: number }
  | { readonly kind: "form"; readonly form: InputForm }
  | { readonly kind: "constant"; readonly value: string | number };

type Value = string | number | boolean | null;

/** A reason for which results are missing, and how many. */
interface Noted {
  readonly reason: string;
  readonly column: number;
  readonly firstMs: number;
  count: number;
}

/** The formula is at fault, as only a run shows. */
export class FormulaFault extends Error {}

const HOUR_MS = 3_600_000;

export class Evaluation {
  readonly #sources: ReadonlyMap<string, Source>;
  readonly #zone: string;
  readonly #noted = new Map<string, Noted>();
  readonly #series = new Map<Term | string, Aligned>();
  /** Bytes that columns may take, and that they take. */
  readonly #memory: number;
  #held = 0;

  constructor(sources: ReadonlyMap<string, Source>, zone: string, memory: number) {
    this.#sources = sources;
    this.#zone = zone;
    this.#memory = memory;
  }

  warnings(): string[] {
    return [...this.#noted.values()].map(({ reason, column, count, firstMs }) => {
      const times = count === 1 ? "once" : `${count} times`;
      return `column ${column}: no value ${times}, first at ${new Date(firstMs).toISOString()}: ${reason}`;
    });
  }

  /** The points of a term; a point without a value is NaN. */
  seriesOf(term: Term): Series {
    if (term.kind === "name" || (term.kind === "call" && SERIES_FUNCTIONS.has(term.name)))
      return this.#alignedOf(term).series;
    const leaves = new Map<Term | string, Aligned>();
    this.#findLeaves(term, leaves);
    const dates = datesOf([...leaves.values()].map(({ series }) => series));
    // Columns: of each leaf points and values, and those of the result.
    const bytes = dates.length * (leaves.size * 12 + 16);
    this.#hold(bytes);
    const points = new Map([...leaves].map(([key, leaf]) => [key, pointsAt(dates, leaf)]));
    const columns = new Map([...leaves].map(([key, { series }]) => [key, valuesAt(points.get(key) ?? null, series)]));
    const row = this.#rowOf(term, dates, columns);
    const values = new Float64Array(dates.length);
    for (let at = 0; at < values.length; at += 1) values[at] = row(at);
    const versions = versionsOf(leaves, points, columns, dates.length);
    this.#held -= bytes;
    return { atMs: dates, values, versions };
  }

  #hold(bytes: number): void {
    this.#held += bytes;
    if (this.#held <= this.#memory) return;
    const most = Math.floor(this.#memory / 1_000_000);
    throw new FormulaFault(`the expression needs more than ${most} MB (\`calculated.memory\`)`);
  }

  /** Terms with dates: inputs, and functions over their points. */
  #findLeaves(term: Term, leaves: Map<Term | string, Aligned>): void {
    const key = keyOf(term);
    if (key !== null && this.#hasDates(term)) leaves.set(key, this.#alignedOf(term));
    else if (term.kind === "call") for (const inner of term.terms) this.#findLeaves(inner, leaves);
  }

  #hasDates(term: Term): boolean {
    return term.kind === "call" || (term.kind === "name" && this.#sources.get(term.name)?.kind === "variable");
  }

  #alignedOf(term: Term): Aligned {
    const key = keyOf(term) ?? term;
    const known = this.#series.get(key);
    if (known !== undefined) return known;
    const found = term.kind === "call" ? this.#callOf(term) : { series: this.#input(term).series, holdMs: null };
    if (term.kind === "call") this.#hold(bytesOf(found.series));
    this.#series.set(key, found);
    return found;
  }

  #input(term: Term | undefined): Source & { readonly kind: "variable" } {
    const source = term?.kind === "name" ? this.#sources.get(term.name) : undefined;
    if (source?.kind !== "variable") throw new FormulaFault("an input variable of the expression is missing");
    return source;
  }

  #callOf(call: Call): Aligned {
    const [first, second] = call.terms;
    const of = SERIES_FUNCTIONS.get(call.name);
    if (of === undefined || first === undefined) throw new FormulaFault(`${call.shown} lacks its arguments`);
    if (call.name === "convert") return { series: this.#converted(call), holdMs: null };
    const series = this.seriesOf(first);
    if (call.name !== "hold") return { series: this.#applied(call, of, series), holdMs: null };
    if (second === undefined) return { series, holdMs: () => Number.POSITIVE_INFINITY };
    const hours = this.#rowOf(second, series.atMs, new Map());
    return { series, holdMs: (point) => hours(point) * HOUR_MS };
  }

  #applied(call: Call, of: SeriesFunction, series: Series): Series {
    const numbers = of.parameters.map((parameter, at): Row | undefined => {
      const term = call.terms[at];
      return parameter === "number" && term !== undefined ? this.#rowOf(term, series.atMs, new Map()) : undefined;
    });
    const note = this.#noteOf(call, series.atMs, of.noted ?? "no finite result");
    return of.apply(series, { numbers, words: wordsOf(call, of), zone: this.#zone, note });
  }

  #converted({ terms, column }: Call): Series {
    const [input, text] = terms;
    const { series, unitId } = this.#input(input);
    const unit = text?.kind === "text" ? findUnit(text.value) : undefined;
    const conversion = unit === undefined ? undefined : conversionOf({ unitId }, [unit]);
    if (unit === undefined || conversion?.unitId !== unit.id) {
      const from = UNITS.find(({ id }) => id === unitId)?.symbol ?? `unit ${unitId}`;
      throw new FormulaFault(`column ${column}: ${from} cannot be converted to ${unit?.symbol ?? "this unit"}`);
    }
    const { convert } = conversion;
    return convert === null ? series : { ...series, values: series.values.map(convert) };
  }

  #noteOf({ column }: Call, dates: Float64Array, reason: string): (row: number) => void {
    const key = `${column} ${reason}`;
    return (row) => {
      const known = this.#noted.get(key);
      if (known === undefined) this.#noted.set(key, { reason, column, count: 1, firstMs: dates[row] ?? 0 });
      else known.count += 1;
    };
  }

  #rowOf(term: Term, dates: Float64Array, columns: ReadonlyMap<Term | string, Float64Array>): Row {
    const column = columns.get(keyOf(term) ?? term);
    if (column !== undefined) return (row) => column[row] ?? Number.NaN;
    if (term.kind === "number") return () => term.value;
    if (term.kind === "name") return this.#fieldOf(term, dates);
    if (term.kind !== "call") return () => Number.NaN;
    if (comparesTexts(term)) return this.#textComparison(term, dates);
    const found = ROW_FUNCTIONS.get(term.name);
    if (found === undefined) throw new FormulaFault(`"${term.name}" is no function`);
    const rows = term.terms.map((inner) => this.#rowOf(inner, dates, columns));
    const note = this.#noteOf(term, dates, `the result of ${term.shown} is not finite`);
    return found.build(rows, note);
  }

  #textComparison({ name, terms }: Call, dates: Float64Array): Row {
    const [one = () => null, other = () => null] = terms.map((term): ((row: number) => Value) => {
      if (term.kind === "text") return () => term.value;
      return term.kind === "name" ? this.#valueOf(term.name, dates) : () => null;
    });
    return (row) => {
      const left = one(row);
      const right = other(row);
      if (left === null || right === null) return Number.NaN;
      return Number((String(left) === String(right)) === (name === "=="));
    };
  }

  /** A constant or the value of a form, as a number. */
  #fieldOf(term: Term & { readonly kind: "name" }, dates: Float64Array): Row {
    const value = this.#valueOf(term.name, dates);
    const key = `${term.column} text`;
    return (row) => {
      const given = value(row);
      if (typeof given === "number") return given;
      if (given === null) return Number.NaN;
      const number = typeof given === "boolean" ? Number(given) : given.trim() === "" ? Number.NaN : Number(given);
      if (Number.isFinite(number)) return number;
      const known = this.#noted.get(key);
      const reason = `${term.name} is "${String(given).slice(0, 40)}", which is no number`;
      if (known !== undefined) known.count += 1;
      else this.#noted.set(key, { reason, column: term.column, count: 1, firstMs: dates[row] ?? 0 });
      return Number.NaN;
    };
  }

  #valueOf(alias: string, dates: Float64Array): (row: number) => Value {
    const source = this.#sources.get(alias);
    if (source?.kind === "constant") return () => source.value;
    if (source?.kind !== "form") return () => null;
    const { timeSliced, values, fromMs, untilMs } = source.form;
    if (!timeSliced) return () => values[0] ?? null;
    let slice = 0;
    const holds = (at: number, ms: number): boolean =>
      (fromMs[at] ?? Number.POSITIVE_INFINITY) <= ms && ms < (untilMs[at] ?? Number.POSITIVE_INFINITY);
    return (row) => {
      const ms = dates[row] ?? 0;
      // Rows come by date: mostly the slice is that of the row before.
      if (!holds(slice, ms)) slice = fromMs.findLastIndex((_, at) => holds(at, ms));
      return slice < 0 ? null : (values[slice] ?? null);
    };
  }
}

function bytesOf({ atMs, values, versions }: Series): number {
  return atMs.byteLength + values.byteLength + (versions?.byteLength ?? 0);
}

/** A name is one input wherever it stands; a function over points is computed for its place. */
function keyOf(term: Term): Term | string | null {
  if (term.kind === "name") return term.name;
  return term.kind === "call" && SERIES_FUNCTIONS.has(term.name) ? term : null;
}

/** Of each date the version of the inputs that have a value there, if those with a version agree. */
function versionsOf(
  leaves: ReadonlyMap<Term | string, Aligned>,
  points: ReadonlyMap<Term | string, Int32Array | null>,
  columns: ReadonlyMap<Term | string, Float64Array>,
  length: number,
): Int32Array | null {
  const versioned = [...leaves].filter(([, { series }]) => series.versions !== null);
  if (versioned.length === 0) return null;
  const found = new Int32Array(length);
  for (const [key, { series }] of versioned) {
    const at = points.get(key) ?? null;
    const values = columns.get(key);
    for (let row = 0; row < length; row += 1) {
      const point = at === null ? row : (at[row] ?? -1);
      if (point < 0 || Number.isNaN(values?.[row] ?? Number.NaN)) continue;
      found[row] = commonVersion(found[row] ?? 0, series.versions?.[point] ?? 0);
    }
  }
  return found.map((version) => (version === MIXED ? 0 : version));
}
