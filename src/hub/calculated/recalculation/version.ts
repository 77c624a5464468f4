/** The version of outputs for which a formula gives none (specification, *Calculated variables*, rule 3). */

/** The hour of the calculation in UTC, rounded up, as `2026-03-01T13:00:00`; a time exactly on the hour is kept. */
export function defaultVersionOf(now: Temporal.Instant): string {
  const hour = now.round({ smallestUnit: "hour", roundingMode: "ceil" });
  return hour.toZonedDateTimeISO("UTC").toPlainDateTime().toString({ smallestUnit: "second" });
}
