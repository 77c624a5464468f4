/** Joins the deliveries, one for each service, and what the services tell of them. */
import type { GatewayConfig } from "../config/gateway-config.ts";
import { readOutcomeWebhook } from "../delivery/outcomes.ts";
import { createDelivery } from "../delivery/service-delivery.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { WebhookAnswer } from "../operations/server.ts";
import { confirmRule, webhookAddress } from "../runs/confirm-rule.ts";
import type { ServicePost } from "../runs/steps.ts";
import type { Clock } from "../support/clock.ts";
import type { Logger } from "../support/log.ts";
import type { Closer } from "./closers.ts";

export function openServices(
  config: GatewayConfig,
  operationsUrl: string,
  parts: { readonly ledger: Ledger; readonly log: Logger; readonly clock: Clock },
  closers: Closer[],
): ReadonlyMap<string, ServicePost> {
  const webhook = webhookAddress(config.operations.webhook.publicUrl, operationsUrl);
  const confirm = confirmRule(config.push.confirm, webhook !== null);
  const services = new Map<string, ServicePost>();
  for (const options of config.services) {
    const delivery = createDelivery(options, config.push, {
      journal: parts.ledger,
      log: parts.log,
      clock: parts.clock,
      webhook: webhook !== null && config.push.confirm.by !== "read-back" ? { url: webhook } : null,
    });
    closers.push(() => delivery.close());
    services.set(options.name, { delivery, confirm });
  }
  return services;
}

export async function receiveOutcome(
  config: GatewayConfig,
  told: { readonly body: string; readonly signature: string | undefined },
  ledger: Ledger,
  clock: Clock,
  tell: (runId: string) => Promise<void>,
): Promise<WebhookAnswer> {
  const { secret } = config.operations.webhook;
  if (secret === undefined)
    return { status: "refused", reason: "operations.webhook.secret is not configured" };
  // Of several accounts, any may be meant.
  const accounts = new Set(config.services.map((service) => service.account));
  const outcome = readOutcomeWebhook({
    ...told,
    secret,
    account: accounts.size === 1 ? config.services[0]?.account : undefined,
    nowSeconds: Math.floor(clock.now().epochMilliseconds / 1000),
  });
  if ("refused" in outcome) return { status: "refused", reason: outcome.refused };
  const runId = await ledger.recordOutcome(outcome);
  if (runId !== null) await tell(runId);
  return { status: runId === null ? "unknown" : "recorded" };
}
