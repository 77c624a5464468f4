/** The variables that a script finds (docs/r-scripts.md), from what a calculation reads. */
import type { CalculationInput, InputForm, InputVariable } from "../engine.ts";
import { bytesOf, doubles, INTEGER_MAX, list, NA_INTEGER, type RValue, strings } from "./values.ts";

type Scalar = string | number | boolean | null;

export function inputBytes(input: CalculationInput): Buffer {
  const byAlias = <T extends { readonly alias: string }>(all: readonly T[], of: (one: T) => RValue) =>
    list(all.map((one) => [one.alias, of(one)]));
  const bound = list([
    ["inputVariables", byAlias(input.variables, variableOf)],
    [
      "inputFormsTimeSliced",
      byAlias(
        input.forms.filter(({ timeSliced }) => timeSliced),
        slicesOf,
      ),
    ],
    [
      "inputForms",
      byAlias(
        input.forms.filter(({ timeSliced }) => !timeSliced),
        ({ values }) => scalarOf(values[0] ?? null),
      ),
    ],
    ["inputConstants", byAlias(input.constants, ({ value }) => scalarOf(value))],
    [
      "calculation",
      list([
        ["From", seconds([input.window.fromMs])],
        ["To", seconds([input.window.toMs])],
        ["TimeZone", strings([input.zone])],
        ["DefaultVersion", strings([input.defaultVersion])],
      ]),
    ],
  ]);
  const formula = input.formula.replaceAll(/\r\n?/g, "\n");
  return bytesOf(
    list([
      ["bound", bound],
      ["formula", strings([formula])],
    ]),
  );
}

function variableOf({ metadata, atMs, values, versions, tags }: InputVariable): RValue {
  const count = atMs.length;
  const texts = (of: (row: number) => string) => strings(Array.from({ length: count }, (_, row) => of(row)));
  return list([
    ["Variable", list(Object.entries(metadata).map(([name, value]) => [name, scalarOf(value)]))],
    [
      "TimeSeries",
      list([
        ["Dates", seconds(atMs)],
        ["Values", doubles(values)],
      ]),
    ],
    ["Version", texts((row) => versions?.[row] ?? "")],
    ["Tags", texts((row) => tagsOf(tags?.[row] ?? null, versions?.[row] ?? null))],
  ]);
}

/** The reserved key says the version of a row also where the tags came without it. */
function tagsOf(tags: Readonly<Record<string, string>> | null, version: string | null): string {
  const all = version === null || version === "" ? tags : { ...tags, version };
  return all === null ? "" : JSON.stringify(all);
}

function slicesOf({ fromMs, untilMs, values }: InputForm): RValue {
  return list([
    ["EffectiveDates", seconds(fromMs)],
    ["EndDates", seconds(untilMs)],
    ["Values", vectorOf(values)],
  ]);
}

/** A vector of one type: text as soon as one value is text. */
function vectorOf(values: readonly Scalar[]): RValue {
  const is = (type: string) => values.every((value) => value === null || typeof value === type);
  if (is("number")) return numbers(values.map((value) => value as number | null));
  if (is("boolean"))
    return { type: "logical", data: Int32Array.from(values, (value) => (value === null ? NA_INTEGER : Number(value))) };
  return strings(values.map((value) => (value === null ? null : String(value))));
}

function scalarOf(value: Scalar): RValue {
  return value === null ? null : vectorOf([value]);
}

/** NaN that R takes for NA: the payload of its low word is 1954. */
const NA_REAL_BITS = 0x7ff00000000007a2n;

function numbers(values: readonly (number | null)[]): RValue {
  const data = Float64Array.from(values, (value) => value ?? 0);
  const bits = new BigUint64Array(data.buffer);
  values.forEach((value, index) => {
    if (value === null) bits[index] = NA_REAL_BITS;
  });
  return { type: "double", data };
}

/**
 * UNIX seconds: integers as the specification says. A vector with a date that integers of R cannot hold (beyond
 * 2038-01-19, or with a fraction of a second) is numeric as a whole, since a wrong date is worse than another type.
 */
function seconds(atMs: ArrayLike<number | null>): RValue {
  const all = Array.from(atMs, (at) => (at === null ? null : at / 1000));
  const fits = (value: number | null) => value === null || (Number.isInteger(value) && Math.abs(value) <= INTEGER_MAX);
  if (!all.every(fits)) return numbers(all);
  return { type: "integer", data: Int32Array.from(all, (value) => value ?? NA_INTEGER) };
}
