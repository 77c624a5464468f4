/** Random expressions come to what math.js makes of them, value by value. */
import { evaluate } from "mathjs/number";
import { expect, test } from "vitest";
import { chanceOf } from "../../../../e2e/chance.ts";
import { computed, hourly } from "./inputs.ts";

const OPERATORS = ["+", "-", "*", "/", "^", "<", "<=", ">", ">=", "and", "or"];
const CALLS = ["abs", "sqrt", "exp", "floor", "ceil", "sign", "log", "log10"];
const FOLDS = ["min", "max", "sum", "mean"];
const ROWS = 6;

test("arithmetic, comparisons, conditions and calls", async () => {
  const chance = chanceOf(19);
  const among = <T>(all: readonly T[]): T => all[Math.trunc(chance() * all.length)] as T;
  const expression = (depth: number): string => {
    const inner = () => expression(depth - 1);
    const kind = depth === 0 ? chance() * 2 : chance() * 9;
    if (kind < 1) return among(["a", "b"]);
    if (kind < 2) return among(["2", "0.5", "3e1", "true", "0"]);
    if (kind < 6) return `${inner()} ${among(OPERATORS)} ${inner()}`;
    if (kind < 7) return `${among(["-", "+", "not "])}${inner()}`;
    if (kind < 8) return `${among(CALLS)}(${inner()})`;
    return among([`(${inner()})`, `${among(FOLDS)}(${inner()}, ${inner()})`, `(${inner()} ? ${inner()} : ${inner()})`]);
  };
  let compared = 0;
  for (let round = 0; round < 400; round += 1) {
    // Every date is one at which both have a value.
    const text = `(${expression(4)}) + 0 * a * b`;
    const columns = ["a", "b"].map(() => Array.from({ length: ROWS }, () => Math.trunc(chance() * 16 - 6) / 2));
    const [a = [], b = []] = columns;
    const { at, values } = await computed(text, { variables: [hourly("a", a), hourly("b", b)] });
    for (let row = 0; row < ROWS; row += 1) {
      const own = values[at.indexOf(row)] ?? Number.NaN;
      if (Number.isNaN(own)) continue;
      const theirs: unknown = evaluate(text, { a: a[row], b: b[row] });
      expect(own, `${text} of ${a[row]}, ${b[row]}`).toBeCloseTo(Number(theirs), 9);
      compared += 1;
    }
  }
  expect(compared).toBeGreaterThan(1_000);
});
