/** Joins the deliveries, one for each service, and what the services tell of them. */
import { isDeepStrictEqual } from "node:util";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Admission } from "../delivery/delivery.ts";
import { readOutcomeWebhook } from "../delivery/outcomes.ts";
import type { PushObserver } from "../delivery/push.ts";
import { createDelivery } from "../delivery/service-delivery.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { WebhookAnswer } from "../operations/server.ts";
import { confirmRule, webhookAddress } from "../runs/confirm-rule.ts";
import type { ServicePost } from "../runs/steps.ts";
import type { Clock } from "../support/clock.ts";
import type { Logger } from "../support/log.ts";
import type { Tracer } from "../support/tracing.ts";

export interface ServiceParts {
  readonly ledger: Ledger;
  readonly log: Logger;
  readonly clock: Clock;
  /** Where the operations listen, for webhooks without a public address. */
  readonly operationsUrl: string;
  readonly tracer: Tracer;
  readonly onPush: PushObserver;
  readonly admission?: Admission | undefined;
  /** A service refused credentials or rights. */
  readonly onRefused?: (() => void) | undefined;
}

/** The delivery of each service. One whose options change is replaced by another; the calls that it has under way end. */
export class ServicePosts {
  readonly #parts: ServiceParts;
  readonly #posts = new Map<string, { readonly made: unknown; readonly post: ServicePost }>();
  readonly #retiring = new Set<Promise<void>>();

  constructor(parts: ServiceParts) {
    this.#parts = parts;
  }

  get(name: string): ServicePost | undefined {
    return this.#posts.get(name)?.post;
  }

  /** Answers the names of the services that are new, gone or others now. */
  configure(config: GatewayConfig): readonly string[] {
    const changed: string[] = [];
    for (const name of this.#posts.keys()) {
      if (config.services.some((options) => options.name === name)) continue;
      changed.push(name);
      this.#retire(name);
    }
    for (const options of config.services) {
      const made = [options, config.push, config.operations.webhook.publicUrl, config.log];
      if (isDeepStrictEqual(this.#posts.get(options.name)?.made, made)) continue;
      changed.push(options.name);
      const post = this.#open(options, config);
      this.#retire(options.name);
      this.#posts.set(options.name, { made, post });
    }
    return changed;
  }

  /** What is remembered of the structure of accounts may not be true any more. */
  forgetStructure(): void {
    for (const { post } of this.#posts.values()) post.delivery.forgetStructure();
  }

  /** Begins no call any more, and resolves when none is under way. */
  async rest(): Promise<void> {
    await Promise.all([...this.#posts.values()].map(({ post }) => post.delivery.retire()));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#posts.values()].map(({ post }) => post.delivery.close()));
    await Promise.all(this.#retiring);
  }

  #retire(name: string): void {
    const delivery = this.#posts.get(name)?.post.delivery;
    this.#posts.delete(name);
    if (delivery === undefined) return;
    const retiring = delivery
      .retire()
      .then(() => delivery.close())
      .finally(() => this.#retiring.delete(retiring));
    this.#retiring.add(retiring);
  }

  #open(options: GatewayConfig["services"][number], { push, operations }: GatewayConfig): ServicePost {
    const { ledger, operationsUrl, onRefused, ...own } = this.#parts;
    const webhook = webhookAddress(operations.webhook.publicUrl, operationsUrl);
    const delivery = createDelivery(options, push, {
      ...own,
      journal: ledger,
      webhook: webhook !== null && push.confirm.by !== "read-back" ? { url: webhook } : null,
      ...(onRefused === undefined ? {} : { onRefused }),
    });
    return { delivery, confirm: confirmRule(push.confirm, webhook !== null) };
  }
}

/**
 * All services sign with one secret, so what a service says is only believed of the operations of its own account; what another one says is
 * refused, and changes nothing.
 */
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
  const nowSeconds = Math.floor(clock.now().epochMilliseconds / 1000);
  const read = readOutcomeWebhook({ ...told, secret, nowSeconds });
  if ("refused" in read) return { status: "refused", reason: read.refused };
  const { outcome, account } = read;
  const run = await ledger.runOfOperation(outcome.operationId);
  if (run === null) return { status: "unknown" };
  // A service without an account takes the user's default one, which only it knows.
  const own = config.services.find(({ name }) => name === run.binding.service)?.account;
  if (own !== undefined && own !== account) {
    const whose = `the operation ${outcome.operationId} is of account ${own} (service ${run.binding.service})`;
    return { status: "refused", reason: `${whose}, and the outcome of account ${account}` };
  }
  const runId = await ledger.recordOutcome(outcome);
  if (runId !== null) await tell(runId);
  return { status: runId === null ? "unknown" : "recorded" };
}
