/**
 * A mapper that is changed while the gateway runs: new files go on with what works, and every run keeps the
 * version that it is bound to.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Gateway } from "#gateway/gateway.ts";
import { askOperations } from "../support/operations.ts";
import { GatewayRig, trigger, until } from "./gateway-rig.ts";

let rig: GatewayRig;
let variable: number;
beforeAll(async () => {
  rig = await GatewayRig.start();
  variable = await rig.variable("changing");
  mkdirSync(join(rig.folder, "mappers", "acme", "cases", "one"), { recursive: true });
});
afterAll(() => rig.close());

const open = () => rig.open({ mappers: { folders: ["./mappers"] }, triggers: [trigger("acme", { mapper: "acme" })] });
const marker = () => join(rig.folder, "hold");

/** Gives the value that stands in the file, times a factor, when nothing but a case is held up. */
function writeMapper(version: string, factor: number, head = ""): void {
  writeFileSync(
    join(rig.folder, "mappers", "acme", "mapper.ts"),
    `import { existsSync } from "node:fs";
import { defineMapper } from "headgate/mapper";
${head}
export default defineMapper({ name: "acme", summary: "of a test", version: "${version}", async map({ file, emit }) {
  const [date, value] = (await file.text()).trim().split(",");
  emit({ target: { variableId: ${variable} }, date, value: Number(value) * ${factor} });
  while (file.name !== "input.csv" && existsSync(${JSON.stringify(marker())})) await new Promise((resolve) => setTimeout(resolve, 10));
} });`,
  );
}

function writeCase(expected: number): void {
  const folder = join(rig.folder, "mappers", "acme", "cases", "one");
  writeFileSync(join(folder, "input.csv"), "2026-03-01T00:00:00Z,1\n");
  const data = [{ date: "2026-03-01T00:00:00Z", value: expected }];
  writeFileSync(join(folder, "expected.json"), JSON.stringify([{ variableId: variable, data }]));
}

async function deliver(gateway: Gateway, day: number): Promise<string | undefined> {
  const date = `2026-03-${String(day).padStart(2, "0")}`;
  rig.put(`in/${date}.csv`, `${date}T00:00:00Z,1\n`);
  await until(`${date} is stored`, async () => (await rig.stored(variable))[date] !== undefined);
  const [run] = await gateway.ledger.recentRuns(1);
  return run?.binding.mapper.version;
}

async function refusal(gateway: Gateway): Promise<string> {
  const answer = await askOperations(gateway, "/health/ready");
  const { parts } = (await answer.json()) as { parts: { part: string; reason: string }[] };
  return parts.find(({ part }) => part === "mapper acme")?.reason ?? "";
}

const untilRefused = (gateway: Gateway, words: string) =>
  until(words, async () => (await refusal(gateway)).includes(words));

test("broken and failing versions are kept from new files, also by a restart, and a good one is taken", async () => {
  writeMapper("1.0.0", 1);
  writeCase(1);
  let gateway = await open();
  expect(await deliver(gateway, 1)).toBe("1.0.0");

  writeMapper("2.0.0", 2, "export default {");
  await untilRefused(gateway, "cannot be loaded");
  expect(await deliver(gateway, 2)).toBe("1.0.0");

  writeMapper("3.0.0", 3);
  await untilRefused(gateway, "the case one of the mapper acme does not pass");
  expect(await deliver(gateway, 3)).toBe("1.0.0");

  gateway = await open();
  expect(await refusal(gateway)).toContain("the case one of the mapper acme does not pass");
  expect(await deliver(gateway, 4)).toBe("1.0.0");

  writeCase(3);
  await until("the case passes", async () => (await refusal(gateway)) === "");
  expect(await deliver(gateway, 5)).toBe("3.0.0");
  expect(await rig.stored(variable)).toEqual({
    "2026-03-01": 1,
    "2026-03-02": 1,
    "2026-03-03": 1,
    "2026-03-04": 1,
    "2026-03-05": 3,
  });
});

test("a run that was interrupted finishes with the bytes of the version that it is bound to", async () => {
  writeMapper("4.0.0", 4);
  writeCase(4);
  let gateway = await open();
  writeFileSync(marker(), "");
  rig.put("in/2026-03-11.csv", "2026-03-11T00:00:00Z,1\n");
  await until("it is mapped", async () => (await gateway.ledger.recentRuns(1))[0]?.state === "mapping");
  writeMapper("5.0.0", 5);
  writeCase(5);
  gateway = await open();
  rmSync(marker());
  expect(await deliver(gateway, 12)).toBe("5.0.0");
  await until("both are stored", async () => (await rig.stored(variable))["2026-03-11"] !== undefined);
  expect(await rig.stored(variable)).toMatchObject({ "2026-03-11": 4, "2026-03-12": 5 });
});

test("readings that come when their file is written mark the run, and stop the triggers of that version", async () => {
  const module = (then: string) =>
    writeFileSync(
      join(rig.folder, "mappers", "acme", "mapper.ts"),
      `import { defineMapper } from "headgate/mapper";
export default defineMapper({ name: "acme", summary: "of a test", version: "9.0.0", async map({ emit }) {
  const target = { variableId: ${variable} };
  const give = (day) => emit({ target, date: "2026-04-0" + day + "T00:00:00Z", value: day });
  give(1); ${then} } });`,
    );
  rmSync(join(rig.folder, "mappers", "acme", "cases"), { recursive: true });
  const wait = "Atomics.waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)";
  module(`void ${wait}.value.then(() => give(2));`);
  const gateway = await open();
  rig.put("in/late.csv", "2026-04-01T00:00:00Z,1\n");
  await until("the trigger is paused", async () => (await gateway.ledger.pauses()).length > 0);
  const [run] = await gateway.ledger.recentRuns(1);
  expect(await gateway.ledger.pauses()).toMatchObject([
    { kind: "trigger", name: "acme", by: "the gateway", why: expect.stringContaining(`(run ${run?.id}, late.csv)`) },
  ]);
  expect(run?.reason).toMatchObject({ code: "HG-MAP-041", message: expect.stringContaining("acme 9.0.0") });
  const { parts } = (await (await askOperations(gateway, "/health/ready")).json()) as { parts: { part: string }[] };
  expect(parts.map(({ part }) => part)).toContain("trigger acme");
  const answer = await askOperations(gateway, "/operations/attention");
  expect(await answer.json()).toMatchObject({ groups: [{ kind: "paused", triggers: ["acme"] }] });

  rig.put("in/next.csv", "2026-04-03T00:00:00Z,1\n");
  await until("the next file waits", async () =>
    (await gateway.ledger.arrivalsAt("next.csv")).some(({ reason }) => reason?.includes("is paused") === true),
  );
});
