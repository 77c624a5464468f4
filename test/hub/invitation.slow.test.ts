/**
 * An invitation as a person lives it, in Chromium: from the link in the mail to the first own password. And a hub that
 * is killed before its mail was sent.
 */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeInChromium, openChromium } from "../support/chromium.ts";
import { GRANT, startTestHub, type TestHub, temporaryDirectory } from "./fixture.ts";
import { HubProcess } from "./hub-process.ts";
import { type MailBox, openMailBox, pathOf } from "./mail/mail-box.ts";
import { pageFaults } from "./page-faults.ts";

describeInChromium("an invitation in Chromium", () => {
  let box: MailBox;
  let hub: TestHub;
  let chromium: Browser;
  beforeAll(async () => {
    // The browser reaches the hub where it listens, so that the hub of this test has no public address of its own.
    box = await openMailBox("http://127.0.0.1");
    hub = await startTestHub(box.options);
    chromium = await openChromium();
  });
  afterAll(async () => {
    await chromium.close();
    await hub.close();
    await box.close();
  });

  const at = (link: string) => hub.url() + pathOf(link);
  const submit = (page: Page, words: string) => page.getByRole("button", { name: words }).click();

  test("leads from the mail to the first sign-in with a password of one's own", async () => {
    const manager = await chromium.newPage();
    await manager.goto(`${hub.url()}/people`);
    await manager.getByLabel("User name").fill("manager");
    await manager.getByLabel("Password").fill("manager-password");
    await submit(manager, "Sign in");
    await manager.getByLabel("E-mail address").fill("bob@example.com");
    await manager.getByLabel("Datapusher").check();
    await submit(manager, "Send the invitation");
    await expect.poll(() => manager.getByText("The invitation is on its way.").count()).toBe(1);
    expect(await pageFaults(manager)).toEqual([]);

    const guest = await (await chromium.newContext()).newPage();
    await guest.goto(at(await box.linkTo("bob@example.com", "/invitation")));
    expect(await pageFaults(guest)).toEqual([]);
    await guest.getByLabel("User name").fill("bob");
    await guest.getByLabel("First name").fill("Bob");
    await submit(guest, "Accept");
    await expect.poll(() => guest.getByRole("heading", { level: 1 }).textContent()).toContain("accepted");
    expect(await pageFaults(guest)).toEqual([]);

    await guest.goto(at(await box.linkTo("bob@example.com", "/sign-in")));
    await guest.getByLabel("User name").fill("bob");
    await guest.getByLabel("Password").fill(box.passwordOf("bob@example.com"));
    await submit(guest, "Sign in");
    await guest.waitForURL(/\/password\/change/);
    await guest.getByLabel("New password", { exact: true }).fill("three plain words");
    await guest.getByLabel("New password once more").fill("three plain words");
    await submit(guest, "Change");
    await guest.waitForURL(/\/me/);
    const grant = { ...GRANT, username: "bob", password: "three plain words", account: "1", scope: "push-data" };
    expect((await hub.form(grant)).status).toBe(200);

    await manager.goto(`${hub.url()}/people`);
    await manager.getByRole("link", { name: "bob", exact: true }).click();
    expect(await pageFaults(manager)).toEqual([]);
    await submit(manager, "Act as this user");
    await expect.poll(() => manager.getByText("What you do is recorded under both names").count()).toBe(1);
    expect(await pageFaults(manager)).toEqual([]);
    await submit(manager, "End, and sign out");
    await manager.waitForURL(/\/sign-in/);
    await manager.goto(`${hub.url()}/people`);
    expect(new URL(manager.url()).pathname).toBe("/sign-in");
  });
});

test("a hub that is killed between an invitation and its mail sends the mail after its start", async () => {
  const box = await openMailBox();
  const { path, remove } = await temporaryDirectory();
  const hub = new HubProcess("hub", box.options);
  try {
    const dying = await hub.run(path, "hub.mail.queued");
    await expect(dying.post("/account/invitations", { email: "bob@example.com" })).rejects.toThrow();
    expect(await hub.killed()).toBe("SIGKILL");
    expect(box.mails).toEqual([]);
    const next = await hub.run(path);
    await box.linkTo("bob@example.com", "/invitation");
    expect(await next.get("/account/invitations")).toMatchObject([{ email: "bob@example.com", state: "Open" }]);
    expect(box.mails).toHaveLength(1);
  } finally {
    await hub.end("SIGKILL");
    await remove();
    await box.close();
  }
});
