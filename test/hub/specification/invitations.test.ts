import { afterAll, beforeAll, expect } from "vitest";
import { openBrowser } from "../browser.ts";
import { GRANT, startTestHub, type TestHub } from "../fixture.ts";
import { type MailBox, openMailBox, pathOf, tokenOf } from "../mail/mail-box.ts";
import { rule } from "./rule.ts";

let box: MailBox;
let hub: TestHub;
beforeAll(async () => {
  box = await openMailBox();
  hub = await startTestHub(box.options);
});
afterAll(async () => {
  await hub.close();
  await box.close();
});

rule("user.invitation", async () => {
  // 1 and 2: an invitation is created, and the invited user receives a link.
  await hub.post("/account/invitations", { email: "bob@example.com", roles: ["User"] });
  const link = await box.linkTo("bob@example.com", "/invitation");
  // 3 and 4: the user is created with a temporary password, which comes with a link to sign in.
  const browser = openBrowser(hub);
  await browser.open(pathOf(link));
  expect(await browser.send("/invitation", { token: tokenOf(link), username: "bob" })).toMatchObject({ status: 200 });
  await box.linkTo("bob@example.com", "/sign-in");
  const password = box.passwordOf("bob@example.com");
  const grant = { ...GRANT, username: "bob", account: "1", scope: "datahub-api" };
  const refused = await hub.form({ ...grant, password });
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("temporary")]);
  // 5 and 6: the user signs in, and must change the password.
  expect(await browser.signIn("bob", password)).toMatchObject({ status: 200, path: "/password/change" });
  expect(await browser.open("/me")).toMatchObject({ path: expect.stringMatching(/^\/password\/change/) });
  const own = "three plain words";
  expect(await browser.send("/password/change", { password: own, again: own })).toMatchObject({ status: 200 });
  // 7: the user is authenticated.
  expect(await browser.open("/me")).toMatchObject({ status: 200, path: "/me" });
  expect((await hub.form({ ...grant, password })).status).toBe(401);
  expect((await hub.form({ ...grant, password: own })).status).toBe(200);
  expect(await hub.get("/account/invitations")).toMatchObject([{ state: "Accepted", email: "bob@example.com" }]);
});

rule("users.password-link", async () => {
  const { link } = await hub.get("/user/updatePasswordLink", undefined, { as: "plain" });
  const browser = openBrowser(hub);
  expect(await browser.open(pathOf(link))).toMatchObject({ status: 200 });
  const own = "four plain words here";
  await browser.send("/password/reset", { token: tokenOf(link), password: own, again: own });
  expect(await browser.signIn("plain", own)).toMatchObject({ status: 200, path: "/me" });
  expect(await openBrowser(hub).open(pathOf(link))).toMatchObject({ status: 410 });
});
