/**
 * A segment of several runs that was damaged while no gateway ran: each run is delivered with the bytes that
 * it had, split and traced as any other.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Gateway } from "#gateway/gateway.ts";
import type { PushElement, Run } from "#gateway/model.ts";
import { findReadings } from "#gateway/spool/search.ts";
import { openSpool } from "#gateway/spool/spool.ts";
import { bodiesOf, parseBody } from "#mapping/segment/payloads.ts";
import { GatewayRig, oneReading, trigger, until } from "./gateway-rig.ts";
import { writeShared } from "./shared-segments.ts";

let rig: GatewayRig;
beforeEach(async () => {
  // Refuses what is larger, which is split then.
  rig = await GatewayRig.start({ limits: { body: "120B" } });
});
afterEach(() => rig.close());

const root = () => join(rig.folder, "state/spool");
const segmentOf = ({ id }: Run) => join(root(), "segments", `${id}.segment`);
const day = (number: number) => `2026-03-${String(number).padStart(2, "0")}T00:00:00Z`;

/** The files of these runs become one segment, and the ledger has their batches there. */
async function share(runs: readonly Run[], ledger: Gateway["ledger"]): Promise<() => void> {
  const spool = await openSpool({
    ...{ path: root(), budget: 1e9, headroom: 0 },
    keepInputs: { age: 1e12, size: 1e12 },
  });
  const files: { runId: string; input: string; batches: PushElement[][] }[] = [];
  for (const { id } of runs) {
    const input = await text((await spool.openInput(id)) ?? expect.fail("no input"));
    const read = (await spool.openSegment(id)) ?? expect.fail("no segment");
    const bodies = await Array.fromAsync(bodiesOf(read, await ledger.batches(id)));
    files.push({ runId: id, input, batches: bodies.map(({ body }) => [...parseBody(body)]) });
  }
  await spool.close();
  return () => {
    for (const { id } of runs)
      for (const path of [spool.inputPath(id), spool.segmentPath(id)]) rmSync(path, { force: true });
    const written = writeShared(root(), files);
    const db = new DatabaseSync(join(rig.folder, "state/ledger.sqlite"));
    for (const { id } of runs)
      for (const { sequence, offset, digest } of written.get(id)?.slices ?? [])
        expect(
          db
            .prepare("UPDATE batches SET offset = ? WHERE run_id = ? AND sequence = ? AND digest = ?")
            .run(offset, id, sequence, digest).changes,
        ).toBe(1);
    db.close();
  };
}

it("its damaged or lost parts are rebuilt from the ledger, also after a split, and readings lead to rows", async () => {
  const names = ["damaged", "whole", "lost"] as const;
  const variables = new Map<string, number>();
  for (const [at, name] of names.entries()) {
    const variable = await rig.variable(name, true);
    variables.set(name, variable);
    const rows = Array.from({ length: 6 }, (_, nth) => `${variable},${day(nth + 1)},${10 * at + nth}\n`);
    rig.put(`in/${name}.csv`, `variable_id,date,value\n${rows.join("")}`);
  }
  const push = { batch: { points: 4 }, confirm: { by: "read-back", pollEvery: "50ms" } };
  // Nothing is asked, and so nothing is sent.
  const away = rig.service("hub", "http://127.0.0.1:9");
  const before = await rig.open({ services: [away], push });
  await until("all are mapped", async () => {
    const runs = await before.ledger.recentRuns(3);
    return runs.length === 3 && runs.every(({ state }) => state === "mapped" || state === "held");
  });
  const runs = (await before.ledger.recentRuns(3)).toSorted((a, b) => (a.path < b.path ? -1 : 1));
  const [damaged, lost, whole] = runs;
  if (damaged === undefined || lost === undefined || whole === undefined) throw new Error("no runs");
  const operations = await Promise.all(runs.map(({ id }) => before.ledger.batches(id)));
  const lay = await share(runs, before.ledger);
  await before.stop();
  lay();
  rmSync(segmentOf(lost));
  const at = readFileSync(segmentOf(damaged)).indexOf(`"value":0}`);
  const bytes = readFileSync(segmentOf(damaged));
  bytes[at + 8] = 0x39;
  writeFileSync(segmentOf(damaged), bytes);

  const gateway = await rig.open({ push });
  await until("all are confirmed", async () =>
    (await gateway.ledger.recentRuns(3)).every(({ state }) => state === "confirmed"),
  );
  await until("the gateway is idle", () => gateway.isIdle());
  for (const [nth, run] of runs.entries()) {
    const batches = await gateway.ledger.batches(run.id);
    const roots = batches.filter(({ sequence }) => !sequence.includes("."));
    expect(roots.map(({ operationId, digest }) => [operationId, digest])).toEqual(
      operations[nth]?.map(({ operationId, digest }) => [operationId, digest]),
    );
    expect(roots.map(({ state }) => state)).toContain("split");
    const events = (await gateway.ledger.trace(run.id)).flatMap(({ events: all }) => all.map(({ what }) => what));
    expect(events.includes("run.rebuilt")).toBe(run !== whole);
  }
  for (const [nth, name] of names.entries()) {
    const variableId = variables.get(name) ?? 0;
    expect(await rig.versions(variableId)).toBe(6);
    const query = { fields: { variableId }, atMs: Date.parse(day(5)) };
    expect(await Array.fromAsync(findReadings(root(), query))).toMatchObject([
      { sequence: "2", row: 6, value: 10 * nth + 4 },
    ]);
  }
});

it("what was sent is made again to be read back, where the spool has it elsewhere than the ledger", async () => {
  const variable = await rig.variable("elsewhere");
  rig.put("in/elsewhere.csv", oneReading(variable, 5));
  const triggers = [trigger("standard", { guard: "push" })];
  // It takes what is sent, and cannot be asked.
  const before = await rig.open({
    services: [{ ...rig.service("hub"), base: "http://127.0.0.1:9" }],
    triggers,
  });
  const runOf = async (gateway: Gateway) => (await gateway.ledger.recentRuns(1))[0];
  await until("it is accepted", async () => (await runOf(before))?.state === "accepted");
  const run = (await runOf(before)) ?? expect.fail("no run");
  await before.stop();
  // As this node had laid it with other runs before another node took it over. It is kept already where the
  // file was archived before the stop.
  const kept = join(root(), "kept", `${run.id}.segment`);
  const segment = existsSync(kept) ? kept : segmentOf(run);
  writeFileSync(segment, `${" ".repeat(20)}${readFileSync(segment)}`);
  const gateway = await rig.open({ triggers });
  await until("it is confirmed", async () => (await runOf(gateway))?.state === "confirmed");
});
