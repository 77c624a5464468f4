/** Joins the deliveries, one for each service, and the outcomes that the services report. */
import { isDeepStrictEqual } from "node:util";
import { type Clock, clockFault } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import type { Tracer } from "#core/trace-context.ts";
import type { GatewayConfig } from "./config.ts";
import type { Admission } from "./delivery/delivery.ts";
import { type OutcomeWebhook, type ReportedOutcome, readOutcomeWebhook } from "./delivery/outcomes.ts";
import type { PushObserver } from "./delivery/push.ts";
import { createDelivery } from "./delivery/service-delivery.ts";
import type { InnerGateway } from "./inner.ts";
import type { Ledger } from "./ledger/ledger.ts";
import type { Outcome } from "./model.ts";
import type { WebhookAnswer } from "./operations/application.ts";
import type { ClockFault } from "./operations/state-of-work.ts";
import { confirmRule, type ServiceEntry, webhookAddress } from "./runs/steps/steps.ts";
import { segmentChanges } from "./spool/segment-changes.ts";

export interface ServiceParts {
  readonly ledger: Ledger;
  readonly log: Logger;
  readonly clock: Clock;
  /** The URL that webhooks are sent to, for a public address with port 0. */
  readonly webhookUrl: string;
  readonly tracer: Tracer;
  readonly onPush: PushObserver;
  readonly admission?: Admission | undefined;
  /** Of a gateway inside a hub. */
  readonly inner?: Pick<InnerGateway, "mintOf"> | undefined;
  /** Called when a service refused credentials or rights. */
  readonly onRefused?: (() => void) | undefined;
}

/** The delivery of each service. A delivery whose options change is replaced by a new one; its running calls end. */
export class ServiceRegistry {
  readonly #parts: ServiceParts;
  readonly #entries = new Map<string, { readonly made: unknown; readonly entry: ServiceEntry }>();
  readonly #retiring = new Set<Promise<void>>();

  constructor(parts: ServiceParts) {
    this.#parts = parts;
  }

  get(name: string): ServiceEntry | undefined {
    return this.#entries.get(name)?.entry;
  }

  /** Services whose clock is far from ours, by their latest answers. */
  clockFaults(): readonly ClockFault[] {
    return [...this.#entries].flatMap(([service, { entry }]) => {
      const seen = entry.delivery.clockSeen;
      const fault = seen === null ? null : clockFault(service, seen);
      return fault === null ? [] : [{ service, ...fault }];
    });
  }

  /** Returns the names of the services that were added, removed or changed. */
  configure(config: GatewayConfig): readonly string[] {
    const changed: string[] = [];
    for (const name of this.#entries.keys()) {
      if (config.services.some((options) => options.name === name)) continue;
      changed.push(name);
      this.#retire(name);
    }
    for (const options of config.services) {
      const made = [options, config.push, config.operations.webhook.publicUrl, traceLink(config), config.log];
      if (isDeepStrictEqual(this.#entries.get(options.name)?.made, made)) continue;
      changed.push(options.name);
      const entry = this.#open(options, config);
      this.#retire(options.name);
      this.#entries.set(options.name, { made, entry });
    }
    return changed;
  }

  /** Discards the cached structure of accounts, which may have changed. */
  forgetStructure(): void {
    for (const { entry } of this.#entries.values()) entry.delivery.forgetStructure();
  }

  /** Starts no new call, and resolves when none is running. */
  async drain(): Promise<void> {
    await Promise.all([...this.#entries.values()].map(({ entry }) => entry.delivery.retire()));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#entries.values()].map(({ entry }) => entry.delivery.close()));
    await Promise.all(this.#retiring);
  }

  #retire(name: string): void {
    const delivery = this.#entries.get(name)?.entry.delivery;
    this.#entries.delete(name);
    if (delivery === undefined) return;
    const retiring = delivery
      .retire()
      .then(() => delivery.close())
      .finally(() => this.#retiring.delete(retiring));
    this.#retiring.add(retiring);
  }

  #open(options: GatewayConfig["services"][number], config: GatewayConfig): ServiceEntry {
    const { push, operations } = config;
    const { ledger, webhookUrl, onRefused, inner, ...own } = this.#parts;
    const webhook = webhookAddress(operations.webhook.publicUrl, webhookUrl);
    const delivery = createDelivery(options, push, {
      ...own,
      mint: inner?.mintOf(options.name),
      journal: ledger,
      segments: segmentChanges,
      traceLink: traceLink(config),
      webhook: webhook !== null && push.confirm.by !== "read-back" ? { url: webhook } : null,
      ...(onRefused === undefined ? {} : { onRefused }),
    });
    return { delivery, confirm: confirmRule(push.confirm, webhook !== null) };
  }
}

/** The page of the console that finds the row of a reading, where the address of the console is known. */
function traceLink({ operations }: GatewayConfig): string | undefined {
  const { publicUrl } = operations.console;
  return publicUrl === undefined ? undefined : `${publicUrl.replace(/\/+$/, "")}/console/readings`;
}

/**
 * A service may report only outcomes of its own operations: the signature has to be made with its own secret (or with
 * the common one, where it has none), and the account has to be its own. Any other report is refused, and changes
 * nothing.
 */
export async function receiveOutcome(
  config: GatewayConfig,
  received: { readonly body: string; readonly signature: string | undefined },
  ledger: Ledger,
  clock: Clock,
  onOutcome: (runId: string) => Promise<void>,
): Promise<WebhookAnswer> {
  const nowSeconds = Math.floor(clock.now().epochMilliseconds / 1000);
  const read = readSigned(config, { ...received, nowSeconds });
  if ("refused" in read) return { status: "refused", reason: read.refused };
  const { outcome, account, secret } = read;
  const run = await ledger.runOfOperation(outcome.operationId);
  if (run === null) return { status: "unknown" };
  const { service } = run.binding;
  const own = config.services.find(({ name }) => name === service);
  if (secret !== (own?.webhook.secret ?? config.operations.webhook.secret)) {
    const reason =
      `the operation ${outcome.operationId} is of service ${service}, and the outcome is signed with the secret ` +
      "of another";
    return { status: "refused", reason };
  }
  // A service without an account takes the user's default one, which only it knows.
  if (own?.account !== undefined && own.account !== account) {
    const subject = `the operation ${outcome.operationId} is of account ${own.account} (service ${service})`;
    return { status: "refused", reason: `${subject}, and the outcome of account ${account}` };
  }
  return { status: (await recordOutcome(outcome, ledger, onOutcome)) ? "recorded" : "unknown" };
}

/** False for an operation that is not in the ledger. */
export async function recordOutcome(
  outcome: Outcome,
  ledger: Pick<Ledger, "recordOutcome">,
  onOutcome: (runId: string) => Promise<void>,
): Promise<boolean> {
  const runId = await ledger.recordOutcome(outcome);
  if (runId !== null) await onOutcome(runId);
  return runId !== null;
}

/** Reads the outcome and the secret that signed it: nothing is parsed before the signature is verified. */
function readSigned(
  { services, operations }: GatewayConfig,
  received: Omit<OutcomeWebhook, "secret">,
): (ReportedOutcome & { readonly secret: string }) | { readonly refused: string } {
  const secrets = [...services.map(({ webhook }) => webhook.secret), operations.webhook.secret];
  let refused = "neither operations.webhook.secret nor webhook.secret of a service is configured";
  for (const secret of new Set(secrets)) {
    if (secret === undefined) continue;
    const read = readOutcomeWebhook({ ...received, secret });
    if (!("refused" in read)) return { ...read, secret };
    refused = read.refused;
  }
  return { refused };
}
