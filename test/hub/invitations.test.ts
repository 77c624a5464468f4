/** Invitations of an account over the interface: who may invite whom, and what becomes of the mails. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startTestHub, type TestHub } from "./fixture.ts";
import { type MailBox, openMailBox } from "./mail/mail-box.ts";
import { rowsOf } from "./walls/store-rows.ts";

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

const BOB = { email: "bob@example.com", roles: ["user", "Datapusher"], firstName: "Bob" };
const SECOND = { as: "second", account: 2 };

describe("an invitation", () => {
  test("is created, mailed once, listed by its state, and withdrawn", async () => {
    const made = await hub.post("/account/invitations", BOB);
    expect(made).toMatchObject({
      ...{ email: "bob@example.com", roles: ["User", "Datapusher"], firstName: "Bob", lastName: null },
      ...{ state: "Open", invitedBy: "manager", userId: null, mailFailure: null },
    });
    const link = await box.linkTo("bob@example.com", "/invitation");
    expect(link).toMatch(/^https:\/\/hub\.example\.com\/invitation\?token=[\w-]{43}$/);
    expect(JSON.stringify(made)).not.toContain(new URL(link).searchParams.get("token"));
    await expect.poll(() => hub.get("/account/invitations", { State: "open" })).toMatchObject([{ mail: "sent" }]);
    expect(await hub.get("/account/invitations", { State: "Accepted" })).toEqual([]);
    expect(await hub.call("DELETE", `/account/invitations/${made.id}`)).toMatchObject({ status: 204 });
    expect(await hub.call("DELETE", `/account/invitations/${made.id}`)).toMatchObject({ status: 409 });
    expect(await hub.get("/account/invitations")).toMatchObject([{ id: made.id, state: "Withdrawn" }]);
    expect(box.mails).toHaveLength(1);
  });

  test("to an address that is invited already, in whatever case, or of a user of the account is refused", async () => {
    await hub.post("/account/invitations", BOB);
    const again = await hub.call("POST", "/account/invitations", { body: { email: "BOB@example.com" } });
    expect(again).toMatchObject({ status: 409, body: { detail: expect.stringContaining("is invited already") } });
    await hub.post("/account/invitations", { email: "bob@example.com" }, SECOND);
  });

  test("is sent again with a new link, once a minute", async () => {
    const { id } = await hub.post("/account/invitations", BOB);
    const again = await hub.call("POST", `/account/invitations/${id}/send`);
    expect(again).toMatchObject({ status: 429 });
    expect(Number(again.headers.get("retry-after"))).toBeGreaterThan(0);
  });

  test("of another account does not exist", async () => {
    const { id } = await hub.post("/account/invitations", BOB);
    expect(await hub.get("/account/invitations", undefined, SECOND)).toEqual([]);
    expect(await hub.call("DELETE", `/account/invitations/${id}`, SECOND)).toMatchObject({ status: 404 });
    expect(await hub.call("POST", `/account/invitations/${id}/send`, SECOND)).toMatchObject({ status: 404 });
  });

  test.each([
    [{ email: "bob" }, "email"],
    [{ email: "bob@example.com, eve@example.com" }, "email"],
    [{ email: "bob@example.com\r\nBcc: eve@example.com" }, "email"],
    [{ email: "bob@example.com", roles: ["Admin"] }, "roles.0"],
    [{ email: "bob@example.com", roles: [] }, "roles"],
    [{ roles: ["User"] }, "email"],
  ])("%j is refused, and the answer names the field", async (body, path) => {
    const answer = await hub.call("POST", "/account/invitations", { body });
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ path }] } });
    expect(await hub.get("/account/invitations")).toEqual([]);
  });

  test.each(["plain", "pusher"])("is not for %s to make", async (as) => {
    expect(await hub.call("POST", "/account/invitations", { as, body: BOB })).toMatchObject({ status: 403 });
  });

  test("is recorded, and its link is nowhere in the store once the mail was sent", async () => {
    await hub.post("/account/invitations", BOB);
    const token = new URL(await box.linkTo("bob@example.com", "/invitation")).searchParams.get("token") ?? "";
    await expect.poll(() => hub.get("/account/invitations")).toMatchObject([{ mail: "sent" }]);
    const { audit, ...others } = await rowsOf(hub.options.store, 1);
    expect(audit).toContainEqual(expect.stringMatching(/invitation\.created.*bob@example\.com/));
    expect(JSON.stringify([audit, others])).not.toContain(token);
  });
});

test("an invitation whose mail cannot be written says why, and stays open", async () => {
  const other = await startTestHub({ mail: { outbox: "/dev/null/x", backoff: "20ms" } });
  try {
    await other.post("/account/invitations", BOB);
    const failed = { state: "Open", mail: "waiting", mailFailure: expect.stringContaining("ENOTDIR") };
    await expect.poll(() => other.get("/account/invitations")).toMatchObject([failed]);
  } finally {
    await other.close();
  }
});

describe("the link to a new password", () => {
  test("is for the caller, or for a user of his account with no higher role", async () => {
    const { link, expires } = await hub.get("/user/updatePasswordLink", undefined, { as: "plain" });
    expect(link).toMatch(/^https:\/\/hub\.example\.com\/password\/reset\?token=[\w-]{43}$/);
    expect(Date.parse(expires)).toBeGreaterThan(Date.now());
    const ids = await idsOf(["plain", "manager", "admin", "second"]);
    const asked = (UserId: number | undefined, more: object) =>
      hub.call("GET", "/user/updatePasswordLink", { ...more, query: { UserId: UserId ?? 0 } });
    expect(await asked(ids["plain"], {})).toMatchObject({ status: 200 });
    expect(await asked(ids["admin"], {})).toMatchObject({ status: 403 });
    expect(await asked(ids["second"], {})).toMatchObject({ status: 404 });
    expect(await asked(ids["plain"], { as: "pusher" })).toMatchObject({ status: 403 });
    expect(await asked(ids["manager"], { as: "admin" })).toMatchObject({ status: 200 });
    expect(box.mails).toEqual([]);
  });

  test("POST /user/password says that it no longer changes passwords, and what does", async () => {
    const answer = await hub.call("POST", "/user/password", { body: { password: "a new password" } });
    expect(answer).toMatchObject({ status: 410, body: { code: "gone" } });
    expect(answer.body.detail).toContain("GET /user/updatePasswordLink");
  });
});

async function idsOf(names: readonly string[]): Promise<Record<string, number>> {
  const claims = async (as: string) => {
    const token = await hub.token(as, as === "second" ? 2 : 1);
    return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
  };
  return Object.fromEntries(await Promise.all(names.map(async (name) => [name, Number((await claims(name)).sub)])));
}
