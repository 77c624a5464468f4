/** Functions of one date: a number for each row of aligned inputs. NaN is no value. */

/** The value of a term at a row. */
export type Row = (row: number) => number;

/** Reports a result that is no finite number. */
export type Note = (row: number) => void;

export interface RowFunction {
  readonly least: number;
  readonly most: number;
  readonly build: (terms: readonly Row[], note: Note) => Row;
}

const NONE = Number.NaN;
const nothing: Row = () => NONE;

function unary(of: (value: number) => number): RowFunction {
  const build = ([term = nothing]: readonly Row[], note: Note): Row => {
    return (row) => {
      const value = term(row);
      if (Number.isNaN(value)) return NONE;
      const result = of(value);
      if (Number.isFinite(result)) return result;
      note(row);
      return NONE;
    };
  };
  return { least: 1, most: 1, build };
}

function binary(of: (one: number, other: number) => number): RowFunction {
  const build = ([one = nothing, other = nothing]: readonly Row[], note: Note): Row => {
    return (row) => {
      const left = one(row);
      const right = other(row);
      if (Number.isNaN(left) || Number.isNaN(right)) return NONE;
      const result = of(left, right);
      if (Number.isFinite(result)) return result;
      note(row);
      return NONE;
    };
  };
  return { least: 2, most: 2, build };
}

/** With a second argument that may be left out. */
function optional(of: (one: number, other: number) => number, absent: number): RowFunction {
  const { build } = binary(of);
  return { least: 1, most: 2, build: ([one = nothing, other = () => absent], note) => build([one, other], note) };
}

/** Over all arguments; without one of them there is no value. */
function fold(of: (sum: number, value: number) => number, end: (sum: number, count: number) => number): RowFunction {
  const build = (terms: readonly Row[], note: Note): Row => {
    const [first = nothing, ...rest] = terms;
    return (row) => {
      let sum = first(row);
      for (const term of rest) sum = of(sum, term(row));
      if (Number.isNaN(sum)) return NONE;
      const result = end(sum, terms.length);
      if (Number.isFinite(result)) return result;
      note(row);
      return NONE;
    };
  };
  return { least: 1, most: Number.POSITIVE_INFINITY, build };
}

const same = (value: number): number => value;

/** Half away from zero. Decimals are whole, from 0 to 15; others have no result. */
function rounded(value: number, digits: number): number {
  return Number.isInteger(digits) && digits >= 0 && digits <= 15 ? Number(value.toFixed(digits)) : NONE;
}

const conditional: RowFunction = {
  least: 3,
  most: 3,
  build: ([condition = nothing, yes = nothing, no = nothing]) => {
    return (row) => {
      const holds = condition(row);
      if (Number.isNaN(holds)) return NONE;
      return holds === 0 ? no(row) : yes(row);
    };
  },
};

/** `decisive`: the first value that decides without the second one. */
function logical(isDecisive: (value: number) => boolean): RowFunction {
  const build = ([one = nothing, other = nothing]: readonly Row[]): Row => {
    return (row) => {
      const left = one(row);
      if (Number.isNaN(left)) return NONE;
      if (isDecisive(left)) return left === 0 ? 0 : 1;
      const right = other(row);
      if (Number.isNaN(right)) return NONE;
      return right === 0 ? 0 : 1;
    };
  };
  return { least: 2, most: 2, build };
}

const coalesce: RowFunction = {
  least: 2,
  most: Number.POSITIVE_INFINITY,
  build: (terms) => {
    return (row) => {
      for (const term of terms) {
        const value = term(row);
        if (!Number.isNaN(value)) return value;
      }
      return NONE;
    };
  },
};

const exists: RowFunction = {
  least: 1,
  most: 1,
  build: ([term = nothing]) => {
    return (row) => (Number.isNaN(term(row)) ? 0 : 1);
  },
};

/** Comparisons, which also compare texts (`==` and `!=`). */
export const EQUALITIES: ReadonlySet<string> = new Set(["==", "!="]);

/** Names with other characters than letters are of operators. */
export const ROW_FUNCTIONS: ReadonlyMap<string, RowFunction> = new Map<string, RowFunction>([
  ["unary +", unary(same)],
  ["unary -", unary((value) => -value)],
  ["+", binary((one, other) => one + other)],
  ["-", binary((one, other) => one - other)],
  ["*", binary((one, other) => one * other)],
  ["/", binary((one, other) => one / other)],
  ["<", binary((one, other) => Number(one < other))],
  ["<=", binary((one, other) => Number(one <= other))],
  [">", binary((one, other) => Number(one > other))],
  [">=", binary((one, other) => Number(one >= other))],
  ["==", binary((one, other) => Number(one === other))],
  ["!=", binary((one, other) => Number(one !== other))],
  ["and", logical((value) => value === 0)],
  ["or", logical((value) => value !== 0)],
  ["not", unary((value) => Number(value === 0))],
  ["if", conditional],
  ["coalesce", coalesce],
  ["exists", exists],
  ["abs", unary(Math.abs)],
  ["sign", unary(Math.sign)],
  ["floor", unary(Math.floor)],
  ["ceil", unary(Math.ceil)],
  ["round", optional(rounded, 0)],
  ["sqrt", unary(Math.sqrt)],
  ["pow", binary((one, other) => one ** other)],
  ["exp", unary(Math.exp)],
  ["log", optional((value, base) => (base === Math.E ? Math.log(value) : Math.log(value) / Math.log(base)), Math.E)],
  ["log10", unary(Math.log10)],
  ["modulo", binary((one, other) => one - other * Math.floor(one / other))],
  ["min", fold(Math.min, same)],
  ["max", fold(Math.max, same)],
  ["sum", fold((sum, value) => sum + value, same)],
  [
    "mean",
    fold(
      (sum, value) => sum + value,
      (sum, count) => sum / count,
    ),
  ],
]);
