/**
 * Notifies the receivers of everything that needs attention. The current concerns are compared with those that each
 * receiver knows: so a restart repeats nothing and loses nothing, a concern that passed before its notification is
 * not sent, and a receiver that was unreachable receives every concern that still holds.
 */
import { createHash } from "node:crypto";
import { type Clock, isoInstant } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { Attention, Concern } from "./attention.ts";
import type { Known, NotificationState } from "./notification-state.ts";
import type { Notification } from "./notification-text.ts";
import type { NotificationOptions } from "./options.ts";
import type { Receiver } from "./receivers.ts";

export interface NotifierParts {
  readonly options: Pick<NotificationOptions, "group" | "every" | "unreachableAfter" | "attempts">;
  readonly receivers: readonly Receiver[];
  readonly state: NotificationState;
  readonly gateway: string;
  find(): Promise<Attention>;
  /** Called for each attempt that ended. */
  count?(receiver: string, accepted: boolean): void;
  readonly clock: Clock;
  readonly log: Logger;
}

const CHECK_EVERY_MS = 15_000;
/** Longest wait for receivers when the gateway stops. */
const FLUSH_MS = 5_000;
const RETRY_MS = { first: 60_000, last: 3_600_000 } as const;
/** Kinds whose end is reported, too. Files at rest are resolved by a person, who knows it. */
const REPORTED_WHEN_RESOLVED: ReadonlySet<string> = new Set([
  ...["finish", "occupied", "late", "lane", "drop", "service", "paused", "spool", "configuration"],
]);

export class Notifier {
  readonly #parts: NotifierParts;
  readonly #stop = new AbortController();
  readonly #sending = new Map<string, Promise<void>>();
  /** Receivers that refuse messages, with the reason. */
  readonly #failing = new Map<string, string>();
  #loop: Promise<void> | null = null;

  constructor(parts: NotifierParts) {
    this.#parts = parts;
  }

  /** Does nothing when there are no receivers. */
  start(): void {
    if (this.#parts.receivers.length > 0) this.#loop ??= this.#run();
  }

  /**
   * Sends due concerns now, without waiting for more; a receiver that does not respond is notified after the next
   * start.
   */
  async stop(): Promise<void> {
    this.#stop.abort();
    const loop = this.#loop;
    this.#loop = null;
    if (loop === null) return;
    await loop;
    await this.#checkOrLog(true);
    const done = new AbortController();
    const late = this.#parts.clock.sleep(FLUSH_MS, done.signal);
    await Promise.race([this.settled(), late]);
    done.abort();
    await this.#parts.state.save();
  }

  /** Receivers that did not accept the last message; for health. */
  failing(): ReadonlyMap<string, string> {
    return this.#failing;
  }

  /** Resolves when no message is being sent. */
  async settled(): Promise<void> {
    await Promise.all(this.#sending.values());
  }

  async #run(): Promise<void> {
    do await this.#checkOrLog(false);
    while (await this.#parts.clock.sleep(CHECK_EVERY_MS, this.#stop.signal));
  }

  async #checkOrLog(isLast: boolean): Promise<void> {
    await this.look(isLast).catch((thrown) =>
      this.#parts.log.warn({ reason: wordsOf(thrown) }, "the check for things that need attention failed"),
    );
  }

  /** `isLast`: no concern is delayed to be grouped with others. */
  async look(isLast = false): Promise<void> {
    const { find, receivers, state, clock } = this.#parts;
    const found = await find();
    const now = clock.now();
    const nowMs = now.epochMilliseconds;
    this.#compare(found, isoInstant(now));
    await state.save();
    for (const receiver of receivers) {
      if (this.#sending.has(receiver.name) || !this.#mayNotify(receiver, nowMs)) continue;
      const due = this.#dueFor(receiver, nowMs, isLast);
      const { resolved } = state.receiver(receiver.name);
      if (due.length === 0 && resolved.length === 0) continue;
      const sending = this.#send(receiver, due, [...resolved]).finally(() => this.#sending.delete(receiver.name));
      this.#sending.set(receiver.name, sending);
    }
  }

  #compare({ concerns, unknown, unknownKinds }: Attention, now: string): void {
    const { known, receivers } = this.#parts.state;
    const keys = new Set(concerns.map(({ key }) => key));
    for (const { key, kind, text, facts } of concerns) {
      const before = known.get(key);
      known.set(key, { key, kind, text, facts, since: before?.since ?? now, told: before?.told ?? [] });
    }
    for (const [key, { kind, text, told }] of known) {
      if (keys.has(key) || unknown.has(key) || unknownKinds?.has(kind) === true) continue;
      known.delete(key);
      if (!REPORTED_WHEN_RESOLVED.has(kind)) continue;
      for (const name of told) receivers.get(name)?.resolved.push({ key, kind, text });
    }
    // The concern returned before its end was reported.
    for (const one of receivers.values()) one.resolved = one.resolved.filter(({ key }) => !keys.has(key));
  }

  #mayNotify({ name }: Receiver, nowMs: number): boolean {
    const { sentAt, nextAt } = this.#parts.state.receiver(name);
    const sentMs = sentAt === null ? Number.NEGATIVE_INFINITY : Date.parse(sentAt);
    // A clock that was set back must not silence a receiver for long.
    const isFresh = sentMs <= nowMs && nowMs - sentMs < this.#parts.options.every;
    const waitMs = nextAt === null ? 0 : Date.parse(nextAt) - nowMs;
    return !isFresh && (waitMs <= 0 || waitMs > RETRY_MS.last);
  }

  /** Returns nothing while further concerns may join the first one within the time of a group. */
  #dueFor({ name, about }: Receiver, nowMs: number, isLast: boolean): readonly Known[] {
    const { group, unreachableAfter } = this.#parts.options;
    const dueMs = ({ kind, since }: Known) =>
      Date.parse(since) + (kind === "drop" || kind === "service" ? unreachableAfter : 0);
    const due = [...this.#parts.state.known.values()].filter(
      (one) => about.has(one.kind) && !one.told.includes(name) && dueMs(one) <= nowMs,
    );
    const first = Math.min(...due.map(dueMs));
    return isLast || nowMs >= first + group ? due : [];
  }

  async #send(receiver: Receiver, due: readonly Known[], resolved: readonly Pick<Concern, "key" | "kind" | "text">[]) {
    const { state, clock, log, gateway, count } = this.#parts;
    const keys = [...due, ...resolved].map(({ key }) => key);
    const notification: Notification = {
      kind: "attention",
      id: createHash("sha256")
        .update(JSON.stringify([gateway, keys]))
        .digest("hex")
        .slice(0, 16),
      at: isoInstant(clock.now()),
      gateway,
      concerns: due,
      resolved,
    };
    const own = state.receiver(receiver.name);
    try {
      const { words, isPartial } = await receiver.send(notification);
      log[isPartial ? "warn" : "info"](
        { receiver: receiver.name, concerns: due.length, answer: words },
        "notification sent",
      );
      if (this.#failing.delete(receiver.name))
        log.info({ receiver: receiver.name }, "the receiver accepts notifications again");
      this.#notifiedOf(receiver, keys);
      own.sentAt = isoInstant(clock.now());
      own.failures = 0;
      own.nextAt = null;
      count?.(receiver.name, true);
    } catch (thrown) {
      count?.(receiver.name, false);
      this.#failed(receiver, keys, wordsOf(thrown));
    }
    await state.save();
  }

  #notifiedOf({ name }: Receiver, keys: readonly string[]): void {
    const { state } = this.#parts;
    for (const key of keys) {
      const one = state.known.get(key);
      if (one !== undefined) state.known.set(key, { ...one, told: [...one.told, name] });
    }
    const own = state.receiver(name);
    own.resolved = own.resolved.filter(({ key }) => !keys.includes(key));
  }

  #failed(receiver: Receiver, keys: readonly string[], words: string): void {
    const { state, clock, log, options } = this.#parts;
    const own = state.receiver(receiver.name);
    own.failures += 1;
    const pauseMs = Math.min(RETRY_MS.last, RETRY_MS.first * 2 ** (own.failures - 1));
    own.nextAt = isoInstant(clock.now().add({ milliseconds: pauseMs }));
    if (!this.#failing.has(receiver.name))
      log.warn({ receiver: receiver.name, code: "HG-OPS-001" }, `${words}; it is tried again`);
    this.#failing.set(receiver.name, words);
    if (own.failures < options.attempts) return;
    const facts = {
      receiver: receiver.name,
      code: "HG-OPS-001",
      attempts: own.failures,
      concerns: keys.length,
    };
    log.error(facts, `a notification is given up: ${words}`);
    this.#notifiedOf(receiver, keys);
    own.failures = 0;
  }
}
