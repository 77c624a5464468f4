/** Durations as `5s` or `10m` and sizes as `4MB`, as configuration writes them; milliseconds and bytes inside. */
import { z } from "zod";

const DURATION_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const SIZE_BYTES = {
  B: 1,
  KB: 1_000,
  MB: 1_000_000,
  GB: 1_000_000_000,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
} as const;

/** Milliseconds of `250ms`, `5s`, `10m`, `2h`, `7d`; undefined when the text is not a duration. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)$/.exec(text.trim());
  if (match?.[1] === undefined) return undefined;
  return Math.round(Number(match[1]) * DURATION_MS[match[2] as keyof typeof DURATION_MS]);
}

/**
 * Bytes of `512B`, `64KB`, `4MB`, `1GB` (powers of ten) or `64KiB`, `4MiB`, `1GiB`; undefined when the text is not a
 * size.
 */
export function parseSize(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|KiB|MiB|GiB)$/.exec(text.trim());
  if (match?.[1] === undefined) return undefined;
  return Math.round(Number(match[1]) * SIZE_BYTES[match[2] as keyof typeof SIZE_BYTES]);
}

/** `10m` of 600,000 milliseconds: in the largest unit of which it is a whole number. */
export function durationText(ms: number): string {
  return inUnits(ms, DURATION_MS, "ms");
}

/** `4MB` of 4,000,000 bytes: in the largest unit of which it is a whole number. */
export function sizeText(bytes: number): string {
  return inUnits(bytes, SIZE_BYTES, "B");
}

function inUnits(value: number, units: Readonly<Record<string, number>>, smallest: string): string {
  const [name, of] = Object.entries(units)
    .sort(([, one], [, other]) => other - one)
    .find(([, one]) => value >= one && value % one === 0) ?? [smallest, 1];
  return `${value / of}${name}`;
}

const DURATION_PATTERN = /^\d+(\.\d+)?\s*(ms|s|m|h|d)$/;
const SIZE_PATTERN = /^\d+(\.\d+)?\s*(B|KB|MB|GB|KiB|MiB|GiB)$/;

/** The text that a number of the configuration was made of, by the pattern of its schema; null for other patterns. */
export function quantityText(value: number, pattern: string): string | null {
  if (pattern === DURATION_PATTERN.source) return durationText(value);
  return pattern === SIZE_PATTERN.source ? sizeText(value) : null;
}

/** A duration in configuration: text in, milliseconds out. The default is written as in a file. */
export const duration = quantity(parseDuration, DURATION_PATTERN, "a duration such as 250ms, 5s, 10m, 2h or 7d");

/** A size in configuration: text in, bytes out. */
export const size = quantity(parseSize, SIZE_PATTERN, "a size such as 64KB, 4MB or 1GiB");

function quantity(parse: (text: string) => number | undefined, pattern: RegExp, expected: string) {
  const required = z
    .string()
    .regex(pattern, `expected ${expected}`)
    .transform((text) => parse(text) ?? 0);
  function schema(): typeof required;
  function schema(fallback: string): z.ZodPrefault<typeof required>;
  function schema(fallback?: string) {
    return fallback === undefined ? required : required.prefault(fallback);
  }
  return schema;
}
