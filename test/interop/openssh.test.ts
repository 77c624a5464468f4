/** What OpenSSH does with keys, sessions and ways to log in. */

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { ConfigError } from "#core/errors.ts";
import { fetchFile } from "#gateway/drops/drop.ts";
import { entryAt, listed, never, type Settings } from "../drops/field.ts";
import { failureOf } from "./facts.ts";
import { describeWith } from "./installed.ts";
import { type OpenSsh, type OpenSshKind, startOpenSsh } from "./openssh.ts";
import { fieldsAt } from "./real-server.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function started(kind: Partial<OpenSshKind> = {}): Promise<OpenSsh> {
  const server = await startOpenSsh({ jail: false, ...kind });
  closing.push(() => server.close());
  return server;
}

async function opened(server: OpenSsh, settings: Settings = {}) {
  const field = await fieldsAt(() => server)(settings);
  closing.push(() => field.close());
  return field;
}

describeWith("sshd", "OpenSSH", () => {
  test("presents the key with the fingerprint of ssh-keygen, and an unknown one is refused", async () => {
    const server = await started();
    const failure = await failureOf(listed((await opened(server, { hostKeys: [] })).drop));
    expect(failure).toBeInstanceOf(ConfigError);
    expect(failure).toMatchObject({
      code: "HG-DROP-004",
      message: expect.stringContaining(server.hostKey.fingerprint),
      hint: expect.stringContaining(`- "${server.hostKey.fingerprint}"`),
    });
  });

  test("is refused when it returns with another key, until that one is pinned too", async () => {
    const server = await started();
    const field = await opened(server);
    await field.write("a.csv", "content");
    const entries = await listed(field.drop);
    const next = await server.changeHostKey();
    const both = await opened(server, {
      path: field.root,
      hostKeys: [server.hostKey.fingerprint, next.fingerprint],
    });
    expect(await listed(both.drop)).toEqual(entries);
    await server.stop();
    await server.restart();
    // The first call may still find out that the old connection is gone.
    await expect
      .poll(() => failureOf(listed(field.drop)))
      .toMatchObject({
        code: "HG-DROP-004",
        message: expect.stringContaining(
          `${next.fingerprint}, which is not pinned (pinned: ${server.hostKey.fingerprint})`,
        ),
      });
    await expect.poll(() => listed(both.drop).catch(() => null)).toEqual(entries);
  });

  test("that is trusted by a line of known_hosts has that line named by a check", async () => {
    const server = await started();
    const { host, port } = server.settings;
    const key = await readFile(server.hostKey.publicFile, "utf8");
    const knownHosts = join(server.shows, "known_hosts");
    await writeFile(knownHosts, `# keys of our servers\n\n[${host}]:${port} ${key}`);
    const field = await opened(server, { knownHosts, hostKeys: [] });
    const findings = await field.drop.probe(never);
    expect(findings).toContainEqual({
      level: "ok",
      about: "host key",
      what: `ssh-ed25519 ${server.hostKey.fingerprint}, line 3 of ${knownHosts}`,
    });
    const features = findings.find(({ about }) => about === "features")?.what ?? "";
    for (const name of ["posix-rename", "statvfs", "fsync"]) expect(features.split(", ")).toContain(name);
  });

  test("that only permits reading is found to refuse writes, and nothing is written", async () => {
    const server = await started({ config: ["ForceCommand internal-sftp -R"] });
    const field = await opened(server);
    const findings = await field.drop.probe(never);
    expect(findings.filter(({ level }) => level === "failed").map(({ what }) => what)).toEqual([
      "renaming and deleting is refused (Permission denied), which finish.delivered: archive needs",
    ]);
    const left = await opened(server, { finish: { delivered: "leave" } });
    expect((await left.drop.probe(never)).map(({ level }) => level)).not.toContain("failed");
  });

  test.for(["", "open sesame"])("permits a login by a key with the passphrase %j", async (passphrase) => {
    const server = await started({ passphrase, config: ["PasswordAuthentication no"] });
    const privateKey = await readFile(server.userKey.file, "utf8");
    const login = { password: undefined, privateKey, ...(passphrase === "" ? {} : { passphrase }) };
    expect(await listed((await opened(server, login)).drop)).toEqual([]);
  });

  test("requests keyboard-interactive where it accepts no passwords otherwise", async () => {
    const config = ["UsePAM yes", "PasswordAuthentication no", "KbdInteractiveAuthentication yes"];
    const server = await started({ config });
    expect(await listed((await opened(server)).drop)).toEqual([]);
  });

  test("refuses a wrong password, and the message reports it", async () => {
    const server = await started();
    const failure = await failureOf(listed((await opened(server, { password: "wrong" })).drop));
    expect(failure).toBeInstanceOf(ConfigError);
    expect(failure).toMatchObject({
      code: "HG-DROP-003",
      message: expect.stringContaining("refuses the login"),
    });
  });

  test.for([1, 2])("sends many files concurrently although it permits only %i sessions", async (sessions) => {
    const server = await started({ config: [`MaxSessions ${sessions}`] });
    const field = await opened(server, { maxChannels: 10 });
    const names = Array.from({ length: 20 }, (_, at) => `${at}.csv`);
    for (const name of names) await field.write(name, name);
    await Promise.all(
      names.map(async (name) => {
        const copy = join(field.outside, name);
        await fetchFile(field.drop, await entryAt(field.drop, name), copy, never);
        expect(await readFile(copy, "utf8")).toBe(name);
      }),
    );
  });
});
