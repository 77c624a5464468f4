/** Concerns that need attention now: grouped by cause, and one by one. */
import { z } from "zod";
import { ATTENTION_KINDS } from "../attention-kinds.ts";
import { count, endpoint } from "./endpoint.ts";
import { instant, place, points } from "./state.ts";

/** Actions on a file, or on a drop or a trigger. */
export const ACTIONS = ["replay", "provision", "release", "recheck", "cancel", "forget", "pause", "resume"] as const;
export type Action = (typeof ACTIONS)[number];
export const action = z.enum(ACTIONS);

const kind = z.enum(ATTENTION_KINDS);

export const rejectedReasons = z
  .array(z.object({ message: z.string(), column: z.string().optional(), count: z.number() }))
  .describe("Refused rows by reason; parts that differ from row to row are replaced by `…`.");

export const targetFindings = z
  .array(z.object({ what: z.string(), target: z.string(), points: z.number(), words: z.string() }))
  .describe("The first of the targets that hold the run, with the number of their readings.");

const item = z.object({
  key: z.string().describe("Identity of the concern for as long as it lasts."),
  kind,
  state: z.string().nullable().describe("Of the run or of the arrival; null for what is no file."),
  run: z.string().nullable(),
  file: z.number().nullable().describe("The file's id, for `/operations/files/{id}`."),
  drop: z.string().nullable(),
  path: z.string().nullable(),
  trigger: z.string().nullable(),
  mapper: z.string().nullable().describe("Name and version."),
  since: instant.nullable(),
  code: z.string().nullable(),
  reason: z.string(),
  hint: z.string().nullable(),
  place: place.nullable(),
  rejectedByReason: rejectedReasons,
  targets: targetFindings,
  points: points.nullable(),
  discards: z.number().describe("Readings that the service would discard if the run were released."),
  currentPlace: z.string().nullable().describe("Where the file is now, in words."),
  actions: z.array(action).describe("What helps, the most likely first."),
});
export type AttentionItem = z.output<typeof item>;

const group = z.object({
  key: z.string(),
  kind,
  title: z.string().describe("The cause in words; parts that differ from file to file are replaced by `…`."),
  hint: z.string().nullable(),
  code: z.string().nullable(),
  mapper: z.string().nullable().describe("Name and version, where the mapper refused the files."),
  count: z.number(),
  oldest: instant.nullable(),
  newest: instant.nullable(),
  drops: z.array(z.string()),
  triggers: z.array(z.string()),
  examples: z.array(item).describe("The newest, three at most."),
});
export type AttentionGroup = z.output<typeof group>;

export const attentionEndpoints = {
  attention: endpoint({
    method: "GET",
    path: "/operations/attention",
    need: "read",
    tag: "Attention",
    summary: "Everything that needs attention, grouped by cause: what stops most first, then the largest group",
    answer: z.object({
      total: z.number(),
      isCut: z.boolean().describe("There is more than is counted."),
      groups: z.array(group),
      at: instant,
    }),
  }),
  attentionItems: endpoint({
    method: "GET",
    path: "/operations/attention/items",
    need: "read",
    tag: "Attention",
    summary: "The members of a group, newest first",
    query: z.strictObject({
      group: z.string().min(1),
      after: z.string().optional().describe("`next` of the part before."),
      limit: count(500, 50),
    }),
    answer: z.object({ items: z.array(item), next: z.string().nullable() }),
  }),
} as const;
