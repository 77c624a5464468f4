/** Configuration of `headgate hub -c FILE`. */
import { z } from "zod";
import { httpOptions } from "#core/http-options.ts";
import { duration, size } from "#core/quantities.ts";
import { ownSecret, signInLimits, trustProxy } from "#core/sign-in/options.ts";
import { POSTGRES_LEAST } from "#core/sql/postgres/version.ts";
import { refuseAlike, SCOPES } from "#wire/index.ts";
import { calculatedOptions } from "./calculated/options.ts";
import { eventOptions } from "./events/options.ts";
import { filesOptions } from "./files/options.ts";
import { mailOptions } from "./mail/options.ts";
import { sessionOptions } from "./sessions/options.ts";
import { signInOptions } from "./sign-on/options.ts";
import { refreshTokens, signingKeys } from "./token/options.ts";
import { sshKey, transferOptions } from "./transfer/options.ts";

/** Roles of the service (platform facts, *Rights and alarms*) and the single right that pushing needs. */
const ROLES = ["User", "Manager", "Datapusher", "Admin", "datapusher.standard"] as const;

const requestsPerMinute = z.int().positive().optional();
const most = (words: string) => z.int().positive().optional().describe(`${words} Further ones are refused by 409.`);
const customerLimits = z.strictObject({
  requestsPerMinute: requestsPerMinute.describe("Requests of one minute; further ones are answered by 429."),
  pointsPerDay: z
    .int()
    .positive()
    .optional()
    .describe("Points pushed on one day (UTC); further pushes are answered by 429 until midnight."),
  bytesPerDay: size().optional().describe("Bytes of the bodies pushed on one day (UTC)."),
  storedBytes: size().optional().describe("Bytes of all stored files; further uploads are answered by 507."),
  versions: z
    .int()
    .positive()
    .optional()
    .describe("Versions kept for a point, where its variable does not say otherwise; `limits.versions` when absent."),
  futureHorizon: duration()
    .optional()
    .describe("How far in the future a reading may be dated; `limits.futureHorizon` when absent."),
  sites: most("Sites of one account at most; 250000 when absent."),
  sources: most("Sources of one account at most; 250000 when absent."),
  variables: most("Variables of one account at most; 1000000 when absent."),
  alarmTemplates: most("Alarm templates of one account at most; 1000 when absent."),
  alarms: most("Alarms of one account at most, one for each variable of a template; 200000 when absent."),
  users: most("Users of one account at most, but for those of single sign-on; 50000 when absent."),
  triggers: most("File triggers of one account at most, without deleted ones; 1000 when absent."),
  forms: most("Forms of one account at most; 500 when absent."),
  groups: most("Groups of sites of one account at most; 5000 when absent."),
  views: most("Views of one account at most; 1000 when absent."),
  alarmViews: most("Views of alarms of one account at most; 1000 when absent."),
});

const account = z.strictObject({
  id: z.int().positive().describe("Number of the account; tokens are issued for it."),
  name: z.string().min(1).describe("Name that people read."),
  limits: customerLimits.optional().describe("Limits of this account, instead of `customerLimits`."),
});

const client = z.strictObject({
  id: z.string().min(1).describe("The `client_id` of token requests."),
  secret: ownSecret.describe(
    "The `client_secret`, of 8 characters at least; only its hash is stored. Best given as ${env:NAME}.",
  ),
  name: z.string().optional().describe("Name that people read."),
  scopes: z.array(z.enum(SCOPES)).optional().describe("Scopes that tokens of this client may carry; all when absent."),
  requestsPerMinute: requestsPerMinute.describe("Requests of one minute with tokens of this client."),
  strict: z
    .boolean()
    .default(false)
    .describe("Refuses parameters and fields of bodies that an address does not know; otherwise a warning names them."),
});

const user = z.strictObject({
  username: z.string().min(1).superRefine(refuseAlike).describe("The `username` of token requests."),
  password: ownSecret.describe("Of 8 characters at least; only its hash is stored. Best given as ${env:NAME}."),
  email: z.email().optional().describe("Address for messages of the hub to the user; none by default."),
  accounts: z
    .array(z.int().positive())
    .min(1)
    .describe("Ids of the accounts that the user may enter; the first is the default until another is used."),
  roles: z
    .array(z.enum(ROLES))
    .default(["User"])
    .describe(
      "User reads; Datapusher (or the right datapusher.standard) pushes; Manager has all rights on " +
        "its accounts; Admin sees all accounts.",
    ),
  adopt: z
    .boolean()
    .default(false)
    .describe(
      "Takes over a user of this name whom people made, or the e-mail address that another one has: everything that " +
        "the former owner set ends. Otherwise the hub does not start, and names both; false by default.",
    ),
  sshKeys: z
    .array(sshKey)
    .default([])
    .describe("Public keys with which the user signs in to the SFTP server (`transfer`), one line each.")
    .meta({ examples: [["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI… logger"]] }),
});

const webhook = z.strictObject({
  secret: z
    .string()
    .min(16)
    .optional()
    .meta({ secret: true })
    .describe(
      "The keys that sign outcomes and webhooks of alarms follow from it, one for each account " +
        "(`GET /account/webhookKey`); of 16 characters at least, without it they are sent unsigned.",
    ),
  timeout: duration("10s").describe("How long a receiver may take to answer; 10s by default."),
  attempts: z.int().positive().default(20).describe("Deliveries tried before one is given up; 20 by default."),
  backoff: duration("1s").describe("Wait after the first failure, doubled after each further one; 1s by default."),
  backoffMax: duration("10m").describe("Longest wait between two attempts; 10m by default."),
  concurrency: z
    .int()
    .positive()
    .default(8)
    .describe(
      "Deliveries at one time, at most a quarter of them to one host, and three quarters for one " +
        "account; 8 by default.",
    ),
  hosts: z
    .array(z.string().min(1))
    .default([])
    .describe(
      "Hosts that outcomes may be sent to beside public addresses at port 443 (https): `host` opens " +
        "every port of it, also without TLS, `host:port` one. A gateway in the hub's own network is to " +
        "be named here. None by default.",
    )
    .meta({ examples: [["gateway.example.org", "10.0.0.7:8080"]] }),
});

const limits = z.strictObject({
  body: size("64MB").describe("Largest body of a push; larger ones are answered by 413. 64MB by default."),
  requestBody: size("4MB").describe("Largest body of any other request; 4MB by default."),
  file: size("1GB").describe("Largest file of an upload; larger ones are answered by 413. 1GB by default."),
  versions: z
    .int()
    .positive()
    .default(7)
    .describe("Versions kept for a point, tagged and untagged counted apart; 7 by default."),
  futureHorizon: duration("1096d").describe(
    "How far in the future a reading may be dated; later ones are discarded, and the outcome says so. " +
      "1096d, three years, by default.",
  ),
  filterTime: duration("10s").describe(
    "How long one step of a filter or a search may take (`CustomFilter`, `ViewId`, selections of alarms); longer " +
      "ones are refused. 10s by default.",
  ),
  discards: z
    .int()
    .positive()
    .default(1_000)
    .describe("Entries of discarded targets in an outcome; further ones are summed up. 1000 by default."),
});

const tokenThrottle = z.strictObject({
  ...signInLimits,
  queue: z
    .int()
    .positive()
    .default(200)
    .describe(
      "Sign-ins that may wait for their password to be hashed; further ones are answered by 429. 200 by default.",
    ),
  tokensPerMinute: z
    .int()
    .positive()
    .default(120)
    .describe(
      "Tokens of one minute for one user of one client, and sign-ins of one user with browsers; further ones are " +
        "answered by 429. 120 by default.",
    ),
});

const keep = z.strictObject({
  idempotencyKeys: duration("90d").describe(
    "How long an Idempotency-Key is remembered, at least as long as the longest outage after which " +
      "senders retry; the keys of failed operations stay until these are applied again or dropped. 90d " +
      "by default.",
  ),
  outcomes: duration("90d").describe(
    "How long the outcome of an operation can be asked for, at least as long as keys are remembered; 90d by default.",
  ),
  events: duration("90d").describe("How long events of an account are kept; 90d by default."),
  undeliveredEvents: duration("365d").describe(
    "How long events are kept that a webhook of a subscription has still to get; 365d by default.",
  ),
  alarmHistory: duration("730d").describe(
    "How long changes of alarms are kept; the newest change of an alarm stays however old it is. 730d by default.",
  ),
});

const OBJECT_BYTES_MAX = 5_000_000_000;
const LOOPBACK = /^(127\.\d+\.\d+\.\d+|localhost|\[::1\]):/;
const listenAddress = z.string().regex(/^(\[[^\]]+\]|[^:[\]]+):\d{1,5}$/, "expected host:port");

export const hubOptions = z
  .strictObject({
    listen: listenAddress
      .default("127.0.0.1:8070")
      .describe("Address and port to listen on; port 0 takes any free one."),
    publicUrl: z
      .url()
      .optional()
      .describe("URL by which clients reach the hub, when it stands behind a proxy; issuer of the tokens."),
    store: z
      .discriminatedUnion("kind", [
        z.strictObject({
          kind: z.literal("sqlite").describe("Embedded store in one file, its queue in a second beside it."),
          path: z
            .string()
            .min(1)
            .describe("File of the store; made when absent.")
            .meta({ examples: ["data/hub.sqlite"] }),
        }),
        z.strictObject({
          kind: z.literal("postgres").describe(`${POSTGRES_LEAST}; any number of hubs share one schema of a database.`),
          url: z
            .string()
            .regex(/^postgres(ql)?:\/\//, "expected postgres://user:password@host:port/database")
            .meta({ secret: true, examples: ["postgres://hub:${env:HUB_PASSWORD}@db.example.org/metering"] })
            .describe("Connection of a user who may create the schema; `?sslmode=verify-full` and the like count."),
          schema: z
            .string()
            .regex(/^[a-z_][a-z0-9_]{0,62}$/, "expected a plain name in lower case")
            .default("headgate_hub")
            .describe("Schema that holds everything; made when absent. `headgate_hub` by default."),
          pool: z
            .int()
            .positive()
            .default(10)
            .describe(
              "Connections of one hub at most, beside the two of its writer and the two of filters; 10 by default.",
            ),
          connectTimeout: duration("10s").describe("How long a connection may take to be made; 10s by default."),
        }),
      ])
      .describe("Where structure, points and operations are kept."),
    files: filesOptions.prefault({}).describe("Where the bytes of stored files are kept."),
    transfer: transferOptions
      .optional()
      .describe("The file-transfer server, to which senders write their files; there is none when absent."),
    mail: mailOptions.prefault({}).describe("Mails to people: invitations, temporary passwords, new passwords."),
    trustProxy,
    http: httpOptions,
    tokenLifetime: duration("1h").describe("Lifetime of access tokens (`expires_in`); 1h by default."),
    refreshTokens: refreshTokens.prefault({}).describe("Refresh tokens, given with the scope offline_access."),
    signingKeys: signingKeys.prefault({}).describe("Keys that sign the access tokens."),
    tokenThrottle: tokenThrottle
      .prefault({})
      .describe("Slows down callers that repeatedly try credentials or request tokens."),
    sessions: sessionOptions.prefault({}).describe("Sessions of browsers, on the pages for people."),
    customerLimits: customerLimits
      .prefault({})
      .describe("Limits of every account that has none of its own; without a default, what is absent has no limit."),
    accounts: z.array(account).default([]).describe("Accounts to make or rename at start."),
    clients: z.array(client).default([]).describe("Clients of the token interface."),
    users: z.array(user).default([]).describe("Users; one that leaves this list can no longer sign in."),
    signIn: signInOptions.prefault({}).describe("Sign-in of people in browsers, beside their passwords."),
    calculated: calculatedOptions
      .prefault({})
      .describe("R scripts of calculated variables: what runs them, and its limits."),
    metrics: z
      .strictObject({
        listen: listenAddress
          .optional()
          .describe(
            "Address of a listener of its own for `GET /metrics` (Prometheus) and `GET /health`, such " +
              "as 127.0.0.1:9465; nothing listens when absent.",
          ),
        token: z
          .string()
          .min(16)
          .optional()
          .meta({ secret: true })
          .describe("What `GET /metrics` wants as `Authorization: Bearer …`; required beyond loopback."),
      })
      .prefault({})
      .check(
        z.superRefine<{ listen?: string | undefined; token?: string | undefined }>(({ listen, token }, context) => {
          if (listen === undefined || token !== undefined || LOOPBACK.test(listen)) return;
          const message = "is required where `metrics.listen` is no loopback address: others could read the metrics";
          context.addIssue({ code: "custom", path: ["token"], message });
        }),
      )
      .describe("Metrics of the hub."),
    webhook: webhook
      .prefault({})
      .describe("Delivery of outcomes to the `webhookUrl` of a push, and of events to subscriptions."),
    events: eventOptions.prefault({}).describe("Events of accounts, and subscriptions to them."),
    limits: limits.prefault({}).describe("Named limits."),
    keep: keep.prefault({}).describe("How long records of operations and events are kept."),
    log: z
      .strictObject({
        level: z
          .enum(["trace", "debug", "info", "warn", "error", "silent"])
          .default("info")
          .describe("Least severe level that is written; info by default."),
      })
      .prefault({})
      .describe("Log on standard error."),
  })
  .check(
    z.superRefine<{ readonly files: { readonly kind: string }; readonly limits: { readonly file: number } }>(
      ({ files, limits: { file } }, context) => {
        if (files.kind !== "s3" || file <= OBJECT_BYTES_MAX) return;
        const message = "is larger than 5GB, which is what object storage copies at once (`files.kind: s3`)";
        context.addIssue({ code: "custom", path: ["limits", "file"], message });
      },
    ),
  )
  .check(
    z.superRefine<{ readonly mail: { readonly smtp?: unknown }; readonly publicUrl?: string | undefined }>(
      ({ mail, publicUrl }, context) => {
        if (mail.smtp === undefined || publicUrl !== undefined) return;
        const message = "is required with `mail.smtp`: the links in mails lead there";
        context.addIssue({ code: "custom", path: ["publicUrl"], message });
      },
    ),
  )
  .describe("The measurement data service.");

export type HubOptions = z.infer<typeof hubOptions>;
