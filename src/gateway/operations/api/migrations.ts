/** Migrations of history: those that this configuration knows, with plan, progress and findings, and their commands. */
import { z } from "zod";
import { Download, endpoint, type Shown } from "./endpoint.ts";
import { instant } from "./state.ts";

const plan = z.object({
  by: z.string(),
  at: instant,
  state: z.enum(["running", "done", "failed"]),
  done: z.number().describe("Files that were mapped for the plan, of `of`."),
  of: z.number(),
  facts: z
    .object({
      files: z.number(),
      bytes: z.number(),
      points: z.number().describe("Readings of all files, estimated unless `isCounted`."),
      isCounted: z.boolean(),
      targets: z.number().describe("Of the files that were read."),
      period: z.object({ from: instant, to: instant }).nullable(),
      seconds: z.number().describe("The estimated duration."),
      isAtLeast: z.boolean().describe("How long sending takes is unknown."),
      sample: z.string().nullable().describe("What holds for the files alone that were read, in words."),
      unaskedBecause: z.string().nullable().describe("Why the service could not be asked about the targets."),
    })
    .nullable(),
  findings: z
    .array(z.object({ kind: z.string(), count: z.number(), examples: z.array(z.string()) }))
    .describe("By their kind; the first five of each."),
});

const limits = z.object({
  between: z.string().nullable().describe("Hours with their time zone, such as `22:00-05:00 Europe/Paris`."),
  rate: z.string().nullable().describe("Such as `5000/s` or `2MB/s`."),
  pauseOnErrors: z.string().nullable().describe("Share, such as `5%`."),
  verify: z.boolean().describe("At the end, what is stored is compared with what was delivered."),
});

export const migration = z.object({
  id: z.string(),
  patterns: z.array(z.string()),
  mapper: z.string().nullable().describe("Null: the triggers choose."),
  service: z.string().nullable(),
  rows: z.enum(["strict", "lenient"]),
  versionTag: z.string().nullable(),
  state: z
    .enum(["planned", "running", "stopped", "undone"])
    .describe("planned: nothing was taken yet; stopped: it has ended, or it can be resumed."),
  fault: z.string().nullable().describe("Why its progress cannot be read."),
  files: z.record(z.string(), z.number()).describe("Files by where they stand, such as delivered or quarantined."),
  points: z.object({ mapped: z.number(), accepted: z.number(), stored: z.number(), rejected: z.number() }),
  recent: z
    .object({ minutes: z.number(), files: z.number(), points: z.number() })
    .describe("What the last minutes brought."),
  remainingSeconds: z.number().nullable().describe("At the rate of the last minutes; null when it is unknown."),
  opensAt: z.string().nullable().describe("When its hours begin, while it is outside of them; in words with the zone."),
  limits: limits.describe("Of its latest start."),
  plan: plan.nullable(),
  pausing: z.object({ by: z.string(), why: z.string() }).nullable().describe("A pause that was requested."),
  actions: z
    .array(z.object({ at: instant, by: z.string(), what: z.string(), words: z.string() }))
    .describe("What people did with it, the newest first, 20 at most."),
  actionsCount: z.number().describe("Of all that people did with it."),
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

const id = z.object({ id: z.string().regex(/^[0-9a-f]{1,10}$/, "expected the id of a migration") });
const text = z.string().trim().max(200);
const why = z.string().max(500).default("").describe("The reason, for the history.");

const planRequest = z.strictObject({
  patterns: z.array(z.string().trim().min(1).max(1_000)).min(1).max(20).describe("Files below `histories`."),
  mapper: text.nullable().default(null).describe("Null: the triggers choose."),
  settings: z.record(z.string(), z.unknown()).default({}),
  service: text.nullable().default(null),
  rows: z.enum(["strict", "lenient"]).default("strict"),
  versionTag: text.nullable().default(null),
});
export type PlanRequest = Shown<z.output<typeof planRequest>>;

const startRequest = z.strictObject({
  between: text.default("").describe("Empty, here and below: no limit."),
  rate: text.default(""),
  pauseOnErrors: text.default(""),
  verify: z.boolean().default(false),
  onChange: z.enum(["stop", "again", "skip"]).default("stop").describe("Files that changed since they were delivered."),
  why,
});
export type StartRequest = Shown<z.output<typeof startRequest>>;

const undoPreview = z.object({
  points: z.number().describe("Readings that would be removed."),
  versions: z.number(),
  variables: z
    .array(
      z.object({
        target: z.string(),
        variableId: z.number(),
        from: instant.nullable(),
        to: instant.nullable(),
        points: z.number(),
        stay: z.number().describe("Dates that stay, since others delivered them too, or another value is stored."),
      }),
    )
    .describe("The first 200."),
  count: z.number().describe("Of all variables."),
  absent: z.number().describe("Dates of the migration that are not stored."),
  gone: z.array(z.string()).describe("Files whose batches are no longer kept: their readings stay."),
});
export type UndoPreview = z.output<typeof undoPreview>;

const done = z.object({ words: z.string() });
const tag = "Migrations";

export const migrationEndpoints = {
  migrations: endpoint({
    method: "GET",
    path: "/operations/migrations",
    need: "read",
    tag,
    summary: "The migrations of this configuration, with their progress and what needs a person",
    answer: z.array(migration),
  }),
  places: endpoint({
    method: "GET",
    path: "/operations/migrations/places",
    need: "read",
    tag,
    summary: "The folders whose files can be migrated from here, and the services",
    answer: z.object({ histories: z.array(z.string()), services: z.array(z.string()) }),
  }),
  plan: endpoint({
    method: "POST",
    path: "/operations/migrations/plan",
    need: "command",
    tag,
    summary: "Plans a migration: the files, or a sample of them, are mapped, and nothing is sent",
    description: "Answered once the plan has begun; the list shows its progress and its findings.",
    body: planRequest,
    answer: z.object({ id: z.string() }),
  }),
  start: endpoint({
    method: "POST",
    path: "/operations/migrations/:id/start",
    need: "command",
    tag,
    summary: "Starts or resumes a migration, in a process of its own",
    params: id,
    body: startRequest,
    answer: done,
  }),
  pause: endpoint({
    method: "POST",
    path: "/operations/migrations/:id/pause",
    need: "command",
    tag,
    summary: "Pauses a migration: running batches end first",
    params: id,
    body: z.strictObject({ why }),
    answer: done,
  }),
  previewUndo: endpoint({
    method: "POST",
    path: "/operations/migrations/:id/preview-undo",
    need: "command",
    tag,
    summary: "The readings that an undo would remove; nothing is removed",
    params: id,
    body: z.strictObject({}),
    answer: undoPreview,
  }),
  report: endpoint({
    method: "GET",
    path: "/operations/migrations/:id/report",
    need: "read",
    tag,
    summary: "The report of a migration as one page, to be saved",
    params: id,
    answer: new Download("text/html"),
  }),
} as const;
