/** ISO 8601 instant in UTC, such as `2026-03-01T00:15:00.000Z`. */
export type IsoInstant = string;
