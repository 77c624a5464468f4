/** What an expression may hold, what is refused and where, and what it needs of its inputs. */
import { describe, expect, test } from "vitest";
import { checkExpression, type ExpressionSymbol } from "#hub/calculated/engines/expressions/check.ts";
import { findUnit } from "#wire/index.ts";

const symbols: readonly ExpressionSymbol[] = [
  { name: "a", kind: "variable", unitId: findUnit("kWh")?.id ?? 0 },
  { name: "b", kind: "variable" },
  { name: "rate1", kind: "constant" },
  { name: "tariff", kind: "form" },
];
const check = (formula: string) => checkExpression(formula, symbols);

describe("is refused with its place", () => {
  test.each([
    ["= a + meter", 7, '"meter" is no alias of this formula; the formula has a, b, rate1, tariff'],
    ["a + rat1", 5, '"rat1" is no alias of this formula; is "rate1" meant?'],
    ["consumtion(a)", 1, '"consumtion" is no function; is "consumption" meant?'],
    ["zzzzzzzzzz(a)", 1, '"zzzzzzzzzz" is no function; there are if, coalesce'],
    ["round(a, 1, 2)", 1, "round takes 1 to 2 arguments, and has 3"],
    ["sqrt()", 1, "sqrt takes 1 argument, and has 0"],
    ["min()", 1, "min takes 1 or more arguments, and has 0"],
    ["a + ", 5, "unexpected end of expression"],
    ["(a + b", 7, "parenthesis ) expected"],
    ["a + b)", 6, "unexpected operator )"],
    ["", 1, "the expression is empty"],
    ["= # nothing", 1, "the expression is empty"],
    ["2 a", 3, 'an operator or a comma is missing between "2" and "a"'],
    ["(a)(b)", 4, "an operator or a comma is missing"],
    ["a b", 3, "an operator or a comma is missing"],
    ["true(a)", 5, "an operator or a comma is missing"],
    ["a % b", 3, '"%" is not of the language: modulo(a, b)'],
    ["a = 1", 3, '"=" is not of the language: "==" compares'],
    ["a === 1", 3, '"===" is not of the language'],
    ["a && b", 3, '"&&" is not of the language: "and" joins'],
    ["a!", 2, '"!" is not of the language: "not" negates'],
    ["a; b", 2, '";" is not of the language'],
    ["a mod b", 3, '"mod" is not of the language; write modulo(a, b)'],
    ["a to b", 3, '"to" is not of the language; write convert'],
    ["a:b", 1, "the expression has a part that is not of the language (RangeNode)"],
    ["a + 1e999", 5, "1e999 is beyond the range of numbers"],
    ['a + "x"', 5, '"x" is a text where a number is needed'],
    ['a == "x"', 1, "only a form's value or a constant can be compared with a text"],
    ["1 + rate1", 3, "the expression uses no input variable"],
    ["previous(a + b)", 12, "previous takes one input variable, and here are 2"],
    ["delta(5)", 7, "delta takes one input variable, and here are 0"],
    ["consumption(a, b)", 16, "consumption takes a number here, a constant or a form's value"],
    ['aggregate(a, "Days", "SUM")', 14, 'aggregate takes one of these texts here: "Minute", "Hour", "Day"'],
    ['aggregate(a, "Day")', 1, "aggregate takes 3 arguments, and has 2"],
    ['aggregate(a, "All", "SUM")', 14, "aggregate takes one of these texts here"],
    ['convert(a + b, "kWh")', 11, "convert takes the alias of an input variable"],
    ['convert(a, "kWq")', 12, '"kWq" is no unit; is "'],
    ["convert(a, kWh)", 12, "convert takes a unit as a text here"],
    ['convert(a, "°C")', 12, "kWh ("],
  ])("%s", async (formula, column, message) => {
    const { faults } = await check(formula);
    expect(faults).toEqual([{ column, message: expect.stringContaining(message) }]);
  });

  test("several faults at once, in their sequence", async () => {
    const { faults } = await check("x1 + foo(a) * yy");
    expect(faults.map(({ column }) => column)).toEqual([1, 6, 15]);
  });
});

describe("what an expression needs", () => {
  test.each([
    ["a + b * 2", { a: [0], b: [0] }],
    ["delta(a) + b", { a: [1], b: [0] }],
    ["previous(previous(a)) + a", { a: [2] }],
    ["consumption(a, 1000) + hold(b, 2)", { a: [1], b: [1] }],
    ['aggregate(a, "Day", "SUM")', { a: [0, "Day"] }],
    ['hold(aggregate(a, "month", "AVG")) + cumulative(a, "Week")', { a: [1, "Week", "Month"] }],
    ['rate(convert(a, "Wh"))', { a: [1] }],
    ['if(tariff == "x", a, b)', { a: [0], b: [0] }],
  ])("%s", async (formula, wanted) => {
    const { faults, reach } = await check(formula);
    expect(faults).toEqual([]);
    expect(
      Object.fromEntries([...reach].map(([alias, { points, granularities }]) => [alias, [points, ...granularities]])),
    ).toEqual(wanted);
  });

  test("names that it uses", async () => {
    const { uses } = await check('a * rate1 * (tariff != "x")');
    expect([...uses].sort()).toEqual(["a", "rate1", "tariff"]);
  });
});

describe("reaches nothing else", () => {
  const attempts = [
    "import({a: 1})",
    'evaluate("1")',
    'parse("a")',
    'simplify("a")',
    'derivative("a^2", "a")',
    'createUnit("x")',
    "f(x) = x",
    "f(a) = a; f(1)",
    "x = 1",
    "a.constructor",
    "a.__proto__",
    'a["constructor"]',
    "a[1]",
    "{}",
    "{a: 1}.a",
    "[1, 2]",
    "[a]",
    "1:100000000",
    "constructor",
    "__proto__",
    "prototype",
    "toString",
    "hasOwnProperty",
    "constructor(a)",
    "__proto__(a)",
    "toString(a)",
    "valueOf(a)",
    "hasOwnProperty(a)",
    "a?.b",
    "a.b(1)",
    "(a)(1)",
    "sqrt.constructor(a)",
    "sum.map(a)",
    "170!",
    "a!",
    "factorial(a)",
    "gamma(a)",
    "zeros(10000, 10000)",
    "ones(1e9)",
    "range(1, 1e9)",
    "combinations(a, 2)",
    "bignumber(a)",
    "format(a)",
    "print(a)",
    "help(a)",
    "config(a)",
    "typed(a)",
    "chain(a)",
    "reviver(a)",
    "random()",
    "unit(5)",
    "5 kg",
    "a'",
    "~a",
    "a | b",
    "a & b",
    "a << 2",
    "a >> 2",
    "a .* b",
    "`a`",
    "'a",
    '"a',
    "'a\\'",
    "a\\b",
    "@a",
    "$",
    "i",
    "pi",
    "e",
    "undefined",
    "NaN",
    "Infinity",
    "a + ​b",
    "a\0",
    "0x10",
    "0b1",
    "1n",
    "a xor b",
    "a in b",
    "and(a, b)",
    "not",
    "unary -(a)",
    "add(a, b)",
    "resolve(a)",
    "compile(a)",
    "if",
    "if(a)",
    "then(a)",
    "Function(a)",
    "eval(a)",
    "process",
    "globalThis",
    "require(a)",
    "a; import(b)",
    "…",
  ];

  test.each(attempts)("%s", async (formula) => {
    const { faults } = await check(formula);
    expect(faults.length).toBeGreaterThan(0);
    expect(faults[0]?.column).toBeGreaterThan(0);
  });

  test.each([
    ["too long", `a${" + a".repeat(1000)}`],
    ["parentheses", `${"(".repeat(60)}a${")".repeat(60)}`],
    ["calls", `${"abs(".repeat(60)}a${")".repeat(60)}`],
    ["signs", `${"-".repeat(3_900)}a`],
    ["negations", `${"not ".repeat(990)}a`],
    ["powers", `a${"^a".repeat(1_900)}`],
    ["conditions", `${"a?a:".repeat(950)}a`],
    ["a sum of many", `a${"+a".repeat(1_900)}`],
  ])("%s is refused, and ends nothing", async (_, formula) => {
    const { faults } = await check(formula);
    expect(faults).toHaveLength(1);
    expect(faults[0]?.message).toMatch(/more than|too deeply/);
  });

  test("random texts of its signs and words are refused or read, and never throw", async () => {
    const words = [
      "a",
      "b",
      "1",
      ".5",
      "(",
      ")",
      ",",
      "+",
      "-",
      "*",
      "^",
      "?",
      ":",
      "??",
      "<",
      "==",
      '"kWh"',
      "if",
      "not",
      "and",
      "sum(",
      "hold(",
      "convert(",
      "null",
      "true",
      " ",
      "=",
      ".",
      "[",
      "!",
      "#",
      "\n",
    ];
    let state = 7;
    const next = (length: number): number => {
      state = (state * 48_271) % 2_147_483_647;
      return state % length;
    };
    let read = 0;
    for (let round = 0; round < 3_000; round += 1) {
      const formula = Array.from({ length: 1 + next(9) }, () => words[next(words.length)]).join("");
      const { faults } = await check(formula);
      if (faults.length === 0) read += 1;
      for (const { column, message } of faults) expect([column > 0, message.length > 0], formula).toEqual([true, true]);
    }
    expect(read).toBeGreaterThan(20);
  });
});
