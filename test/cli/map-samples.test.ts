/**
 * `headgate map` on every file of the scenario. What each must give was read from the files by other means
 * than the mappers.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import type { PushElement } from "#wire/index.ts";
import { captureShown } from "./shown.ts";

const project = join(import.meta.dirname, "../..");
const samples = join(project, "samples/drops");

/** Readings of one target (and version), the first and the last of them, and the sum of their values. */
type Series = readonly [
  target: string,
  readings: number,
  first: readonly [string, number],
  last: readonly [string, number],
  sum: number,
];

interface Sample {
  readonly file: string;
  readonly mapper: string;
  readonly settings?: Readonly<Record<string, string>>;
  readonly gives: readonly Series[] | { readonly refusal: RegExp };
}

const LOGGERS = { timeZone: "Europe/Berlin" };
const TENANTS = { timeZone: "Europe/Brussels", delimiter: ";", decimal: "," };

const SAMPLES: readonly Sample[] = [
  {
    file: "local/standard_building_2026-03.csv",
    mapper: "standard",
    gives: [
      ["BRU-E-001 active-energy", 2688, ["2026-03-01T00:00:00Z", 2.082], ["2026-03-28T23:45:00Z", 2.345], 10791.249],
      ["BRU-E-002 active-energy", 2688, ["2026-03-01T00:00:00Z", 3.081], ["2026-03-28T23:45:00Z", 3.027], 13142.352],
      ["BRU-E-003 active-energy", 2688, ["2026-03-01T00:00:00Z", 4.55], ["2026-03-28T23:45:00Z", 4.459], 15493.312],
      ["BRU-G-001 gas", 2688, ["2026-03-01T00:00:00Z", 5.286], ["2026-03-28T23:45:00Z", 5.293], 17827.69],
    ],
  },
  {
    file: "local/standard_forecast_2026-04-02.csv",
    mapper: "standard",
    gives: [
      [
        "BRU-F-001 forecast 2026-04-01 evening",
        48,
        ["2026-04-02T00:00:00Z", 10.865],
        ["2026-04-03T23:00:00Z", 10.969],
        1055.533,
      ],
      [
        "BRU-F-001 forecast 2026-04-01 morning",
        48,
        ["2026-04-02T00:00:00Z", 11.218],
        ["2026-04-03T23:00:00Z", 10.245],
        1065.44,
      ],
    ],
  },
  {
    file: "local/climate_2026-03.xlsx",
    mapper: "standard",
    settings: { timeZone: "UTC" },
    gives: [
      ["BRU-C-001 humidity", 336, ["2026-03-01T00:00:00Z", 71.98], ["2026-03-14T23:00:00Z", 77.07], 24160.33],
      ["BRU-C-001 temperature", 336, ["2026-03-01T00:00:00Z", 3.61], ["2026-03-14T23:00:00Z", 4.01], 2856.92],
    ],
  },
  {
    file: "local/standard_corrected_2026-03-20.csv",
    mapper: "standard",
    gives: { refusal: /row 43, column value: "12\.4\?" is not a number/ },
  },
  {
    file: "local/README from the installer.txt",
    // No trigger claims it; a person may try all the same.
    mapper: "standard",
    gives: { refusal: /row 1: the header lacks date and value/ },
  },
  {
    file: "ftp/tenants_2026-W06.csv",
    mapper: "standard",
    settings: TENANTS,
    gives: [
      ["541448820000000017 offtake", 168, ["2026-02-01T00:00:00Z", 0.449], ["2026-02-07T23:00:00Z", 0.479], 115.482],
      ["541448820000000024 offtake", 168, ["2026-02-01T00:00:00Z", 0.428], ["2026-02-07T23:00:00Z", 0.422], 115.785],
      ["541448820000000031 offtake", 168, ["2026-02-01T00:00:00Z", 0.433], ["2026-02-07T23:00:00Z", 0.428], 115.789],
    ],
  },
  {
    file: "ftp/water/standard_water_2026-02.csv",
    mapper: "standard",
    gives: [["W-77120 6", 28, ["2026-02-01T00:00:00Z", 815.9], ["2026-02-28T00:00:00Z", 925.8], 24359]],
  },
  {
    // 25 hours.
    file: "sftp/helios_roof-east_2026-10-25.csv",
    mapper: "helios-logger",
    settings: LOGGERS,
    gives: [["HL-2207 kWh", 100, ["2026-10-24T22:00:00Z", 0], ["2026-10-25T22:45:00Z", 0], 66.61]],
  },
  {
    // 23 hours.
    file: "sftp/helios_roof-west_2026-03-29.csv",
    mapper: "helios-logger",
    settings: LOGGERS,
    gives: [
      ["HL-2208 kWh", 92, ["2026-03-28T23:00:00Z", 0], ["2026-03-29T21:45:00Z", 0], 64.611],
      ["HL-2209 kWh", 92, ["2026-03-28T23:00:00Z", 0], ["2026-03-29T21:45:00Z", 0], 64.919],
    ],
  },
];

const shown = captureShown();
const map = (file: string, ...args: string[]) => shown.headgate(["map", file, ...args]);

function seriesOf(elements: readonly PushElement[]): Series[] {
  const byTarget = new Map<string, [string, number][]>();
  for (const { data, tags: _, ...target } of elements)
    for (const { date, value, version } of data) {
      const name = [...Object.values(target), ...(version === undefined ? [] : [version])].join(" ");
      const readings = byTarget.get(name) ?? [];
      byTarget.set(name, readings);
      readings.push([date, value]);
    }
  return [...byTarget].sort().map(([name, readings]) => {
    const sum = readings.reduce((so, [, value]) => so + value, 0);
    const none = ["", Number.NaN] as const;
    return [name, readings.length, readings[0] ?? none, readings.at(-1) ?? none, Number(sum.toFixed(3))];
  });
}

describe.each(SAMPLES)("$file", ({ file, mapper, settings = {}, gives }) => {
  it("gives its readings", async () => {
    const code = await map(join(samples, file), "--mapper", mapper, "--settings", JSON.stringify(settings));
    const { stdout, stderr } = shown;
    if ("refusal" in gives) {
      expect(stderr).toMatch(gives.refusal);
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      return;
    }
    expect(code, stderr).toBe(0);
    expect(seriesOf(JSON.parse(stdout) as PushElement[])).toEqual(gives);
  });
});

it("names every file, with the mapper and settings of the demo", () => {
  const files = readdirSync(samples, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  const paths = files.map(({ parentPath, name }) =>
    join(parentPath, name)
      .slice(samples.length + 1)
      .split(sep)
      .join("/"),
  );
  expect(paths.sort()).toEqual(SAMPLES.map(({ file }) => file).sort());
  const demo = parse(readFileSync(join(project, "config/demo.gateway.yaml"), "utf8")) as {
    triggers: { mapper: string; metadata?: Record<string, string> }[];
  };
  const used = (all: readonly { mapper: string; settings?: unknown }[]) =>
    new Set(all.map((one) => JSON.stringify([one.mapper, one.settings ?? {}])));
  expect(used(SAMPLES)).toEqual(used(demo.triggers.map(({ mapper, metadata }) => ({ mapper, settings: metadata }))));
});

it.each([
  ["", "the name of the file is empty"],
  [samples, "this is a directory, not a file"],
  [join(samples, "nowhere.csv"), "there is no such file"],
  ["/dev/null", "this is a device or a pipe, not a file"],
])("refuses %o as wrong usage", async (file, why) => {
  expect(await map(file, "--mapper", "standard")).toBe(2);
  expect(shown.stderr).toContain(`why: ${why}`);
  expect(shown.stderr).toContain("do: Name one file");
});
