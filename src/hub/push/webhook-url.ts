/** The `webhookUrl` of a request: where the outcome is sent. */
import type { FastifyReply } from "fastify";
import { WEBHOOK_WARNING } from "#wire/index.ts";
import { reachOf } from "../deliveries/receivers.ts";
import { invalidField } from "../http/problems.ts";
import { warn } from "../http/warnings.ts";

/** Null, and a warning: the push is accepted, and its outcome is available by GET /operations/{operationId} alone. */
export function readWebhookUrl(text: string | undefined, hosts: readonly string[], reply: FastifyReply): string | null {
  if (text === undefined || text === "") return null;
  const url = URL.parse(text);
  if (url === null || !["http:", "https:"].includes(url.protocol))
    throw invalidField("webhookUrl", "is an http or https URL");
  if (reachOf(url, hosts) !== "refused") return url.href;
  warn(
    reply,
    `${WEBHOOK_WARNING} the outcome will not be sent to ${url.host}: this hub sends outcomes to ` +
      "public addresses at port 443 (https), and to the hosts of its webhook.hosts",
  );
  return null;
}
