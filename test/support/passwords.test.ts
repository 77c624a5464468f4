import { expect, test } from "vitest";
import { createPasswords, type Passwords } from "#core/sign-in/passwords.ts";
import { createSignInThrottle } from "#core/sign-in/throttle.ts";
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

/** Calls from an address where a device was let in, and where attempts for other names failed too often since. */
async function blockedAddress(passwords: Passwords) {
  const right = String(await passwords.hash(1, "right-password"));
  const from = (name: string, password: string) =>
    passwords.check({ address: "1.1.1.1", name }, password, right).then(({ kind }) => kind);
  expect(await from("user device", "right-password")).toBe("right");
  for (let nth = 0; nth < 5; nth += 1) await from(`user ${nth}`, "wrong-password");
  expect(await from("user other", "wrong-password")).toBe("later");
  return from;
}

test("a device whose password was right is let in while others of its address fail", async () => {
  const passwords = await open();
  const from = await blockedAddress(passwords);
  expect(await from("user device", "right-password")).toBe("right");
});

test("guesses from an address that has to wait do not find the password of a device in the end", async () => {
  const passwords = await open();
  const from = await blockedAddress(passwords);
  for (let nth = 0; nth < 3; nth += 1) expect(await from("user device", `guess ${nth}`)).toBe("later");
  expect(await from("user device", "right-password")).toBe("later");
});
