/** Names of users that a person could not distinguish from others, by each way in which users get one. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { hubOptions } from "#hub/options.ts";
import { personOf } from "#hub/sign-on/person.ts";
import { openBrowser } from "./browser.ts";
import { rawOptions, startTestHub, type TestHub } from "./fixture.ts";
import { type MailBox, openMailBox, pathOf, tokenOf } from "./mail/mail-box.ts";

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

const password = "three plain words";

test.each([
  ["man\u200bager", "U+200B"],
  ["\u202emanager", "U+202E"],
  ["ｍanager", "write manager"],
  ["mаnager", "several scripts"],
])("%j is refused, and the answer says why", async (username, why) => {
  const refused = { status: 400, body: { errors: [{ path: "username", message: expect.stringContaining(why) }] } };
  expect(await hub.call("POST", "/account/users", { body: { username, password } })).toMatchObject(refused);
  const [own] = await hub.get("/account/users");
  expect(await hub.call("PUT", `/account/users/${own.id}`, { body: { username } })).toMatchObject(refused);

  const users = [{ username, password, accounts: [1] }];
  expect(() => hubOptions.parse(rawOptions("names", { users }))).toThrow(why);
});

test("a name that reads like that of another user is taken", async () => {
  await hub.post("/account/users", { username: "ope", password });
  const taken = { status: 409, body: { errors: [{ path: "username" }] } };
  expect(await hub.call("POST", "/account/users", { body: { username: "ОРЕ", password } })).toMatchObject(taken);
  expect(await hub.call("POST", "/account/users", { body: { username: "иван", password } })).toMatchObject({
    status: 200,
  });
});

test("the page of an invitation refuses both, and takes another name", async () => {
  await hub.post("/account/users", { username: "pa", password });
  await hub.post("/account/invitations", { email: "eve@example.com", roles: ["User"] });
  const link = await box.linkTo("eve@example.com", "/invitation");
  const browser = openBrowser(hub);
  await browser.open(pathOf(link));
  const accept = async (username: string) =>
    (await browser.send("/invitation", { token: tokenOf(link), username, firstName: "", lastName: "" })).html;
  expect(await accept("man\u200bager")).toContain("U+200B");
  expect(await accept("ра")).toContain("Another user has this name");
  expect(await accept("eve")).toContain("temporary password");
});

test("a provider of single sign-on gives none of them", () => {
  const settings = hubOptions.parse({
    ...rawOptions("names"),
    signIn: {
      oidc: [
        {
          ...{ name: "company", label: "Company", issuer: "https://id.example.org", clientId: "hub" },
          ...{ clientSecret: "a-secret-of-the-hub", createUsers: true, grants: [{ accounts: [1] }] },
        },
      ],
    },
  }).signIn.oidc[0];
  if (settings === undefined) throw new Error("there is no provider");
  const person = { issuer: "https://id.example.org", subject: "s-1", claims: { preferred_username: "man\u200bager" } };
  expect(personOf(settings, person).usernames).toEqual(["s-1"]);
});
