/** Writes JSON lines on standard error, secrets redacted. Stages receive a `Logger` and do not know where it writes. */
import { type DestinationStream, type Logger, pino } from "pino";
import { isoInstant, systemClock } from "./clock.ts";
import { withSourcePlaces } from "./package/source-places.ts";
import { masked } from "./secrets.ts";

const EVERY_MS = 60_000;

export type { Logger };

const REDACTED = [
  "password",
  "passphrase",
  "privateKey",
  "clientSecret",
  "client_secret",
  "secret",
  "authorization",
  "access_token",
  "*.password",
  "*.passphrase",
  "*.privateKey",
  "*.clientSecret",
  "*.client_secret",
  "*.secret",
  "*.authorization",
  "*.access_token",
  "headers.authorization",
];

/** Masks every secret that was read by then, wherever in a line it occurs. */
export function createLog(level: string, destination?: DestinationStream): Logger {
  return pino(
    {
      hooks: { streamWrite: (line) => masked(line.includes('"stack":"') ? withSourcePlaces(line) : line) },
      level,
      base: null,
      timestamp: () => `,"time":"${isoInstant(systemClock.now())}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: REDACTED, censor: "[redacted]" },
    },
    destination ?? pino.destination({ dest: 2, sync: true }),
  );
}

export const silentLog: Logger = pino({ level: "silent" });

// Warnings that unauthenticated clients can cause at will: at most one a minute is written, so that they cannot fill
// the log.

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
