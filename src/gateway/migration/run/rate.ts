/** The highest rate of readings or bytes to the service. */
import { parseSize } from "#core/quantities.ts";

export interface Rate {
  readonly of: "readings" | "bytes";
  readonly perSecond: number;
  /** As the user wrote it. */
  readonly text: string;
}

/** `5000/s`, `2MB/s`; undefined when the text is not a rate. */
export function parseRate(text: string): Rate | undefined {
  const amount = /^(.+?)\s*\/\s*s$/.exec(text.trim())?.[1];
  if (amount === undefined) return undefined;
  const readings = /^\d+(\.\d+)?$/.test(amount) ? Number(amount) : undefined;
  const perSecond = readings ?? parseSize(amount);
  if (perSecond === undefined || perSecond <= 0) return undefined;
  return { of: readings === undefined ? "bytes" : "readings", perSecond, text: text.trim() };
}

/** `5000/s readings`, `2MB/s` */
export function rateWords({ of, text }: Rate): string {
  return of === "readings" ? `${text} readings` : text;
}
