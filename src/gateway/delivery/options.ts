/** Sections `services[]` and `push` of the configuration. */
import { z } from "zod";
import { duration, size } from "#core/quantities.ts";
import { API_VERSION } from "#wire/problem.ts";
import type { GuardPolicy } from "./delivery.ts";

const address = (words: string) => z.url({ protocol: /^https?$/ }).describe(words);

export const serviceOptions = z.strictObject({
  name: z
    .string()
    .min(1)
    .describe("Name of the service, as triggers refer to it.")
    .meta({ examples: ["main"] }),
  base: address("Address of the read and management interface.").meta({
    examples: ["https://api.example.com"],
  }),
  push: address("Address of the push interface; /api/data is added.").meta({
    examples: ["https://push.example.com"],
  }),
  token: address("Address of the OAuth 2.0 token endpoint, complete.").meta({
    examples: ["https://login.example.com/realms/main/protocol/openid-connect/token"],
  }),
  apiVersion: z
    .string()
    .min(1)
    .default(API_VERSION)
    .describe("Sent in the header Api-Version of every call; without it a service follows its newest version."),
  account: z
    .union([z.string().min(1), z.number().int().transform(String)])
    .optional()
    .describe(
      "Id of the account that the token is asked for, and that the token must name. Without it the " +
        "service takes the user's default account.",
    ),
  credentials: z
    .strictObject({
      clientId: z.string().min(1).describe("OAuth client id, issued by the platform operator."),
      clientSecret: z.string().min(1).describe("OAuth client secret.").meta({ secret: true }),
      username: z.string().min(1).describe("User with the right Data Pusher."),
      password: z.string().min(1).describe("Password of the user.").meta({ secret: true }),
    })
    .describe("Credentials of the password grant."),
  scopes: z
    .array(z.string().min(1))
    .min(1)
    .default(["datahub-api", "push-data"])
    .describe("Scopes asked for: push-data to push, datahub-api to read back and to check targets."),
  auth: z
    .enum(["bearer", "basic"])
    .default("bearer")
    .describe("How pushes authenticate: with the token, or with user and password (HTTP Basic)."),
  idempotency: z
    .boolean()
    .default(false)
    .describe(
      "Whether the service stores a batch that comes twice under one Idempotency-Key only once, as " +
        "the hub does. The specification promises nothing of the kind, so the guard warns of readings " +
        "without a version that a second copy would store as a second version, and a batch of which an " +
        "attempt may be stored already is not split, but refused whole.",
    ),
  webhook: z
    .strictObject({
      secret: z
        .string()
        .min(16)
        .optional()
        .describe(
          "Secret that this service signs its webhooks with (HMAC-SHA256). Without it " +
            "operations.webhook.secret. With several services give each its own: then no service can " +
            "report the outcome of another's operation.",
        )
        .meta({ secret: true }),
    })
    .prefault({})
    .describe(
      "Trust in the outcomes that this service reports; the address at which it reaches the gateway " +
        "is in operations.webhook.",
    ),
  ingestion: z
    .strictObject({
      future: duration("1096d").describe(
        "How far dates may be in the future: about three years where the account has no limit of its own.",
      ),
      past: duration()
        .optional()
        .describe("How far dates may be in the past; no limit when left out.")
        .meta({ examples: ["3650d"] }),
    })
    .prefault({})
    .describe("The account's ingestion limits, which the guard compares dates with before the first push."),
  ca: z.string().optional().describe("Certificates to trust instead of the system's, in PEM, such as ${file:ca.pem}."),
  proxy: address(
    "Proxy that every call to this service goes through, the token endpoint included; with user and " +
      "password in front of the host where it asks for them.",
  )
    .optional()
    .meta({ secret: true, examples: ["http://proxy.example.com:3128"] }),
});
export type ServiceOptions = z.output<typeof serviceOptions>;

const act = z.enum(["hold", "warn", "push"]);

const guardPolicy = z.strictObject({
  targets: act
    .default("hold")
    .describe("A target names no variable of the account, which discards its readings, or several."),
  units: act
    .default("hold")
    .describe("The unit that the mapper declared is not the variable's; values are stored unconverted."),
  dates: act.default("warn").describe("Dates are outside the ingestion limits of the service."),
  versions: act
    .default("warn")
    .describe(
      "Readings without a version go to a versioned variable of a service without idempotency: sent a " +
        "second time they make a second version.",
    ),
  unreadable: act
    .default("warn")
    .describe("The user may not read (no scope datahub-api, no right), so that nothing can be checked."),
});
/** Reaction of a trigger to the findings of the guard; a single word applies to every finding. */
export const triggerGuard = z
  .union([
    act.transform(
      (word): GuardPolicy => ({
        targets: word,
        units: word,
        dates: word,
        versions: word,
        unreadable: word,
      }),
    ),
    guardPolicy,
  ])
  .prefault({})
  .describe(
    "Reaction to problems that the guard finds before the first push of a run. hold: the run waits " +
      "until the problem is corrected, and then resumes by itself. warn: the run is pushed, and the " +
      "history of the file says so. push: no check is made. One word, as in `guard: warn`, applies to " +
      "everything.",
  );

const batchOptions = z.strictObject({
  points: z.number().int().min(1).default(5000).describe("Most readings in one batch."),
  bytes: size("4MB").describe("Most bytes in one batch."),
});

const retryOptions = z.strictObject({
  initial: duration("1s").describe("First wait after a transient failure; doubled each time, with jitter."),
  max: duration("5m").describe("Longest wait between attempts of one batch, and of an open breaker."),
  quickAttempts: z
    .number()
    .int()
    .min(1)
    .default(3)
    .describe("Attempts of one batch before its run lets other runs pass and is tried again later."),
  quickWait: duration("5s").describe(
    "Longest wait that a run keeps its slot for; with a longer one the run is tried again later.",
  ),
  retryAfterMax: duration("1h").describe("The service's Retry-After is honoured up to this."),
  refused: duration("5m").describe(
    "Wait after a refusal that a person must resolve: credentials, scope, right, address.",
  ),
  breakerFailures: z
    .number()
    .int()
    .min(1)
    .default(5)
    .describe("Consecutive failures after which pushes to the service pause (circuit breaker)."),
  refusedReadings: z
    .number()
    .int()
    .min(1)
    .default(100)
    .describe(
      "Readings of one run that are isolated one by one when the service refuses batches; beyond it " +
        "refused batches are rejected whole.",
    ),
});

const timeoutOptions = z.strictObject({
  connect: duration("10s").describe("To connect, TLS included."),
  headers: duration("60s").describe("From the end of the request to the first line of the answer."),
  body: duration("30s").describe("Between two parts of an answer."),
  total: duration("3m").describe("For one call altogether."),
});

const confirmOptions = z.strictObject({
  within: duration("10m").describe(
    "How long a service may take to show what it accepted. Time in which the service is not reachable " +
      "does not count; when that lasts as long, the run is unconfirmed, with the reason, and is checked " +
      "again.",
  ),
  by: z
    .enum(["auto", "webhook", "read-back", "none"])
    .default("auto")
    .describe(
      "How outcomes are learned. auto: by webhook where operations.webhook.publicUrl is given, " +
        "otherwise by reading back.",
    ),
  webhookWait: duration("30s").describe(
    "Time after the acceptance at which reading back starts if no webhook has come; at most half of `within`.",
  ),
  pollEvery: duration("5s").describe(
    "Pause between two attempts to read back, since the service stores after it responds.",
  ),
});

const guardOptions = z.strictObject({
  remember: duration("10m").describe(
    "How long the variable of a target is cached. A missing variable is queried again at the next file.",
  ),
  recheck: duration("30s").describe(
    "First pause after which a held run is checked again; the pauses grow with the time it is held.",
  ),
  recheckMax: duration("10m").describe("Longest pause between two checks of a held run."),
});

export const heldOptions = z.strictObject({
  remap: z
    .enum(["always", "ask"])
    .default("always")
    .describe(
      "When the mapper, its settings or a lookup table of a held run were changed. always: the file continues as a " +
        "new run, which is mapped with what is in force and keeps its place in the lane. ask: the run stays held and " +
        "says what differs, until a person replays it (with what is in force) or releases it (as it is).",
    ),
});

export const pushOptions = z.strictObject({
  batch: batchOptions.prefault({}).describe("Limits of one push call."),
  concurrency: z.number().int().min(1).max(64).default(4).describe("Push calls at the same time, for each service."),
  drainRate: z
    .number()
    .positive()
    .optional()
    .describe(
      "Most readings a second that are sent to each service, so that a backlog after an outage does " +
        "not overload it. Without it as fast as the service accepts them.",
    )
    .meta({ examples: [20_000] }),
  operationTimeout: duration("60s").describe(
    "Sent as operationTimeoutSec: how long the service may work on one operation.",
  ),
  retry: retryOptions.prefault({}).describe("Pauses and attempts after failures."),
  timeouts: timeoutOptions.prefault({}).describe("Limits of one HTTP call."),
  guard: guardOptions
    .prefault({})
    .describe("How targets are looked up before the first push; the `guard` of each trigger decides the reaction."),
  confirm: confirmOptions.prefault({}).describe("How the storage of accepted readings is confirmed."),
});
export type PushOptions = z.output<typeof pushOptions>;
