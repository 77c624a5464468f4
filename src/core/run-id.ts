/**
 * Run ids: 48 bits of Unix milliseconds and 80 random bits, as 26 characters of Crockford's base 32 in lower
 * case (a ULID in small letters). Text order is time order, and each id is greater than the last, also when
 * the clock steps back.
 */
import { randomDigits } from "./random.ts";

const DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";
const BASE = DIGITS.length;
/** Digits of 5 bits each: two bits that are always 0 and 48 of time, and 80 random ones. */
const TIME_LENGTH = 10;
const RANDOM_LENGTH = 16;

/** Digits of the place of an entry in its container. */
const PLACE_LENGTH = 7;

/**
 * Returns a function that creates the next id for a wall time in milliseconds. Every id is greater than `last` (which
 * may be the id of an entry) as well.
 */
export function createRunIds(last = ""): (unixMs: number) => string {
  // An id after that of a container is also greater than those of all its entries.
  let latest = last.slice(0, TIME_LENGTH + RANDOM_LENGTH);
  let time = { ms: 0, text: encodeTime(0) };
  return (unixMs) => {
    const ms = Math.trunc(unixMs);
    if (ms !== time.ms) time = { ms, text: encodeTime(ms) };
    const fresh = time.text + randomDigits(RANDOM_LENGTH, DIGITS);
    latest = fresh > latest ? fresh : successor(latest);
    return latest;
  };
}

/**
 * The id of the run of an entry: the id of its container's run with the place of the entry, from 0. It is greater
 * than that of the container and less than any that was made after it, so that the entry is delivered in the order of
 * its container.
 */
export function entryRunId(container: string, place: number): string {
  return container + encode(place, PLACE_LENGTH);
}

/**
 * The id of the run that continues another: it is greater than that one, and less than any other that was made after
 * it.
 */
export function continuationRunId(of: string): string {
  return entryRunId(of, 0);
}

/** Unix milliseconds at which a run id was created. */
export function runIdTimeMs(id: string): number {
  let ms = 0;
  for (const digit of id.slice(0, TIME_LENGTH)) ms = ms * BASE + Math.max(0, DIGITS.indexOf(digit));
  return ms;
}

/** Less than every id of this Unix millisecond and later, and greater than every earlier one. */
export function runIdFrom(unixMs: number): string {
  return encodeTime(Math.max(0, Math.trunc(unixMs)));
}

function encodeTime(ms: number): string {
  return encode(ms, TIME_LENGTH);
}

function encode(number: number, length: number): string {
  let rest = number;
  let text = "";
  for (let at = 0; at < length; at += 1) {
    text = (DIGITS[rest % BASE] ?? "") + text;
    rest = Math.floor(rest / BASE);
  }
  return text;
}

/** The next id in text order: one more, with carry. */
function successor(id: string): string {
  let at = id.length - 1;
  while (id[at] === DIGITS.at(-1)) at -= 1;
  const next = DIGITS[DIGITS.indexOf(id[at] ?? "") + 1] ?? "";
  return id.slice(0, at) + next + "0".repeat(id.length - 1 - at);
}
