/**
 * Runs that a person orders again: from the kept input, by the mapper of now, without what later files have
 * delivered.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Clock, systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import type { Gateway } from "#gateway/gateway.ts";
import type { Run } from "#gateway/model.ts";
import { JumpingClock } from "../support/jumping-clock.ts";
import { askOperations } from "../support/operations.ts";
import { drop, GatewayRig, trigger, until } from "./gateway-rig.ts";
import { headgate as run } from "./in-process.ts";

let rig: GatewayRig;
beforeAll(async () => {
  rig = await GatewayRig.start();
  mkdirSync(join(rig.folder, "mappers"), { recursive: true });
  writeFileSync(
    join(rig.folder, "mappers", "factored.ts"),
    `import { defineMapper, z } from "headgate/mapper";
export default defineMapper({ name: "factored", summary: "of a test", settings: z.object({ factor: z.number(), broken: z.string() }),
  async map({ file, settings, emit, reject }) {
    for await (const rows of file.lines()) for (const { text, row } of rows) {
      const [variable, date, value] = text.split(",");
      if (value === settings.broken) reject({ row }, "broken");
      else emit({ target: { variableId: Number(variable) }, date: date + "T00:00:00Z", value: Number(value) * settings.factor, row });
    }
  } });`,
  );
});
afterAll(() => rig.close());

const config = () => join(rig.folder, "gateway.yaml");
async function json(...args: string[]) {
  const { stdout, stderr, code } = await run(...args, "-c", config(), "--json");
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout);
}

const FIVE = '{"factor":5,"broken":"none"}';

/** A gateway whose mapper multiplies, and refuses one text. */
const open = (
  factor: number,
  broken = "none",
  rows = "strict",
  more: Readonly<Record<string, unknown>> = {},
  clock: Clock = systemClock,
) => {
  const sections = {
    mappers: { folders: ["./mappers"] },
    drops: [drop("in", { finish: { delivered: "leave" } })],
    triggers: [trigger("factored", { mapper: "factored", rows, rejectShare: 1, metadata: { factor, broken } })],
    ...more,
  };
  return rig.open(sections, silentLog, clock);
};

async function settled(gateway: Gateway, path: string, clock: JumpingClock | null = null): Promise<Run> {
  let latest: Run | undefined;
  await until(`${path} is at rest`, async () => {
    clock?.jump(1_000);
    if (clock !== null) await gateway.pulse();
    if (!(await gateway.isIdle())) return false;
    latest = (await gateway.ledger.trace(path))[0]?.runs.at(-1)?.run;
    return latest !== undefined;
  });
  if (latest === undefined) throw new Error("no run");
  return latest;
}

it("a file in quarantine is delivered by the trigger of now, as a new run that names the old one", async () => {
  const variable = await rig.variable("first");
  rig.put("in/first.csv", `${variable},2026-03-01,7\n${variable},2026-03-02,bad\n`);
  const before = await settled(await open(1, "bad"), "first.csv");
  expect(before.state).toBe("quarantined");
  const gateway = await open(2, "bad");
  const refused = await run("replay", before.id, "-c", config());
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("row 2: broken") });
  expect((await gateway.ledger.trace("first.csv"))[0]?.runs).toHaveLength(1);

  const lenient = await open(2, "bad", "lenient");
  const [told] = await json("replay", "first.csv", "--by", "ann", "--reason", "wrong row");
  expect(told).toMatchObject({ of: before.id, plan: { readings: { sent: 1, added: 1 }, refusedRows: 1 } });
  const after = await settled(lenient, "first.csv");
  expect(after).toMatchObject({ id: told.run, state: "confirmed", replay: { of: before.id, by: "ann" } });
  expect(await rig.stored(variable)).toEqual({ "2026-03-01": 14 });
  const operations = (await lenient.ledger.batches(after.id)).map(({ operationId }) => operationId);
  expect(operations).toEqual([`${after.id}-1`]);
  expect((await run("trace", "first.csv", "-c", config())).stdout).toContain(
    `run ${before.id}, ordered by ann: wrong row`,
  );
  expect(await json("quarantine")).toEqual([]);
});

it("differences are shown before they are sent, and dates of later files are sent only on request", async () => {
  const variable = await rig.variable("second", true);
  rig.put("in/second.csv", `${variable},2026-03-01,1\n${variable},2026-03-02,2\n${variable},2026-03-03,3\n`);
  const gateway = await open(1);
  const first = await settled(gateway, "second.csv");
  rig.put("in/second_correction.csv", `${variable},2026-03-02,99\n`);
  const correction = await settled(gateway, "second_correction.csv");
  const beside = await open(10);

  const [plan] = await json("replay", first.id, "--dry-run");
  expect(plan).toMatchObject({
    readings: { mapped: 3, sent: 2, added: 0, changed: 2, unchanged: 0, dropped: 0 },
    later: [{ run: correction.id, file: "second_correction.csv", readings: 1, dates: ["2026-03-02T00:00:00Z"] }],
    overwrites: false,
    differences: [
      { target: `variableId=${variable}`, date: "2026-03-01T00:00:00Z", before: 1, after: 10 },
      { date: "2026-03-03T00:00:00Z", before: 3, after: 30 },
    ],
  });
  const words = await run("replay", first.id, "-c", config(), "--dry-run");
  expect(words.stdout).toContain(`run ${correction.id} of second_correction.csv: 2026-03-02T00:00:00Z`);
  expect(words.stdout).toContain("nothing was sent");
  expect(await rig.stored(variable)).toEqual({ "2026-03-01": 1, "2026-03-02": 99, "2026-03-03": 3 });

  const [told] = await json("replay", first.id);
  const after = await settled(beside, "second.csv");
  expect(after).toMatchObject({ id: told.run, state: "confirmed", points: { mapped: 2 } });
  expect(after.replay?.spared).toEqual([correction.id]);
  expect(await rig.stored(variable)).toEqual({ "2026-03-01": 10, "2026-03-02": 99, "2026-03-03": 30 });
  const spared = (await beside.ledger.events(after.arrivalId)).find(({ what }) => what === "run.spared");
  expect(spared?.detail).toContain(
    `1 readings are left out since later runs have delivered their dates (${correction.id})`,
  );
  // The row index follows: a reading is traced to the row that it stood in.
  const traced = await json("trace", "--target", `variableId=${variable}`, "--date", "2026-03-03T00:00:00Z");
  expect(traced[0]).toMatchObject({ runId: after.id, value: 30, row: 3 });

  await json("replay", after.id, "--overwrite");
  await settled(beside, "second.csv");
  expect(await rig.stored(variable)).toMatchObject({ "2026-03-02": 20 });
});

it("only what the service did not accept is sent, when that alone is wanted", async () => {
  const variable = await rig.variable("third", true);
  rig.put("in/third.csv", `${variable},2026-03-01,1\n${variable},2026-03-02,n/a\n${variable},2026-03-03,3\n`);
  writeFileSync(join(rig.folder, "mappers", "zeros.ts"), zeros());
  const gateway = await open(1, "n/a", "lenient");
  const first = await settled(gateway, "third.csv");
  expect(first).toMatchObject({ state: "confirmed", points: { accepted: 2, rejected: 1 } });
  const [told] = await json("replay", first.id, "--rejected", "--mapper", "zeros");
  expect(told.plan.readings).toMatchObject({ mapped: 3, sent: 1, added: 1, acceptedBefore: 2 });
  const after = await settled(gateway, "third.csv");
  expect(after).toMatchObject({
    id: told.run,
    points: { mapped: 1, accepted: 1 },
    binding: { mapper: { name: "zeros" } },
  });
  expect(await rig.stored(variable)).toEqual({ "2026-03-01": 1, "2026-03-02": 0, "2026-03-03": 3 });
  await json("replay", after.id, "--rejected", "--mapper", "zeros");
  expect((await settled(gateway, "third.csv")).reason?.message).toContain("nothing is left to deliver");
});

/** As the other one, with zero for what is missing. */
function zeros(): string {
  return `import { defineMapper } from "headgate/mapper";
export default defineMapper({ name: "zeros", summary: "of a test", async map({ file, emit }) {
  for await (const rows of file.lines()) for (const { text } of rows) {
    const [variable, date, value] = text.split(",");
    emit({ target: { variableId: Number(variable) }, date: date + "T00:00:00Z", value: value === "n/a" ? 0 : Number(value) });
  }
} });`;
}

it("without a gateway the next start runs it, from the drop if its input is gone, or reports that both are", async () => {
  const variable = await rig.variable("fourth");
  rig.put("in/fourth.csv", `${variable},2026-03-01,1\n`);
  const gateway = await open(1);
  const first = await settled(gateway, "fourth.csv");
  await gateway.stop();
  const kept = join(rig.folder, "state/spool/kept");
  for (const name of readdirSync(kept)) if (name.startsWith(first.id)) rmSync(join(kept, name));
  const shown = await run("replay", first.id, "-c", config(), "--dry-run");
  expect(shown).toMatchObject({ code: 1, stderr: expect.stringContaining("HG-RUN-009") });
  const ordered = await run("replay", first.id, "-c", config(), "--no-diff", "--settings", FIVE);
  expect(ordered).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("it takes effect at the next start"),
  });
  const twice = await run("replay", first.id, "-c", config(), "--no-diff");
  expect(twice).toMatchObject({ code: 1, stderr: expect.stringContaining("HG-RUN-011") });
  const second = await open(1);
  expect(await settled(second, "fourth.csv")).toMatchObject({ state: "confirmed", replay: { of: first.id } });
  expect(await rig.stored(variable)).toEqual({ "2026-03-01": 5 });

  await second.stop();
  for (const name of readdirSync(kept)) rmSync(join(kept, name));
  const [another] = await json("replay", "fourth.csv", "--no-diff");
  rmSync(join(rig.folder, "in/fourth.csv"));
  expect(existsSync(join(rig.folder, "in/fourth.csv"))).toBe(false);
  const third = await open(1);
  const last = await settled(third, "fourth.csv");
  expect(last).toMatchObject({ id: another.run, state: "quarantined", reason: { code: "HG-RUN-009" } });
  const gone = await run("replay", last.id, "-c", config(), "--no-diff");
  expect(gone).toMatchObject({ code: 1, stderr: expect.stringContaining("HG-RUN-009") });
});

it("waits for a later file that was under way when it was ordered, and leaves out what that one delivers", async () => {
  const variable = await rig.variable("fifth");
  rig.put("in/fifth.csv", `${variable},2026-03-01,1\n${variable},2026-03-02,2\n`);
  const first = await settled(await open(1), "fifth.csv");
  const away = await open(1, "none", "strict", {
    services: [{ ...rig.service("hub"), push: "http://127.0.0.1:9/push" }],
  });
  rig.put("in/fifth_correction.csv", `${variable},2026-03-02,22\n`);
  await until("the correction is under way", async () => {
    const [latest] = await away.ledger.recentRuns(1);
    return latest?.path === "fifth_correction.csv" && latest.state === "delivering";
  });
  const [told] = await json("replay", first.id, "--no-diff", "--settings", FIVE);
  await until("the replay waits", async () => {
    const waiting = (await (await askOperations(away, "/operations/waiting")).json()) as {
      files: { runId: string; reason: string }[];
    };
    return waiting.files.some(({ runId, reason }) => runId === told.run && reason.includes("fifth_correction.csv"));
  });
  const clock = new JumpingClock();
  const gateway = await open(1, "none", "strict", {}, clock);
  const after = await settled(gateway, "fifth.csv", clock);
  expect(after).toMatchObject({ id: told.run, state: "confirmed", points: { mapped: 1 } });
  expect(await rig.stored(variable)).toEqual({ "2026-03-01": 5, "2026-03-02": 22 });
});

it("rests in quarantine when nobody can tell which dates a later file delivered", async () => {
  const variable = await rig.variable("sixth");
  const gateway = await open(1);
  rig.put("in/sixth.csv", `${variable},2026-03-01,1\n`);
  const first = await settled(gateway, "sixth.csv");
  rig.put("in/sixth_more.csv", `${variable},2026-03-09,9\n`);
  const later = await settled(gateway, "sixth_more.csv");
  const kept = join(rig.folder, "state/spool/kept");
  rmSync(join(kept, `${later.id}.segment`));
  const [plan] = await json("replay", first.id, "--dry-run");
  expect(plan.notKept).toEqual([later.id]);
  await json("replay", first.id, "--no-diff");
  expect(await settled(gateway, "sixth.csv")).toMatchObject({
    state: "quarantined",
    reason: { code: "HG-RUN-013", message: expect.stringContaining(later.id) },
  });
});

it("a file that was cancelled when a part of it had come is fetched from the drop as a whole", async () => {
  const variable = await rig.variable("parted");
  const text = `${variable},2026-03-01,7\n${variable},2026-03-02,8\n`;
  const path = "./state/spool";
  const waiting = await open(1, "none", "strict", { spool: { path, headroom: "1000000GB" } });
  rig.put("in/parted.csv", text);
  const claimed = async () => (await waiting.ledger.runsIn(["claimed"]))[0];
  await until("it waits for room", async () => ((await claimed())?.reason ?? null) !== null);
  const { id } = (await claimed()) ?? expect.fail("it does not wait");
  writeFileSync(join(rig.folder, path, "inputs", id), text.slice(0, text.indexOf("\n") + 1));
  await json("cancel", id, "--yes");
  await until("it is put away", async () => existsSync(join(rig.folder, path, "kept", `${id}.input`)));
  const gateway = await open(1);
  const shown = await run("replay", "parted.csv", "-c", config());
  expect(shown).toMatchObject({ code: 1, stderr: expect.stringContaining("HG-RUN-009") });
  const [told] = await json("replay", "parted.csv", "--no-diff");
  expect(await settled(gateway, "parted.csv")).toMatchObject({ id: told.run, state: "confirmed" });
  expect(await rig.stored(variable)).toEqual({ "2026-03-01": 7, "2026-03-02": 8 });
});
