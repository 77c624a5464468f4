/** Held runs whose mapper, settings or tables were changed: they continue with what is in force, or ask. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { loadGatewayConfig } from "#gateway/config.ts";
import type { Gateway } from "#gateway/gateway.ts";
import type { Run } from "#gateway/model.ts";
import { GatewayRig, trigger, until } from "./gateway-rig.ts";
import { headgate } from "./in-process.ts";

const PUSH = {
  confirm: { by: "read-back", pollEvery: "50ms" },
  guard: { remember: "50ms", recheck: "50ms", recheckMax: "100ms" },
};

let rig: GatewayRig;
let gateway: Gateway;
beforeEach(async () => {
  rig = await GatewayRig.start();
  mkdirSync(join(rig.folder, "mappers"), { recursive: true });
});
afterEach(() => rig.close());

/** The value that stands in the file, times a factor; without one, times what a table says of the meter. */
function writeMapper(version: string, factor: number | null): void {
  const times = factor ?? "Number((await lookup('factors')).get(meter)?.factor)";
  writeFileSync(
    join(rig.folder, "mappers", "acme.ts"),
    `import { defineMapper, z } from "headgate/mapper";
export default defineMapper({ name: "acme", summary: "of a test", version: "${version}",
  settings: z.object({ add: z.number().default(0) }), async map({ file, settings, lookup, emit }) {
  const [meter, date, value] = (await file.text()).trim().split(",");
  const factor = ${times};
  const target = { sourceSerialNumber: meter, mappingConfig: "v" };
  emit({ target, date, value: Number(value) * factor + settings.add });
} });`,
  );
}

const sections = (metadata: object, more: Readonly<Record<string, unknown>>) => ({
  mappers: { folders: ["./mappers"] },
  triggers: [trigger("acme", { mapper: "acme", metadata })],
  ...{ push: PUSH, ...more },
});

async function open(metadata: object = {}, more: Readonly<Record<string, unknown>> = {}): Promise<void> {
  gateway = await rig.open(sections(metadata, more));
}

const runsOf = async (path: string): Promise<readonly Run[]> =>
  (await gateway.ledger.trace(path)).flatMap(({ runs }) => runs.map(({ run }) => run));

async function untilLast(path: string, state: Run["state"], runs = 1): Promise<readonly Run[]> {
  let found: readonly Run[] = [];
  await until(`${path} is ${state}`, async () => {
    found = await runsOf(path);
    return found.length >= runs && found.at(-1)?.state === state;
  });
  return found;
}

async function hold(path: string, line: string): Promise<Run> {
  rig.put(`in/${path}`, line);
  const run = (await untilLast(path, "held")).at(-1);
  if (run === undefined) throw new Error("no run");
  return run;
}

test("a held run continues with the corrected mapper in its place, by keys that follow from the file", async () => {
  writeMapper("1.0.0", 10);
  await open();
  const held = await hold("a.csv", "M-1,2026-03-01T00:00:00Z,5\n");
  writeMapper("2.0.0", 1);
  const [before, after] = await untilLast("a.csv", "held", 2);
  expect(before).toMatchObject({ id: held.id, state: "cancelled", points: { accepted: 0 } });
  const versions = /it was mapped by acme 1\.0\.0 \(\w{12}\), and in force is acme 2\.0\.0 \(\w{12}\)/;
  expect(before?.reason?.message).toMatch(versions);
  expect(before?.reason?.message).toContain(`its file is run ${after?.id} now`);
  expect(after?.id.startsWith(held.id)).toBe(true);
  const later = await hold("b.csv", "M-1,2026-03-02T00:00:00Z,7\n");
  expect(later.binding.mapper.version).toBe("2.0.0");

  const id = await rig.variable("M-1");
  for (const path of ["a.csv", "b.csv"]) await untilLast(path, "confirmed");
  expect(await rig.stored(id)).toEqual({ "2026-03-01": 5, "2026-03-02": 7 });
  expect(await runsOf("a.csv")).toHaveLength(2);
  const [batch] = await gateway.ledger.batches(after?.id ?? "");
  expect(batch?.idempotencyKey).toMatch(/^[0-9a-f]{64}$/);
  const told = await headgate("trace", "a.csv", "-c", rig.config);
  expect(told.stdout).toMatch(versions);
  expect(told.stdout).toContain(`continues   run ${held.id}`);
  expect(await gateway.ledger.check()).toEqual([]);
});

test("with `ask` it stays held and names both versions, until a person decides", async () => {
  writeMapper("1.0.0", 10);
  await open({}, { held: { remap: "ask" } });
  await hold("a.csv", "M-1,2026-03-01T00:00:00Z,5\n");
  await hold("b.csv", "M-1,2026-03-02T00:00:00Z,5\n");
  writeMapper("2.0.0", 1);
  const words = /it was mapped by acme 1\.0\.0 .*, and in force is acme 2\.0\.0/;
  await until("both versions are named", async () => words.test((await runsOf("a.csv"))[0]?.reason?.message ?? ""));
  const id = await rig.variable("M-1");
  await until("nothing else holds it", async () => (await runsOf("a.csv"))[0]?.reason?.code === "HG-GUARD-010");
  await until("nor the other", async () => (await runsOf("b.csv"))[0]?.reason?.code === "HG-GUARD-010");
  expect(await rig.stored(id)).toEqual({});
  const listed = await headgate("quarantine", "-c", rig.config);
  expect(listed.stdout).toMatch(words);
  expect(listed.stdout).toContain("headgate replay");

  const [first] = await runsOf("a.csv");
  const [second] = await runsOf("b.csv");
  expect((await headgate("release", first?.id ?? "", "--yes", "-c", rig.config)).code).toBe(0);
  expect((await headgate("replay", second?.id ?? "", "--no-diff", "-c", rig.config)).code).toBe(0);
  await untilLast("a.csv", "confirmed");
  const [replaced, replay] = await untilLast("b.csv", "confirmed", 2);
  expect(replaced?.reason?.message).toMatch(/^cancelled by .*: it is replayed; its file is run /);
  expect(replay?.replay).not.toHaveProperty("continues");
  expect(await rig.stored(id)).toEqual({ "2026-03-01": 50, "2026-03-02": 5 });
});

test("a changed table and changed settings count too, and what a person chose for a replay stays", async () => {
  const factors = (factor: number) => writeFileSync(join(rig.folder, "factors.csv"), `meter,factor\nM-1,${factor}\n`);
  factors(10);
  writeMapper("1.0.0", null);
  const lookups = [{ name: "factors", path: "./factors.csv", key: "meter" }];
  await open({ add: 1 }, { lookups });
  await hold("a.csv", "M-1,2026-03-01T00:00:00Z,5\n");
  const other = await hold("b.csv", "M-1,2026-03-02T00:00:00Z,5\n");
  const chosen = ["--settings", '{"add":100}', "--no-diff", "-c", rig.config];
  expect((await headgate("replay", other.id, ...chosen)).code).toBe(0);
  await untilLast("b.csv", "held", 2);
  factors(2);
  const [, after] = await untilLast("a.csv", "held", 2);
  expect((await runsOf("a.csv"))[0]?.reason?.message).toContain("the table factors was changed");
  await untilLast("b.csv", "held", 3);
  // Of the same content: nothing to do again.
  factors(2);
  await open({ add: 3 }, { lookups });
  const again = await untilLast("a.csv", "held", 3);
  expect(again[1]).toMatchObject({ id: after?.id, state: "cancelled" });
  expect(again[1]?.reason?.message).toContain("other settings are in force (add)");
  const id = await rig.variable("M-1");
  for (const path of ["a.csv", "b.csv"]) await untilLast(path, "confirmed");
  expect(await rig.stored(id)).toEqual({ "2026-03-01": 13, "2026-03-02": 110 });
  expect(await runsOf("a.csv")).toHaveLength(3);
  expect(await runsOf("b.csv")).toHaveLength(3);
  const [batch] = await gateway.ledger.batches((await runsOf("b.csv")).at(-1)?.id ?? "");
  expect(batch?.idempotencyKey).toBe(batch?.operationId);
});

test("changed triggers have held runs checked at once", async () => {
  writeMapper("1.0.0", 10);
  const push = { ...PUSH, guard: { recheck: "1h", recheckMax: "1h" } };
  await open({ add: 1 }, { push });
  await hold("a.csv", "M-1,2026-03-01T00:00:00Z,5\n");
  rig.configure(sections({ add: 2 }, { push }));
  expect(await gateway.exchange(loadGatewayConfig(rig.config))).toMatchObject({ changed: ["triggers"] });
  expect((await untilLast("a.csv", "held", 2))[1]?.binding.settings).toEqual({ add: 2 });
});

test("a run that continues does not replace what a later file has delivered", async () => {
  writeMapper("1.0.0", 10);
  const id = await rig.variable("M-2");
  await open();
  await hold("a.csv", "M-1,2026-03-01T00:00:00Z,5\n");
  rig.put("in/b.csv", "M-2,2026-03-01T00:00:00Z,7\n");
  await untilLast("b.csv", "confirmed");
  // It read the wrong meter, whose readings a later file brought meanwhile.
  writeFileSync(
    join(rig.folder, "mappers", "acme.ts"),
    `import { defineMapper } from "headgate/mapper";
export default defineMapper({ name: "acme", summary: "of a test", version: "2.0.0", async map({ file, emit }) {
  const [, date, value] = (await file.text()).trim().split(",");
  emit({ target: { sourceSerialNumber: "M-2", mappingConfig: "v" }, date, value: Number(value) });
} });`,
  );
  const [, after] = await untilLast("a.csv", "held", 2);
  expect(after?.reason).toMatchObject({ code: "HG-GUARD-007" });
  expect(await rig.stored(id)).toEqual({ "2026-03-01": 70 });
  expect((await headgate("release", after?.id ?? "", "--overwrite", "--yes", "-c", rig.config)).code).toBe(0);
  await untilLast("a.csv", "confirmed");
  expect(await rig.stored(id)).toEqual({ "2026-03-01": 5 });
});
