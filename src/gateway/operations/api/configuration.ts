/** The configuration: what is in force, what changed it, and whether a text would be valid. */
import { z } from "zod";
import { endpoint } from "./endpoint.ts";
import { instant } from "./state.ts";

const tag = "Configuration";
/** Characters. */
const TEXT_MAX = 200_000;

const setting = z.object({
  path: z.string().describe("Such as drops[field].every: entries of lists by their names."),
  value: z
    .union([z.string(), z.number(), z.boolean()])
    .nullable()
    .describe("As it is in force, durations in milliseconds and sizes in bytes; null when it is hidden."),
  quantity: z
    .string()
    .nullable()
    .describe("The value as a file would have it, such as 10m or 4MB, where it is a duration or a size."),
  written: z.string().nullable().describe("The text of the file; null for a default, and for a secret."),
  source: z.enum(["given", "default"]),
  isHidden: z.boolean().describe("It is a secret, or comes from a variable or another file."),
});

const configuration = z.object({
  file: z.string().nullable(),
  settings: z.array(setting),
  reloads: z
    .array(
      z.object({
        at: instant,
        result: z.enum(["in force", "refused"]),
        changed: z.array(z.string()).describe("Paths of the settings that changed, up to 100."),
        changedCount: z.number(),
        reason: z.string().nullable().describe("Why it was refused; the former configuration stayed in force."),
      }),
    )
    .describe("Since the start of the process, the latest first; up to 50."),
});
export type Configuration = z.output<typeof configuration>;

export const validation = z.object({
  isValid: z.boolean(),
  findings: z.array(
    z.object({
      level: z.enum(["failed", "warning"]),
      line: z.number().nullable(),
      what: z.string(),
      hint: z.string().nullable(),
    }),
  ),
});
export type Validation = z.output<typeof validation>;

export const configurationEndpoints = {
  configuration: endpoint({
    method: "GET",
    path: "/operations/configuration",
    need: "read",
    tag,
    summary: "The configuration in force, setting by setting and without secrets, and what changed it",
    answer: configuration,
  }),
  validate: endpoint({
    method: "POST",
    path: "/operations/configuration/validate",
    need: "command",
    tag,
    summary: "Whether a text would be a valid configuration; it is neither kept nor applied",
    description:
      "What `${env:…}` and `${file:…}` name is never read: such a value counts as valid. At most 200 faults and " +
      "200 warnings are shown. One at a time for each person: a newer request ends the one before, which is answered " +
      "with 409, as is a text that takes too long.",
    body: z.strictObject({ text: z.string().max(TEXT_MAX) }),
    answer: validation,
  }),
} as const;
