/**
 * Warnings that unauthenticated clients can cause at will: at most one a minute is written, so that they cannot fill
 * the log.
 */
import type { Logger } from "pino";

const EVERY_MS = 60_000;

/**
 * `count` names the field with the number of occurrences since the last line, this one included; `facts` belong to
 * the occurrence that is written.
 */
export function createRareWarning(
  log: Logger,
  count: string,
  text: string,
  nowMs: () => number = () => performance.now(),
): (facts: Readonly<Record<string, unknown>>) => void {
  let happened = 0;
  let warnedMs = Number.NEGATIVE_INFINITY;
  return (facts) => {
    happened += 1;
    if (nowMs() - warnedMs < EVERY_MS) return;
    warnedMs = nowMs();
    log.warn({ ...facts, [count]: happened }, text);
    happened = 0;
  };
}
