/**
 * Run ids: 48 bits of Unix milliseconds and 80 random bits, as 26 characters of Crockford's base 32 in lower case
 * (a ULID in small letters). Text order is time order, and each id is greater than the last, also when the clock steps back.
 */
import { randomBytes } from "node:crypto";

const DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";
const LENGTH = 26;
const RANDOM_BITS = 80n;

/** Answers the next id for a wall time in milliseconds. With `last`, every id is greater than that one as well. */
export function createRunIds(last?: string): (unixMs: number) => string {
  let latest = last === undefined ? -1n : decode(last);
  return (unixMs) => {
    const fresh =
      (BigInt(Math.trunc(unixMs)) << RANDOM_BITS) | BigInt(`0x${randomBytes(10).toString("hex")}`);
    latest = fresh > latest ? fresh : latest + 1n;
    return encode(latest);
  };
}

/** Unix milliseconds at which a run id was made. */
export function runIdTimeMs(id: string): number {
  return Number(decode(id) >> RANDOM_BITS);
}

function encode(value: bigint): string {
  let rest = value;
  let text = "";
  for (let at = 0; at < LENGTH; at += 1) {
    text = (DIGITS[Number(rest & 31n)] ?? "") + text;
    rest >>= 5n;
  }
  return text;
}

function decode(text: string): bigint {
  let value = 0n;
  for (const digit of text) value = (value << 5n) | BigInt(Math.max(0, DIGITS.indexOf(digit)));
  return value;
}
