/**
 * Delivers outcomes to the `webhookUrl` of their push: signed, retried with growing waits, resumed after a restart.
 * Each account and each of its hosts has a share of the deliveries, so that unreachable receivers delay only their own
 * outcomes.
 */
import { request } from "undici";
import type { Clock } from "../../support/clock.ts";
import { wordsOf } from "../../support/errors.ts";
import type { Logger } from "../../support/log.ts";
import { SIGNATURE_HEADER, signWebhook, type WebhookBody } from "../../wire/index.ts";
import { growingWait } from "../growing-wait.ts";
import type { HubOptions } from "../options.ts";
import type { DueWebhook, OperationStore } from "../store/store.ts";
import { type OriginStore, originsOf } from "./origin.ts";
import { createReceivers, type LookUpAll, reachOf } from "./receivers.ts";

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
  const receivers = createReceivers(lookUpAll);
  let nap = new AbortController();
  let woken = false;
  const wake = () => {
    woken = true;
    nap.abort();
  };
  const shares = createShares(options.concurrency, wake);

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
        const due = shares.left === 0 ? [] : await operations.dueWebhooks(nowMs, 1, shares.busy());
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
      await note(webhook, await post(webhook.url, file === null ? body : { ...body, file }));
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
  const post = async (url: string, body: WebhookBody): Promise<string | null> => {
    const target = URL.parse(url);
    const reach = target === null ? "refused" : reachOf(target, options.hosts);
    if (reach === "refused") return "the host is neither public nor in webhook.hosts";
    const text = JSON.stringify(body);
    const seconds = Math.floor(clock.now().epochMilliseconds / 1_000);
    const signature =
      options.secret === undefined ? {} : { [SIGNATURE_HEADER]: signWebhook(text, options.secret, seconds) };
    try {
      const response = await request(url, {
        dispatcher: receivers.agentFor(reach),
        method: "POST",
        headers: { "content-type": "application/json", ...signature },
        body: text,
        signal: AbortSignal.any([AbortSignal.timeout(options.timeout), closing.signal]),
      });
      await response.body.dump();
      return response.statusCode >= 200 && response.statusCode < 300 ? null : `answered by ${response.statusCode}`;
    } catch (thrown) {
      return wordsOf(thrown);
    }
  };

  const running = run();
  return {
    wake,
    async close() {
      closing.abort();
      wake();
      await running;
      await receivers.close();
    },
  };
}

/**
 * The only reason that a caller gets: the kind of failure would reveal details of the hub's network. The hub's log has
 * more.
 */
const NOT_ACCEPTED = "the receiver did not accept it";

/** Running deliveries, and the shares that accounts and hosts have used. */
function createShares(concurrency: number, onEnd: () => void) {
  const perHost = Math.max(1, Math.floor(concurrency / 4));
  const perAccount = Math.max(1, Math.floor((concurrency * 3) / 4));
  const running = new Map<DueWebhook, Promise<void>>();
  const count = (wanted: (webhook: DueWebhook) => boolean) => [...running.keys()].filter(wanted).length;
  const ofHost = ({ accountId, host }: DueWebhook) =>
    count((other) => other.accountId === accountId && other.host === host);
  const ofAccount = ({ accountId }: DueWebhook) => count((other) => other.accountId === accountId);
  return {
    get left(): number {
      return concurrency - running.size;
    },
    busy() {
      const webhooks = [...running.keys()];
      return {
        seqs: webhooks.map(({ seq }) => seq),
        hosts: webhooks.filter((webhook) => ofHost(webhook) >= perHost),
        accounts: webhooks.filter((webhook) => ofAccount(webhook) >= perAccount).map(({ accountId }) => accountId),
      };
    },
    begin(webhook: DueWebhook, deliver: () => Promise<void>): void {
      const delivery = deliver().finally(() => {
        running.delete(webhook);
        onEnd();
      });
      running.set(webhook, delivery);
    },
    ended: async () => void (await Promise.all(running.values())),
  };
}
