/** What an operator finds in the log of a gateway: a summary at the start, and one line for each thing that matters. */
import { renameSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLog } from "#core/log.ts";
import { Door } from "../e2e/breakable-link.ts";
import { drop, GatewayRig, oneReading, trigger, until } from "../runs/gateway-rig.ts";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

interface Line {
  readonly level: string;
  readonly msg: string;
  readonly [fact: string]: unknown;
}

let rig: GatewayRig;
let lines: Line[];
const log = createLog("info", { write: (text: string) => void lines.push(JSON.parse(text) as Line) });

beforeEach(async () => {
  lines = [];
  rig = await GatewayRig.start();
});
afterEach(() => rig.close());

const about = (facts: Readonly<Record<string, unknown>>) =>
  lines.filter((line) => Object.entries(facts).every(([name, value]) => line[name] === value));

test("the start is one line: version, configuration, drops, triggers, services, ledger, spool", async () => {
  await rig.open({ drops: [drop("in"), drop("other")] }, log);
  expect(about({ msg: "gateway started" })).toEqual([
    expect.objectContaining({
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      drops: ["in (local)", "other (local)"],
      triggers: ["standard (standard)"],
      services: [expect.stringMatching(/^hub \(127\.0\.0\.1:\d+\)$/)],
      ledger: expect.stringContaining("ledger"),
      spool: expect.stringContaining("spool"),
    }),
  ]);
});

test("a run that is quarantined or held is one warning, with run, file, drop, reason and place", async () => {
  rig.put("in/bad.csv", `variable_id,date,value\n${await rig.variable("a")},2026-03-01T00:00:00Z,no number\n`);
  rig.put("in/missing.csv", oneReading(999_999, 1));
  const gateway = await rig.open({}, log);
  await until("both rest", async () => {
    const { files } = await gateway.summary();
    return files.quarantined === 1 && files.held === 1;
  });
  // What was read may be a moment ahead of its commit, which is logged when it is on the disk.
  await until("both are told", async () => about({ level: "warn", drop: "in" }).length === 2);
  const bad = about({ level: "warn", file: "bad.csv" });
  expect(bad).toEqual([
    expect.objectContaining({
      run: expect.any(String),
      drop: "in",
      trigger: "standard",
      state: "quarantined",
      code: expect.stringMatching(/^HG-MAP-/),
      place: expect.objectContaining({ row: 2 }),
      msg: expect.stringMatching(/^bad\.csv at in is quarantined: .+ \(row 2, column value\)$/),
    }),
  ]);
  expect(about({ level: "warn", file: "missing.csv" })).toEqual([
    expect.objectContaining({ state: "held", msg: expect.stringMatching(/^missing\.csv at in is held: /) }),
  ]);
});

test("a service that becomes unavailable and returns is one warning and one notice", async () => {
  const door = await Door.before(rig.hub.url);
  try {
    door.shutFor(3_600_000);
    rig.put("in/a.csv", oneReading(await rig.variable("a"), 1));
    const gateway = await rig.open({ services: [rig.service("hub", door.url)] }, log);
    await until("it is known to be away", async () => gateway.serviceWaits().has("hub"));
    rig.put("in/b.csv", oneReading(await rig.variable("b"), 1));
    await until("both were tried in vain", async () => {
      const runs = await gateway.ledger.recentRuns(10);
      return runs.length === 2 && runs.every((run) => run.reason !== null);
    });
    expect(about({ level: "warn", service: "hub" })).toEqual([
      expect.objectContaining({ msg: expect.stringMatching(/^the service hub cannot be used: /) }),
    ]);
    await door.open();
    await until("it is delivered", async () => (await gateway.summary()).files.delivered === 2);
    const notices = () => about({ level: "info", service: "hub" }).map(({ msg }) => msg);
    // The delivery is recorded before its step ends.
    await until("a notice says so", async () => notices().length > 0);
    expect(notices()).toEqual(["the service hub can be used again"]);
  } finally {
    await door.close();
  }
});

test("a drop that fails and recovers is one warning, however often it is polled, and one notice", async () => {
  const gateway = await rig.open({ drops: [drop("in", { backoffMax: "100ms" })] }, log);
  const [from, to] = [join(rig.folder, "in"), join(rig.folder, "away")];
  renameSync(from, to);
  const failures = async () => (await gateway.concerns()).some((line) => line.includes("in"));
  await until("a poll failed", failures);
  renameSync(to, from);
  await until("it recovered", async () => about({ msg: "the drop in can be used again" }).length === 1);
  expect(about({ level: "warn", drop: "in" })).toEqual([
    expect.objectContaining({ msg: expect.stringMatching(/^the drop in cannot be polled: /) }),
  ]);
  expect(Number(about({ msg: "the drop in can be used again" })[0]?.["failures"])).toBeGreaterThan(0);
});

test("a trigger is named with its state when it does not fire", async () => {
  await rig.open({ triggers: [trigger("standard"), trigger("old", { state: "Inactive" })] }, log);
  expect(about({ msg: "gateway started" })[0]?.["triggers"]).toEqual([
    "standard (standard)",
    "old (standard, Inactive)",
  ]);
});
