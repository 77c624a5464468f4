/** The state of the gateway's work: runs, files that wait, drops, and the trace of a file. */
import { z } from "zod";
import { ALL_ARRIVAL_STATES, ALL_BATCH_STATES, ALL_RUN_STATES } from "../../states.ts";
import { count, endpoint, listOf } from "./endpoint.ts";

const RUNS_MAX = 1_000;

export const instant = z.string().describe("ISO 8601 instant in UTC, such as 2026-03-01T00:15:00.000Z");

export const place = z.object({
  sheet: z.string().optional(),
  row: z.number().optional().describe("From 1, as an editor or a spreadsheet shows it."),
  column: z.string().optional(),
  text: z.string().optional().describe("The offending text, shortened."),
});

export const reason = z.object({
  code: z.string().describe("Of the register of errors, such as HG-MAP-004."),
  message: z.string(),
  hint: z.string().optional(),
  place: place.optional(),
});

export const points = z
  .object({
    mapped: z.number(),
    accepted: z.number(),
    stored: z.number(),
    rejected: z.number(),
    discarded: z.number(),
  })
  .describe("Numbers of readings.");

export const mappingFinding = z.object({
  kind: z.string().describe("A stable word, such as skipRows."),
  message: z.string(),
  count: z.number(),
  first: place.optional(),
  last: place.optional(),
  attention: z.literal(true).optional().describe("A person should check it; otherwise it is for information."),
});

export const run = z.object({
  id: z.string(),
  arrivalId: z.number(),
  drop: z.string(),
  path: z.string(),
  size: z.number().describe("Bytes."),
  mtime: z.string(),
  sha256: z.string().nullable(),
  binding: z.object({
    trigger: z.string(),
    service: z.string(),
    mapper: z.object({ name: z.string(), version: z.string(), digest: z.string() }),
    settings: z.record(z.string(), z.unknown()),
    rows: z.enum(["strict", "lenient"]),
  }),
  lane: z.string(),
  state: z.enum(ALL_RUN_STATES),
  reason: reason.nullable(),
  points,
  findings: z.array(mappingFinding).describe("What its mapping found out about the file."),
  node: z.string().nullable(),
  createdAt: instant,
  changedAt: instant,
});

const waitingFile = z.object({
  drop: z.string(),
  path: z.string(),
  state: z.string().describe("Of the arrival, or of its run."),
  since: instant,
  reason: z.string(),
  runId: z.string().nullable(),
  overdue: z.boolean(),
});

export const rejectedRow = z.object({ code: z.string(), message: z.string(), hint: z.string().optional(), place });

const outcome = z.object({
  by: z.enum(["webhook", "read-back"]),
  received: z.number(),
  stored: z.number(),
  discarded: z.array(z.object({ target: z.string(), reason: z.string(), points: z.number() })),
  at: instant,
});

export const batch = z.object({
  runId: z.string(),
  sequence: z.string().describe("1, 2, … and after a split 7.1, 7.2."),
  operationId: z.string(),
  idempotencyKey: z.string().describe("Follows from what is delivered, or is the operationId."),
  repeats: z
    .string()
    .nullable()
    .describe("The earlier operation that delivered it, as the service said; empty where it was not named."),
  state: z.enum(ALL_BATCH_STATES),
  points: z.number(),
  length: z.number().describe("Bytes."),
  digest: z.string().describe("SHA-256 of the bytes."),
  attempts: z.number(),
  answer: z.string().nullable().describe("The service's last answer, or the last failure."),
  acceptedAt: instant.nullable(),
  outcome: outcome.nullable(),
});

const arrival = z.object({
  id: z.number(),
  parentId: z.number().nullable(),
  drop: z.string(),
  path: z.string(),
  size: z.number().describe("Bytes."),
  mtime: z.string(),
  sha256: z.string().nullable(),
  state: z.enum(ALL_ARRIVAL_STATES),
  reason: z.string(),
  seenAt: instant,
  changedAt: instant,
  goneAt: instant.nullable(),
});

const tracedFile = z.object({
  arrival,
  runs: z.array(z.object({ run, batches: z.array(batch), rejected: z.array(rejectedRow) })),
  events: z.array(
    z.object({ at: instant, what: z.string(), runId: z.string().nullable(), operationId: z.string().nullable() }),
  ),
});

const WAITING_MAX = 100_000;
const TRACED_MAX = 1_000;
const next = z.string().nullable().describe("`after` of the next part; null at the end.");

export const stateEndpoints = {
  runs: endpoint({
    method: "GET",
    path: "/operations/runs",
    need: "read",
    tag: "Runs",
    summary: "Runs, newest first",
    query: z.strictObject({
      limit: count(RUNS_MAX, 50),
      state: listOf(z.enum(ALL_RUN_STATES)).optional().describe("States, divided by commas."),
      after: z.string().optional().describe("The last run of the part before."),
    }),
    answer: z.object({ runs: z.array(run), total: z.number().describe("Of all runs in these states."), next }),
  }),
  waiting: endpoint({
    method: "GET",
    path: "/operations/waiting",
    need: "read",
    tag: "Runs",
    summary: "Files that wait, with the reason",
    query: z.strictObject({
      limit: count(WAITING_MAX, 200).describe("Of each drop, and of runs."),
      after: z
        .string()
        .regex(/^[\w.-]+:[0-9a-z]+(,[\w.-]+:[0-9a-z]+)*$/, "expected `next` of the part before")
        .optional()
        .describe("`next` of the part before."),
    }),
    answer: z.object({ files: z.array(waitingFile), total: z.number().describe("Of all files that wait."), next }),
  }),
  trace: endpoint({
    method: "GET",
    path: "/operations/trace/:query",
    need: "read",
    tag: "Runs",
    summary: "Files by an operationId, a run, a path, a name, or the beginning of an id",
    params: z.strictObject({ query: z.string().min(1) }),
    query: z.strictObject({ limit: count(TRACED_MAX, 50) }),
    answer: z.object({ files: z.array(tracedFile), total: z.number().describe("Of all files with this name.") }),
  }),
} as const;
