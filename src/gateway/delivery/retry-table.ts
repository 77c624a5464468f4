/**
 * The meaning of each response to a push and its consequence, as data (specification, *Errors*). The first
 * rule wins whose range holds the status and whose words, if any, are in the message. No response at all
 * (connection refused or reset, timeout) is `transient`, and its outcome is unknown: the same bytes are sent
 * again, never split (`delivery.ts`).
 */
import type { PushAnswer } from "#wire/client/index.ts";

export type Verdict = "accepted" | "transient" | "token" | "right" | "address" | "halve" | "conflict" | "bisect";

export interface RetryRule {
  /** First and last status. */
  readonly status: readonly [number, number];
  /** Text that the service's message must also contain; any message when absent. */
  readonly words?: RegExp;
  readonly verdict: Verdict;
  readonly meaning: string;
}

/** The consequence of each verdict. */
export const CONSEQUENCES: Readonly<Record<Verdict, string>> = {
  accepted: "The batch is accepted: a promise to store, not yet stored.",
  transient:
    "The same bytes are sent again under the same operationId, after Retry-After or with growing " +
    "pauses and jitter; a row of failures opens the breaker of the service.",
  token:
    "The token is renewed once and the call replayed; after a second 401 the service waits for a " +
    "person (credentials, scope).",
  right: "The service waits for a person who grants the right; the batch stays as it is.",
  address: "This is not the push interface: the service waits for a person who corrects the address.",
  halve: "The batch is split in two by its size; a single reading that is still too large is rejected.",
  conflict:
    "The batch is rejected whole: the service has its operationId with other bytes, so that it holds " +
    "something else than was sent now.",
  bisect: "The batch is split until the refused readings stand alone; the others are delivered.",
};

export const RETRY_TABLE: readonly RetryRule[] = [
  { status: [200, 299], verdict: "accepted", meaning: "accepted" },
  { status: [300, 399], verdict: "address", meaning: "a redirect; none is followed" },
  {
    status: [401, 401],
    verdict: "token",
    meaning: "token expired, scope push-data missing, or wrong credentials",
  },
  { status: [402, 403], verdict: "right", meaning: "the user lacks the right Data Pusher" },
  { status: [404, 407], verdict: "address", meaning: "no such address or method, or a proxy in between" },
  {
    status: [408, 409],
    verdict: "transient",
    meaning: "the request took too long, or its first copy is still being processed",
  },
  { status: [410, 411], verdict: "address", meaning: "no push interface at this address" },
  { status: [413, 413], verdict: "halve", meaning: "the batch is too large" },
  { status: [414, 415], verdict: "address", meaning: "not what a push interface answers" },
  { status: [421, 421], verdict: "address", meaning: "another server answers" },
  {
    status: [422, 422],
    words: /idempotency.?key/i,
    verdict: "conflict",
    meaning: "this operationId came before with other bytes",
  },
  { status: [425, 425], verdict: "transient", meaning: "too early" },
  { status: [426, 426], verdict: "address", meaning: "another protocol is asked for" },
  { status: [429, 429], verdict: "transient", meaning: "too many requests" },
  { status: [400, 499], verdict: "bisect", meaning: "the content is refused" },
  { status: [500, 599], verdict: "transient", meaning: "the service fails" },
];

export function judge(answer: Pick<PushAnswer, "status" | "webPage" | "words">): Verdict {
  const rule = RETRY_TABLE.find(
    ({ status: [first, last], words }) =>
      answer.status >= first && answer.status <= last && words?.test(answer.words) !== false,
  );
  // A login page or a proxy's notice also comes with 200; counting it as accepted would lose the batch.
  if (rule?.verdict === "accepted" && answer.webPage) return "address";
  return rule?.verdict ?? "address";
}

export interface Backoff {
  /** Milliseconds. */
  readonly initial: number;
  readonly max: number;
}

/** Pause after so many consecutive failures: doubled each time up to the longest; half of it is random. */
export function pauseMs(backoff: Backoff, failures: number, random: number = Math.random()): number {
  const full = Math.min(backoff.max, backoff.initial * 2 ** Math.min(30, Math.max(0, failures - 1)));
  return Math.round(full / 2 + (full / 2) * random);
}
