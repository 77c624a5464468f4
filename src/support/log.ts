/** JSON lines on standard error, secrets redacted. Stages receive a `Logger` and know nothing of where it writes. */
import { type DestinationStream, type Logger, pino } from "pino";
import { isoInstant, systemClock } from "./clock.ts";

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

/** `secrets` are asked for at each line: none of them is written, wherever in a line it stands. */
export function createLog(
  level: string,
  destination?: DestinationStream,
  secrets: () => Iterable<string> = () => [],
): Logger {
  return pino(
    {
      hooks: { streamWrite: (line) => withoutSecrets(line, secrets()) },
      level,
      base: null,
      timestamp: () => `,"time":"${isoInstant(systemClock.now())}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: REDACTED, censor: "[redacted]" },
    },
    destination ?? pino.destination({ dest: 2, sync: true }),
  );
}

function withoutSecrets(line: string, secrets: Iterable<string>): string {
  let clean = line;
  for (const secret of secrets) clean = clean.replaceAll(JSON.stringify(secret).slice(1, -1), "[redacted]");
  return clean;
}

export const silentLog: Logger = pino({ level: "silent" });
