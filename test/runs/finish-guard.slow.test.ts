/** Files that change after they were finished, at gateways whose clock is set forward. */
import {
  appendFileSync,
  closeSync,
  existsSync,
  globSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createLog } from "#core/log.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { asideName } from "#gateway/drops/finish.ts";
import { forgetScan } from "#gateway/drops/local/open-files.ts";
import { type Gateway, startGateway } from "#gateway/gateway.ts";
import { findAttention } from "#gateway/operations/attention.ts";
import type { HealthPart } from "#gateway/operations/state-of-work.ts";
import { PATIENTLY, until } from "../e2e/wait.ts";
import { JumpingClock } from "../support/jumping-clock.ts";
import { drop, GatewayRig, oneReading, trigger } from "./gateway-rig.ts";
import { headgate } from "./in-process.ts";

vi.setConfig(PATIENTLY);

let rig: GatewayRig;
let clock: JumpingClock;
let gateway: Gateway;
let warnings: string[];
let variable: number;

beforeEach(async () => {
  rig = await GatewayRig.start();
  clock = new JumpingClock();
  warnings = [];
  variable = await rig.variable("V");
});
afterEach(async () => {
  await gateway.stop();
  await rig.close();
});

async function start(
  finish: Readonly<Record<string, unknown>>,
  more: Readonly<Record<string, unknown>> = {},
  sections: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  mkdirSync(join(rig.folder, "in"), { recursive: true });
  rig.configure({ drops: [drop("in", { finish, ...more })], ...sections });
  const log = createLog("warn", { write: (line) => void warnings.push(line) });
  gateway = await startGateway(loadGatewayConfig(rig.config), { log, clock });
}

const events = async (name: string) =>
  (await gateway.ledger.trace(name)).flatMap((file) => file.events.map(({ what }) => what));

async function finished(name: string, what: string): Promise<void> {
  await until(`${name} has the event ${what}`, async () => (await events(name)).includes(what));
}

const asked = async (path: string) => {
  const authorization = `Bearer ${gateway.operationsToken}`;
  return (await fetch(gateway.operationsUrl + path, { headers: { authorization } })).json();
};

/** What everybody tells of files that cannot go back to their paths. */
async function toldOccupied() {
  const { parts } = (await asked("/health/ready")) as { parts: readonly HealthPart[] };
  const files = JSON.parse((await headgate("runs", "--waiting", "-c", rig.config, "--json")).stdout);
  const { concerns } = await findAttention({
    ...{ ledger: gateway.ledger, node: null, drops: () => [], services: () => [], late: () => [] },
    clocks: () => [],
    lanes: async () => [],
    notices: async () => [],
    triggers: async () => [],
    pauses: () => [],
    spool: async () => ({ usedBytes: 0, budgetBytes: 1, freeBytes: 1, full: null }) as never,
    spoolShare: 1,
    unfinished: { list: () => [], note: () => undefined, isKnown: true },
    refusedConfiguration: () => null,
  });
  return {
    concerns: (await gateway.concerns()).filter((words) => words.includes("changed after it was finished")),
    health: parts.filter(({ part }) => part === "finished files"),
    waiting: (files as { state: string }[]).filter(({ state }) => state === "occupied"),
    attention: concerns.filter(({ kind }) => kind === "occupied"),
  };
}

/** Paths below the drop that match. */
const found = (pattern: string) => globSync(pattern, { cwd: join(rig.folder, "in") });
const placeOf = (pattern: string) => join(rig.folder, "in", found(pattern)[0] ?? "nothing");
const later = (day: number, value: number) => `${variable},2026-03-0${day}T00:00:00Z,${value}\n`;

/** Later than the first checks of a finished file. */
const SOON_MS = 20_000;
/** A file is guarded for an hour, and checked about ten times in it. */
const GUARDED_MS = 600_000;

/** Sets the clock forward again and again until it holds. */
async function inTime(what: string, holds: () => boolean | Promise<boolean>, stepMs = SOON_MS): Promise<void> {
  await until(what, async () => {
    clock.jump(stepMs);
    await gateway.pulse();
    return await holds();
  });
}

async function allStored(): Promise<void> {
  await inTime("both readings are stored", async () => Object.keys(await rig.stored(variable)).length === 2);
}

describe.each([
  ["archived", { delivered: { archive: "archive" } }, "source.archived", "archive/a.*.csv"],
  ["to be deleted", { delivered: "delete" }, "source.aside", ".headgate-deleting-*"],
] as const)("a file that was delivered and %s", (_words, finish, what, pattern) => {
  test("is processed again as a whole when a writer continues it, with a warning", async () => {
    await start(finish);
    rig.put("in/a.csv", oneReading(variable, 1));
    await finished("a.csv", what);
    appendFileSync(placeOf(pattern), later(2, 2));
    await allStored();
    expect(await events("a.csv")).toEqual(expect.arrayContaining(["source.changed-later", "source.returned"]));
    expect(warnings.filter((line) => line.includes("after it was finished"))).toHaveLength(1);
    const files = await gateway.ledger.trace("a.csv");
    expect(files.map(({ runs }) => runs.map(({ run }) => run.lane))).toEqual([
      [files[0]?.runs[0]?.run.lane],
      [files[0]?.runs[0]?.run.lane],
    ]);
  });

  test("is taken again when that happens while no gateway runs", async () => {
    await start(finish);
    rig.put("in/a.csv", oneReading(variable, 1));
    await finished("a.csv", what);
    await gateway.stop();
    appendFileSync(placeOf(pattern), later(2, 2));
    await start(finish);
    await allStored();
  });

  test("stays where it is when only its time is set", async () => {
    await start(finish);
    rig.put("in/a.csv", oneReading(variable, 1));
    await finished("a.csv", what);
    const place = placeOf(pattern);
    const now = new Date("2026-04-01T00:00:00Z");
    utimesSync(place, now, now);
    const arrival = (await gateway.ledger.trace("a.csv"))[0]?.arrival.id ?? 0;
    const known = async () => (await gateway.ledger.finishedFiles.of(arrival))?.mtime;
    const before = await known();
    await inTime("the new time is known", async () => (await known()) !== before);
    expect(existsSync(place)).toBe(true);
    expect(await events("a.csv")).not.toContain("source.changed-later");
  });

  test("waits in its place while another file is at its path", async () => {
    await start({ ...finish, quarantined: "leave" });
    rig.put("in/a.csv", oneReading(variable, 1));
    await finished("a.csv", what);
    rig.put("in/a.csv", "variable_id,date,value\nnobody,never,much\n");
    await finished("a.csv", "run.quarantined");
    appendFileSync(placeOf(pattern), later(2, 2));
    await inTime("it cannot go back", () => warnings.some((line) => line.includes("another file is at its path")));
    expect(readFileSync(placeOf(pattern), "utf8")).toContain(later(2, 2));
    const words = /^a\.csv at in \(run .*\) changed after it was finished.* goes back by itself when a\.csv is free/;
    expect(await toldOccupied()).toEqual({
      concerns: [expect.stringMatching(words)],
      health: [{ part: "finished files", ready: true, reason: expect.stringMatching(words) }],
      waiting: [
        expect.objectContaining({
          ...{ path: "a.csv", state: "occupied", overdue: true },
          reason: expect.stringMatching(words),
        }),
      ],
      attention: [expect.objectContaining({ kind: "occupied", text: expect.stringMatching(words) })],
    });
    rmSync(join(rig.folder, "in/a.csv"));
    await allStored();
    expect(await toldOccupied()).toEqual({ concerns: [], health: [], waiting: [], attention: [] });
    expect(warnings.filter((line) => line.includes("another file is at its path"))).toHaveLength(1);
  });
});

test("a changed file that a person moves to another name is processed there, and no longer watched", async () => {
  await start({ delivered: { archive: "archive" }, quarantined: "leave" });
  rig.put("in/a.csv", oneReading(variable, 1));
  await finished("a.csv", "source.archived");
  rig.put("in/a.csv", "variable_id,date,value\nnobody,never,much\n");
  await finished("a.csv", "run.quarantined");
  const place = placeOf("archive/a.*.csv");
  appendFileSync(place, later(2, 2));
  await inTime("it cannot go back", async () => (await gateway.ledger.finishedFiles.occupied()).length === 1);
  renameSync(place, join(rig.folder, "in/b.csv"));
  await allStored();
  await inTime("it is watched no longer", async () => (await events("a.csv")).includes("source.unwatched"));
  expect(await gateway.ledger.finishedFiles.occupied()).toEqual([]);
  expect(await events("a.csv")).not.toContain("source.returned");
});

test("a file is deleted when its time is over and nothing waits for that", async () => {
  await start({ delivered: "delete", unmatched: "delete", quarantined: "delete", duplicate: "delete" });
  rig.put("in/a.csv", oneReading(variable, 1));
  rig.put("in/b.csv", "variable_id,date,value\nnobody,never,much\n");
  rig.put("in/notes.txt", "no trigger claims this");
  for (const name of ["a.csv", "b.csv", "notes.txt"]) await finished(name, "source.aside");
  await until("the gateway is idle", () => gateway.isIdle());
  expect(found(".headgate-deleting-*")).toHaveLength(3);
  await inTime("all are deleted", () => found(".headgate-deleting-*").length === 0, GUARDED_MS);
  for (const name of ["a.csv", "b.csv", "notes.txt"]) await finished(name, "source.deleted");
  expect(warnings.filter((line) => line.includes("finished"))).toEqual([]);
});

test("an unmatched file that grows in the archive is offered to the triggers again", async () => {
  await start({ unmatched: { archive: "other" } });
  rig.put("in/notes.txt", "one");
  await finished("notes.txt", "source.archived");
  appendFileSync(placeOf("other/notes.unmatched-*.txt"), " and two");
  await inTime("it is archived again", async () => {
    const archived = (await events("notes.txt")).filter((what) => what === "source.archived");
    return archived.length === 2;
  });
  expect(await events("notes.txt")).toContain("source.changed-later");
  expect(readFileSync(placeOf("other/notes.unmatched-*.txt"), "utf8")).toBe("one and two");
});

test("many small files are guarded each for itself", async () => {
  await start({ delivered: "delete" });
  const names = Array.from({ length: 30 }, (_, index) => `small-${index}.csv`);
  for (const [index, name] of names.entries())
    rig.put(`in/${name}`, oneReading(variable, index, `2025-01-${String(index + 1).padStart(2, "0")}T00:00:00Z`));
  for (const name of names) await finished(name, "source.aside");
  const [grown] = (await gateway.ledger.trace("small-7.csv")).map(({ arrival }) => arrival.id);
  const place = (await gateway.ledger.finishedFiles.of(grown ?? 0))?.place ?? "";
  appendFileSync(join(rig.folder, "in", place), later(2, 2));
  await inTime("all readings are stored", async () => Object.keys(await rig.stored(variable)).length === 31);
  await inTime("all are deleted", () => found("{.headgate-deleting-*,*.csv}").length === 0, GUARDED_MS);
  expect(warnings.filter((line) => line.includes("after it was finished"))).toHaveLength(1);
});

test("without a guard a file is deleted at once", async () => {
  await start({ delivered: "delete", guard: "0s" });
  rig.put("in/a.csv", oneReading(variable, 1));
  await finished("a.csv", "source.deleted");
  expect(found("{.headgate-deleting-*,*.csv}")).toEqual([]);
});

test("`ledger check` compares the archive with what was fetched, and takes what grew back to its path", async () => {
  await start({ delivered: { archive: "archive" }, guard: "0s" });
  rig.put("in/a.csv", oneReading(variable, 1));
  await finished("a.csv", "source.archived");
  await gateway.stop();
  const check = (...more: string[]) => headgate("ledger", "check", "-c", rig.config, "--json", ...more);
  expect(await check()).toMatchObject({ code: 0 });
  const place = placeOf("archive/a.*.csv");
  const now = new Date("2026-04-01T00:00:00Z");
  utimesSync(place, now, now);
  expect(await check(), "the bytes are the same").toMatchObject({ code: 0 });
  appendFileSync(place, later(2, 2));
  const { code, stdout } = await check();
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject([
    {
      about: "archive",
      subject: expect.stringContaining("a.csv"),
      what: expect.stringMatching(/has \d+ bytes, and \d+ were fetched/),
      repaired: false,
    },
  ]);
  expect(await check("--repair")).toMatchObject({ code: 0 });
  await start({ delivered: { archive: "archive" }, guard: "0s" });
  await allStored();
});

test("`check` suggests a wait from the pauses that a drop has shown, and names archives of before", async () => {
  await start({ delivered: { archive: "old" } });
  rig.put("in/a.csv", oneReading(variable, 1));
  await finished("a.csv", "source.archived");
  await gateway.ledger.finishedFiles.noteGrowthPause("in", "a.csv", 120_000);
  await gateway.ledger.finishedFiles.noteGrowthPause("in", "b.csv", 60_000);
  rig.configure({ drops: [drop("in", { finish: { delivered: { archive: "new" } }, settle: {} })] });
  const findings = JSON.parse((await headgate("check", "-c", rig.config, "--json")).stdout);
  expect(findings).toContainEqual({
    ...{ part: "drop in", level: "warning", about: "settle" },
    what: expect.stringMatching(/paused up to 120 s while they were written \(a\.csv, .*a file is taken after 30 s/),
    hint: expect.stringContaining("`settle: { observations: 4, interval: 80s }`"),
  });
  const what = "files in old are not taken: it was an archive of this drop before";
  expect(findings).toContainEqual({ part: "drop in", level: "ok", about: "archive", what });
});

test("a file that cannot be looked at does not hide the others of its drop", async () => {
  await start({ delivered: { archive: "archive" } });
  rig.put("in/a.csv", oneReading(variable, 1));
  await finished("a.csv", "source.archived");
  rig.put("in/b.csv", oneReading(variable, 5, "2026-03-05T00:00:00Z"));
  await finished("b.csv", "source.archived");
  // Its bytes would be compared in a file of this name.
  mkdirSync(join(loadGatewayConfig(rig.config).spool.path, "compared-in"));
  const now = new Date("2026-04-01T00:00:00Z");
  utimesSync(placeOf("archive/a.*.csv"), now, now);
  await inTime("it cannot be checked", () => warnings.some((line) => line.includes("cannot be checked")));
  appendFileSync(placeOf("archive/b.*.csv"), later(2, 2));
  await inTime("all readings are stored", async () => Object.keys(await rig.stored(variable)).length === 3);
});

test("an identical file that comes while the first is guarded is another upload", async () => {
  await start({ delivered: "delete" }, { duplicates: "process" });
  for (const runs of [1, 2]) {
    rig.put("in/a.csv", oneReading(variable, 1));
    await until(`${runs} runs have delivered`, async () => {
      const what = await events("a.csv");
      expect(what).not.toContain("arrival.duplicate");
      return what.filter((one) => one === "source.aside").length === runs;
    });
  }
});

describe.runIf(process.platform === "linux")("a file that waits at its path for its writer", () => {
  let writer: number;
  const waitingFile = async (name: string) => {
    const arrival = (await gateway.ledger.trace(name))[0]?.arrival.id ?? 0;
    return await gateway.ledger.finishedFiles.of(arrival);
  };
  /** It has been open since before the gateway looked. */
  function putOpen(name: string, content: string): void {
    rig.put(`in/${name}.part`, content);
    writer = openSync(join(rig.folder, "in", `${name}.part`), "a");
    // A scan of an earlier test does not know this one.
    forgetScan();
    renameSync(join(rig.folder, "in", `${name}.part`), join(rig.folder, "in", name));
  }

  test("is deleted when a process ended between its move aside and the record of that", async () => {
    await start({ delivered: "delete" });
    putOpen("a.csv", oneReading(variable, 1));
    await finished("a.csv", "source.waits");
    const waiting = await waitingFile("a.csv");
    if (waiting === null) throw new Error("it is not watched");
    await gateway.stop();
    closeSync(writer);
    renameSync(join(rig.folder, "in/a.csv"), join(rig.folder, "in", asideName(waiting, waiting.plan)));
    await start({ delivered: "delete" });
    await inTime("it is found aside", async () => (await events("a.csv")).includes("source.aside"));
    await inTime("it is deleted", () => found("{.headgate-deleting-*,*.csv}").length === 0, GUARDED_MS);
  });

  test("belongs to the run of a trigger that claims it meanwhile", async () => {
    const finish = { delivered: "leave", unmatched: "delete" };
    await start(finish);
    putOpen("notes.txt", oneReading(variable, 1));
    await finished("notes.txt", "source.waits");
    const endsAt = (await waitingFile("notes.txt"))?.endsAt;
    await gateway.stop();
    await start(finish);
    await until("the triggers were asked again", () => gateway.isIdle());
    expect((await waitingFile("notes.txt"))?.endsAt).toBe(endsAt);
    await gateway.stop();
    const ofTexts = [{ filterType: "EndsWith", value: ".txt" }];
    await start(finish, {}, { triggers: [trigger("texts", { fileNamePatternMatches: ofTexts })] });
    await until("it is stored", async () => Object.keys(await rig.stored(variable)).length === 1);
    closeSync(writer);
    await inTime("it is watched no longer", async () => (await waitingFile("notes.txt")) === null);
    expect(found("{.headgate-deleting-*,*.txt}")).toEqual(["notes.txt"]);
  });
});
