/** Findings of `headgate check` that several kinds of drop have in common. */
import { CLOCK_OFF_MS, type ClockSeen, clockOffset, spanWords } from "#core/clock.ts";
import { HeadgateError, wordsOf } from "#core/errors.ts";
import type { ProbeFinding } from "./drop.ts";

const DAY_MS = 86_400_000;
/** A certificate is reported this long before it expires. */
const EXPIRY_DAYS = 30;
/** Times that servers report in their own zone are off by quarters of an hour. */
const ZONE_STEP_MS = 15 * 60_000;

/** The text of a server, on one line and at a readable length. */
export function saidWords(text: string, lengthMax = 100): string {
  const line = text
    .replaceAll(/^\d{3}[ -]/gm, "")
    .replaceAll(/[\p{Cc}\s]+|-{3,}/gu, " ")
    .replaceAll(/ {2,}/g, " ")
    .trim();
  return line.length > lengthMax ? `${line.slice(0, lengthMax - 1)}…` : line;
}

/** A fault during a check; an error that is not one of Headgate's is a bug and is thrown. */
export function failedFinding(about: string, thrown: unknown): ProbeFinding {
  if (!(thrown instanceof HeadgateError)) throw thrown;
  return { level: "failed", about, what: wordsOf(thrown), hint: thrown.advice };
}

export interface CertificateFacts {
  readonly subject: string;
  readonly issuer: string;
  /** Unix milliseconds. */
  readonly validUntilMs: number;
}

export function certificateFinding({ subject, issuer, validUntilMs }: CertificateFacts, nowMs: number): ProbeFinding {
  const leftMs = validUntilMs - nowMs;
  const until = new Date(validUntilMs).toISOString().slice(0, 10);
  const days = Math.floor(Math.abs(leftMs) / DAY_MS);
  const span = `${days} day${days === 1 ? "" : "s"}`;
  const left = leftMs < 0 ? `expired ${span} ago` : `${span} left`;
  const finding: ProbeFinding = {
    level: leftMs < 0 ? "failed" : leftMs < EXPIRY_DAYS * DAY_MS ? "warning" : "ok",
    about: "certificate",
    what: `${subject}, issued by ${issuer}, until ${until} (${left})`,
  };
  if (finding.level === "ok") return finding;
  return { ...finding, hint: "Have it renewed: after it has expired, connections fail." };
}

/**
 * `seen`: by a file of a trial. `countsForInitial`: the drop has `initial: since`, which compares the server's times
 * with a date.
 */
export function clockFinding(seen: ClockSeen, countsForInitial: boolean): ProbeFinding {
  const { offMs, withinMs } = clockOffset(seen);
  if (Math.abs(offMs) < 1000)
    return { level: "ok", about: "clock", what: `agrees with ours, within ${Math.ceil(withinMs / 1000)} s` };
  const what = `${spanWords(Math.abs(offMs))} ${offMs > 0 ? "ahead of" : "behind"} ours`;
  if (Math.abs(offMs) <= CLOCK_OFF_MS) return { level: "ok", about: "clock", what };
  const steps = Math.round(offMs / ZONE_STEP_MS) * ZONE_STEP_MS;
  const zone =
    steps !== 0 && Math.abs(offMs - steps) <= CLOCK_OFF_MS
      ? " It may report times of its own zone instead of UTC."
      : "";
  return {
    level: countsForInitial ? "warning" : "ok",
    about: "clock",
    what,
    hint: countsForInitial
      ? `This drop has \`initial: since\`, which depends on that clock.${zone}`
      : "It does no harm: times of files are only compared with each other. " +
        `Only \`initial: since\` would depend on that clock.${zone}`,
  };
}
