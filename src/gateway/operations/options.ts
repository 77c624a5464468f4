import { z } from "zod";
import { httpOptions } from "#core/http-options.ts";
import { listenAddress } from "#core/listen-address.ts";
import { duration } from "#core/quantities.ts";
import { checkConsole, consoleOptions } from "./console/options.ts";

const TOKEN_CHARACTERS_LEAST = 16;

const ACCESS_RIGHTS = ["metrics", "read"] as const;
export type AccessRight = (typeof ACCESS_RIGHTS)[number];

const accessToken = z.strictObject({
  name: z.string().min(1).describe("The client that has it, for the log."),
  token: z
    .string()
    .min(
      TOKEN_CHARACTERS_LEAST,
      `is shorter than ${TOKEN_CHARACTERS_LEAST} characters; make one by: openssl rand -base64 32`,
    )
    .describe("Sent as `Authorization: Bearer <token>`.")
    .meta({ secret: true, examples: [`\${env:HEADGATE_PROMETHEUS_TOKEN}`] }),
  rights: z
    .array(z.enum(ACCESS_RIGHTS))
    .min(1)
    .default([...ACCESS_RIGHTS])
    .describe("metrics: /metrics; read: /operations/… and the reasons of /health/ready. Both by default."),
});

const options = z.strictObject({
  listen: listenAddress
    .default("127.0.0.1:9464")
    .describe(
      "Address of the operations API: health, metrics, runs, and, without `webhook.listen`, the receiver of " +
        "outcome webhooks. Port 0 takes any free one.",
    ),
  access: z
    .strictObject({
      tokens: z.array(accessToken).default([]).describe("Tokens of programs such as Prometheus and scripts."),
    })
    .prefault({})
    .describe(
      "Access to the operations API, also from this machine. Commands use the file beside the ledger. Without " +
        "a token /health/live and /health/ready return their status alone, and every other address is refused.",
    ),
  console: consoleOptions
    .prefault({})
    .describe("The pages for people: what needs attention, files, drops, a playground (docs/console.md)."),
  http: httpOptions,
  laneAfter: duration("1h").describe(
    "A lane waits too long when its first file has made no progress for this time: the log, health, `runs " +
      "--waiting` and the notifications say so.",
  ),
  webhook: z
    .strictObject({
      listen: listenAddress
        .optional()
        .describe(
          "Address for /webhooks/outcome alone, for the service to reach, while the rest stays at " +
            "`operations.listen`. Port 0 takes any free one. Without it webhooks come to `operations.listen`.",
        )
        .meta({ examples: ["0.0.0.0:9465"] }),
      publicUrl: z
        .url()
        .optional()
        .describe(
          "Where the service can reach this gateway, such as https://gateway.example.com; /webhooks/outcome " +
            "is added. Without it outcomes are learned by reading back.",
        ),
      secret: z
        .string()
        .min(16)
        .optional()
        .describe(
          "Shared secret of the signature of webhooks (HMAC-SHA256), for services without a `webhook.secret` " +
            "of their own. Where webhooks are received, each service needs one of the two.",
        )
        .meta({ secret: true }),
    })
    .prefault({})
    .describe("Receiving the outcome of pushes."),
  tracing: z
    .strictObject({
      endpoint: z
        .url({ protocol: /^https?$/ })
        .optional()
        .describe(
          "OTLP/HTTP endpoint that spans of runs are exported to; /v1/traces is added. Without it " +
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT and OTEL_EXPORTER_OTLP_ENDPOINT apply, and without those " +
            "nothing is exported.",
        )
        .meta({ examples: ["http://127.0.0.1:4318"] }),
      headers: z
        .record(z.string(), z.string())
        .default({})
        .describe("Headers of the export, such as the key of a tracing service.")
        .meta({ secret: true }),
      serviceName: z.string().min(1).default("headgate").describe("The resource attribute service.name."),
    })
    .prefault({})
    .describe("Following runs across systems (OpenTelemetry). Pushes carry `traceparent` in any case."),
  reload: z
    .strictObject({
      every: duration("2s").describe(
        "How often the configuration's file and the secrets that it names by ${file:…} are checked when the " +
          "file system reports no change.",
      ),
      grace: duration("15s").describe(
        "Grace period for running work when a change needs a restart of all parts (ledger, spool, workers, " +
          "operations, …).",
      ),
    })
    .prefault({})
    .describe("How a changed configuration takes effect while the gateway runs."),
});
export const operationsOptions = options.check(
  z.superRefine<z.output<typeof options>>((given, context) => checkConsole(given, context)),
);
export type TracingOptions = z.output<typeof operationsOptions>["tracing"];
export type OperationsOptions = z.output<typeof operationsOptions>;
export * from "./notification-options.ts";
