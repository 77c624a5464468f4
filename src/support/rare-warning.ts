/** Warnings that strangers can cause as often as they like: one a minute is written, so that nobody can fill the log. */
import type { Logger } from "./log.ts";

const EVERY_MS = 60_000;

/**
 * `count` names the field of a line that has how often it happened since the line before, this time included; `facts` are those of the one
 * that is written.
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
