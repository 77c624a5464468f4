/** Triggers: those in force, and which of them would claim a name. */
import { z } from "zod";
import { endpoint } from "./endpoint.ts";
import { instant } from "./state.ts";

const tag = "Triggers";

export const triggerFacts = z.object({
  name: z.string(),
  state: z.string().nullable().describe("Active, Inactive, …; null where its service could not be read."),
  ingestionType: z.string().nullable(),
  mapper: z.string().nullable(),
  service: z.string().nullable(),
  title: z.string().nullable().describe("Its name at the service that it comes from."),
  drops: z.array(z.string()).nullable().describe("Null: files of all drops."),
  patterns: z.array(z.object({ filterType: z.string(), value: z.string() })),
  combination: z.string().nullable(),
  expect: z.object({ by: z.string(), every: z.string(), on: z.number().optional(), timeZone: z.string() }).nullable(),
  paused: z.string().nullable().describe("Why it claims nothing, by a person's pause."),
  problem: z.string().nullable().describe("Why its files cannot be mapped."),
  lastFileAt: instant.nullable(),
});
export type TriggerFacts = z.output<typeof triggerFacts>;

const nameTest = z.object({
  name: z.string(),
  forms: z.string().nullable().describe("Both forms of a name that is not in Unicode NFC, by which it is matched."),
  container: z
    .string()
    .nullable()
    .describe("What becomes of a compressed file, whose entries have names of their own."),
  claimedBy: z.string().nullable(),
  mapper: z.string().nullable(),
  others: z.array(z.string()).describe("Later triggers that match as well."),
  verdicts: z.array(z.object({ trigger: z.string(), matches: z.boolean(), words: z.string() })),
});
export type NameTest = z.output<typeof nameTest>;

export const triggerEndpoints = {
  triggers: endpoint({
    method: "GET",
    path: "/operations/triggers",
    need: "read",
    tag,
    summary: "The triggers in force, in their order: those of the file, and those of services",
    answer: z.array(triggerFacts),
  }),
  test: endpoint({
    method: "GET",
    path: "/operations/triggers/test",
    need: "read",
    tag,
    summary: "Which trigger would claim a file of this name, and why the others would not",
    query: z.strictObject({
      name: z.string().min(1).max(1_000),
      drop: z.string().optional().describe("As a file at this drop."),
      ingestion: z.enum(["SendViaFtp", "UploadInStorage", "SendViaHttp"]).default("SendViaFtp"),
    }),
    answer: nameTest,
  }),
} as const;
