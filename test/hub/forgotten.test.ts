/** A new password by a link in a mail. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { hashPassword } from "#core/sign-in/passwords.ts";
import { changeUser, setTemporaryPassword } from "#hub/store/people/users.ts";
import type { HubStore } from "#hub/store/store.ts";
import { LITTLE_HASHING } from "../support/hash-cost.ts";
import { openBrowser } from "./browser.ts";
import { startTestHub, type TestHub, temporaryDirectory } from "./fixture.ts";
import { linkIn, readMail } from "./mail/mail-parts.ts";

let hub: TestHub;
let outbox: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeAll(async () => {
  outbox = await temporaryDirectory();
  hub = await startTestHub({ mail: { outbox: outbox.path }, tokenThrottle: { failures: 8, addressFailures: 1_000 } });
  const { people } = store();
  for (const name of ["plain", "manager", "pusher"]) {
    const user = await people.userByName(name);
    await people.change(() => changeUser(user?.id ?? 0, { email: `${name}@example.com` }));
  }
});
afterAll(async () => {
  await hub.close();
  await outbox.remove();
});

const store = () => hub.inside().store as HubStore;

async function mails(): Promise<readonly string[]> {
  const names = (await readdir(outbox.path)).filter((name) => name.endsWith(".eml"));
  return Promise.all(names.map((name) => readFile(join(outbox.path, name), "utf8")));
}

async function ask(username: string) {
  const browser = openBrowser(hub);
  await browser.open("/password/forgot");
  return browser.send("/password/forgot", { username });
}

const seen = new Set<string>();

/** The path of the next link, once its mail is written. */
async function nextLink(): Promise<string> {
  const fresh = async () => {
    const links = (await mails()).map(readMail).filter(({ text }) => text.includes("/password/reset"));
    return links.map((mail) => linkIn(mail, "/password/reset")).find((link) => !seen.has(link));
  };
  await expect.poll(fresh).toBeDefined();
  const link = (await fresh()) ?? "";
  seen.add(link);
  const { pathname, search } = new URL(link);
  return pathname + search;
}

test("a link sets the password once, and ends every session of the user", async () => {
  const signedIn = openBrowser(hub);
  await signedIn.signIn("plain");
  await ask("PLAIN@example.com");
  const link = await nextLink();
  const browser = openBrowser(hub);
  // Programs that check mails open links.
  await browser.open(link);
  expect((await browser.open(link)).html).toContain("Set a new password");
  const token = new URL(link, hub.url()).searchParams.get("token") ?? "";
  const short = await browser.send("/password/reset", { token, password: "short", again: "short" });
  expect(short).toMatchObject({ status: 422 });
  const fields = { token, password: "words in a row", again: "words in a row" };
  expect(await browser.send("/password/reset", fields)).toMatchObject({ path: "/sign-in?done=password" });
  expect((await signedIn.open("/me")).path).toContain("/sign-in");
  expect(await openBrowser(hub).signIn("plain")).toMatchObject({ status: 422 });
  expect(await openBrowser(hub).signIn("plain@example.com", "words in a row")).toMatchObject({ path: "/me" });
  expect(await browser.open(link)).toMatchObject({ status: 410 });
  expect(await browser.send("/password/reset", fields)).toMatchObject({ status: 410 });
  // The user is told by a mail of its own.
  await expect
    .poll(async () => (await mails()).filter((mail) => /^Subject: Your password was/m.test(mail)).length)
    .toBe(1);
});

test("only the last link works", async () => {
  await ask("manager");
  const first = await nextLink();
  await ask("manager");
  const second = await nextLink();
  expect(await openBrowser(hub).open(first)).toMatchObject({ status: 410 });
  expect(await openBrowser(hub).open(second)).toMatchObject({ status: 200 });
});

test("the answer is the same for names that exist, that do not, and that have no address", async () => {
  const pages = await Promise.all(["pusher", "nobody", "admin"].map((name) => ask(name)));
  const texts = pages.map(({ status, html }) => [status, /<main.*<\/main>/s.exec(html)?.[0]]);
  expect(texts[0]?.[0]).toBe(200);
  expect(texts[1]).toEqual(texts[0]);
  expect(texts[2]).toEqual(texts[0]);
});

test("one name cannot be asked for again and again", async () => {
  const statuses: number[] = [];
  for (let count = 0; count < 9; count += 1) statuses.push((await ask("somebody@example.com")).status);
  expect(statuses.slice(7)).toEqual([200, 429]);
});

test("a temporary password leads to its change, and to nothing else, until it lapses", async () => {
  const { people } = store();
  const user = await people.userByName("second");
  const give = async (untilMs: number) => {
    const hash = await hashPassword("temporary-words", LITTLE_HASHING);
    await people.change(() => setTemporaryPassword(user?.id ?? 0, hash, untilMs));
  };
  await give(Date.now() - 1);
  const late = await openBrowser(hub).signIn("second", "temporary-words");
  expect(late).toMatchObject({ status: 422, html: expect.stringContaining("has lapsed") });
  await give(Date.now() + 3_600_000);
  const browser = openBrowser(hub);
  const shown = await browser.signIn("second", "temporary-words");
  expect(shown).toMatchObject({ path: "/password/change" });
  expect(shown.html).not.toContain('name="current"');
  expect((await browser.open("/me/sessions")).path).toBe("/password/change?next=%2Fme%2Fsessions");
  expect(await hub.call("GET", "/sites", { authorization: "", headers: browser.script() })).toMatchObject({
    status: 401,
  });
  const same = { password: "temporary-words", again: "temporary-words" };
  expect(await browser.send("/password/change", same)).toMatchObject({ status: 422 });
  const own = { password: "words of my own", again: "words of my own", next: "/me/sessions" };
  expect(await browser.send("/password/change", own)).toMatchObject({ status: 200, path: "/me/sessions" });
});
