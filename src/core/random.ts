/**
 * Random bytes for ids. They are read from the system in bulk: one system call for each id would cost ten times the
 * rest of the id.
 */
import { randomFillSync } from "node:crypto";

const pool = Buffer.allocUnsafeSlow(8_192);
let used = pool.length;

/** Returns the offset of this many unused bytes in the pool. */
function take(bytes: number): number {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const at = used;
  used += bytes;
  return at;
}

/** Two hexadecimal digits a byte. */
export function randomHex(bytes: number): string {
  const at = take(bytes);
  return pool.toString("hex", at, at + bytes);
}

/** `digits`: 32 characters, each as likely as the others. */
export function randomDigits(length: number, digits: string): string {
  const at = take(length);
  let text = "";
  for (let index = at; index < at + length; index += 1) text += digits[(pool[index] ?? 0) & 31] ?? "";
  return text;
}
