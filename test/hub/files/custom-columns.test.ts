/** Columns of master data with names and values that are easily taken for something else. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createChain, startTestHub, type TestHub } from "../fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
  const groups = [{ name: "Main", fields: [{ name: "Power", type: "Number" }] }];
  await hub.post("/form", { name: "Contract", groups });
});
afterAll(() => hub.close());

async function applied(column: string, cell: string) {
  const serialNumber = `S-${cell}-${column.length}`;
  const { sourceId } = await createChain(hub, { source: { serialNumber }, variables: [] });
  const text = `source_serial_number;${column}\n${serialNumber};${cell}\n`;
  const { body: fileId } = await hub.upload(text, "custom.csv");
  const path = join(hub.directory, "custom.csv");
  await writeFile(path, text);
  const facts = { accountId: 1, fileId, fileName: "custom.csv", path, run: "r", settings: {} };
  await hub.inside().masterData.apply(facts, AbortSignal.timeout(60_000));
  return { report: await hub.get(`/storage/${fileId}/report`), source: await hub.get(`/sources/${sourceId}`) };
}

test("the names of properties that every object has are plain names", async () => {
  for (const name of ["__proto__", "constructor", "prototype"]) {
    await applied(`source_custom.${name}.a.b`, "polluted");
    expect(Reflect.get({}, "a"), name).toBeUndefined();
    expect(Reflect.get({}, "b"), name).toBeUndefined();
  }
});

test("a number with a decimal comma is refused in words, and one with a point is taken", async () => {
  const { report, source } = await applied("source_custom.Contract.Main.Power", "12,5");
  expect(JSON.stringify(report)).toContain("must be a number with a decimal point");
  expect(source.clientData).toBeNull();
  const taken = await applied("source_custom.Contract.Main.Power", "12.5");
  expect(taken.source.clientData).toEqual({ Contract: { Main: { Power: 12.5 } } });
});
