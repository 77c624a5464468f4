/** Limits of expressions: each ends with its own time and memory, and holds no other one back. */
import { afterAll, expect, test } from "vitest";
import type { InputVariable } from "#hub/calculated/engines/engine.ts";
import { createExpressionEngine } from "#hub/calculated/engines/expressions/expression-engine.ts";
import { computeExpression } from "#hub/calculated/engines/expressions/expressions.ts";
import { HOUR, hourly, inputOf, START } from "./inputs.ts";

const ROWS = 1_000_000;
const many: InputVariable = {
  ...hourly("a", []),
  atMs: Float64Array.from({ length: ROWS }, (_, at) => START + at * HOUR),
  values: new Float64Array(ROWS).fill(1),
};
/** Minutes of a processor. */
const SLOW = Array.from({ length: 180 }, () => "sqrt(exp(log(a+1)))").join("+");
const quick = (accountId: number) => inputOf("a+1", { accountId, variables: [hourly("a", [1, 2])] });
const never = new AbortController().signal;
const engine = createExpressionEngine({ timeout: 600_000, memory: 512_000_000, idle: 60_000 }, 3);
afterAll(() => engine.close());

test("an expression over many rows holds that of another account back neither before nor behind it", async () => {
  const ended: string[] = [];
  const leaving = new AbortController();
  const slow = [1, 1].map((accountId) =>
    engine
      .run(inputOf(SLOW, { accountId, variables: [many] }), leaving.signal)
      .then(() => ended.push("slow"))
      .catch(() => ended.push("left")),
  );
  for (let nth = 0; nth < 3; nth += 1) ended.push((await engine.run(quick(2), never)).kind);
  expect(ended).toEqual(["computed", "computed", "computed"]);
  leaving.abort(new Error("left"));
  await Promise.all(slow);
  expect(ended.slice(3)).toEqual(["left", "left"]);
});

test("one that takes too long ends with its reason, and the next one runs", async () => {
  const hasty = createExpressionEngine({ timeout: 200, memory: 512_000_000, idle: 60_000 }, 1);
  try {
    expect(await hasty.run(inputOf(SLOW, { variables: [many] }), never)).toEqual({
      kind: "failed",
      message: "the expression took longer than 0.2 s (`calculated.timeout`) and was ended",
    });
    const patient = createExpressionEngine({ timeout: 60_000, memory: 512_000_000, idle: 60_000 }, 1);
    expect(await patient.run(quick(1), never)).toMatchObject({ kind: "computed" });
    await patient.close();
  } finally {
    await hasty.close();
  }
});

test("one whose terms need too much memory ends with its reason", async () => {
  const steps = Array.from({ length: 40 }, () => "delta(a)").join("+");
  const input = inputOf(steps, { variables: [many] });
  expect(await computeExpression(input, 100_000_000)).toEqual({
    kind: "failed",
    message: "the expression needs more than 100 MB (`calculated.memory`)",
  });
  expect(await computeExpression(inputOf("a+a*2", { variables: [many] }), 100_000_000)).toMatchObject({
    kind: "computed",
  });
});
