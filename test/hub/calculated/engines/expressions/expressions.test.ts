/** What expressions compute: dates, missing values, versions, forms, functions over points. */
import { describe, expect, test } from "vitest";
import { byHour, computed, HOUR, hourly, run, START } from "./inputs.ts";

describe("dates", () => {
  test("a result stands where all used inputs have a value", async () => {
    expect(await byHour("a + b", hourly("a", [1, 2, null, 4]), hourly("b", [10, null, 30, 40]))).toEqual([
      11,
      null,
      null,
      44,
    ]);
  });

  test("an input that is not used takes no part", async () => {
    expect(await byHour("2 * a", hourly("a", [1, 2]), hourly("b", [null, 5]))).toEqual([2, 4]);
  });

  test("coalesce stands in at the dates of any input", async () => {
    const inputs = [hourly("a", [1, null, 3]), hourly("b", [null, 20, 30])];
    expect(await byHour("coalesce(a, 0) + coalesce(b, 0)", ...inputs)).toEqual([1, 20, 33]);
    expect(await byHour("(a ?? 0) + b", ...inputs)).toEqual([null, 20, 33]);
  });

  test("hold takes the last point, within its hours", async () => {
    const inputs = [hourly("a", [1, null, null, 4]), hourly("b", [10, 20, 30, 40])];
    expect(await byHour("hold(a) + b", ...inputs)).toEqual([11, 21, 31, 44]);
    expect(await byHour("hold(a, 1) + b", ...inputs)).toEqual([11, 21, null, 44]);
    expect(await byHour("hold(a) + hold(b)", hourly("a", [1, null, 3]), hourly("b", [null, 20, null]))).toEqual([
      null,
      21,
      23,
    ]);
  });

  test("only dates of the window come out, and earlier points are seen", async () => {
    const window = { fromMs: START + 2 * HOUR, toMs: START + 3 * HOUR };
    const variables = [hourly("a", [1, 2, 4, 8, 16])];
    expect(await computed("delta(a)", { variables, window })).toMatchObject({ at: [2, 3], values: [2, 4] });
  });

  test("of points of one date in any sequence the last counts", async () => {
    const points = { atMs: Float64Array.of(START + HOUR, START, START + HOUR), values: Float64Array.of(1, 2, 3) };
    const variables = [{ ...hourly("a", []), ...points, versions: ["x", "y", "z"] }];
    expect(await computed("a", { variables })).toMatchObject({ at: [0, 1], values: [2, 3], versions: ["y", "z"] });
  });

  test("line ends, comments and a leading sign make no difference", async () => {
    expect(await byHour(" = a # the first\n + \n b", hourly("a", [1]), hourly("b", [2]))).toEqual([3]);
  });
});

describe("no value", () => {
  test.each([
    ["1 / a", "/"],
    ["log(a)", "log"],
    ["sqrt(a - 1)", "sqrt"],
    ["1e308 * 10 ^ (3 - 3 * a)", "*"],
    ["9 ^ 9 ^ 9 ^ 9 * a ^ 0", "^"],
    ["round(a, 20 - a)", "round"],
    ["modulo(5, a)", "modulo"],
  ])("%s is not finite, and counted", async (formula, shown) => {
    const { values, warnings } = await computed(formula, { variables: [hourly("a", [0, 0])] });
    expect(values).toEqual([]);
    expect(warnings).toEqual([
      expect.stringContaining(
        `no value 2 times, first at 2026-03-01T12:00:00.000Z: the result of ${shown} is not finite`,
      ),
    ]);
  });

  test("a branch that is not taken is not computed", async () => {
    const { values, warnings } = await computed("if(a == 0, 0, 1 / a)", { variables: [hourly("a", [0, 4])] });
    expect([values, warnings]).toEqual([[0, 0.25], []]);
    const guarded = await computed("a != 0 and 1 / a > 0.2", { variables: [hourly("a", [0, 4])] });
    expect([guarded.values, guarded.warnings]).toEqual([[0, 1], []]);
  });

  test("null leaves a date out", async () => {
    expect(await byHour("a > 1 ? a : null", hourly("a", [1, 2, 3]))).toEqual([null, 2, 3]);
  });

  test("missing values pass through every function of values but coalesce and exists", async () => {
    const inputs = [hourly("a", [null, 1]), hourly("b", [1, 1])];
    for (const formula of ["min(a, b)", "max(b, a)", "sum(b, a)", "mean(a, b)", "pow(a, 0)", "a == b", "a and b"])
      expect(await byHour(formula, ...inputs), formula).toEqual([null, 1 + Number(formula === "sum(b, a)")]);
    expect(await byHour("if(a, 1, 1) + b", ...inputs)).toEqual([null, 2]);
  });
});

describe("forms and constants", () => {
  const variables = [hourly("a", [1, 1, 1, 1])];
  const sliced = (values: readonly (string | number | boolean | null)[]) => ({
    alias: "f",
    timeSliced: true,
    fromMs: values.map((_, at) => START + at * HOUR),
    untilMs: values.map((_, at) => (at === values.length - 1 ? START + 3 * HOUR : START + (at + 1) * HOUR)),
    values,
  });

  test("a value of a form is that of the date, until its end", async () => {
    expect(await computed("a * f", { variables, forms: [sliced([5, null, 7])] })).toMatchObject({
      at: [0, 2],
      values: [5, 7],
    });
  });

  test("texts are compared, numbers are read from them, and others counted", async () => {
    const forms = [sliced(["day", "2.5", true])];
    expect((await computed('if(f == "day", a, -a)', { variables, forms })).values).toEqual([1, -1, -1]);
    expect((await computed('a * (f != "2.5")', { variables, forms })).values).toEqual([1, 0, 1]);
    const { values, warnings } = await computed("a * f", { variables, forms });
    expect(values).toEqual([2.5, 1]);
    expect(warnings).toEqual([expect.stringContaining('f is "day", which is no number')]);
  });

  test("constants are numbers or texts with one", async () => {
    const constants = [
      { alias: "k", value: " 3.5 " },
      { alias: "m", value: 2 },
    ];
    expect((await computed("a * k * m", { variables, constants })).values).toEqual([7, 7, 7, 7]);
  });
});

describe("functions over points", () => {
  test("a counter that falls has rolled over, or was exchanged", async () => {
    const counter = hourly("a", [99_990, 99_995, 5, 70_000, 20, 30]);
    const { values, warnings } = await computed("consumption(a, 100000)", { variables: [counter] });
    expect(values).toEqual([5, 10, 69_995, 30_020, 10]);
    expect(warnings).toEqual([]);
    const exchanged = await computed("consumption(a, 100000)", { variables: [hourly("a", [500, 20, 30])] });
    expect(exchanged.values).toEqual([10]);
    expect(exchanged.warnings).toEqual([expect.stringContaining("the counter fell")]);
  });

  test("the range of a counter may be a value of a form, for each date", async () => {
    const forms = [
      {
        alias: "r",
        timeSliced: true,
        fromMs: [START, START + 2 * HOUR],
        untilMs: [START + 2 * HOUR, null],
        values: [100, 1000],
      },
    ];
    expect((await computed("consumption(a, r)", { variables: [hourly("a", [95, 5, 990, 5])], forms })).values).toEqual([
      10, 985, 15,
    ]);
  });

  test("a rate counts the time between its points", async () => {
    expect(await byHour("rate(a)", hourly("a", [1, 3, null, 9]))).toEqual([null, 2, null, 3]);
    expect(await byHour('rate(a, "minute")', hourly("a", [0, 60]))).toEqual([null, 1]);
  });

  test("a point without a value is a point", async () => {
    const input = hourly("a", [1, 2, 3, 4]);
    expect(await byHour("previous(if(a == 2, null, a))", input)).toEqual([null, 1, null, 3]);
    expect(await byHour("hold(if(a == 2, null, a))", input)).toEqual([1, null, 3, 4]);
    expect(await byHour("previous(previous(a))", input)).toEqual([null, null, 1, 2]);
  });

  test("aggregates follow the calendar of the zone, and its changes of the clock", async () => {
    const atMs = Float64Array.from({ length: 72 }, (_, at) => Date.UTC(2026, 2, 27, 23) + at * HOUR);
    const variables = [{ ...hourly("a", []), atMs, values: new Float64Array(72).fill(1) }];
    const { at, values } = await computed('aggregate(a, "day", "count")', { variables, zone: "Europe/Brussels" });
    expect(values).toEqual([24, 23, 24, 1]);
    expect(at.map((hour) => new Date(START + hour * HOUR).toISOString().slice(8, 13))).toEqual([
      "27T23",
      "28T23",
      "29T22",
      "30T22",
    ]);
  });

  test("the share of a day", async () => {
    expect(await byHour('a / hold(aggregate(a, "Day", "SUM"))', hourly("a", [1, 3]))).toEqual([0.25, 0.75]);
  });

  test("a sum since the beginning of a month", async () => {
    const input = { ...hourly("a", [1, 2, 3]), atMs: Float64Array.of(Date.UTC(2026, 1, 28), START, START + HOUR) };
    expect((await computed('cumulative(a, "Month")', { variables: [input] })).values).toEqual([1, 2, 5]);
  });

  test("units are converted by the referential, with their offset", async () => {
    expect(await byHour('convert(a, "°F")', hourly("a", [100], { unit: "°C" }))).toEqual([212]);
    expect(await byHour('consumption(convert(a, "MWh"))', hourly("a", [1000, 3000]))).toEqual([null, 2]);
    expect(await run('convert(a, "kWh")', { variables: [hourly("a", [1], { unit: "°C" })] })).toMatchObject({
      kind: "failed",
      message: expect.stringMatching(/column 12: °C .* cannot be converted to kWh/),
    });
  });
});

describe("versions", () => {
  const versionsOf = async (formula: string, ...variables: ReturnType<typeof hourly>[]) =>
    (await computed(formula, { variables })).versions;

  test("a tag is carried where all tagged inputs of the date have it", async () => {
    const a = hourly("a", [1, 1, 1, 1], { versions: ["x", "x", null, null] });
    const b = hourly("b", [1, 1, 1, 1], { versions: ["x", "y", "y", null] });
    expect(await versionsOf("a + b", a, b)).toEqual(["x", null, "y", null]);
    expect(await versionsOf("a", a, b)).toEqual(["x", "x", null, null]);
    expect(await versionsOf("a * 2", hourly("a", [1], { versions: [""] }))).toBeNull();
    expect(await versionsOf("a + b + c", a, b, hourly("c", [1, 1, 1, 1], { versions: [null, "x", "x", "z"] }))).toEqual(
      ["x", null, null, "z"],
    );
  });

  test("a default version of a calculated input is no tag", async () => {
    const input = hourly("a", [1, 1], { versions: ["2026-03-01T13:00:00", "x"] });
    expect(await versionsOf("a", { ...input, metadata: { isCalculated: true } })).toEqual([null, "x"]);
    expect(await versionsOf("a", input)).toEqual(["2026-03-01T13:00:00", "x"]);
  });

  test("of a period all points count, of hold the point that is held", async () => {
    const a = hourly("a", [1, 1], { versions: ["x", "y"] });
    expect(await versionsOf('aggregate(a, "Hour", "SUM")', a)).toEqual(["x", "y"]);
    expect(await versionsOf('aggregate(a, "Day", "SUM")', a)).toBeNull();
    expect(await versionsOf("hold(a) + b", hourly("a", [1], { versions: ["x"] }), hourly("b", [1, 1]))).toEqual([
      "x",
      "x",
    ]);
    expect(await versionsOf("delta(a)", a)).toEqual(["y"]);
  });
});

test("a formula at fault fails with place and nearest name", async () => {
  expect(await run("a + bb", { variables: [hourly("a", [1]), hourly("b", [1])] })).toEqual({
    kind: "failed",
    message: 'the expression cannot be computed: column 5: "bb" is no alias of this formula; is "b" meant?',
  });
});
