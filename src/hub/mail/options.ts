/** Section `mail:` of `hub.yaml`. */
import { z } from "zod";
import { duration } from "#core/quantities.ts";
import { hasWholeSignIn, smtpFields } from "#core/smtp/options.ts";

const DEFAULT_SENDER = "Headgate <headgate@localhost>";

export const mailOptions = z.strictObject({
  smtp: z
    .strictObject(smtpFields)
    .check(hasWholeSignIn)
    .optional()
    .describe("Server that sends the mails; without it each mail becomes a file in the folder `outbox`."),
  from: z
    .string()
    .min(3)
    .default(DEFAULT_SENDER)
    .describe(`Sender; ${DEFAULT_SENDER} by default, which most servers refuse.`)
    .meta({ examples: ["Metering <metering@example.com>"] }),
  outbox: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Folder of the mails (.eml) where there is no `smtp`: an operator passes them on. Beside an SQLite store by " +
        "default (`<store>.outbox`); with PostgreSQL it has to be named.",
    ),
  backoff: duration("5s").describe("Wait after the first failure, doubled after each further one; 5s by default."),
  backoffMax: duration("10m").describe("Longest wait between two attempts; 10m by default."),
  alarmsAnHour: z
    .int()
    .positive()
    .default(60)
    .describe(
      "Mails about alarms that one account sends in an hour; 60 by default. Further ones become one mail for each " +
        "recipient, an hour after the first of them.",
    ),
  toPeopleAnHour: z
    .int()
    .positive()
    .default(200)
    .describe(
      "Invitations and temporary passwords that one account sends in an hour; further ones are answered by 429. 200 " +
        "by default.",
    ),
  toOneAnHour: z
    .int()
    .positive()
    .default(10)
    .describe("Those of one account to one address in an hour; further ones are answered by 429. 10 by default."),
  validity: z
    .strictObject({
      invitation: duration("7d").describe("Of the link of an invitation; 7d by default."),
      temporaryPassword: duration("3d").describe("Of the password that an invited or new user gets; 3d by default."),
      reset: duration("1h").describe("Of a link to set a new password; 1h by default."),
    })
    .prefault({})
    .describe("How long links and temporary passwords may be used. A mail that could not be sent by then is given up."),
});
export type MailOptions = z.output<typeof mailOptions>;
