/** Mails of a hub leave it: to a real SMTP server, or as files. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Writable } from "node:stream";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock as clock } from "#core/clock.ts";
import { createLog } from "#core/log.ts";
import { startHub } from "#hub/hub.ts";
import { startMail } from "#hub/mail/mail.ts";
import { invitationMessage, resetMessage, temporaryPasswordMessage } from "#hub/mail/messages.ts";
import { hubOptions } from "#hub/options.ts";
import type { NewMail } from "#hub/store/mail/mails.ts";
import { openStore } from "#hub/store/open.ts";
import { testCertificate } from "../../drops/certificate.ts";
import { MAIL_USER, MailServer } from "../../operations/mail-server.ts";
import { LITTLE_HASHING as hashCost } from "../../support/hash-cost.ts";
import { JumpingClock } from "../../support/jumping-clock.ts";
import { rawOptions, temporaryDirectory } from "../fixture.ts";
import { linkIn, readMail } from "./mail-parts.ts";

let server: MailServer | null;
let close: (() => Promise<void>) | null;
let lines: string;
beforeEach(() => {
  server = null;
  close = null;
  lines = "";
});
afterEach(async () => {
  await close?.();
  await server?.close();
});

const DAY_MS = 86_400_000;
const TOKEN = "x7Kq_0123456789-abcdefghijklmnopqrstuvwxyzAB";
const content = invitationMessage({
  account: "Schools & Cº",
  inviter: "Ann",
  link: `https://hub.example.com/invitation?token=${TOKEN}`,
  expiresMs: Date.UTC(2026, 11, 1, 12),
});

const smtp = (port: number, more: object = {}) => ({
  publicUrl: "https://hub.example.com",
  mail: {
    smtp: { host: "127.0.0.1", port, ca: testCertificate, ...MAIL_USER, ...more },
    from: "Metering <metering@example.com>",
    backoff: "20ms",
    backoffMax: "50ms",
  },
});

async function start(more: object | ((directory: string) => object)) {
  const { path: directory, remove } = await temporaryDirectory();
  const options = hubOptions.parse(rawOptions(directory, typeof more === "function" ? more(directory) : more));
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines += String(chunk);
      done();
    },
  });
  const log = createLog("trace", sink);
  const open = async () => {
    const store = await openStore(options.store, log);
    const mail = startMail(options, store, { log, clock });
    const end = async () => {
      await mail.close();
      await store.close();
    };
    return { store, mail, end };
  };
  let now = await open();
  close = async () => {
    await now.end();
    await remove();
  };
  return {
    directory,
    nextMs: () => now.store.mails.nextMs(),
    isDone: async () => (await now.store.mails.nextMs()) === null,
    async queue(more: Partial<NewMail> = {}): Promise<void> {
      const times = { createdMs: Date.now(), expiresMs: Date.now() + DAY_MS };
      const mail = {
        accountId: null,
        kind: "invitation",
        to: "bob@example.com",
        ...content,
        ...times,
        ...more,
      } as const;
      await now.store.mails.queue(mail);
      now.mail.wake();
    },
    async restart(): Promise<void> {
      await now.end();
      now = await open();
    },
  };
}

test.each(["starttls", "tls"])("a mail is sent by %s, signed in, and the log has no link", async (security) => {
  server = await MailServer.start({ secure: security === "tls" });
  const own = await start(smtp(server.port, { security }));
  await own.queue();
  await expect.poll(() => server?.mails.length).toBe(1);
  const [mail] = server.mails;
  expect(mail).toMatchObject({
    from: "metering@example.com",
    to: ["bob@example.com"],
    user: "gateway",
    isEncrypted: true,
  });
  const read = readMail(mail?.text ?? "");
  expect(linkIn(read, "/invitation")).toBe(`https://hub.example.com/invitation?token=${TOKEN}`);
  expect(read.html).toContain(`href="https://hub.example.com/invitation?token=${TOKEN}"`);
  expect(read.html).toContain("Schools &amp; Cº");
  expect(read.headers).toMatchObject({ "auto-submitted": "auto-generated", to: "bob@example.com" });
  await expect.poll(() => lines).toContain("a mail was sent");
  expect(lines).not.toContain(TOKEN);
  await expect.poll(own.isDone).toBe(true);
});

test("while the server is down mails wait, also over a restart, and are sent once when it is back", async () => {
  server = await MailServer.start();
  const { port } = server;
  await server.close();
  const own = await start(smtp(port));
  await own.queue();
  await own.queue({ to: "ann@example.com" });
  await expect.poll(() => lines.split("tried again").length).toBeGreaterThan(3);
  await own.restart();
  server = await MailServer.start({}, port);
  await expect.poll(() => server?.mails.length).toBe(2);
  await expect.poll(own.isDone).toBe(true);
  expect(server.mails.map(({ to }) => to[0]).sort()).toEqual(["ann@example.com", "bob@example.com"]);
  expect(lines).not.toContain(TOKEN);
});

test("a recipient that the server refuses for good is given up, and the others get their mails", async () => {
  server = await MailServer.start();
  const own = await start(smtp(server.port));
  await own.queue({ to: "refused@example.com" });
  await own.queue();
  await expect.poll(() => server?.mails.length).toBe(1);
  expect(server.mails[0]?.to).toEqual(["bob@example.com"]);
  await expect.poll(own.isDone).toBe(true);
  expect(lines).toContain("the server refuses its recipient");
  expect(lines).not.toContain("refused@example.com");
});

test("a server that refuses the content, and repeats it, is asked again, and the log repeats nothing", async () => {
  let attempts = 0;
  server = await MailServer.start({
    onData(stream, _session, done) {
      attempts += 1;
      stream.resume().on("end", () => done(new Error(`no ?token=${TOKEN} for bob@example.com, please`)));
    },
  });
  await (await start(smtp(server.port))).queue();
  await expect.poll(() => attempts).toBeGreaterThan(2);
  expect(lines).toContain("please");
  expect(lines).not.toContain(TOKEN);
  expect(lines).not.toContain("bob@example.com");
  expect(lines).not.toContain(MAIL_USER.password);
});

test("a recipient whom the server puts off holds no other mail back", async () => {
  let asked = 0;
  server = await MailServer.start({
    onRcptTo({ address }, _session, done) {
      if (!address.startsWith("busy")) return done();
      asked += 1;
      done(Object.assign(new Error("mailbox busy"), { responseCode: 450 }));
    },
  });
  const options = smtp(server.port);
  const own = await start({ ...options, mail: { ...options.mail, backoff: "1h", backoffMax: "1h" } });
  await own.queue({ to: "busy@example.com" });
  await own.queue();
  await expect.poll(() => server?.mails.length).toBe(1);
  expect(server.mails[0]?.to).toEqual(["bob@example.com"]);
  expect([asked, await own.isDone()]).toEqual([1, false]);
});

test("a mail that comes after many that a server put off is sent, while these have a rest", async () => {
  let asked = 0;
  server = await MailServer.start({
    onRcptTo({ address }, _session, done) {
      if (!address.startsWith("busy")) return done();
      asked += 1;
      done(Object.assign(new Error("mailbox busy"), { responseCode: 450 }));
    },
  });
  const options = smtp(server.port);
  const own = await start({ ...options, mail: { ...options.mail, backoff: "1h", backoffMax: "1h" } });
  for (let nth = 0; nth < 30; nth += 1) await own.queue({ to: `busy-${nth}@example.com` });
  await expect.poll(() => asked).toBe(10);
  // A mail that comes before the rest begins has it, too.
  await expect.poll(own.nextMs).toBeGreaterThan(Date.now() + 60_000);
  await own.queue();
  await expect.poll(() => server?.mails.length).toBe(1);
  // The others have their rest.
  expect(asked).toBe(10);
});

test("mails of accounts are taken by turns, however many one account has", async () => {
  const { path: directory, remove } = await temporaryDirectory();
  const options = hubOptions.parse(rawOptions(directory));
  const log = createLog("silent");
  // It makes the accounts.
  await (await startHub(options, { log, hashCost })).close();
  const store = await openStore(options.store, log);
  close = async () => {
    await store.close();
    await remove();
  };
  const nowMs = Date.now();
  const times = { createdMs: nowMs, expiresMs: nowMs + DAY_MS };
  const queue = (accountId: number | null, to: string) =>
    store.mails.queue({ accountId, kind: "alarm", to, ...content, ...times });
  for (let nth = 0; nth < 1_000; nth += 1) await queue(1, `a${nth}`);
  for (const to of ["b0", "b1"]) await queue(2, to);
  await queue(null, "none");
  const taken: string[] = [];
  for (let account = 0; taken.length < 7; ) {
    const mail = await store.mails.take(account, nowMs, nowMs + 60_000);
    account = mail?.accountId ?? 0;
    taken.push(mail?.to ?? "");
  }
  expect(taken).toEqual(["a0", "b0", "none", "a1", "b1", "a2", "a3"]);
});

test("a mail whose link has expired is not sent", async () => {
  server = await MailServer.start();
  const own = await start(smtp(server.port));
  await own.queue({ expiresMs: Date.now() - 1 });
  await expect.poll(() => lines).toContain("has expired");
  await expect.poll(own.isDone).toBe(true);
  expect(server.mails).toEqual([]);
});

test("the hub ends while a server keeps it waiting, and sends the mail after its restart", async () => {
  const held: (() => void)[] = [];
  server = await MailServer.start({
    onMailFrom: (_address, _session, done) => void (held.length === 0 ? held.push(done) : done()),
  });
  const own = await start(smtp(server.port));
  await own.queue();
  await expect.poll(() => held.length).toBe(1);
  await own.restart();
  await expect.poll(() => server?.mails.length).toBe(1);
});

test("a mail that a hub had taken when it was killed is sent by the next one", async () => {
  server = await MailServer.start();
  const { path: directory, remove } = await temporaryDirectory();
  const options = hubOptions.parse(rawOptions(directory, smtp(server.port)));
  const log = createLog("silent");
  const store = await openStore(options.store, log);
  const nowMs = Date.now();
  const times = { createdMs: nowMs, expiresMs: nowMs + DAY_MS };
  await store.mails.queue({ accountId: null, kind: "invitation", to: "bob@example.com", ...content, ...times });
  expect(await store.mails.take(0, nowMs, nowMs + 60_000)).toMatchObject({ attempts: 0 });
  expect(await store.mails.take(0, nowMs, nowMs + 60_000)).toBeNull();
  const later = new JumpingClock();
  const mail = startMail(options, store, { log, clock: later });
  close = async () => {
    await mail.close();
    await store.close();
    await remove();
  };
  later.jump(60_000);
  await expect.poll(() => server?.mails.length).toBe(1);
});

test("line ends and commas in names and addresses make neither a header nor a second recipient", async () => {
  server = await MailServer.start();
  const account = "A\r\nBcc: evil@example.com\r\n\r\nMore";
  const link = "https://hub.example.com/invitation";
  const mail = invitationMessage({ account, inviter: "<b>Ann</b>\n", link, expiresMs: 0 });
  const own = await start(smtp(server.port));
  await own.queue({ ...mail, to: "bob@example.com, evil@example.com" });
  await own.queue({ ...mail, to: "bob@example.com\r\nBcc: evil@example.com" });
  await own.queue({ ...mail });
  await expect.poll(() => server?.mails.some(({ to }) => to[0] === "bob@example.com")).toBe(true);
  expect(server.mails.flatMap(({ to }) => to)).not.toContain("evil@example.com");
  for (const { text } of server.mails) {
    const { headers, html } = readMail(text);
    expect(headers).not.toHaveProperty("bcc");
    expect(html).not.toContain("<b>");
  }
});

test("without a server each mail becomes a private file that the log names, without its link or password", async () => {
  const own = await start((directory) => ({ mail: { outbox: join(directory, "outbox") } }));
  const password = "kq3m-x7pa-9zzz-2abc";
  const link = "https://hub.example.com/sign-in";
  await own.queue();
  await own.queue({
    kind: "temporary-password",
    ...temporaryPasswordMessage({ account: "A", username: "bob", password, link, expiresMs: Date.now() }),
  });
  const folder = join(own.directory, "outbox");
  await expect.poll(() => lines.match(/\.eml/g)?.length).toBe(2);
  const files = readdirSync(folder).sort();
  expect(files).toEqual([
    expect.stringMatching(/-invitation\.eml$/),
    expect.stringMatching(/-temporary-password\.eml$/),
  ]);
  for (const file of files) expect(lines).toContain(join(folder, file));
  expect(statSync(join(folder, files[0] ?? "")).mode & 0o777).toBe(0o600);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(readMail(readFileSync(join(folder, files[0] ?? ""), "utf8")).text).toContain(TOKEN);
  expect(readMail(readFileSync(join(folder, files[1] ?? ""), "utf8")).text).toContain(
    `Temporary password: ${password}\n`,
  );
  expect(lines).not.toContain(TOKEN);
  expect(lines).not.toContain(password);
});

test("a text says who, what, until when, and what to do otherwise", () => {
  expect(content.text).toMatchInlineSnapshot(`
    "Ann invites you to the account “Schools & Cº” of the measurement data service.

    See the invitation:
    https://hub.example.com/invitation?token=x7Kq_0123456789-abcdefghijklmnopqrstuvwxyzAB

    You accept it there. If you are not a user of this service yet, a second mail then brings a temporary password.

    The link works once, until 1 December 2026, 12:00 UTC.

    If you did not expect this mail, do nothing: without your consent no user is created.
    "
  `);
  expect(resetMessage({ username: "bob", link: "https://h/r?token=t", expiresMs: 0 }).text).toContain(
    "If it was not you",
  );
});
