import { describe, expect, test } from "vitest";
import { type Attempt, addressKey, createSignInThrottle } from "#core/sign-in/throttle.ts";
import { ManualClock } from "../wire/manual-clock.ts";

const LIMITS = { failures: 3, addressFailures: 5, window: 60_000 };
const from = (address: string, name = "user a"): Attempt => ({ address, name });

function throttleWith(clock = new ManualClock(), limits = LIMITS) {
  const throttle = createSignInThrottle(limits, clock);
  return {
    ...throttle,
    clock,
    wrong(attempt: Attempt) {
      const seconds = throttle.begin(attempt);
      if (seconds === 0) throttle.failed(attempt);
      return seconds;
    },
  };
}

describe("wrong attempts", () => {
  test("count while they are checked, so that concurrent ones are limited like consecutive ones", () => {
    const { begin, failed } = throttleWith();
    const waits = Array.from({ length: 60 }, () => begin(from("1.1.1.1")));
    expect(waits.filter((seconds) => seconds === 0)).toHaveLength(3);
    // They may turn out to be right: the next one is due soon.
    expect(waits.at(-1)).toBe(1);
    for (let index = 0; index < 3; index += 1) failed(from("1.1.1.1"));
    expect(begin(from("1.1.1.1"))).toBe(60);
  });

  test("of one address lock no name for another address", () => {
    const { wrong, begin, succeeded } = throttleWith();
    for (let index = 0; index < 10; index += 1) wrong(from("1.1.1.1"));
    expect(begin(from("2.2.2.2"))).toBe(0);
    succeeded(from("2.2.2.2"));
    expect(wrong(from("1.1.1.1"))).toBeGreaterThan(0);
  });

  test("of very many addresses leave each new address one attempt at that name", () => {
    const { wrong, begin } = throttleWith();
    for (let index = 0; index < 40; index += 1) wrong(from(`10.0.0.${index}`));
    expect(wrong(from("2.2.2.2"))).toBe(0);
    expect(begin(from("2.2.2.2"))).toBeGreaterThan(0);
    expect(begin(from("3.3.3.3"))).toBe(0);
  });

  test("with many names are limited by the address", () => {
    const { wrong } = throttleWith();
    const waits = Array.from({ length: 8 }, (_, index) => wrong(from("1.1.1.1", `user ${index}`)));
    expect(waits.filter((seconds) => seconds === 0)).toHaveLength(5);
  });

  test("are forgotten after the window, and by a right one", () => {
    const { wrong, begin, succeeded, clock } = throttleWith();
    for (let index = 0; index < 2; index += 1) wrong(from("1.1.1.1"));
    expect(begin(from("1.1.1.1"))).toBe(0);
    succeeded(from("1.1.1.1"));
    for (let index = 0; index < 3; index += 1) expect(wrong(from("1.1.1.1"))).toBe(0);
    expect(wrong(from("1.1.1.1"))).toBe(60);
    clock.advance(60_001);
    expect(wrong(from("1.1.1.1"))).toBe(0);
  });

  test("that were not checked after all do not count", () => {
    const { begin, abandoned } = throttleWith();
    for (let index = 0; index < 20; index += 1) {
      expect(begin(from("1.1.1.1"))).toBe(0);
      abandoned(from("1.1.1.1"));
    }
  });
});

test.each([
  ["::ffff:127.0.0.2", "127.0.0.2"],
  ["127.0.0.2", "127.0.0.2"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::1", "2001:db8:1:2::/64"],
  ["2001:0db8::1", "2001:db8:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
])("%s counts as %s", (address, key) => {
  expect(addressKey(address)).toBe(key);
});
