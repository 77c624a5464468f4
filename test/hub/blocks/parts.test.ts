/** Readings that touch many blocks of one variable are put into few of them at one time. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { addBlocks, BLOCK_POINTS } from "#hub/store/blocks/blocks.ts";
import { neededBlocks, partsOf, segmentsOf, slicesOf } from "#hub/store/blocks/parts.ts";
import { ReadingColumns } from "#hub/store/columns.ts";
import { row, rows } from "#hub/store/database.ts";
import type { HubStore } from "#hub/store/store.ts";
import { createChain, startTestHub, type TestHub } from "../fixture.ts";
import { variableFacts } from "../variable-facts.ts";

const AT_ONCE = 64;
const VARIABLE = variableFacts(1);

const touched = fc.record({ within: fc.nat(2), after: fc.nat(2), isFull: fc.boolean() });

test("a slice needs at most 64 blocks, and no block is in two", () => {
  fc.assert(
    fc.property(fc.array(touched, { maxLength: 400, size: "max" }), fc.nat(2), (blocks, before) => {
      const readings = new ReadingColumns(6 * (blocks.length + 1));
      const position = readings.positionOf(VARIABLE);
      const add = (count: number, fromMs: number) => {
        for (let index = 0; index < count; index += 1) readings.add(0, position, fromMs + index, 1, null);
      };
      add(before, -3);
      for (const [index, { within, after }] of blocks.entries()) {
        add(within, 10 * index + 1);
        add(after, 10 * index + 6);
      }
      fc.pre(readings.length > 0);
      const [segment] = segmentsOf(readings, readings.order());
      if (segment === undefined) throw new Error("there are readings");
      const keys = blocks.map(({ isFull }, index) => ({
        variableId: VARIABLE.id,
        firstMs: 10 * index,
        lastMs: 10 * index + 5,
        points: isFull ? BLOCK_POINTS : 2,
      }));
      const parts = partsOf(readings, segment, keys);
      const slices = [...slicesOf(parts)];
      expect(slices.flat()).toEqual(parts);
      const places = slices.map((slice) => [...new Set(slice.map(({ within, after }) => within ?? after))]);
      for (const slice of slices) expect(neededBlocks(slice).length).toBeLessThanOrEqual(AT_ONCE);
      // Also "within" and "after" one block are together.
      expect(new Set(places.flat()).size).toBe(places.flat().length);
      expect(places.slice(0, -1).every(({ length }) => length === AT_ONCE)).toBe(true);
    }),
  );
});

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const STEP_MS = 900_000;
const BEGIN_MS = Date.parse("2025-10-05T00:00:00Z");
const BLOCKS = 150;
const POINTS = 20;
/** From the begin of one block to that of the next. */
const APART = 40;
const at = (step: number, value: number, ms = 0) => ({
  date: new Date(BEGIN_MS + step * STEP_MS + ms).toISOString(),
  value,
});

async function heldOf(variableId: number) {
  let held = { blocks: 0, inBlocks: 0, rows: 0, between: 0 };
  await (hub.inside().store as HubStore).people.change(function* () {
    const blocks = yield* rows("SELECT * FROM point_block WHERE variable_id = ?", variableId);
    const found = yield* row("SELECT count(*) AS total FROM point WHERE variable_id = ?", variableId);
    const between = yield* row(
      `SELECT count(*) AS total FROM point_block AS one JOIN point ON point.variable_id = one.variable_id
        AND at_ms BETWEEN first_ms AND last_ms WHERE one.variable_id = ?`,
      variableId,
    );
    held = {
      blocks: blocks.length,
      inBlocks: blocks.reduce((sum, block) => sum + Number(block["points"]), 0),
      rows: Number(found?.["total"]),
      between: Number(between?.["total"]),
    };
  });
  return held;
}

/** New values, other values, equal ones and one date twice between the dates of a block, and 0, 2 or 18 after it. */
function lateValues(block: number): readonly object[] {
  const from = APART * block;
  const within = [at(from + 5, -5, 1), at(from + 7, -7), at(from + 8, 8), at(from + 9, 1), at(from + 9, -9)];
  const after = (count: number) => Array.from({ length: count }, (_, index) => at(from + POINTS + index, -index));
  return [[...within, ...after(18)], [...within, ...after(2)], after(18), within][block % 4] ?? [];
}

test("late values in 150 blocks of one variable give the answers of rows", async () => {
  const { variableIds } = await createChain(hub, { variables: [{}, {}] });
  const [packed = 0, plain = 0] = variableIds;
  const asRows = { variableId: plain, tags: { kept: "as a row" } };
  const steps = Array.from({ length: POINTS }, (_, index) => index);
  await (hub.inside().store as HubStore).people.change(function* () {
    for (let block = 0; block < BLOCKS; block += 1)
      yield* addBlocks(packed, {
        atMs: Float64Array.from(steps, (step) => BEGIN_MS + (APART * block + step) * STEP_MS),
        values: Float64Array.from(steps),
        origins: new Float64Array(POINTS),
      });
  });
  const blocks = Array.from({ length: BLOCKS }, (_, block) => block);
  const stored = blocks.flatMap((block) => steps.map((step) => at(APART * block + step, step)));
  await hub.push([{ ...asRows, data: stored }]);

  const data = [at(-3, -1), at(-2, -2), ...blocks.flatMap(lateValues)];
  const outcome = await hub.push([{ variableId: packed, data }]);
  const { stored: expected, replaced } = await hub.push([{ ...asRows, data }]);
  expect(outcome).toMatchObject({ stored: expected, replaced, discarded: [] });

  const pointsOf = async (variableId: number) =>
    (await hub.get("/data", { VariableId: variableId })).map(
      ({ date, rawValue }: { date: string; rawValue: number }) => [date, rawValue],
    );
  const points = await pointsOf(packed);
  expect(points).toEqual(await pointsOf(plain));
  const held = await heldOf(packed);
  // Two before all, and two after each fourth, are too few for a block.
  expect(held).toMatchObject({ blocks: BLOCKS, rows: 2 + 2 * blocks.filter((block) => block % 4 === 1).length });
  expect(held).toMatchObject({ inBlocks: points.length - held.rows, between: 0 });
  expect((await heldOf(plain)).blocks).toBe(0);
});
