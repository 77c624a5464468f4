/**
 * A history of 40 files with a defect of each kind: plan, run, comparison, report, page and workbook name each cause
 * once; and files that a wrong setting held are taken again, by a command or since they were touched.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Finding } from "#gateway/migration/plan/findings.ts";
import { captureShown } from "../cli/shown.ts";
import { collect, openFile } from "../mapping/kit.ts";
import { GatewayRig, trigger } from "../runs/gateway-rig.ts";
import { headgateHere } from "./migrate-command.ts";

const shown = captureShown();
let rig: GatewayRig;
beforeEach(async () => {
  rig = await GatewayRig.start();
  for (const meter of ["main", "holed", "old", "new", "units"]) await rig.variable(meter);
  putHistory();
  configure("Wh");
}, 120_000);
afterEach(() => rig.close());

/** The setting of the unit is wrong at first for the files of one meter. */
function configure(unit: string, remap: "always" | "ask" = "always"): void {
  const metadata = (declared: string) => ({
    timeZone: "UTC",
    date: { column: "time", format: "yyyy-MM-dd HH:mm" },
    target: { sourceSerialNumber: "{meter}", mappingConfig: "v" },
    value: "value",
    unit: declared,
    conflicts: "last",
  });
  const name = (filterType: string) => [{ filterType, value: "units" }];
  rig.configure({
    held: { remap },
    triggers: [
      trigger("units", {
        ...{ mapper: "delimited", metadata: metadata(unit), fileNamePatternMatches: name("StartsWith") },
      }),
      trigger("others", {
        ...{ mapper: "delimited", metadata: metadata("kWh"), fileNamePatternMatches: name("NotContains") },
      }),
    ],
  });
}

function hours(meter: string, day: number, value: (hour: number) => number): string {
  const rows = Array.from({ length: 24 }, (_, hour) => {
    const at = new Date(Date.UTC(2025, 2, day, hour)).toISOString();
    return `${meter},${at.slice(0, 10)} ${at.slice(11, 16)},${value(hour)}\n`;
  });
  return rows.join("");
}

const HEADER = "meter,time,value\n";

function put(meter: string, day: number, content: string): void {
  rig.put(`history/${meter}-2025-03-${String(day).padStart(2, "0")}.csv`, `${HEADER}${content}`);
}

function putHistory(): void {
  const steady = (hour: number) => 20 + hour / 10;
  for (let day = 1; day <= 31; day += 1) {
    // The file of the 5th is missing, and that of the 10th is refused.
    if (day === 5) continue;
    const whole = hours("main", day, (hour) => steady(hour) / (day < 20 ? 1 : 1000));
    put("main", day, day === 10 ? whole.slice(0, whole.lastIndexOf(",", whole.length - 6)) : whole);
  }
  const days = [1, 2, 3, 4, 8, 9, 10].map((day) => hours("holed", day, steady));
  put("holed", 1, days.join(""));
  // Three rows of the file are corrected by later ones.
  const corrected = hours("old", 1, (hour) => steady(hour) + 1)
    .split("\n")
    .slice(0, 3)
    .join("\n");
  put("old", 1, `${hours("old", 1, steady)}${corrected}\n`);
  put("old", 2, hours("old", 2, steady));
  for (const day of [3, 4]) put("new", day, hours("new", day, steady));
  for (const day of [1, 2, 3, 4, 5]) put("units", day, hours("units", day, steady));
}

const pattern = () => join(rig.folder, "history/*.csv");
const migrate = (...args: readonly string[]) => headgateHere(rig, shown, "migrate", pattern(), ...args);
const facts = (findings: readonly Finding[]) =>
  findings.map(({ kind, count, needsPerson, files }) => [kind, count, needsPerson, files.length]);

/** Kind, places, whether it needs a person, files. */
const CAUSES = [
  ["fault", 1, true, 1],
  ["guard", 1, true, 5],
  ["mapper", 1, false, 1],
  ["level", 1, false, 1],
  ["gap", 1, false, 1],
  ["gap", 1, false, 2],
  ["handover", 1, false, 2],
];
/** A part of the words of each cause, in the same order. */
const WORDS = [
  /main-2025-03-10\.csv \(row 25\): .*24 readings of .*main.* are missing because of it, from 2025-03-10T00/,
  /units.*: declared in Wh, but variable \d+ stores kWh .*units-2025-03-01\.csv and 4 more/,
  /old-2025-03-01\.csv: 3 × rows are replaced by others of their target and date with another value/,
  /from 2025-03-20 \(in main-2025-03-20\.csv and later\) the values of .*main.* are 1\/1000 of those before/,
  /inside of holed-2025-03-01\.csv 72 readings of .* are missing, from 2025-03-05T00.* to 2025-03-07T23/,
  /between main-2025-03-04\.csv and main-2025-03-06\.csv 24 readings of .*main.*from 2025-03-05T00.*a file is missing/,
  /old.* ends in old-2025-03-02\.csv where .*new.* begins in new-2025-03-03\.csv, at 2025-03-03T00/,
];

function expectEachOnce(text: string): void {
  for (const words of WORDS) expect(text.split("\n").filter((line) => words.test(line)).length, String(words)).toBe(1);
}

it("has each cause once in the plan, the run with its comparison, the report, the page and the workbook", async () => {
  const planned = await migrate("--dry-run");
  expect(planned.code).toBe(1);
  expectEachOnce(planned.stdout);
  const plan = JSON.parse((await migrate("--dry-run", "--json")).stdout);
  expect(plan).toMatchObject({ files: 40 });
  expect(facts(plan.findings)).toEqual(CAUSES);

  const run = await migrate("--verify");
  expect(run.code).toBe(1);
  expectEachOnce(`${run.stderr}${run.stdout}`);
  expect(run.stderr.match(/^needs you/gm)).toHaveLength(2);
  expect(run.stdout).toMatch(/^files 40: 34 delivered, 1 quarantined, 5 held/m);
  expect(run.stdout).not.toContain("stored unknown");

  const again = JSON.parse((await migrate("--verify", "--json")).stdout);
  expect(facts(again.findings)).toEqual(CAUSES);
  expect(again.findings.map(({ words }: Finding) => words)).toEqual(plan.findings.map(({ words }: Finding) => words));
  expect(again.verified).toMatchObject({ differences: [] });

  const xlsx = join(rig.folder, "report.xlsx");
  const told = await headgateHere(rig, shown, "migrate", "report", again.id, "--xlsx", xlsx);
  expectEachOnce(told.stdout);
  const { file } = await openFile(readFileSync(xlsx), "report.xlsx");
  const rows = await collect(file.xlsx({ sheet: "Findings", columns: true }));
  expect(rows.map((row) => [row["kind"], row["places"], row["needs a person"] === "yes"])).toEqual(
    CAUSES.map(([kind, count, needsPerson]) => [kind, count, needsPerson]),
  );
  const page = readFileSync(again.report, "utf8");
  expectEachOnce(page.split("<h2>Files that need a person</h2>")[0]?.replaceAll("<li", "\n<li") ?? "");
});

it("takes a held file again that was touched, and all with --remap, and counts no file twice", async () => {
  await migrate();
  configure("kWh", "ask");
  const touch = (meter: string, day: number) =>
    rig.put(
      `history/${meter}-2025-03-0${day}.csv`,
      readFileSync(join(rig.folder, `history/${meter}-2025-03-0${day}.csv`)),
      new Date("2026-04-01T00:00:00Z"),
    );
  touch("units", 2);
  // It was delivered, and has the same bytes: no change, which would stop the command.
  touch("main", 2);
  const one = await migrate("--json");
  expect(one.stderr).toMatch(/^migration \w{10}: 40 files, .*; 34 were delivered before; 1 that were held/);
  expect(one.stderr).not.toContain("changed");
  expect(JSON.parse(one.stdout).files).toEqual({ delivered: 35, quarantined: 1, held: 4 });

  const all = await migrate("--remap", "--verify", "--json");
  expect(all.stderr).toContain("; 5 that were held or refused are taken again");
  const done = JSON.parse(all.stdout);
  expect(done.files).toEqual({ delivered: 39, quarantined: 1 });
  expect(done.points).toMatchObject({ mapped: 1080, stored: 1080 });
  expect(facts(done.findings)).toEqual(CAUSES.filter(([kind]) => kind !== "guard"));
  expect(done.verified).toMatchObject({ differences: [], unknown: [] });

  const listed = await headgateHere(rig, shown, "migrate", "list");
  expect(listed.stdout).toMatch(
    new RegExp(`${done.id} +stopped +20\\d\\d-.* +39 delivered, 1 quarantined +1,080 +by trigger`),
  );
});

it("maps held files again by the same command, once the trigger was corrected", async () => {
  await migrate();
  configure("kWh");
  const done = JSON.parse((await migrate("--verify", "--json")).stdout);
  expect(done.files).toEqual({ delivered: 39, quarantined: 1 });
  expect(done.verified).toMatchObject({ differences: [], unknown: [] });
});
