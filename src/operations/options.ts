import { z } from "zod";
import { duration } from "../support/quantities.ts";

/** `host:port`; port 0 takes any free one. */
export const listenAddress = z
  .string()
  .regex(/^(\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}$/, "expected host:port, such as 127.0.0.1:9464");

export const operationsOptions = z.strictObject({
  listen: listenAddress
    .default("127.0.0.1:9464")
    .describe(
      "Address of the operator's HTTP interface: health, metrics, runs, and the receiver of outcome webhooks. Port 0 takes any free one.",
    ),
  webhook: z
    .strictObject({
      publicUrl: z
        .url()
        .optional()
        .describe(
          "Where the service can reach this gateway, such as https://gateway.example.com; /webhooks/outcome is added. Without it outcomes are learned by reading back.",
        ),
      secret: z
        .string()
        .min(16)
        .optional()
        .describe(
          "Shared secret of the signature of webhooks (HMAC-SHA256), for services without a `webhook.secret` of their own. Where webhooks are received, each service needs the one or the other.",
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
          "OTLP/HTTP endpoint that spans of runs are exported to; /v1/traces is added. Without it OTEL_EXPORTER_OTLP_TRACES_ENDPOINT and OTEL_EXPORTER_OTLP_ENDPOINT are looked at, and without those nothing is exported.",
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
        "How often the configuration's file and the secrets that it names by ${file:…} are looked at, should the file system tell of no change.",
      ),
      grace: duration("15s").describe(
        "When a change needs all to be started anew (ledger, spool, workers, operations, …): so long may what is under way come to its end.",
      ),
    })
    .prefault({})
    .describe("Taking a changed configuration into force while the gateway runs."),
  alarm: z
    .strictObject({
      url: z
        .url()
        .describe("Where an alarm is posted as JSON, such as a chat's incoming webhook or your own service."),
      secret: z
        .string()
        .min(16)
        .optional()
        .describe(
          "Secret of the signature in the header X-Headgate-Signature; without it alarms are not signed.",
        )
        .meta({ secret: true }),
    })
    .optional()
    .describe(
      "Told when a file that a trigger expects is late. Sent once for each due time, and again until it was accepted.",
    ),
});
export type TracingOptions = z.output<typeof operationsOptions>["tracing"];
export type OperationsOptions = z.output<typeof operationsOptions>;
