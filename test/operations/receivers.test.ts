/**
 * Notifications that really leave the process: to an HTTP server, to an SMTP server, and by the command that
 * tests them.
 */
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { stringify } from "yaml";
import { systemClock } from "#core/clock.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { testNotification } from "#gateway/operations/notification-text.ts";
import { receiverOptions } from "#gateway/operations/options.ts";
import { createReceiver } from "#gateway/operations/receivers.ts";
import { verifyWebhook } from "#wire/index.ts";
import { testCertificate } from "../drops/certificate.ts";
import { headgate } from "../e2e/processes.ts";
import { MAIL_USER, MailServer } from "./mail-server.ts";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const SECRET = "a secret of sixteen";
const PATH = "/hooks/T000/very-secret-part";
const test1 = testNotification("node-1", "2026-03-01T00:00:00.000Z");

let server: Server;
let posted: { body: string; signature: string | undefined; url: string | undefined }[];
let status: number;
let mail: MailServer | null;

beforeEach(async () => {
  posted = [];
  status = 200;
  mail = null;
  server = createServer((request, response) => {
    let body = "";
    request.on("data", (part) => {
      body += part;
    });
    request.on("end", () => {
      const signature = request.headers["x-headgate-signature"] as string | undefined;
      posted.push({ body, signature, url: request.url });
      response.writeHead(status, status === 302 ? { location: "/elsewhere" } : {}).end();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterEach(async () => {
  await mail?.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const hook = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}`;
const send = (options: Readonly<Record<string, unknown>>) =>
  createReceiver(receiverOptions.parse({ name: "one", ...options }), systemClock).send(test1);
const mailTo = (more: Readonly<Record<string, unknown>> = {}) => ({
  ...{ kind: "email", name: "mail", host: "127.0.0.1", port: mail?.port, ca: testCertificate },
  ...{ from: "Headgate <gateway@example.com>", to: ["ann@example.com", "bob@example.com"] },
  ...{ ...MAIL_USER, ...more },
});

describe("a webhook", () => {
  test("gets signed JSON", async () => {
    await send({ kind: "webhook", url: hook(), secret: SECRET });
    const [{ body = "", signature } = {}] = posted;
    expect(verifyWebhook(body, SECRET, signature, Math.floor(Date.now() / 1000))).toBeNull();
    expect(JSON.parse(body)).toMatchObject({ kind: "test", gateway: "node-1", total: 0 });
  });

  test.each(["slack", "teams"])("gets a text in the format %s", async (format) => {
    await send({ kind: "webhook", url: hook(), format });
    expect(JSON.parse(posted[0]?.body ?? "").text).toContain("Headgate on node-1: test of the notifications");
  });

  test.each([500, 404, 302])(
    "that responds %i did not accept it, and the error contains no part of its address",
    async (code) => {
      status = code;
      const failed = send({ kind: "webhook", url: hook() });
      await expect(failed).rejects.toMatchObject({ name: "TransientError", code: "HG-OPS-001" });
      expect(JSON.stringify(await failed.catch((thrown: Error) => [thrown.message, thrown.stack]))).not.toContain(PATH);
      expect(posted).toHaveLength(1);
    },
  );
});

describe("mail", () => {
  test("is sent by STARTTLS, signed in, to all recipients", async () => {
    mail = await MailServer.start();
    await expect(send(mailTo())).resolves.toMatchObject({ isPartial: false });
    expect(mail.mails).toEqual([
      expect.objectContaining({
        from: "gateway@example.com",
        to: ["ann@example.com", "bob@example.com"],
        user: "gateway",
        isEncrypted: true,
        text: expect.stringMatching(/Subject: Headgate on node-1: test of the notifications/),
      }),
    ]);
  });

  test("is sent by TLS from the start", async () => {
    mail = await MailServer.start({ secure: true });
    await send(mailTo({ security: "tls" }));
    expect(mail.mails).toMatchObject([{ isEncrypted: true, user: "gateway" }]);
  });

  test("is not sent in the clear by a server without STARTTLS, unless configured so", async () => {
    mail = await MailServer.start({
      disabledCommands: ["STARTTLS"],
      authOptional: true,
      allowInsecureAuth: true,
    });
    await expect(send(mailTo())).rejects.toMatchObject({ code: "HG-OPS-001" });
    expect(mail.mails).toEqual([]);
    await send(mailTo({ security: "none" }));
    expect(mail.mails).toMatchObject([{ isEncrypted: false }]);
  });

  test("is not sent to a server with an untrusted certificate", async () => {
    mail = await MailServer.start();
    await expect(send(mailTo({ ca: undefined }))).rejects.toThrow(/certificate/);
    expect(mail.mails).toEqual([]);
  });

  test("with a wrong password is refused, and the password is not in the error", async () => {
    mail = await MailServer.start();
    const failed = send(mailTo({ password: "a-wrong-password" }));
    await expect(failed).rejects.toMatchObject({ code: "HG-OPS-001" });
    expect(String(await failed.catch((thrown: Error) => `${thrown.message} ${thrown.stack}`))).not.toContain(
      "a-wrong-password",
    );
  });

  test("that some recipients do not get is reported as such", async () => {
    mail = await MailServer.start();
    await expect(send(mailTo({ to: ["ann@example.com", "refused@example.com"] }))).resolves.toEqual({
      isPartial: true,
      words: "the server took it for 1 of 2 recipients, which refused refused@example.com",
    });
  });
});

describe("the configuration and its command", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "headgate-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  function configure(more: Readonly<Record<string, unknown>>): string {
    const at = "http://127.0.0.1:9";
    const credentials = { clientId: "c", clientSecret: "s", username: "u", password: "p" };
    const path = join(folder, "gateway.yaml");
    const services = [{ name: "hub", base: at, push: at, token: at, credentials }];
    writeFileSync(path, stringify({ services, drops: [{ name: "in", kind: "local", path: "./in" }], ...more }));
    return path;
  }

  test("`headgate notify test` tries every receiver, and ends with 1 when one failed", async () => {
    mail = await MailServer.start();
    const webhook = { kind: "webhook", name: "chat", url: hook(), format: "slack" };
    const config = configure({ notifications: { receivers: [webhook, mailTo()] } });
    const good = await headgate(["notify", "test", "-c", config, "--json"]);
    expect(good.code, good.stderr).toBe(0);
    expect(JSON.parse(good.stdout)).toMatchObject([
      { receiver: "chat", kind: "webhook", accepted: true, words: "it answered 200" },
      { receiver: "mail", kind: "email", accepted: true },
    ]);
    expect(mail.mails).toHaveLength(1);

    status = 500;
    const bad = await headgate(["notify", "test", "-c", config]);
    expect(bad.code).toBe(1);
    expect(bad.stdout).toMatch(/failed {2}chat \(webhook at 127\.0\.0\.1:\d+\): .*it answered 500/);
    expect(bad.stdout).toMatch(/sent {2}mail/);
    expect(`${bad.stdout}${bad.stderr}`).not.toContain("very-secret-part");
  });

  test("`headgate notify test` without a receiver reports it, and ends with 2", async () => {
    const { code, stderr } = await headgate(["notify", "test", "-c", configure({})]);
    expect(code).toBe(2);
    expect(stderr).toContain("HG-OPS-003");
  });

  test("the former key of alarms is refused with its replacement", () => {
    const path = configure({ operations: { alarm: { url: "https://example.com" } } });
    expect(() => loadGatewayConfig(path)).toThrow(/operations\.alarm; replaced by notifications: write `notifications/);
  });

  test.each([
    [
      "two of one name",
      [
        { kind: "webhook", name: "a", url: "https://a" },
        { kind: "webhook", name: "a", url: "https://b" },
      ],
      /used twice/,
    ],
    [
      "a password without a user",
      [{ kind: "email", name: "a", host: "h", from: "a@b", to: ["c@d"], password: "p" }],
      /are needed together/,
    ],
    ["nobody to send to", [{ kind: "email", name: "a", host: "h", from: "a@b", to: [] }], /notifications\.receivers/],
  ])("%s is refused", (_what, receivers, words) => {
    expect(() => loadGatewayConfig(configure({ notifications: { receivers } }))).toThrow(words);
  });
});
