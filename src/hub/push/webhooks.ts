/**
 * Delivers outcomes to the `webhookUrl` of their push: signed, retried with growing waits, resumed after a restart.
 * Each account and each of its hosts has a share of the deliveries, so that unreachable receivers delay only their own
 * outcomes.
 */
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import { accountWebhookKey, type WebhookBody } from "#wire/index.ts";
import { growingWait } from "../deliveries/growing-wait.ts";
import type { LookUpAll } from "../deliveries/receivers.ts";
import { createSender } from "../deliveries/sender.ts";
import { createShares } from "../deliveries/shares.ts";
import type { HubOptions } from "../options.ts";
import type { DueWebhook, OperationStore } from "../store/operations.ts";
import { type OriginStore, originsOf } from "./origin.ts";

export interface Webhooks {
  /** Checks for due deliveries. */
  wake(): void;
  close(): Promise<void>;
}

export interface WebhookParts {
  readonly log: Logger;
  readonly clock: Clock;
  /** Resolver for names of receivers; the system's when absent. */
  readonly lookUpAll?: LookUpAll | undefined;
}

const IDLE_MS = 60_000;

export function startWebhooks(
  store: OriginStore & { readonly operations: OperationStore },
  options: HubOptions["webhook"],
  { log, clock, lookUpAll }: WebhookParts,
): Webhooks {
  const { operations } = store;
  const closing = new AbortController();
  const sender = createSender(options, { clock, lookUpAll });
  let nap = new AbortController();
  let woken = false;
  const wake = () => {
    woken = true;
    nap.abort();
  };
  const shares = createShares<DueWebhook>(options.concurrency, wake);

  const busy = () => {
    const { items, hosts, accounts } = shares.busy();
    return { seqs: items.map(({ seq }) => seq), hosts, accounts };
  };
  /** `askedMs`: the time of the query that found no more due deliveries. */
  const rest = async (askedMs: number): Promise<void> => {
    const next = shares.left === 0 ? null : await operations.nextWebhookMs(askedMs);
    const wait = next === null ? IDLE_MS : Math.max(1, next - clock.now().epochMilliseconds);
    nap = new AbortController();
    if (!woken && !closing.signal.aborted) await clock.sleep(Math.min(wait, IDLE_MS), nap.signal);
  };
  const run = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      woken = false;
      try {
        const nowMs = clock.now().epochMilliseconds;
        // Started one at a time, since each start changes the shares.
        const due = shares.left === 0 ? [] : await operations.dueWebhooks(nowMs, 1, busy());
        for (const webhook of due) shares.begin(webhook, () => deliver(webhook));
        if (due.length === 0) await rest(nowMs);
      } catch (thrown) {
        log.error({ err: thrown }, "outcomes could not be delivered; this is tried again");
        await clock.sleep(options.backoff, closing.signal);
      }
    }
    await shares.ended();
  };
  const deliver = async (webhook: DueWebhook): Promise<void> => {
    try {
      const { body, accountId, userId } = webhook;
      const [file = null] = await originsOf(store, [{ accountId, userId, operationId: body.operationId }]);
      await note(webhook, await post(webhook, file === null ? body : { ...body, file }));
    } catch (thrown) {
      log.error({ err: thrown }, "the result of the delivery of an outcome could not be recorded; it is made again");
      await clock.sleep(options.backoff, closing.signal);
    }
  };
  const note = async (webhook: DueWebhook, failure: string | null): Promise<void> => {
    // A delivery that the shutdown interrupts does not count: it is made again after the restart.
    if (failure !== null && closing.signal.aborted) return;
    if (failure === null) return operations.webhookDelivered(webhook.seq);
    const tried = webhook.attempts + 1;
    const wait = growingWait(options, webhook.attempts);
    const nextMs = tried < options.attempts ? clock.now().epochMilliseconds + wait : null;
    const facts = { operationId: webhook.body.operationId, url: webhook.url, attempt: tried, failure };
    if (nextMs === null) log.error(facts, "the delivery of an outcome has failed for good");
    else log.warn(facts, "an outcome could not be delivered; it is tried again");
    await operations.webhookFailed(webhook.seq, NOT_ACCEPTED, nextMs);
  };
  /** Null when the receiver accepted it (2xx), otherwise the reason. */
  const post = async ({ url, accountId }: DueWebhook, body: WebhookBody): Promise<string | null> => {
    const secret = options.secret && accountWebhookKey(options.secret, accountId);
    const answer = await sender.send({ url, text: JSON.stringify(body), secret });
    return answer.kind === "accepted" ? null : answer.words;
  };

  const running = run();
  return {
    wake,
    async close() {
      closing.abort();
      wake();
      await sender.close();
      await running;
    },
  };
}

/**
 * The only reason that a caller gets: the kind of failure would reveal details of the hub's network. The hub's log has
 * more.
 */
const NOT_ACCEPTED = "the receiver did not accept it";
