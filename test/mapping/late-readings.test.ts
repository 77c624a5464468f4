/** Work that nobody waits for: what still runs when `map` has ended would give readings that reach no batch. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { mapperContract, mapText } from "#mapping/authoring/kit/index.ts";
import { defineMapper, type MapContext } from "#mapping/mapper.ts";
import { temporaryFolder } from "./kit.ts";

type Body = (context: MapContext<unknown>, late: () => void) => unknown;

const reading = (variableId: number) => ({ target: { variableId }, date: "2026-03-01T00:00:00Z", value: 1 });
const mapperOf = (body: Body) =>
  defineMapper({
    name: "late",
    version: "1.0.0",
    summary: "of a test",
    async map(context) {
      context.emit(reading(1));
      await body(context, () => context.emit(reading(2)));
    },
  });
const manyTurns = async () => {
  for (let turn = 0; turn < 50; turn += 1) await null;
};

const WAYS: readonly (readonly [way: string, left: string, body: Body])[] = [
  ["setTimeout", "a timer", (_, late) => void setTimeout(late, 1)],
  ["a timer that keeps no process", "a timer", (_, late) => void setTimeout(late, 1).unref()],
  ["setInterval", "a timer", (_, late) => void setInterval(late, 1).unref()],
  ["a timer as a promise", "a timer", (_, late) => void sleep(1).then(late)],
  ["setImmediate", "setImmediate", (_, late) => void setImmediate(late)],
  ["setImmediate in another", "setImmediate", (_, late) => void setImmediate(() => setImmediate(late))],
  ["process.nextTick", "`emit` was called after", (_, late) => process.nextTick(late)],
  ["a promise", "`emit` was called after", (_, late) => void manyTurns().then(late)],
  ["a refusal", "`reject` was called after", ({ reject }) => void manyTurns().then(() => reject({}, "no"))],
  ["eachRow", "eachRow(…)", ({ eachRow, file }, late) => void eachRow(file.csv({ columns: true }), late)],
  [
    "a loop over rows",
    "a reader of the file",
    ({ file }, late) =>
      void (async () => {
        for await (const _ of file.csv()) late();
      })(),
  ],
  [
    "a loop over rows that begins later",
    "a reader of the file was called after",
    ({ file }, late) =>
      void manyTurns().then(async () => {
        for await (const _ of file.lines()) late();
      }),
  ],
  ["text()", "text()", ({ file }, late) => void file.text().then(late)],
  ["sheets()", "sheets()", ({ file }, late) => void file.sheets().then(late, late)],
];

describe("work that nobody waits for", () => {
  it.each(WAYS)("refuses the file: %s", async (_, left, body) => {
    const { reason, elements } = await mapText(mapperOf(body), "a\n1\n");
    expect(reason).toMatchObject({ code: "HG-MAP-040" });
    expect(reason?.message).toContain(left);
    expect(reason?.hint).toContain("await");
    expect(elements).toEqual([]);
    // Also in the file of a mapper that gives nothing else.
    const alone = defineMapper({
      name: "late",
      version: "1",
      summary: "",
      map: async (c) => void (await body(c, () => c.emit(reading(2)))),
    });
    expect((await mapText(alone, "a\n1\n")).reason?.code).toBe("HG-MAP-040");
  });

  it("hides no other reason of a file that fails", async () => {
    const body: Body = (_, late) => {
      setTimeout(late, 1);
      throw new Error("broken");
    };
    expect((await mapText(mapperOf(body), "a\n")).reason?.code).toBe("HG-MAP-007");
  });

  it("is none where all is awaited, ended, or left in the middle of a file", async () => {
    const { points, reason } = await mapText(
      mapperOf(async ({ file, eachRow }, late) => {
        const ticking = setInterval(() => undefined, 1);
        await Promise.all([
          eachRow(file.csv({ columns: true }), late),
          sleep(2),
          new Promise((resolve) => setImmediate(resolve)),
        ]);
        clearInterval(ticking);
        clearTimeout(setTimeout(late, 1));
        clearImmediate(setImmediate(late));
        await file.csv()[Symbol.asyncIterator]().next();
        for await (const _ of file.lines()) break;
      }),
      "a\n1\n",
    );
    expect({ points, reason }).toEqual({ points: 2, reason: null });
  });

  it("counts for its own file where several are mapped side by side", async () => {
    const clean = mapperOf(() => sleep(20));
    const late = mapperOf((_, emit) => void setTimeout(emit, 5).unref());
    const [one, two, three] = await Promise.all([clean, late, clean].map((mapper) => mapText(mapper, "a\n1\n")));
    expect([one?.points, two?.reason?.code, three?.points]).toEqual([1, "HG-MAP-040", 1]);
  });
});

describe("the rules for every mapper", () => {
  async function broken(body: Body): Promise<readonly string[]> {
    const path = join(await temporaryFolder(), "input.csv");
    await writeFile(path, "a\n1\n");
    const found: string[] = [];
    for (const { name, run } of mapperContract(mapperOf(body), { path }))
      await run().catch((thrown: Error) => found.push(`${name}: ${thrown.message}`));
    return found;
  }
  const waitAsync = () => Atomics.waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30).value;

  it("find readings that come when map has ended, and those that come when the file is written", async () => {
    expect((await broken((_, late) => void setTimeout(late, 1)))[0]).toContain("ended while this still ran");
    const later = "readings that come after the file: `emit` was called after the file was written";
    expect(await broken((_, late) => void (waitAsync() as Promise<unknown>).then(late))).toEqual([
      expect.stringContaining(later),
    ]);
    expect(await broken(() => waitAsync())).toEqual([]);
  });
});
