/** JSON lines on standard error, secrets redacted. Stages receive a `Logger` and know nothing of where it writes. */
import { type DestinationStream, type Logger, pino } from "pino";

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

export function createLog(level: string, destination?: DestinationStream): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${Temporal.Now.instant().toString({ fractionalSecondDigits: 3 })}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: REDACTED, censor: "[redacted]" },
    },
    destination ?? pino.destination({ dest: 2, sync: true }),
  );
}

export const silentLog: Logger = pino({ level: "silent" });
