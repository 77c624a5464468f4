/** New passwords, whose hashes cost much; the turns of accounts are shown in `test/support/passwords.test.ts`. */
import { expect, test } from "vitest";
import { hashOf } from "#hub/sessions/own-password.ts";
import { startTestHub } from "./fixture.ts";

test("a new password is refused with the time to wait while many of its account wait", async () => {
  const passwords = { hash: () => null, check: () => Promise.reject(new Error("is not asked")) };
  await expect(hashOf({ passwords }, 1, "three plain words")).rejects.toMatchObject({
    status: 429,
    code: "too-many-requests",
    retryAfterSec: 2,
  });
});

test("users that two accounts make at one time are all made", async () => {
  const hub = await startTestHub();
  const make = (as: string, account: number, username: string) =>
    hub.call("POST", "/account/users", { as, account, body: { username, password: "three plain words" } });
  const names = Array.from({ length: 10 }, (_, nth) => nth);
  const made = await Promise.all([
    ...names.map((nth) => make("manager", 1, `a${nth}`)),
    ...names.map((nth) => make("second", 2, `b${nth}`)),
  ]);
  expect(new Set(made.map(({ status }) => status))).toEqual(new Set([200]));
  await hub.close();
});
