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

/** A duration in configuration: text in, milliseconds out. The default is written as in a file. */
export const duration = quantity(
  parseDuration,
  /^\d+(\.\d+)?\s*(ms|s|m|h|d)$/,
  "a duration such as 250ms, 5s, 10m, 2h or 7d",
);

/** A size in configuration: text in, bytes out. */
export const size = quantity(parseSize, /^\d+(\.\d+)?\s*(B|KB|MB|GB|KiB|MiB|GiB)$/, "a size such as 64KB, 4MB or 1GiB");

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
