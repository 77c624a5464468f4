/**
 * Slows down guessing of passwords. It counts failed attempts by name and address together, by address, and by name.
 * An attempt counts as failed from the moment it begins, so that concurrent attempts cannot exceed the limit. A
 * client cannot lock a name for others: failures from many addresses leave each new address one attempt. The counts
 * are in memory, for each process.
 */
import { createHash } from "node:crypto";
import { isIPv6 } from "node:net";
import type { Clock } from "../clock.ts";

/** Clients choose names and addresses, so their number and length need a bound. */
const KEYS_MAX = 10_000;
const NAME_CHARACTERS_MAX = 100;
/**
 * Many people may share an address, and a name is used from several: both may fail more often than one name from one
 * address.
 */
const ADDRESS_FACTOR = 3;
const ADDRESS_LEAST = 30;
const NAME_FACTOR = 10;
/** While other attempts are being checked, a slot is free soon. */
const PENDING_SEC = 1;

export interface Attempt {
  readonly address: string;
  /** `client gateway`, `user manager`. */
  readonly name: string;
}

export interface SignInLimits {
  /** Failed attempts of one name from one address. */
  readonly failures: number;
  /** Failed attempts from one address, whatever the names. */
  readonly addressFailures?: number | undefined;
  /** Milliseconds after the first failure in which failures count. */
  readonly window: number;
}

/** For each attempt that `begin` allowed (0), exactly one of the other three methods is called. */
export interface SignInThrottle {
  /**
   * Counts the attempt and returns 0, or returns the seconds to wait without counting it. `isRight`: it is known to be,
   * and does not wait for failures of other names from its address.
   */
  begin(attempt: Attempt, isRight?: boolean): number;
  failed(attempt: Attempt): void;
  /** Forgets the failures of this name from this address. */
  succeeded(attempt: Attempt): void;
  /** The attempt was not checked after all. */
  abandoned(attempt: Attempt): void;
  /** Calls one of the three by what the check of an attempt finds, and returns it. */
  judge(attempt: Attempt, check: () => Promise<boolean>): Promise<boolean>;
}

export function createSignInThrottle(limits: SignInLimits, clock: Clock): SignInThrottle {
  const { failures, addressFailures = Math.max(ADDRESS_LEAST, failures * ADDRESS_FACTOR), window } = limits;
  const pairs = new Counter(window, clock);
  const addresses = new Counter(window, clock);
  const names = new Counter(window, clock);
  // Attempts that waited for other names of their address: otherwise they continue until one is known to be right.
  const kept = new Counter(window, clock);
  const all = (attempt: Attempt, step: (counter: Counter, key: string) => void) => {
    const [address, name] = [addressKey(attempt.address), nameKey(attempt.name)];
    step(pairs, JSON.stringify([name, address]));
    step(addresses, address);
    step(names, name);
  };
  const throttle: SignInThrottle = {
    begin(attempt, isRight = false) {
      const [address, name] = [addressKey(attempt.address), nameKey(attempt.name)];
      const pair = JSON.stringify([name, address]);
      const most = names.failures(name) >= failures * NAME_FACTOR ? 1 : failures;
      const others = addresses.waitSec(address, addressFailures);
      const wait = Math.max(pairs.waitSec(pair, most), isRight && kept.failures(pair) < most ? 0 : others);
      if (wait === 0) all(attempt, (counter, key) => counter.begin(key));
      else if (others > 0 && !isRight) kept.count(pair);
      return wait;
    },
    failed: (attempt) => all(attempt, (counter, key) => counter.end(key, 1)),
    succeeded(attempt) {
      all(attempt, (counter, key) => counter.end(key, 0));
      pairs.forget(JSON.stringify([nameKey(attempt.name), addressKey(attempt.address)]));
    },
    abandoned: (attempt) => all(attempt, (counter, key) => counter.end(key, 0)),
    async judge(attempt, check) {
      try {
        const isRight = await check();
        if (isRight) throttle.succeeded(attempt);
        else throttle.failed(attempt);
        return isRight;
      } catch (thrown) {
        throttle.abandoned(attempt);
        throw thrown;
      }
    },
  };
  return throttle;
}

interface Count {
  failed: number;
  /** Attempts that are being checked. */
  pending: number;
  untilMs: number;
}

/** Counts by key in windows that begin with the first count. */
class Counter {
  readonly #windowMs: number;
  readonly #clock: Clock;
  readonly #counts = new Map<string, Count>();

  constructor(windowMs: number, clock: Clock) {
    this.#windowMs = windowMs;
    this.#clock = clock;
  }

  failures(key: string): number {
    return this.#current(key)?.failed ?? 0;
  }

  waitSec(key: string, most: number): number {
    const found = this.#current(key);
    if (found === undefined || found.failed + found.pending < most) return 0;
    if (found.failed < most) return PENDING_SEC;
    return Math.max(1, Math.ceil((found.untilMs - this.#clock.monotonicMs()) / 1_000));
  }

  begin(key: string): void {
    const found = this.#current(key) ?? {
      failed: 0,
      pending: 0,
      untilMs: this.#clock.monotonicMs() + this.#windowMs,
    };
    found.pending += 1;
    this.#counts.delete(key);
    this.#counts.set(key, found);
    const [oldest] = this.#counts.keys();
    if (this.#counts.size > KEYS_MAX && oldest !== undefined) this.#counts.delete(oldest);
  }

  end(key: string, failures: 0 | 1): void {
    const found = this.#counts.get(key);
    if (found === undefined) return;
    found.pending = Math.max(0, found.pending - 1);
    found.failed += failures;
    if (found.failed === 0 && found.pending === 0) this.#counts.delete(key);
  }

  /** A failure at once. */
  count(key: string): void {
    this.begin(key);
    this.end(key, 1);
  }

  forget(key: string): void {
    const found = this.#counts.get(key);
    if (found === undefined) return;
    found.failed = 0;
    if (found.pending === 0) this.#counts.delete(key);
  }

  #current(key: string): Count | undefined {
    const found = this.#counts.get(key);
    if (found === undefined || found.untilMs > this.#clock.monotonicMs()) return found;
    if (found.pending === 0) {
      this.#counts.delete(key);
      return undefined;
    }
    found.failed = 0;
    found.untilMs = this.#clock.monotonicMs() + this.#windowMs;
    return found;
  }
}

function nameKey(name: string): string {
  if (name.length <= NAME_CHARACTERS_MAX) return name;
  return createHash("sha256").update(name).digest("base64");
}

/** One subscriber has a whole /64 of IPv6, so that it counts as one address. */
export function addressKey(address: string): string {
  const plain = address.replace(/%.*$/, "").replace(/^::ffff:(?=\d+\.)/i, "");
  if (!isIPv6(plain)) return plain;
  const [head = "", tail] = plain.split("::");
  const parts = head.split(":").filter((part) => part !== "");
  const rest = tail?.split(":").filter((part) => part !== "") ?? [];
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - parts.length - rest.length);
  const whole = [...parts, ...Array<string>(zeros).fill("0"), ...rest];
  return `${whole
    .slice(0, 4)
    .map((part) => Number.parseInt(part, 16).toString(16))
    .join(":")}::/64`;
}
