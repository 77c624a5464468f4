/** Writes JSON lines on standard error, secrets redacted. Stages receive a `Logger` and do not know where it writes. */
import { type DestinationStream, type Logger, pino } from "pino";
import { isoInstant, systemClock } from "./clock.ts";
import { withSourcePlaces } from "./package/source-places.ts";
import { masked } from "./secrets.ts";

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
