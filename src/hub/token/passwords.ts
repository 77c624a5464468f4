/** Passwords and client secrets: argon2id, a salt each, as PHC strings. Hashing is slow on purpose, so a verified pair is remembered for a while. */
import { type Argon2Parameters, argon2, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import type { Clock } from "../../support/clock.ts";

const COST = { memory: 19_456, passes: 2, parallelism: 1, tagLength: 32 } as const;
const derive = promisify<"argon2id", Argon2Parameters, Buffer>(argon2);

export async function hashPassword(password: string): Promise<string> {
  const nonce = randomBytes(16);
  const tag = await derive("argon2id", { ...COST, message: password, nonce });
  return `$argon2id$v=19$m=${COST.memory},t=${COST.passes},p=${COST.parallelism}$${base64(nonce)}$${base64(tag)}`;
}

const PHC = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

export async function verifyPassword(password: string, encoded: string): Promise<boolean> {
  const match = PHC.exec(encoded);
  if (match === null) return false;
  const [, memory = "", passes = "", parallelism = "", salt = "", hash = ""] = match;
  const expected = Buffer.from(hash, "base64");
  const tag = await derive("argon2id", {
    message: password,
    nonce: Buffer.from(salt, "base64"),
    memory: +memory,
    passes: +passes,
    parallelism: +parallelism,
    tagLength: expected.length,
  });
  return timingSafeEqual(tag, expected);
}

function base64(bytes: Buffer): string {
  return bytes.toString("base64").replace(/=+$/, "");
}

const REMEMBERED_MAX = 1_000;
const REMEMBERED_MS = 300_000;
/** Hashes at one time; more would only take each other's memory and the thread pool. */
const HASHING_MAX = 2;

export interface Passwords {
  /** Takes as long for an unknown name (`encoded` null) as for a wrong password. */
  verify(name: string, password: string, encoded: string | null): Promise<boolean>;
}

export async function createPasswords(clock: Clock): Promise<Passwords> {
  const key = randomBytes(32);
  const decoy = await hashPassword(randomBytes(16).toString("hex"));
  const remembered = new Map<string, number>();
  const hashing = limited(HASHING_MAX);
  return {
    async verify(name, password, encoded) {
      const digest = createHmac("sha256", key)
        .update(JSON.stringify([name, password, encoded]))
        .digest("base64");
      if ((remembered.get(digest) ?? 0) > clock.monotonicMs()) return true;
      const right = await hashing(() => verifyPassword(password, encoded ?? decoy));
      if (!right || encoded === null) return false;
      const oldest = remembered.size >= REMEMBERED_MAX ? remembered.keys().next().value : undefined;
      if (oldest !== undefined) remembered.delete(oldest);
      remembered.set(digest, clock.monotonicMs() + REMEMBERED_MS);
      return true;
    },
  };
}

function limited(most: number) {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
