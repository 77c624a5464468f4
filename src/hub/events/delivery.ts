/**
 * Delivers events to the webhooks of subscriptions: in the order of each subscription, at least once, again with
 * growing waits. A receiver that fails for too long has its subscription paused, which loses nothing.
 */
import { randomUUID } from "node:crypto";
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import type { AccountEvent, EventDelivery } from "#wire/index.ts";
import { growingWait } from "../deliveries/growing-wait.ts";
import type { LookUpAll } from "../deliveries/receivers.ts";
import { type Answer, createSender, type Sender } from "../deliveries/sender.ts";
import { createShares } from "../deliveries/shares.ts";
import type { HubOptions } from "../options.ts";
import type { Hold } from "../store/events/deliveries.ts";
import type { SubscriptionRecord } from "../store/events/subscriptions.ts";
import type { HubStore } from "../store/store.ts";
import { isoOfMs } from "../time.ts";

export interface EventDeliveries {
  /** Checks for events to deliver. */
  wake(): void;
  /** Sends an event that is none of the account, once. */
  test(subscription: SubscriptionRecord): Promise<Answer>;
  close(): Promise<void>;
}

interface Parts {
  readonly log: Logger;
  readonly clock: Clock;
  readonly lookUpAll?: LookUpAll | undefined;
}

/** Events are added by every thread and every hub, so that nothing announces them. */
const POLL_MS = 1_000;
/** A subscription that a hub took before it ended is taken again so long after the end of its attempt. */
const LEASE_MS = 30_000;
const GONE = 410;

type DeliveryStore = Pick<HubStore, "events" | "eventDeliveries">;
type DeliveryOptions = Pick<HubOptions, "webhook" | "events" | "store">;

export function startEventDelivery(store: DeliveryStore, options: DeliveryOptions, parts: Parts): EventDeliveries {
  const { eventDeliveries } = store;
  const { webhook } = options;
  const { log, clock } = parts;
  const closing = new AbortController();
  const sender = createSender(webhook, parts);
  const by = randomUUID();
  const deliver = delivererOf({ store, options, log, clock, sender, by, closing: closing.signal });
  const nowMs = () => clock.now().epochMilliseconds;
  let nap = new AbortController();
  let woken = false;
  const wake = () => {
    woken = true;
    nap.abort();
  };
  const shares = createShares<SubscriptionRecord>(webhook.concurrency, wake);

  const run = async (): Promise<void> => {
    // No other hub uses this store: what one before has taken was not finished.
    if (options.store.kind === "sqlite") await logged(() => eventDeliveries.release(null));
    while (!closing.signal.aborted) {
      woken = false;
      try {
        const untilMs = nowMs() + webhook.timeout + LEASE_MS;
        const due = shares.left === 0 ? null : await eventDeliveries.take(by, nowMs(), untilMs, shares.busy());
        if (due !== null) shares.begin(due, () => logged(() => deliver(due)));
        else await rest();
      } catch (thrown) {
        log.error({ err: thrown }, "events could not be delivered; this is tried again");
        await clock.sleep(webhook.backoff, closing.signal);
      }
    }
    await shares.ended();
    await logged(() => eventDeliveries.release(by));
  };
  const rest = async (): Promise<void> => {
    nap = new AbortController();
    if (!woken && !closing.signal.aborted) await clock.sleep(POLL_MS, nap.signal);
  };
  /** A subscription whose delivery could not be recorded is taken again after its lease. */
  const logged = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (thrown) {
      log.error({ err: thrown }, "the delivery of events could not be recorded; it is made again");
      await clock.sleep(webhook.backoff, closing.signal);
    }
  };

  const running = run();
  return {
    wake,
    test: (subscription) => send(sender, subscription, { test: true, events: [testEvent(subscription, nowMs())] }),
    async close() {
      closing.abort();
      wake();
      await sender.close();
      await running;
    },
  };
}

interface DelivererParts {
  readonly store: DeliveryStore;
  readonly options: DeliveryOptions;
  readonly log: Logger;
  readonly clock: Clock;
  readonly sender: Sender;
  /** This hub, in its holds. */
  readonly by: string;
  readonly closing: AbortSignal;
}

/** Delivers the next events of a subscription that this hub has taken. */
function delivererOf({ store, options, log, clock, sender, by, closing }: DelivererParts) {
  const { events, eventDeliveries } = store;
  const note = async (due: SubscriptionRecord, hold: Hold, answer: Exclude<Answer, { kind: "accepted" }>) => {
    const { attempts, failingMs, accountId, host } = due;
    const nowMs = clock.now().epochMilliseconds;
    const tried = attempts + 1;
    const isGone = answer.kind === "refused" && answer.status === GONE;
    const isTooLong = tried >= options.webhook.attempts && nowMs - (failingMs ?? nowMs) >= options.events.pauseAfter;
    const isPaused = isGone || isTooLong;
    const facts = { subscription: due.id, accountId, host, attempt: tried, failure: answer.words };
    if (isPaused) log.error(facts, "a subscription is paused, since its receiver takes no events; a person resumes it");
    else log.warn(facts, "events could not be delivered; they are sent again");
    const nextMs = nowMs + growingWait(options.webhook, attempts);
    await eventDeliveries.failed(hold, { failure: answerWords(answer), nowMs, nextMs, isPaused });
  };
  return async (due: SubscriptionRecord): Promise<void> => {
    const hold = { id: due.id, by };
    const { types, filter, accountId, position, batch } = due;
    const page = await events.after(accountId, position, { ...filter, types }, batch);
    if (page.kind === "gone") {
      const lost = { subscription: due.id, accountId, from: position + 1, to: page.oldest - 1 };
      log.error(lost, "events were no longer kept when a subscription was to get them: keep.undeliveredEvents");
      return eventDeliveries.lost(hold, page.oldest - 1);
    }
    if (page.kind === "ahead") return eventDeliveries.passed(hold, page.last);
    if (page.events.length === 0) return eventDeliveries.passed(hold, page.next);
    const answer = await send(sender, due, { events: [...page.events] });
    if (answer.kind === "accepted") return eventDeliveries.delivered(hold, page.next, clock.now().epochMilliseconds);
    // A delivery that the shutdown interrupts does not count.
    if (!closing.aborted) await note(due, hold, answer);
  };
}

function send(
  sender: Sender,
  { id, name, accountId, url, secret }: SubscriptionRecord,
  content: Pick<EventDelivery, "events" | "test">,
): Promise<Answer> {
  const body: EventDelivery = { account: String(accountId), subscription: { id, name }, ...content };
  return sender.send({ url: url ?? "", text: JSON.stringify(body), secret: secret ?? undefined });
}

/** The only words that users read: more would reveal the network of the hub, whose log has it. */
export function answerWords(answer: Answer): string {
  if (answer.kind === "accepted") return `the receiver accepted it (${answer.status})`;
  if (answer.kind === "refused") return `the receiver answered ${answer.status}; it accepts by 2xx`;
  return "the receiver did not answer";
}

function testEvent({ id, name }: SubscriptionRecord, atMs: number): EventDelivery["events"][number] {
  const nowhere = { siteId: null, sourceId: null, variableId: null } satisfies Partial<AccountEvent>;
  return {
    ...{ id: 0, date: isoOfMs(atMs), type: "subscription.test" },
    subject: { kind: "subscription", id: String(id), name },
    ...{ state: null, severity: null, isFailure: false, ...nowhere, facts: {} },
  };
}
