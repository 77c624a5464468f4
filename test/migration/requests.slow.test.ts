/** Orders that cannot be meant so are refused before a file is touched, and what they leave out is said. */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ftpOptions } from "#gateway/drops/options.ts";
import { historyDrops } from "#gateway/migration/plan/sources.ts";
import { captureShown } from "../cli/shown.ts";
import { GatewayRig, trigger } from "../runs/gateway-rig.ts";
import { headgateHere } from "./migrate-command.ts";

let rig: GatewayRig;
const shown = captureShown();
beforeEach(async () => {
  rig = await GatewayRig.start();
  rig.configure({});
});
afterEach(() => rig.close());

const migrate = (pattern: string, ...args: readonly string[]) =>
  headgateHere(rig, shown, "migrate", join(rig.folder, pattern), ...args);

async function putReadings(...paths: readonly string[]): Promise<number> {
  const id = await rig.variable("a");
  for (const [nth, path] of paths.entries())
    rig.put(path, `variable_id,date,value\n${id},2025-01-0${nth + 1}T00:00:00Z,${nth + 1}\n`);
  return id;
}

it("refuses an unknown mapper, setting, service or place, and lists the known ones", async () => {
  await putReadings("history/one.csv");
  const refusals: readonly (readonly [words: string, pattern: string, ...args: readonly string[]])[] = [
    ["there is no mapper standrd; there are ", "history/*", "-m", "standrd"],
    ['did you mean "delimiter"?', "history/*", "-m", "standard", "-s", '{"delimitre":";"}'],
    ["there is no service nix; there is hub", "history/*", "-m", "standard", "--service", "nix"],
    ["history is a folder, not a file", "history", "-m", "standard"],
    ["there is no folder ", "histery/**/*.csv", "-m", "standard"],
    ["http:// is not a supported scheme", "http://meters.example.com/*.csv", "-m", "standard"],
  ];
  for (const [words, pattern, ...args] of refusals)
    for (const more of [[], ["--dry-run"]]) {
      const { code, stderr } = await migrate(pattern, ...args, ...more);
      expect(stderr).toContain(words);
      expect(code).toBe(2);
    }
  const withPassword = "sftp://me:open-sesame@meters.example.com/out/*.csv";
  const { code, stderr } = await headgateHere(rig, shown, "migrate", withPassword, "-m", "standard");
  expect(stderr).toContain("in the address would be stored");
  expect(stderr).not.toContain("open-sesame");
  expect(code).toBe(2);
  expect(existsSync(join(rig.folder, "state/spool/migrations"))).toBe(false);
});

it("requires the service where there are several, and ignores the triggers of the others", async () => {
  const id = await putReadings("history/first.csv", "history/second.csv");
  const named = (name: string, start: string, service: string) =>
    trigger(name, { service, fileNamePatternMatches: [{ filterType: "StartsWith", value: start }] });
  rig.configure({
    services: [rig.service("other", "http://127.0.0.1:9"), rig.service("hub")],
    triggers: [named("one", "first", "hub"), named("two", "second", "other")],
  });
  expect(await migrate("history/*", "-m", "standard")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("there are several services, name one of other, hub"),
  });
  const told = await migrate("history/*", "--service", "hub", "--verify");
  expect(told.stdout).toContain("1 reading of 1 target in 1 month compared, no difference");
  expect(await rig.stored(id)).toEqual({ "2025-01-01": 1 });
});

it("names a pattern without matches beside others with matches", async () => {
  await putReadings("history/one.csv");
  const both = ["history/*.csv", join(rig.folder, "history/*.tsv"), "-m", "standard"] as const;
  const words = `no file fits ${join(rig.folder, "history/*.tsv")}`;
  const planned = await migrate(...both, "--dry-run");
  expect(planned.stdout).toContain(words);
  expect(planned.code).toBe(1);
  const done = await migrate(...both);
  expect(done.stderr).toContain(`needs you: ${words}`);
  expect(done.code).toBe(1);
});

it("keeps folders apart whose names have the same letters", async () => {
  const id = await putReadings("a-b/one.csv", "a/b/one.csv");
  const done = await migrate("a-b/*.csv", join(rig.folder, "a/b/*.csv"), "-m", "standard");
  expect(done).toMatchObject({ code: 0, stdout: expect.stringContaining("files 2: 2 delivered") });
  await expect.poll(() => rig.stored(id)).toEqual({ "2025-01-01": 1, "2025-01-02": 2 });

  const long = "some/very/long/way/down/to/the/exports/of/the/loggers/*.csv";
  const urls = ["ftp://meters.example.com/out/*.csv", "ftp://meters.example.com/out/*.txt"];
  const server = ftpOptions.parse({
    name: "meters",
    kind: "ftp",
    host: "meters.example.com",
    username: "u",
    password: "p",
  });
  expect(historyDrops(urls, [server])).toMatchObject([{ path: "/out", include: ["*.csv", "*.txt"] }]);
  const names = historyDrops([`/mnt/one/${long}`, `/mnt/two/${long}`], []).map(({ name }) => name);
  expect(new Set(names).size).toBe(2);
});

it("processes a file once that two patterns find, and traces it by run and by path", async () => {
  await putReadings("history/deep/one.csv", "history/two.csv");
  const deep = join(rig.folder, "history/deep/*.csv");
  const done = await migrate("history/**/*.csv", deep, "-m", "standard");
  expect(done).toMatchObject({ code: 0, stdout: expect.stringContaining("files 2: 2 delivered") });
  const traced = await headgateHere(rig, shown, "trace", join(rig.folder, "history/deep/one.csv"), "--json");
  const [file] = JSON.parse(traced.stdout);
  expect(file).toMatchObject({ arrival: { path: "one.csv" }, runs: [{ run: { state: "accepted" } }] });
  const byRun = await headgateHere(rig, shown, "trace", file.runs[0].run.id);
  expect(byRun.stdout).toContain("one.csv");
  const unknown = await headgateHere(rig, shown, "trace", "nothing.csv");
  expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining("nothing.csv") });
});

it("names files with one cause in one line, with their number, and counts refused rows of earlier calls", async () => {
  const id = await putReadings();
  for (let nth = 0; nth < 23; nth += 1) rig.put(`history/${nth}.csv`, "no,header,of,ours\n");
  rig.put("history/good.csv", `variable_id,date,value\n${id},2025-01-01T00:00:00Z,1\n${id},2025-01-02T00:00:00Z,x\n`);
  const lenient = ["-m", "standard", "--lenient", "--reject-share", "0.5"];
  for (let call = 0; call < 2; call += 1) {
    const done = await migrate("history/*", ...lenient);
    expect(done.stderr.match(/^needs you: .*$/gm)).toEqual([
      expect.stringMatching(/0\.csv.*; and 22 more places like it \(23 files in all\)$/),
    ]);
    expect(done.stdout).toContain("1 accepted, stored unknown, 1 rejected");
  }
});

it("reports readings that came after the comparison, and proves nothing without the batches", async () => {
  const id = await putReadings("history/one.csv");
  const call = async (...args: readonly string[]) => {
    const done = await migrate("history/*", "-m", "standard", "--json", ...args);
    const { report } = JSON.parse(done.stdout);
    return { ...done, folder: dirname(report), page: readFileSync(report, "utf8") };
  };
  expect((await call("--verify")).page).not.toContain("Readings were delivered since");
  rig.put("history/two.csv", `variable_id,date,value\n${id},2025-01-02T00:00:00Z,2\n`);
  expect((await call()).page).toContain("Readings were delivered since");
  const { page, folder, code } = await call("--verify");
  expect(page).not.toContain("Readings were delivered since");
  expect(code).toBe(0);
  rmSync(join(folder, "spool/kept"), { recursive: true });
  const unproven = await call("--verify");
  expect(JSON.parse(unproven.stdout).verified).toMatchObject({ differences: [], unknown: { length: 2 } });
  expect(unproven.code).toBe(1);
});
