/** What single FTP servers do: TLS that must be right, listings without MLSD, listings that are cut short. */

import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { Client } from "basic-ftp";
import { afterEach, expect, test } from "vitest";
import { ConfigError } from "#core/errors.ts";
import { fetchFile } from "#gateway/drops/drop.ts";
import type { FileEntry } from "#gateway/model.ts";
import { entryAt, listed, never, type Settings } from "../drops/field.ts";
import { failureOf } from "./facts.ts";
import { describeWith, type PROGRAMS } from "./installed.ts";
import { makeCertificate } from "./keys.ts";
import { startProftpd } from "./proftpd.ts";
import { startPureFtpd } from "./pure-ftpd.ts";
import { fieldsAt, type RealServer } from "./real-server.ts";
import { startVsftpd } from "./vsftpd.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function opened(starting: Promise<RealServer>, settings: Settings = {}) {
  const server = await starting;
  closing.push(() => server.close());
  const field = await fieldsAt(() => server)(settings);
  closing.push(() => field.close());
  return { server, field };
}

for (const [program, start] of [
  ["vsftpd", async () => startVsftpd(await makeCertificate())],
  ["proftpd", async () => startProftpd({ speaks: "ftps", tls: await makeCertificate() }, { jail: true })],
  ["pure-ftpd", async () => startPureFtpd(await makeCertificate())],
] satisfies [keyof typeof PROGRAMS, () => Promise<RealServer>][]) {
  describeWith(program, `${program} with TLS`, () => {
    test("is refused when another authority signed its certificate, and no login is sent", async () => {
      const { ca } = await makeCertificate();
      const { field } = await opened(start(), { ca });
      const failure = await failureOf(listed(field.drop));
      expect(failure).toBeInstanceOf(ConfigError);
      expect(failure).toMatchObject({
        code: "HG-DROP-011",
        message: expect.stringMatching(/TLS certificate of 127\.0\.0\.1:\d+ \(drop field\) is not trusted: /),
        hint: expect.stringContaining("`ca`"),
      });
    });

    test("refuses a login without TLS, and the message contains its text", async () => {
      const { field } = await opened(start(), { tls: "none" });
      const failure = await failureOf(listed(field.drop));
      expect(failure).toMatchObject({ message: expect.stringMatching(/TLS|encrypt|secure|SSL/i) });
    });
  });
}

describeWith("vsftpd", "vsftpd that requires TLS session reuse", () => {
  test("refuses data without the session of the control connection, which the drop uses each time", async () => {
    const { server, field } = await opened(makeCertificate().then((tls) => startVsftpd(tls)));
    await listPlainly(server, { reuse: true });
    await expect(listPlainly(server, { reuse: false })).rejects.toThrow();
    for (let at = 0; at < 5; at += 1) {
      await field.write(`${at}.csv`, "content");
      expect(await listed(field.drop)).toHaveLength(at + 1);
      const entry = await entryAt(field.drop, `${at}.csv`);
      expect(await fetchFile(field.drop, entry, join(field.outside, "copy"), never)).toMatchObject({
        bytes: 7,
      });
    }
  });
});

describeWith("vsftpd", "vsftpd", () => {
  test("has no MLSD, and is listed by LIST", async () => {
    const { field } = await opened(startVsftpd(null));
    await field.write("a.csv", "content");
    const findings = await field.drop.probe(never);
    expect(findings.map((finding) => finding.what)).toContainEqual(expect.stringMatching(/1 files .*by LIST/));
  });

  test("a file that is rewritten within the minute with the same length is found by the next listing", async () => {
    const { field } = await opened(startVsftpd(null));
    const minute = Math.floor(Date.now() / 60_000) * 60_000 - 60_000;
    await field.write("a.csv", "one", new Date(minute + 1_000));
    const [before] = await listed(field.drop);
    await field.write("a.csv", "two", new Date(minute + 2_000));
    const [after] = await listed(field.drop);
    expect(after).toMatchObject({ path: "a.csv", size: before?.size });
    expect(after?.mtime).not.toBe(before?.mtime);
  });
});

describeWith("pure-ftpd", "Pure-FTPd that shows 50 files of a folder at most", () => {
  test("lists the first files, and reports that the rest is missing", async () => {
    const { field } = await opened(startPureFtpd(null, 50));
    await field.write("other/a.csv", "content");
    for (let at = 0; at < 60; at += 1) await field.write(`many/${at}.csv`, "content");
    const seen: FileEntry[] = [];
    const reading = (async () => {
      for await (const entries of field.drop.list(never)) seen.push(...entries);
    })();
    const failure = await failureOf(reading);
    expect(failure).toBeInstanceOf(ConfigError);
    expect(failure).toMatchObject({ code: "HG-DROP-017", message: expect.stringMatching(/many.*truncated/) });
    expect(seen.length).toBeGreaterThan(40);
    expect(seen.map((entry) => entry.path)).toContain("other/a.csv");
  });
});

describeWith("proftpd", "ProFTPD", () => {
  test("shows no link that leads out of its jail, and a link inside is not a file", async () => {
    const { field, server } = await opened(startProftpd({ speaks: "ftp" }, { jail: true }));
    await mkdir(join(server.shows, "elsewhere"));
    await writeFile(join(server.shows, "elsewhere/b.csv"), "content");
    await symlink(join(field.outside, "c.csv"), join(field.root, "out.csv"));
    await symlink("../elsewhere/b.csv", join(field.root, "within.csv"));
    await symlink("../elsewhere", join(field.root, "folder"));
    await field.write("a.csv", "content");
    expect((await listed(field.drop)).map((entry) => entry.path)).toEqual(["a.csv"]);
    expect(await field.drop.stat("within.csv", never)).toBeNull();
    expect(await field.drop.stat("out.csv", never)).toBeNull();
  });
});

/** Shows what the server minds: the same client, with a new session for its data or with the one it has. */
async function listPlainly({ settings }: RealServer, { reuse }: { reuse: boolean }): Promise<void> {
  const client = new Client(5_000);
  try {
    await client.access({
      host: "127.0.0.1",
      port: Number(settings["port"]),
      user: String(settings["username"]),
      password: String(settings["password"]),
      secure: true,
      secureOptions: { ca: String(settings["ca"]), host: "127.0.0.1" },
    });
    if (!reuse) {
      client.ftp.tlsSessionStore = undefined;
      (client.ftp.socket as TLSSocket).getSession = () => undefined;
    }
    await client.list();
  } finally {
    client.close();
  }
}
