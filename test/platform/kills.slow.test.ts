/** A hub with its gateway as a real process, killed as a power cut would: every answered file is processed, once. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { type HubCalls, temporaryDirectory } from "../hub/fixture.ts";
import { HubProcess } from "../hub/hub-process.ts";
import { shortcuts, standardCsv } from "./rig.ts";

const hubProcess = new HubProcess("platform");
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(async () => {
  await hubProcess.end("SIGKILL");
  await directory.remove();
});

async function run(fault?: string): Promise<HubCalls & ReturnType<typeof shortcuts>> {
  const calls = await hubProcess.run(directory.path, fault);
  return { ...calls, ...shortcuts(calls) };
}

/** A versioned variable, which shows a reading that came twice. */
async function prepare(): Promise<number> {
  const hub = await run();
  const variableId = await hub.variable("K-1");
  await hub.ok("PATCH", `/variables/${variableId}`, { body: { isVersioned: true } });
  await hub.trigger("kill_", "standard");
  await hubProcess.end("SIGTERM");
  return variableId;
}

const dateOf = (nth: number) => new Date(Date.UTC(2026, 2, 1) + nth * 60_000).toISOString();

/** Each answered file is stored, and its reading has one version; a file that was not answered may be there. */
async function expectOnce(hub: Awaited<ReturnType<typeof run>>, variableId: number, answered: Map<number, number>) {
  for (const id of answered.values()) await hub.became(id, "stored");
  const query = { VariableId: variableId, AllVersions: true, "Paging.ItemsPerPage": 10_000 };
  const rows: { date: string; rawValue: number }[] = await hub.get("/data", query);
  const counts = Map.groupBy(rows, ({ rawValue }) => rawValue);
  for (const [value, versions] of counts) expect(versions, `versions of ${value}`).toHaveLength(1);
  expect([...answered.keys()].filter((value) => !counts.has(value))).toEqual([]);
}

test.each([
  "hub.file.recorded",
  "ledger.run.claimed.after",
  "ledger.run.mapped.after",
  "hub.push.answered",
  "ledger.run.accepted.after",
])("a hub killed at %s processes the file after its start", async (fault) => {
  const variableId = await prepare();
  const dying = await run(fault);
  const answered = new Map<number, number>();
  await dying.store("kill_0.csv", standardCsv("K-1", dateOf(0), 0)).then(
    (id) => answered.set(0, id),
    () => null, // What was not answered may be lost.
  );
  expect(await hubProcess.killed()).toBe("SIGKILL");
  const hub = await run();
  if (answered.size === 0) answered.set(0, 1);
  await expectOnce(hub, variableId, answered);
});

test("a hub killed at random moments processes every answered file, once", async () => {
  const variableId = await prepare();
  const answered = new Map<number, number>();
  let next = 0;
  for (let round = 0; round < 6; round += 1) {
    const hub = await run();
    const dying = hubProcess.killed();
    let isOver = false;
    const send = async () => {
      while (!isOver) {
        const nth = next++;
        const sent = hub.store(`kill_${nth}.csv`, standardCsv("K-1", dateOf(nth), nth));
        await sent.then(
          (id) => answered.set(nth, id),
          () => null, // What was not answered may be lost.
        );
      }
    };
    const senders = [send(), send(), send()];
    setTimeout(() => hubProcess.child?.kill("SIGKILL"), 200 + Math.random() * 2_500);
    await dying;
    isOver = true;
    await Promise.all(senders);
  }
  expect(answered.size).toBeGreaterThan(6);
  await expectOnce(await run(), variableId, answered);
});
