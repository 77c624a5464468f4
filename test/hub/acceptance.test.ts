/** The page of an invitation: what becomes of its link, whoever opens it and however often. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { changeUser, setProven, setState } from "#hub/store/people/users.ts";
import type { HubStore } from "#hub/store/store.ts";
import { openBrowser } from "./browser.ts";
import { startTestHub, type TestHub } from "./fixture.ts";
import { type MailBox, openMailBox, pathOf, tokenOf } from "./mail/mail-box.ts";

let box: MailBox;
let hub: TestHub;
beforeEach(async () => {
  box = await openMailBox();
  hub = await startTestHub(box.options);
});
afterEach(async () => {
  await hub.close();
  await box.close();
});

const EMAIL = "bob@example.com";
const people = () => (hub.inside().store as HubStore).people;

async function invited(roles = ["User"]): Promise<{ id: number; link: string }> {
  const { id } = await hub.post("/account/invitations", {
    email: EMAIL,
    roles,
    firstName: "Bob",
    lastName: "<i>B</i>",
  });
  return { id, link: await box.linkTo(EMAIL, "/invitation") };
}

async function accepts(link: string, fields: Record<string, string> = { username: EMAIL }) {
  const browser = openBrowser(hub);
  await browser.open(pathOf(link));
  return browser.send("/invitation", { token: tokenOf(link), ...fields });
}

/** The fixture's user has this address from now on. */
async function hasAddress(username: string): Promise<number> {
  const id = (await people().userByName(username))?.id ?? 0;
  await people().change(() => changeUser(id, { email: EMAIL }));
  return id;
}

test("opening the page uses nothing; it shows account, inviter and roles, and no cache keeps it", async () => {
  const { link } = await invited(["User", "Datapusher"]);
  for (const browser of [openBrowser(hub), openBrowser(hub)]) {
    const shown = await browser.open(pathOf(link));
    expect(shown.status).toBe(200);
    for (const words of ["First", "manager", EMAIL, "User, Datapusher", "&lt;i>B&lt;/i>", "by a second mail to"])
      expect(shown.html).toContain(words);
    expect(shown.headers.get("referrer-policy")).toBe("no-referrer");
    expect(shown.headers.get("cache-control")).toBe("no-store");
  }
  expect(await accepts(link)).toMatchObject({ status: 200 });
});

test("of many who accept at once one does, and the user is there once", async () => {
  const { link } = await invited();
  const names = ["bob1", "bob2", "bob3", "bob4"];
  const shown = await Promise.all(names.map((username) => accepts(link, { username })));
  expect(shown.map(({ status }) => status).sort()).toEqual([200, 410, 410, 410]);
  expect(
    (await Promise.all(names.map((name) => people().userByName(name)))).filter((user) => user !== null),
  ).toHaveLength(1);
  expect(await openBrowser(hub).open(pathOf(link))).toMatchObject({ status: 410 });
});

test("the new user has what the invitation says and the person wrote, and nothing in another account", async () => {
  const { link } = await invited(["Datapusher"]);
  await accepts(link, { username: "bob", firstName: "Robert", lastName: "" });
  const user = await people().userByName("BOB");
  expect(user).toMatchObject({ username: "bob", email: EMAIL, firstName: "Robert", lastName: null, state: "Invited" });
  expect(user?.memberships).toMatchObject([{ accountId: 1, roles: ["Datapusher"] }]);
  expect(user?.temporaryUntilMs).toBeGreaterThan(Date.now());
});

describe("an address of a user of the hub", () => {
  test("joins the account after the sign-in, and gets no second mail where the address was proven", async () => {
    const id = await hasAddress("second");
    await people().change(() => setProven(id, Date.now()));
    const { link } = await invited(["Manager"]);
    const browser = openBrowser(hub);
    await browser.signIn("second");
    const page = (await browser.open(pathOf(link))).html;
    expect(page).toContain("You are the user");
    expect(page).toContain("with your password as before");
    expect(page).not.toContain("temporary password");
    const shown = await browser.send("/invitation", { token: tokenOf(link) });
    expect(shown.html).toContain("You may now enter the account");
    expect((await people().userByName("second"))?.memberships).toMatchObject([
      { accountId: 2, roles: ["Manager"] },
      { accountId: 1, roles: ["Manager"] },
    ]);
    expect(await hub.get("/account/invitations", undefined, { as: "second", account: 1 })).toMatchObject([
      { state: "Accepted" },
    ]);
    expect(box.mails).toHaveLength(1);
  });

  test("that was deactivated does not become active by it", async () => {
    const id = await hasAddress("second");
    const { link } = await invited();
    await people().change(() => setProven(id, 1));
    await people().change(() => setState(id, "Inactive"));
    expect(await accepts(link)).toMatchObject({ status: 410, html: expect.stringContaining("is deactivated") });
    await people().change(() => setState(id, "Active"));
    expect((await accepts(link)).html).toContain("Sign in first");
  });
});

test("a user name that another user has is refused, and the link stays usable", async () => {
  const { link } = await invited();
  expect(await accepts(link, { username: "PLAIN" })).toMatchObject({
    status: 422,
    html: expect.stringContaining("Another user has this name"),
  });
  expect(await accepts(link, { username: "" })).toMatchObject({ status: 422 });
  expect(await accepts(link, { username: "bob" })).toMatchObject({ status: 200 });
});

test("a withdrawn invitation, an unknown link, and one of a manager who is no longer one do nothing", async () => {
  const { id, link } = await invited();
  expect(await accepts(link.slice(0, -2))).toMatchObject({ status: 410 });
  const manager = (await people().userByName("manager"))?.id ?? 0;
  await people().change(() => setState(manager, "Inactive"));
  expect(await accepts(link)).toMatchObject({ status: 410, html: expect.stringContaining("may no longer") });
  await people().change(() => setState(manager, "Active"));
  await hub.call("DELETE", `/account/invitations/${id}`, { as: "admin" });
  expect(await accepts(link)).toMatchObject({ status: 410, html: expect.stringContaining("was withdrawn") });
  expect(await people().userByEmail(EMAIL)).toBeNull();
});

test("a form without the token of its page accepts nothing", async () => {
  const { link } = await invited();
  const browser = openBrowser(hub);
  await browser.open(pathOf(link));
  const fields = { token: tokenOf(link), username: "bob", csrf: "x" };
  expect(await browser.send("/invitation", fields)).toMatchObject({ status: 403 });
  expect(await people().userByEmail(EMAIL)).toBeNull();
});
