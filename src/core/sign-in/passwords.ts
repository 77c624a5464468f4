/**
 * Passwords and client secrets: argon2id, a salt each, as PHC strings. Hashing is slow on purpose, so a verified pair
 * is cached for a while.
 */
import { type Argon2Parameters, argon2, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import type { Clock } from "../clock.ts";
import { FairQueue } from "../turns.ts";
import type { Attempt, SignInThrottle } from "./throttle.ts";

/** Cost of one hash, for the hub and for an attacker. */
export interface HashCost {
  /** In kibibytes. */
  readonly memory: number;
  readonly passes: number;
}

const COST: HashCost = { memory: 19_456, passes: 2 };
const SHAPE = { parallelism: 1, tagLength: 32 } as const;
const derive = promisify<"argon2id", Argon2Parameters, Buffer>(argon2);

export async function hashPassword(password: string, { memory, passes } = COST): Promise<string> {
  const nonce = randomBytes(16);
  const tag = await derive("argon2id", { ...SHAPE, memory, passes, message: password, nonce });
  return `$argon2id$v=19$m=${memory},t=${passes},p=${SHAPE.parallelism}$${base64(nonce)}$${base64(tag)}`;
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
/** Limit on concurrent hashes; more would only compete for memory and the thread pool. */
const HASHING_MAX = 2;
/** New passwords of one account that wait for their hash. */
const NEW_WAITING_MAX = 50;
/** With a full queue, a place is free after some hashes. */
export const BUSY_SEC = 2;

type Verdict =
  | { readonly kind: "right" | "wrong" }
  /** The password was not compared. */
  | { readonly kind: "later"; readonly why: string; readonly seconds: number };

export interface Passwords {
  /** The PHC string of a new password of the account; null: too many of its passwords wait. */
  hash(accountId: number, password: string): Promise<string> | null;
  /** Takes as long for an unknown name (`encoded` null) as for a wrong password. */
  check(attempt: Attempt, password: string, encoded: string | null): Promise<Verdict>;
}

export async function createPasswords(
  clock: Clock,
  throttle: SignInThrottle,
  queueMax: number,
  cost?: HashCost,
): Promise<Passwords> {
  const key = randomBytes(32);
  const decoy = await hashPassword(randomBytes(16).toString("hex"), cost);
  const remembered = new Map<string, number>();
  const checking = new Map<string, Promise<Verdict>>();
  const hashing = new FairQueue<string>(HASHING_MAX, { waitingMax: queueMax });
  // All of them are one caller of `hashing`, so that new passwords leave a place for sign-ins.
  const making = new FairQueue<number>(1);
  const remember = (digest: string) => {
    const oldest = remembered.size >= REMEMBERED_MAX ? remembered.keys().next().value : undefined;
    if (oldest !== undefined) remembered.delete(oldest);
    remembered.set(digest, clock.monotonicMs() + REMEMBERED_MS);
  };
  const compare = async (attempt: Attempt, password: string, encoded: string | null): Promise<Verdict> => {
    const isRight = await throttle.judge(attempt, async () => {
      const fits = await hashing.run(attempt.address, () => verifyPassword(password, encoded ?? decoy));
      return fits && encoded !== null;
    });
    return { kind: isRight ? "right" : "wrong" };
  };
  return {
    hash(accountId, password) {
      if (making.waitingOf(accountId) >= NEW_WAITING_MAX) return null;
      return making.run(accountId, () => hashing.run("new passwords", () => hashPassword(password, cost)));
    },
    // There is no wait between the count and its use: otherwise concurrent attempts would see each other's counts.
    check(attempt, password, encoded) {
      const digest = createHmac("sha256", key)
        .update(JSON.stringify([attempt.name, password, encoded]))
        .digest("base64");
      // The same guess from the same address is not a second guess: a client may begin with many concurrent calls.
      const asked = JSON.stringify([attempt.address, digest]);
      const running = checking.get(asked);
      if (running !== undefined) return running;
      const isRemembered = (remembered.get(digest) ?? 0) > clock.monotonicMs();
      const seconds = throttle.begin(attempt, isRemembered);
      if (seconds > 0) return later("too many wrong credentials", seconds);
      if (isRemembered) {
        throttle.succeeded(attempt);
        return Promise.resolve({ kind: "right" });
      }
      if (hashing.isFull) {
        throttle.abandoned(attempt);
        return later("too many sign-ins at one time", BUSY_SEC);
      }
      const verdict = compare(attempt, password, encoded).then((found) => {
        if (found.kind === "right") remember(digest);
        return found;
      });
      checking.set(asked, verdict);
      const done = () => void checking.delete(asked);
      verdict.then(done, done);
      return verdict;
    },
  };
}

function later(why: string, seconds: number): Promise<Verdict> {
  return Promise.resolve({ kind: "later", why, seconds });
}
