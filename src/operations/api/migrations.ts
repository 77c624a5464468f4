/** Migrations of history: those that this configuration knows, with progress and findings. */
import { z } from "zod";
import { endpoint } from "./endpoint.ts";
import { instant } from "./state.ts";

export const migration = z.object({
  id: z.string(),
  patterns: z.array(z.string()),
  mapper: z.string().nullable().describe("Null: the triggers choose."),
  service: z.string().nullable(),
  rows: z.enum(["strict", "lenient"]),
  versionTag: z.string().nullable(),
  state: z
    .enum(["planned", "running", "stopped", "undone"])
    .describe("planned: nothing was taken yet; stopped: it has ended, or the same command resumes it."),
  fault: z.string().nullable().describe("Why its progress cannot be read."),
  files: z.record(z.string(), z.number()).describe("Files by where they stand, such as delivered or quarantined."),
  points: z.object({ mapped: z.number(), accepted: z.number(), stored: z.number(), rejected: z.number() }),
  recent: z
    .object({ minutes: z.number(), files: z.number(), points: z.number() })
    .describe("What the last minutes brought."),
  findings: z.array(
    z.object({
      state: z.string(),
      code: z.string().nullable(),
      what: z.string().describe("The reason, with … for the parts that differ."),
      hint: z.string().nullable(),
      files: z.number(),
      example: z.string().describe("Path of one of the files."),
    }),
  ),
  isFindingsCut: z.boolean().describe("There are more files that need a person than were counted here."),
  undone: z.array(z.object({ begunAt: instant, endedAt: instant.nullable(), by: z.string(), points: z.number() })),
  hasReport: z.boolean().describe("Its folder has `report.html`, which `headgate migrate report` writes again."),
  folder: z.string(),
});
export type MigrationFacts = z.output<typeof migration>;

export const migrationEndpoints = {
  migrations: endpoint({
    method: "GET",
    path: "/operations/migrations",
    need: "read",
    tag: "Migrations",
    summary: "The migrations of this configuration, with their progress and what needs a person",
    answer: z.array(migration),
  }),
} as const;
