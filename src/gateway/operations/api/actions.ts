/** Actions of persons on files, drops and triggers; the consequence of each is shown first. */
import { z } from "zod";
import { action } from "./attention.ts";
import { endpoint } from "./endpoint.ts";

/** Subjects of one command, at most. */
const SUBJECTS_MAX = 500;
/** Characters; file systems permit 255 with the ending of a mapper. */
const NAME_MAX = 200;

const options = z
  .strictObject({
    trigger: z.string().max(NAME_MAX).optional().describe("Replay: by another trigger."),
    mapper: z.string().max(NAME_MAX).optional().describe("Replay: with another mapper."),
    settings: z.record(z.string(), z.unknown()).optional().describe("Replay: with other settings of the mapper."),
    rows: z.enum(["strict", "lenient"]).optional().describe("Replay: whether refused rows refuse the file."),
    rejectedOnly: z.boolean().default(false).describe("Replay: only readings that the service has not accepted."),
    overwrite: z.boolean().default(false).describe("Replay and release: also dates that later files have delivered."),
    discard: z.boolean().default(false).describe("Release: also readings that the service would discard."),
  })
  .prefault({});
export type ActionOptions = z.output<typeof options>;

const subject = z.union([
  z.strictObject({ run: z.string().min(1) }),
  z.strictObject({ drop: z.string().min(1), path: z.string().min(1) }).describe("Of `forget`."),
  z.strictObject({ kind: z.enum(["drop", "trigger"]), name: z.string().min(1) }).describe("Of `pause` and `resume`."),
]);
export type Subject = z.output<typeof subject>;

const subjects = z.array(subject).min(1).max(SUBJECTS_MAX);

const difference = z.object({
  target: z.string(),
  date: z.string(),
  version: z.string().nullable(),
  before: z.number().nullable().describe("Null when it was not accepted before."),
  after: z.number().nullable().describe("Null when it is no longer sent."),
});

const detail = z.discriminatedUnion("action", [
  z.object({
    action: z.literal("replay"),
    trigger: z.string(),
    mapper: z.string().describe("Name and version."),
    readings: z.object({
      mapped: z.number(),
      sent: z.number(),
      added: z.number(),
      changed: z.number(),
      unchanged: z.number(),
      acceptedBefore: z.number().describe("Left out, since they were accepted before."),
      dropped: z.number().describe("Accepted before and not in the new payload; they stay at the service."),
    }),
    refusedRows: z.number(),
    differences: z.array(difference).describe("The first 200."),
    later: z.array(
      z.object({ run: z.string(), file: z.string(), readings: z.number(), from: z.string(), to: z.string() }),
    ),
    notKept: z.array(z.string()).describe("Runs whose payload is no longer kept, so that they are missing here."),
  }),
  z.object({
    action: z.literal("provision"),
    creates: z.array(z.string()).describe("What would be created, each in words; 200 at most."),
    count: z.number(),
    impossible: z.array(z.string()),
  }),
  z.object({
    action: z.literal("release"),
    readings: z.number(),
    discards: z.number().describe("Readings that the service would discard."),
    overtaken: z.string().nullable().describe("What later files have delivered meanwhile, in words."),
  }),
  z.object({
    action: z.literal("cancel"),
    acceptedPoints: z.number().describe("Readings that the service has; they stay."),
    unanswered: z.number().describe("Batches that were sent and not answered."),
  }),
  z.object({
    action: z.literal("forget"),
    versions: z.number(),
    runs: z.number(),
    acceptedPoints: z.number(),
    unanswered: z.number(),
  }),
]);
export type PreviewDetail = z.output<typeof detail>;

const answered = {
  subject,
  status: z.enum(["ok", "refused"]),
  words: z.string().describe("The consequence, or why it is refused, in a sentence."),
  code: z.string().nullable(),
  hint: z.string().nullable(),
};

export const actionEndpoints = {
  preview: endpoint({
    method: "POST",
    path: "/operations/preview",
    need: "read",
    tag: "Actions",
    summary: "What an action would do; nothing is changed",
    description:
      "Replays are previewed one request at a time for each person: a newer one ends the one before, which is " +
      "answered with 409. Viewers cannot give `trigger`, `mapper` or `settings`.",
    body: z.strictObject({ action, subjects, options }),
    answer: z.object({ items: z.array(z.object({ ...answered, detail: detail.nullable() })) }),
  }),
  command: endpoint({
    method: "POST",
    path: "/operations/commands",
    need: "command",
    tag: "Actions",
    summary: "Performs an action, with an answer for each subject",
    body: z.strictObject({
      command: action,
      subjects,
      options,
      why: z.string().max(500).default("").describe("The reason, for the history."),
    }),
    answer: z.object({
      items: z.array(z.object({ ...answered, run: z.string().nullable().describe("The new run of a replay.") })),
    }),
  }),
} as const;
