/** Settings that only the drop of kind `http` has; `../options.ts` adds those of all drops. */
import { z } from "zod";
import { httpOptions } from "#core/http-options.ts";
import { tlsPair } from "#core/listen-address.ts";
import { duration, size } from "#core/quantities.ts";
import { ownSecret, signInLimits, trustProxy } from "#core/sign-in/options.ts";

const INTAKE_RIGHTS = ["push", "storage"] as const;
export type IntakeRight = (typeof INTAKE_RIGHTS)[number];

const user = z.strictObject({
  username: z.string().min(1).describe("Name that the sender signs in with, by token or by Basic."),
  password: ownSecret.describe("Password of the sender, of 8 characters at least."),
  service: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Name of the service that this user's data goes to. May be left out when there is only one. " +
        "The gateway delivers with its own credentials.",
    ),
  rights: z
    .array(z.enum(INTAKE_RIGHTS))
    .min(1)
    .default([...INTAKE_RIGHTS])
    .describe(
      "What the user may do: push (POST /api/data, /api/standard and /api/generic/{guid}), storage (POST /storage). " +
        "Default both.",
    ),
  timeZone: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Zone of dates without designator in the bodies of this user. Without it such a body is quarantined, " +
        "since any guess would silently shift it.",
    )
    .meta({ examples: ["Europe/Brussels"] }),
  dst: z
    .enum(["reject", "earlier", "later", "byOrder"])
    .default("later")
    .describe(
      "Which of both instants such a date means in the hour that daylight saving repeats. " +
        "Default later, as the service reads it.",
    ),
});
export type IntakeUser = z.output<typeof user>;

export const intakeShape = {
  kind: z.literal("http"),
  listen: z
    .string()
    .regex(/^.+:\d{1,5}$/, "expected host:port")
    .describe("Address that senders reach, as host:port; port 0 takes any free one.")
    .meta({ examples: ["0.0.0.0:8443"] }),
  tls: tlsPair("intake")
    .optional()
    .describe("Encryption. Without it passwords travel readably: only for loopback or behind a TLS proxy."),
  users: z.array(user).min(1).describe("Who may send."),
  clients: z
    .array(
      z.strictObject({
        id: z.string().min(1).describe("client_id at the token endpoint."),
        secret: ownSecret.describe("client_secret at the token endpoint, of 8 characters at least."),
      }),
    )
    .default([])
    .describe(
      "OAuth clients that the token endpoint knows. When empty, any client may ask for a token with a user's password.",
    ),
  limits: z
    .strictObject({
      body: size("64MB").describe("Larger bodies are refused with 413. Default 64MB."),
      backlog: size("10GB").describe(
        "When so many bytes wait to be delivered, further bodies are refused with 503. Default 10GB.",
      ),
    })
    .prefault({})
    .describe("Limits of accepted bodies."),
  throttle: z
    .strictObject(signInLimits)
    .prefault({})
    .describe("Slows down guessing of passwords and client secrets, by token and by Basic."),
  trustProxy,
  http: httpOptions,
  tokenLifetime: duration("1h").describe("How long an access token is valid. Default 1h."),
  repeats: duration("90d").describe(
    "How long the same operationId (or Idempotency-Key) with the same bytes is recognized as a repetition; " +
      "at least the longest outage after which senders repeat. Default 90d.",
  ),
};
