import { expect, test } from "vitest";
import { createPasswords } from "../../src/support/sign-in/passwords.ts";
import { createSignInThrottle } from "../../src/support/sign-in/throttle.ts";
import { ManualClock } from "../wire/manual-clock.ts";
import { LITTLE_HASHING } from "./hash-cost.ts";

function open(queueMax = 200) {
  const clock = new ManualClock();
  const throttle = createSignInThrottle({ failures: 3, addressFailures: 5, window: 60_000 }, clock);
  return createPasswords(clock, throttle, queueMax, LITTLE_HASHING);
}

test("a new password of an account is hashed after at most one of fifty of another account", async () => {
  const passwords = await open();
  const made: string[] = [];
  const hash = (accountId: number, name: string) =>
    passwords.hash(accountId, `${name}-password`)?.then(() => made.push(name));
  const all = Array.from({ length: 51 }, (_, nth) => hash(1, `a${nth}`));
  expect(passwords.hash(1, "one too many")).toBeNull();
  all.push(hash(2, "b0"), hash(2, "b1"));
  await Promise.all(all);
  expect(made.slice(0, 6)).toEqual(["a0", "a1", "b0", "a2", "b1", "a3"]);
  expect(made).toHaveLength(53);
});

test("new passwords of many accounts refuse no sign-in, and do not make it wait for all of them", async () => {
  const passwords = await open(1);
  const right = String(await passwords.hash(1, "right-password"));
  const done: string[] = [];
  const making = Array.from({ length: 20 }, (_, id) => passwords.hash(id, "password")?.then(() => done.push("new")));
  const attempts = ["1.1.1.1", "2.2.2.2"].map(async (address) => {
    const verdict = await passwords.check({ address, name: "user a" }, "right-password", right);
    done.push(verdict.kind);
  });
  await Promise.all([...making, ...attempts]);
  expect(done.slice(0, 10).filter((end) => end === "right")).toHaveLength(2);
});
