/** The gateway at a glance: the flow with its backlogs and rates, what happened over time, and files expected. */
import { z } from "zod";
import { endpoint, moment } from "./endpoint.ts";
import { instant } from "./state.ts";

const tag = "Overview";
/** Days of a calendar. */
export const CALENDAR_DAYS_MAX = 62;

const healthPart = z.object({ part: z.string(), ready: z.boolean(), reason: z.string() });

export const overview = z.object({
  at: instant,
  flow: z.object({
    drops: z.array(
      z.object({
        name: z.string(),
        kind: z.string(),
        state: z.enum(["ok", "paused", "trouble"]),
        words: z.string(),
        waiting: z.number().describe("Files that are settling, or wait for the next poll."),
      }),
    ),
    stages: z.array(
      z.object({
        name: z.enum(["mapping", "delivery", "confirmation"]),
        running: z.number(),
        waiting: z.number(),
        ratePerMinute: z.number().describe("Runs that left the stage on this node in the last minute."),
      }),
    ),
    services: z.array(
      z.object({
        name: z.string(),
        state: z.enum(["up", "down", "unused"]).describe("unused: not used since the start."),
        reason: z.string().nullable().describe("Why it cannot be used now."),
        breaker: z.enum(["closed", "open"]).describe("open: nothing is sent until it is tried again."),
        lastError: z.string().nullable().describe("Since the start of the gateway."),
        waiting: z.number().describe("Runs with batches for it."),
      }),
    ),
  }),
  spool: z.object({
    usedBytes: z.number(),
    budgetBytes: z.number(),
    freeBytes: z.number().nullable().describe("Of the disk."),
    full: z.string().nullable().describe("Why no more files are taken."),
  }),
  nodes: z
    .array(
      z.object({
        node: z.string(),
        drops: z.array(z.string()),
        runs: z.number(),
        seenAt: instant,
        isAlive: z.boolean(),
        isSelf: z.boolean(),
      }),
    )
    .describe("Empty where one process owns the ledger."),
  health: z.array(healthPart),
  attention: z.number().describe("Matters that need attention."),
});
export type Overview = z.output<typeof overview>;

export const PERIODS = ["day", "month"] as const;
export type Period = (typeof PERIODS)[number];

export const history = z.object({
  stepMs: z.number(),
  from: instant.describe("The begin of the first step."),
  series: z.object({
    files: z.array(z.number()).describe("Files claimed in each step."),
    points: z.array(z.number()).describe("Accepted readings of these files."),
    errors: z.array(z.number()).describe("Runs of these files that need a person now."),
    delayMs: z.array(z.number().nullable()).describe("Mean time from the claim of a file to its acceptance."),
  }),
});
export type History = z.output<typeof history>;

const EXPECTATION_STATUSES = ["on-time", "late", "missing", "pending"] as const;

export const calendar = z.object({
  triggers: z.array(
    z.object({
      trigger: z.string(),
      expectations: z.array(
        z.object({
          due: instant,
          status: z
            .enum(EXPECTATION_STATUSES)
            .describe("late: the file came after it was due, and before the next one was; pending: not due yet."),
          file: z.number().nullable().describe("The arrival."),
          arrivedAt: instant.nullable(),
        }),
      ),
    }),
  ),
});
export type Calendar = z.output<typeof calendar>;

export const overviewEndpoints = {
  overview: endpoint({
    method: "GET",
    path: "/operations/overview",
    need: "read",
    tag,
    summary: "The flow of files from drops to services, with backlogs, rates and health",
    answer: overview,
  }),
  history: endpoint({
    method: "GET",
    path: "/operations/history",
    need: "read",
    tag,
    summary: "Files, points, errors and delays of the last 24 hours by hour, or of the last 30 days by day",
    query: z.strictObject({ period: z.enum(PERIODS).default("day") }),
    answer: history,
  }),
  calendar: endpoint({
    method: "GET",
    path: "/operations/calendar",
    need: "read",
    tag,
    summary: "When files were expected by triggers with `expect`, and when they came",
    query: z.strictObject({
      from: moment().optional().describe("Default: 30 days ago."),
      to: moment()
        .optional()
        .describe(`At most ${CALENDAR_DAYS_MAX} days after from. Default: in 7 days, or that limit if it is earlier.`),
    }),
    answer: calendar,
  }),
} as const;
