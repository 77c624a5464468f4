/** An alarm with a long expression gives others their turn as often as its points take time. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startTestHub, type TestHub } from "../fixture.ts";
import { alarmsOf } from "./scene.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const { variable } = alarmsOf(() => hub);
const POINTS = 10_000;
const LONG = `${Array.from({ length: 160 }, () => "sqrt(exp(log(value+1)))").join("+")} > 0`;

/** How often the hub waited for the turn of others while a template was tested. */
async function turnsOf(id: number, expression: string): Promise<number> {
  const condition = { kind: "Expression", expression };
  const template = { name: "T", severity: "Warning", selection: { variableIds: [id] }, condition };
  const waits = vi.spyOn(globalThis, "setImmediate");
  try {
    const answer = await hub.post("/alarms/template/test", { template, from: "2026-01-01T00:00:00Z" });
    expect(answer).toMatchObject({ tested: 1, complete: true });
    return waits.mock.calls.length;
  } finally {
    waits.mockRestore();
  }
}

test("a test of a template is interrupted the more often, the longer its expression is", async () => {
  const id = await variable();
  const startMs = Date.UTC(2026, 0, 2);
  const data = Array.from({ length: POINTS }, (_, at) => ({
    date: new Date(startMs + at * 60_000).toISOString(),
    value: 1,
  }));
  await hub.push([{ variableId: id, data }]);
  const short = await turnsOf(id, "value > 0");
  const long = await turnsOf(id, LONG);
  expect(long - short).toBeGreaterThan(100);
});
