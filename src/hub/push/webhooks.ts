/** Delivers outcomes to the `webhookUrl` of their push: signed, retried with growing waits, resumed after a restart. */
import { request } from "undici";
import type { Clock } from "../../support/clock.ts";
import { wordsOf } from "../../support/errors.ts";
import type { Logger } from "../../support/log.ts";
import { SIGNATURE_HEADER, signWebhook } from "../../wire/index.ts";
import type { HubOptions } from "../options.ts";
import type { DueWebhook, OperationStore } from "../store/store.ts";

export interface Webhooks {
  /** Looks for what is due. */
  wake(): void;
  close(): Promise<void>;
}

const IDLE_MS = 60_000;

export function startWebhooks(
  operations: OperationStore,
  options: HubOptions["webhook"],
  { log, clock }: { readonly log: Logger; readonly clock: Clock },
): Webhooks {
  const closing = new AbortController();
  let nap = new AbortController();
  let woken = false;
  const wake = () => {
    woken = true;
    nap.abort();
  };

  const rest = async (): Promise<void> => {
    const next = await operations.nextWebhookMs();
    const wait = next === null ? IDLE_MS : Math.max(1, next - clock.now().epochMilliseconds);
    nap = new AbortController();
    if (!woken && !closing.signal.aborted) await clock.sleep(Math.min(wait, IDLE_MS), nap.signal);
  };
  const run = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      woken = false;
      try {
        const due = await operations.dueWebhooks(clock.now().epochMilliseconds, options.concurrency);
        await Promise.all(due.map((webhook) => deliver(webhook)));
        if (due.length === 0) await rest();
      } catch (thrown) {
        log.error({ err: thrown }, "outcomes could not be delivered; this is tried again");
        await clock.sleep(options.backoff, closing.signal);
      }
    }
  };
  const deliver = async (webhook: DueWebhook): Promise<void> => {
    const failure = await post(webhook, options, clock, closing.signal);
    // A delivery that was cut short by closing counts as none: it is made again after the restart.
    if (failure !== null && closing.signal.aborted) return;
    if (failure === null) return operations.webhookDelivered(webhook.seq);
    const tried = webhook.attempts + 1;
    const wait = Math.min(options.backoff * 2 ** Math.min(webhook.attempts, 30), options.backoffMax);
    const nextMs = tried < options.attempts ? clock.now().epochMilliseconds + wait : null;
    const facts = { operationId: webhook.body.operationId, url: webhook.url, attempt: tried, failure };
    if (nextMs === null) log.error(facts, "the delivery of an outcome is given up");
    else log.warn(facts, "an outcome could not be delivered; it is tried again");
    await operations.webhookFailed(webhook.seq, failure, nextMs);
  };

  const running = run();
  return {
    wake,
    async close() {
      closing.abort();
      wake();
      await running;
    },
  };
}

/** Null when the receiver took it (2xx), otherwise why not. */
async function post(
  { url, body }: DueWebhook,
  options: HubOptions["webhook"],
  clock: Clock,
  closing: AbortSignal,
): Promise<string | null> {
  const text = JSON.stringify(body);
  const seconds = Math.floor(clock.now().epochMilliseconds / 1_000);
  const signature =
    options.secret === undefined ? {} : { [SIGNATURE_HEADER]: signWebhook(text, options.secret, seconds) };
  try {
    const response = await request(url, {
      method: "POST",
      headers: { "content-type": "application/json", ...signature },
      body: text,
      signal: AbortSignal.any([AbortSignal.timeout(options.timeout), closing]),
    });
    await response.body.dump();
    return response.statusCode >= 200 && response.statusCode < 300
      ? null
      : `answered by ${response.statusCode}`;
  } catch (thrown) {
    return wordsOf(thrown);
  }
}
