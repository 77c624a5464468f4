/**
 * Sends the mails that wait in the store: one at a time by turns of their accounts, again with growing waits, at least
 * once. It stands apart from what writes mails, as each job that takes turns does.
 */
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import { growingWait } from "../deliveries/growing-wait.ts";
import type { DueMail, MailStore } from "../store/mail/mails.ts";
import type { MailCarrier } from "./carrier.ts";
import type { MailOptions } from "./options.ts";

export interface MailDelivery {
  /** Checks for due mails. */
  wake(): void;
  close(): Promise<void>;
}

interface DeliveryParts {
  readonly mails: MailStore;
  readonly carrier: MailCarrier;
  readonly options: Pick<MailOptions, "backoff" | "backoffMax">;
  readonly log: Logger;
  readonly clock: Clock;
}

/** For one mail, whatever the server does. */
const SEND_MS = 45_000;
/** Refusals of one account's mails; then these have a rest, and those of the others are tried. */
const REFUSED_MAX = 10;
/** A mail that a hub took and did not finish, since it was killed, is taken again after this time. */
const LEASE_MS = 60_000;
const IDLE_MS = 60_000;
const PURGE_MS = 3_600_000;
/** Records of sent mails, without their content, show what became of them. */
const KEEP_MS = 30 * 86_400_000;

export function startDelivery({ mails, carrier, options, log, clock }: DeliveryParts): MailDelivery {
  const closing = new AbortController();
  const nap = createNap(clock, closing.signal);
  /** Failures since the server last took a mail, and the last account. */
  const since = { failures: 0, account: 0 };
  const nowMs = () => clock.now().epochMilliseconds;
  const purge = purgeOf(mails, clock);
  const waitAfter = (attempts: number) => growingWait(options, attempts);
  const refusals = refusalsOf(mails, (times) => nowMs() + waitAfter(times));

  const run = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      nap.begin();
      try {
        await purge();
        const mail = await mails.take(since.account, nowMs(), nowMs() + LEASE_MS);
        since.account = mail?.accountId ?? 0;
        if (mail === null) await rest();
        else await deliver(mail);
      } catch (thrown) {
        log.error({ err: thrown }, "mails could not be sent, since the store does not answer; this is tried again");
        await clock.sleep(options.backoff, closing.signal);
      }
    }
  };
  const rest = async (): Promise<void> => {
    const next = await mails.nextMs();
    await nap.sleep(next === null ? IDLE_MS : Math.min(Math.max(1, next - nowMs()), IDLE_MS));
  };
  const deliver = async (mail: DueMail): Promise<void> => {
    const facts = { mail: mail.id, kind: mail.kind };
    if (mail.expiresMs <= nowMs()) {
      log.error(facts, "a mail was given up: what it holds has expired before a server took it");
      return mails.givenUp(mail.id, "it could not be sent in time", nowMs());
    }
    try {
      const file = await carrier.carry(mail, AbortSignal.any([AbortSignal.timeout(SEND_MS), closing.signal]));
      await mails.sent(mail.id, nowMs());
      since.failures = 0;
      refusals.end(mail.accountId ?? 0);
      if (file === null) log.info(facts, "a mail was sent");
      else log.warn({ ...facts, file }, "a mail was written to the outbox folder, since `mail.smtp` is not set");
    } catch (thrown) {
      await note(mail, thrown);
    }
  };
  const note = async (mail: DueMail, thrown: unknown): Promise<void> => {
    if (closing.signal.aborted) return mails.putBack(mail.id, nowMs());
    const { words, isFinal, isOfOneMail } = carrier.failureOf(thrown, mail);
    const facts = { mail: mail.id, kind: mail.kind, attempt: mail.attempts + 1, failure: words };
    if (isFinal) {
      log.error(facts, "a mail was given up: the server refuses its recipient");
      return mails.givenUp(mail.id, words, nowMs());
    }
    log.warn(facts, "a mail could not be sent; it is tried again");
    await mails.failed(mail.id, words, nowMs() + waitAfter(mail.attempts));
    if (isOfOneMail) return await refusals.count(mail.accountId ?? 0);
    // The other mails would fail alike.
    await clock.sleep(waitAfter(since.failures), closing.signal);
    since.failures += 1;
  };

  const running = run();
  return {
    wake: nap.end,
    async close() {
      closing.abort();
      nap.end();
      await running;
    },
  };
}

/** Mails of each account that the server refused, each for itself, since it last took one: many have its mails rest. */
function refusalsOf(mails: MailStore, untilMs: (times: number) => number) {
  const refused = new Map<number, number>();
  return {
    end: (account: number) => refused.delete(account),
    async count(account: number): Promise<void> {
      const count = (refused.get(account) ?? 0) + 1;
      refused.set(account, count);
      if (count % REFUSED_MAX === 0) await mails.postpone(account, untilMs(count / REFUSED_MAX - 1));
    },
  };
}

/** Called often; works once an hour. */
function purgeOf(mails: MailStore, clock: Clock): () => Promise<void> {
  let nextMs = Number.NEGATIVE_INFINITY;
  return async () => {
    if (clock.monotonicMs() < nextMs) return;
    await mails.purge(clock.now().epochMilliseconds - KEEP_MS);
    nextMs = clock.monotonicMs() + PURGE_MS;
  };
}

/** A sleep that ends early; also one that begins after it was ended, since the last `begin`. */
function createNap(clock: Clock, closing: AbortSignal) {
  let ending = new AbortController();
  return {
    begin() {
      ending = new AbortController();
    },
    end: () => ending.abort(),
    sleep: (ms: number) => clock.sleep(ms, AbortSignal.any([ending.signal, closing])),
  };
}
