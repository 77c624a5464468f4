/** Reads while points arrive: `HEADGATE_POINTS` of them (`npm run test:long` pushes ten million). */
import { expect, test } from "vitest";
import { type DataRow, dataRows } from "#wire/index.ts";
import { createChain, startTestHub } from "./fixture.ts";

const POINTS = Number(process.env["HEADGATE_POINTS"] ?? 96_000);
const VARIABLES = 50;
const DAY_STEPS = 96;
const DAYS = Math.ceil(POINTS / VARIABLES / DAY_STEPS);
const BEGIN = Date.UTC(2010, 0, 1);

const dateOf = (step: number) => new Date(BEGIN + step * 900_000).toISOString();

test("every read during pushes returns whole pushes, and nothing is missing at the end", async () => {
  const hub = await startTestHub();
  try {
    const { variableIds } = await createChain(hub, {
      variables: Array.from({ length: VARIABLES }, () => ({})),
    });
    const read = async (VariableIds: readonly number[]): Promise<DataRow[]> => {
      const body = {
        VariableIds,
        Granularity: "All",
        Aggregations: ["COUNT", "SUM"],
        DisplayLevel: "ValueVariable",
      };
      return dataRows.parse(await hub.post("/data", body));
    };
    /** Values are the numbers of their steps: so many points from the first one have exactly this sum. */
    const expectWhole = ({ countValue: count = 0, sumValue }: DataRow) => {
      expect(count % DAY_STEPS).toBe(0);
      expect(sumValue).toBe((count * (count - 1)) / 2);
      return count;
    };
    let isPushing = true;
    let reads = 0;
    const reader = async (id = 0) => {
      for (let last = 0; isPushing; reads += 1) {
        const [row] = await read([id]);
        const count = row === undefined ? 0 : expectWhole(row);
        expect(count).toBeGreaterThanOrEqual(last);
        last = count;
      }
    };
    const push = async () => {
      try {
        for (let day = 0; day < DAYS; day += 1) {
          const data = Array.from({ length: DAY_STEPS }, (_, index) => ({
            date: dateOf(day * DAY_STEPS + index),
            value: day * DAY_STEPS + index,
          }));
          await hub.post(
            "/push/api/data",
            variableIds.map((variableId) => ({ variableId, data })),
            {
              query: { operationId: `day-${day}` },
            },
          );
        }
      } finally {
        isPushing = false;
      }
    };
    await Promise.all([push(), reader(variableIds[0]), reader(variableIds.at(-1))]);
    for (;;) {
      const { pendingOperations } = await hub.get("/health");
      if (pendingOperations === 0) break;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const rows = await read(variableIds);
    expect(rows.map(expectWhole)).toEqual(variableIds.map(() => DAYS * DAY_STEPS));
    expect(reads).toBeGreaterThan(0);
  } finally {
    await hub.close();
  }
}, 900_000);
