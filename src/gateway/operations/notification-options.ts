/** Settings of notifications, apart from the other operations since they are checked by a rule of their own. */
import { z } from "zod";
import { duration } from "#core/quantities.ts";
import { hasWholeSignIn, smtpFields } from "#core/smtp/options.ts";
import { ATTENTION_KINDS } from "./attention-kinds.ts";

export { ATTENTION_KINDS, type AttentionKind } from "./attention-kinds.ts";

const common = {
  name: z.string().min(1).describe("Name, unique among the receivers; used in log and state."),
  about: z
    .array(z.enum(ATTENTION_KINDS))
    .min(1)
    .default([...ATTENTION_KINDS])
    .describe(
      "Concerns that it receives: runs that are quarantined, held, discarded or unconfirmed, a file that no " +
        "trigger claims, a finished file that changed and cannot go back to its path, a file that is late, a lane " +
        "that waits too long, a drop or a service that cannot be reached, a service whose clock is far from ours, a " +
        "trigger of a service that cannot be used, a spool that is nearly full, source files that cannot be archived " +
        "or deleted, a changed configuration that is refused. All when absent.",
    ),
};

const webhookReceiver = z.strictObject({
  kind: z.literal("webhook").describe("Posts JSON."),
  ...common,
  url: z
    .url({ protocol: /^https?$/ })
    .describe("Where it is posted, such as the incoming webhook of a chat, or a service of your own.")
    .meta({ secret: true }),
  format: z
    .enum(["json", "slack", "teams"])
    .default("json")
    .describe("json: every fact, for programs; slack: the text for Slack and what understands it; teams: a card."),
  secret: z
    .string()
    .min(16)
    .optional()
    .describe("Secret of the signature in the header X-Headgate-Signature; without it nothing is signed.")
    .meta({ secret: true }),
});

const emailReceiver = z.strictObject({
  kind: z.literal("email").describe("Sends by SMTP."),
  ...common,
  ...smtpFields,
  from: z.string().min(3).describe("Sender, such as `Headgate <headgate@example.com>`."),
  to: z.array(z.string().min(3)).min(1).describe("Recipients."),
});

export const receiverOptions = z.discriminatedUnion("kind", [webhookReceiver, emailReceiver]).check(hasWholeSignIn);
export type ReceiverOptions = z.output<typeof receiverOptions>;
export type WebhookReceiverOptions = Extract<ReceiverOptions, { kind: "webhook" }>;
export type EmailReceiverOptions = Extract<ReceiverOptions, { kind: "email" }>;

export const notificationOptions = z.strictObject({
  name: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Name of this gateway in its messages; by default that of the node, or of the machine with the path of the " +
        "configuration.",
    )
    .meta({ examples: ["plant north"] }),
  receivers: z
    .array(receiverOptions)
    .default([])
    .check(
      z.superRefine<readonly { name: string }[]>((receivers, context) => {
        for (const [index, { name }] of receivers.entries()) {
          if (receivers.findIndex((one) => one.name === name) === index) continue;
          context.addIssue({
            code: "custom",
            path: [index, "name"],
            message: `the name ${name} is used twice`,
          });
        }
      }),
    )
    .describe("Receivers of notifications; none when empty."),
  group: duration("1m").describe("Concerns that begin within this time of the first are sent in one message."),
  every: duration("15m").describe("Shortest time between two messages to one receiver."),
  unreachableAfter: duration("5m").describe(
    "A drop or a service that cannot be reached is reported when it has been so for this long.",
  ),
  spoolShare: z
    .number()
    .gt(0)
    .max(1)
    .default(0.8)
    .describe("Share of `spool.budget` in use from which the spool counts as nearly full."),
  attempts: z
    .int()
    .min(1)
    .max(100)
    .default(12)
    .describe(
      "How often a message is tried, with pauses that double from 1 minute to 1 hour, before it is given up " +
        "with an error in the log.",
    ),
});
export type NotificationOptions = z.output<typeof notificationOptions>;
