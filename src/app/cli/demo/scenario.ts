/**
 * The scenario of the demo: the files of each drop, those that are sent to the hub itself, the expected end of each,
 * and the structure that the hub needs for them.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { currentPlace } from "#gateway/operations/run-actions.ts";
import { FILE_STANDINGS } from "#gateway/states.ts";

const ending = z.strictObject({
  ends: z.enum(FILE_STANDINGS),
  points: z.int().optional(),
});

const scenarioSchema = z.strictObject({
  drops: z.record(z.string(), z.strictObject({ folder: z.string(), files: z.record(z.string(), ending) })),
  hub: z.strictObject({
    triggers: z.array(z.looseObject({ name: z.string() })),
    files: z.record(z.string(), z.strictObject({ by: z.enum(["sftp", "ftp"]), ends: z.string() })),
  }),
  derived: z.strictObject({
    calculated: z.strictObject({
      source: z.string(),
      variable: z.looseObject({ name: z.string() }),
      formula: z.string(),
      mappingConfig: z.string(),
      inputs: z.record(z.string(), z.string()),
      points: z.int(),
    }),
    alarm: z.strictObject({
      name: z.string(),
      severity: z.string(),
      condition: z.looseObject({ kind: z.string() }),
      ends: z.string(),
    }),
  }),
});
export type Scenario = z.output<typeof scenarioSchema>;
export type Derived = Scenario["derived"];

const variableSchema = z.strictObject({
  name: z.string(),
  variableTypeId: z.int().default(0),
  unitId: z.int(),
  granularity: z.int(),
  granularityTimeBase: z.int(),
  quantityType: z.int().default(2),
  mappingConfig: z.string().optional(),
  isVersioned: z.boolean().default(false),
});

const structureSchema = z.strictObject({
  sites: z.array(
    z.strictObject({
      name: z.string(),
      typeId: z.int(),
      timeZoneId: z.string(),
      sources: z.array(
        z.strictObject({
          name: z.string(),
          serialNumber: z.string().optional(),
          ean: z.string().optional(),
          meterNumber: z.string().optional(),
          energyTypeId: z.int(),
          variables: z.array(variableSchema),
        }),
      ),
    }),
  ),
});
export type Structure = z.output<typeof structureSchema>;

export function readScenario(samples: string): Scenario {
  return scenarioSchema.parse(parse(readFileSync(join(samples, "scenario.yaml"), "utf8")));
}

export function readStructure(samples: string): Structure {
  return structureSchema.parse(parse(readFileSync(join(samples, "structure.yaml"), "utf8")));
}

/** One sample file: its actual end, compared with the expected one. */
export interface Ended {
  readonly drop: string;
  readonly path: string;
  readonly expected: string;
  readonly found: string;
  readonly where: string;
  readonly points: number;
  readonly fault: string | null;
}

const ENDS: Readonly<Record<string, string>> = { accepted: "delivered", confirmed: "delivered" };

export async function compareWithScenario(scenario: Scenario, ledger: Ledger): Promise<readonly Ended[]> {
  const ended: Ended[] = [];
  for (const [drop, { files }] of Object.entries(scenario.drops)) {
    for (const [path, { ends, points }] of Object.entries(files)) {
      const traced = (await ledger.trace(path)).find((one) => one.arrival.drop === drop && one.arrival.path === path);
      const run = traced?.runs.at(-1)?.run;
      const state = run?.state ?? traced?.arrival.state ?? "never seen";
      const found = ENDS[state] ?? state;
      const stored = run?.points.stored ?? 0;
      const fault =
        found !== ends
          ? `should have ended ${ends}`
          : points !== undefined && stored !== points
            ? `${stored} points are stored instead of ${points}`
            : null;
      const where = traced === undefined ? path : currentPlace(traced.arrival, traced.events);
      ended.push({ drop, path, expected: ends, found, where, points: stored, fault });
    }
  }
  return ended;
}
