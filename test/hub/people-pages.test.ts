/** The pages for managers: who may see them, what they change, and acting as another user. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { changeUser, putMembership, setState } from "#hub/store/people/users.ts";
import type { HubStore } from "#hub/store/store.ts";
import { openBrowser, type TestBrowser } from "./browser.ts";
import { startTestHub, type TestHub } from "./fixture.ts";
import { type MailBox, openMailBox, pathOf, tokenOf } from "./mail/mail-box.ts";

let box: MailBox;
let hub: TestHub;
let browser: TestBrowser;
beforeEach(async () => {
  box = await openMailBox();
  hub = await startTestHub({
    ...box.options,
    users: ["boss", "helper", "plain", "admin", "both"].map((username) => ({
      ...{ username, password: `${username}-password`, accounts: username === "both" ? [1, 2] : [1] },
      roles: [username === "admin" ? "Admin" : username === "boss" || username === "helper" ? "Manager" : "User"],
    })),
  });
  browser = openBrowser(hub);
  await browser.signIn("boss");
});
afterEach(async () => {
  await hub.close();
  await box.close();
});

const people = () => (hub.inside().store as HubStore).people;
const idOf = async (username: string) => (await people().userByName(username))?.id ?? 0;
const rolesOf = async (username: string) =>
  (await people().userByName(username))?.memberships.map(({ roles }) => roles);
const post = async (username: string, deed: string, fields = {}) => {
  const path = `/people/${await idOf(username)}`;
  await browser.open(path);
  return browser.send(`${path}/${deed}`, fields);
};

describe("the list", () => {
  test("is for managers of the account alone", async () => {
    expect((await browser.open("/people")).html).toContain("plain");
    const other = openBrowser(hub);
    expect(await other.open("/people")).toMatchObject({ path: "/sign-in?next=%2Fpeople" });
    const shown = await other.signIn("plain");
    expect(shown.html).not.toContain('href="/people"');
    expect(await other.open("/people")).toMatchObject({ status: 403 });
    expect(await other.open(`/people/${await idOf("plain")}`)).toMatchObject({ status: 403 });
  });

  test("shows an invitation with its mail, withdraws it, and keeps what was written after a fault", async () => {
    const { html } = await browser.open("/people");
    expect(html.replace(/\s+/g, " ")).toContain("a second mail with a temporary password");
    const fault = await browser.send("/people/invitations", { email: "bob", roles: "Manager" });
    expect(fault).toMatchObject({ status: 422, html: expect.stringContaining("is no e-mail address") });
    expect(fault.html).toMatch(/value="bob"/);
    const done = await browser.send("/people/invitations", { email: "bob@example.com", roles: "User" });
    expect(done).toMatchObject({ path: "/people?done=invited", html: expect.stringContaining("bob@example.com") });
    await box.linkTo("bob@example.com", "/invitation");
    const again = await browser.send("/people/invitations", { email: "bob@example.com", roles: "User" });
    expect(again).toMatchObject({ status: 422, html: expect.stringContaining("is invited already") });
    const [, id = ""] = /invitations\/(\d+)\/withdraw/.exec(again.html) ?? [];
    const shown = await browser.send(`/people/invitations/${id}/withdraw`, {});
    expect(shown.html).toContain("No invitation is open.");
  });
});

describe("a user", () => {
  test("gets roles up to those of the manager, is deactivated and activated", async () => {
    expect((await post("plain", "roles", { roles: "Datapusher" })).html).toContain("The roles are changed.");
    expect(await rolesOf("plain")).toEqual([["Datapusher"]]);
    expect(await post("plain", "roles", { roles: "Admin" })).toMatchObject({ status: 422 });
    expect(await rolesOf("plain")).toEqual([["Datapusher"]]);
    await post("plain", "deactivate");
    expect(await openBrowser(hub).signIn("plain")).toMatchObject({ status: 422 });
    await post("plain", "activate");
    expect(await openBrowser(hub).signIn("plain")).toMatchObject({ status: 200, path: "/me" });
  });

  test("of a higher role, of other accounts, or of another account alone stays as it is", async () => {
    for (const deed of ["roles", "deactivate", "password-link", "act-as", "remove"])
      expect(await post("admin", deed, { roles: "User" }), deed).toMatchObject({ status: 422 });
    for (const deed of ["deactivate", "password-link"])
      expect(await post("both", deed), deed).toMatchObject({ status: 422 });
    expect(await browser.send("/people/999/deactivate", {})).toMatchObject({ status: 404 });
    expect(await rolesOf("admin")).toEqual([["Admin"]]);
    expect((await people().userByName("both"))?.state).toBe("Active");
  });

  test("sets a new password by the link that a manager makes", async () => {
    const shown = await post("plain", "password-link");
    const [link = ""] = /https:\/\/hub\.example\.com\/password\/reset\?token=[\w-]+/.exec(shown.html) ?? [];
    const other = openBrowser(hub);
    await other.open(pathOf(link));
    const password = "another plain password";
    await other.send("/password/reset", { token: tokenOf(link), password, again: password });
    expect(await other.signIn("plain", password)).toMatchObject({ path: "/me" });
  });

  test("who was removed from the last account is invited back, with a new password by mail", async () => {
    const id = await idOf("plain");
    await people().change(() => changeUser(id, { email: "plain@example.com" }));
    await post("plain", "remove");
    expect(await openBrowser(hub).signIn("plain")).toMatchObject({ status: 422 });
    await browser.open("/people");
    await browser.send("/people/invitations", { email: "plain@example.com", roles: "User" });
    const link = await box.linkTo("plain@example.com", "/invitation");
    const other = openBrowser(hub);
    const page = (await other.open(pathOf(link))).html;
    expect(page).toContain("with a new password");
    expect(page).toContain("by a second mail to");
    await other.send("/invitation", { token: tokenOf(link) });
    await box.linkTo("plain@example.com", "/sign-in");
    expect(await other.signIn("plain")).toMatchObject({ status: 422 });
    const password = box.passwordOf("plain@example.com");
    expect(await other.signIn("plain", password)).toMatchObject({ path: "/password/change" });
  });
});

describe("acting as another user", () => {
  test("shows it on each page, is recorded under both names, and ends with the sign-out", async () => {
    const shown = await post("plain", "act-as");
    expect(shown).toMatchObject({ status: 200, path: "/me" });
    expect(shown.html).toMatch(/class="banner".*boss.*act as.*plain/s);
    expect(await browser.open("/people")).toMatchObject({ status: 403 });
    await browser.open("/me");
    await browser.send("/sign-out", {});
    expect(await browser.open("/me")).toMatchObject({ path: "/sign-in?next=%2Fme" });
    const { rows } = await people().audit(1, {}, { offset: 0, limit: 10 });
    const acted = rows.filter(({ action }) => action.startsWith("impersonation."));
    expect(acted.map(({ action, subject }) => [action, subject.name])).toEqual([
      ["impersonation.ended", "plain"],
      ["impersonation.began", "plain"],
    ]);
  });

  test("reaches neither oneself, nor an Admin, nor another one from there, nor the user's credentials", async () => {
    expect(await post("boss", "act-as")).toMatchObject({ status: 422 });
    expect(await post("admin", "act-as")).toMatchObject({ status: 422 });
    await post("helper", "act-as");
    expect(await post("plain", "act-as")).toMatchObject({ status: 422 });
    expect(await post("plain", "password-link")).toMatchObject({ status: 422 });
    for (const path of ["/password/change", "/me/second-factor", "/me/sessions"])
      expect(await browser.open(path), path).toMatchObject({ status: 403 });
  });

  test("ends when the manager loses the right, or the user is deactivated", async () => {
    const [boss, plain] = [await idOf("boss"), await idOf("plain")];
    const roles = (names: string[]) =>
      people().change(() => putMembership(boss, { accountId: 1, roles: names, origin: "people" }));
    await post("plain", "act-as");
    await roles(["User", "Datapusher"]);
    expect(await browser.open("/me")).toMatchObject({ path: "/sign-in?next=%2Fme" });
    await roles(["Manager"]);
    await people().change(() => setState(plain, "Inactive"));
    expect(await browser.open("/me")).toMatchObject({ path: "/sign-in?next=%2Fme" });
  });
});
