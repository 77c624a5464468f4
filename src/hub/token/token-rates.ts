/**
 * Slows down programs that ask for a token at every call (specification, *Authentication* 2). In memory, for each node.
 */
import type { Clock } from "#core/clock.ts";

const WINDOW_MS = 60_000;
const KEYS_MAX = 10_000;

export interface TokenRates {
  /** Counts a token for its recipient. Returns the seconds to wait for the next; 0: it may be issued. */
  issuing(name: string): number;
}

export function createTokenRates(tokensPerMinute: number, clock: Clock): TokenRates {
  const counts = new Map<string, { count: number; untilMs: number }>();
  return {
    issuing(name) {
      const nowMs = clock.monotonicMs();
      const known = counts.get(name);
      const found = known !== undefined && known.untilMs > nowMs ? known : { count: 0, untilMs: nowMs + WINDOW_MS };
      if (found.count >= tokensPerMinute) return Math.max(1, Math.ceil((found.untilMs - nowMs) / 1_000));
      found.count += 1;
      counts.delete(name);
      counts.set(name, found);
      const [oldest] = counts.keys();
      if (counts.size > KEYS_MAX && oldest !== undefined) counts.delete(oldest);
      return 0;
    },
  };
}
