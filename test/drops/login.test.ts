/** Ways into SFTP servers. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import ssh2 from "ssh2";
import { afterEach, describe, expect, test } from "vitest";
import { silentLog } from "#core/log.ts";
import { createDrop } from "#gateway/drops/create.ts";
import { dropOptions } from "#gateway/drops/options.ts";
import { type Field, listed, openSftp, type Settings, sftpOf } from "./field.ts";

const AGENT = "/usr/bin/ssh-agent";
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function opened(field: Promise<Field>): Promise<Field> {
  const open = await field;
  closing.push(() => open.close());
  return open;
}

/** Another drop at the server of a field. */
async function beside(field: Field, settings: Settings) {
  if (field.options.kind !== "sftp") return expect.unreachable();
  const { host, port, username, password, hostKeys } = field.options;
  const options = { kind: "sftp", name: "beside", host, port, username, password, hostKeys, ...settings };
  const drop = await createDrop(dropOptions.parse(options), { log: silentLog });
  closing.push(() => drop.close());
  return drop;
}

function key(passphrase?: string): string {
  for (;;) {
    const secured = passphrase === undefined ? {} : { passphrase, cipher: "aes256-ctr", rounds: 4 };
    const { private: made } = ssh2.utils.generateKeyPairSync("ed25519", secured as object);
    // Some keys that ssh2 makes it cannot read itself.
    if (!(ssh2.utils.parseKey(made, passphrase) instanceof Error)) return made;
  }
}

describe("an SFTP login", () => {
  test("responds to keyboard-interactive with the password", async () => {
    const field = await opened(sftpOf({ login: "keyboard-interactive" })());
    expect(await listed(field.drop)).toEqual([]);
    await expect(listed(await beside(field, { password: "wrong" }))).rejects.toMatchObject({ code: "HG-DROP-003" });
  });

  test("uses a private key, and its passphrase", async () => {
    const field = await opened(sftpOf({ login: "publickey" })({ privateKey: key("secret"), passphrase: "secret" }));
    expect(await listed(field.drop)).toEqual([]);
    const locked = await beside(field, { privateKey: key("secret"), passphrase: "wrong" });
    await expect(listed(locked)).rejects.toMatchObject({ code: "HG-DROP-003" });
  });

  test.skipIf(!existsSync(AGENT))("uses the keys of an agent", async () => {
    const field = await opened(sftpOf({ login: "publickey" })());
    const socket = join(field.outside, "agent");
    const agent: ChildProcess = spawn(AGENT, ["-D", "-a", socket], { stdio: "ignore" });
    closing.push(async () => {
      const ended = new Promise((resolve) => agent.once("exit", resolve));
      agent.kill();
      await ended;
    });
    await expect.poll(() => existsSync(socket)).toBe(true);
    const path = join(field.outside, "key");
    await writeFile(path, key());
    await chmod(path, 0o600);
    execFileSync("/usr/bin/ssh-add", ["-q", path], { env: { SSH_AUTH_SOCK: socket }, stdio: "ignore" });
    expect(await listed(await beside(field, { agent: socket, password: undefined }))).toEqual([]);
  });
});

describe("a file of known hosts", () => {
  async function withKnownHosts(marker: string) {
    const hostKey = key();
    const field = await opened(sftpOf({ hostKey })());
    if (field.options.kind !== "sftp") return expect.unreachable();
    const parsed = ssh2.utils.parseKey(hostKey);
    if (parsed instanceof Error) throw parsed;
    const file = join(field.outside, "known_hosts");
    const words =
      `${marker}[127.0.0.1]:${field.options.port} ${parsed.type} ` + `${parsed.getPublicSSH().toString("base64")}`;
    await writeFile(file, `# the field\n${words}\n`);
    return { field, file };
  }

  test("is trusted beside pins", async () => {
    const { field, file } = await withKnownHosts("");
    expect(await listed(await beside(field, { hostKeys: [], knownHosts: file }))).toEqual([]);
  });

  test("revokes a key, even a pinned one", async () => {
    const { field, file } = await withKnownHosts("@revoked ");
    await expect(listed(await beside(field, { knownHosts: file }))).rejects.toMatchObject({
      code: "HG-DROP-004",
      message: expect.stringContaining("revokes"),
    });
  });

  test("reports that certificate authorities are not supported", async () => {
    const { field, file } = await withKnownHosts("@cert-authority ");
    await expect(listed(await beside(field, { hostKeys: [], knownHosts: file }))).rejects.toMatchObject({
      code: "HG-DROP-004",
      message: expect.stringContaining("@cert-authority"),
    });
  });

  test("that is missing permits no connection", async () => {
    const field = await opened(openSftp());
    const lost = await beside(field, { knownHosts: join(field.outside, "none") });
    await expect(listed(lost)).rejects.toMatchObject({ code: "HG-DROP-004" });
  });
});

describe("a server with only weak algorithms", () => {
  test.for([
    ["kex", ["diffie-hellman-group14-sha1"]],
    ["cipher", ["aes128-cbc"]],
    ["hmac", ["hmac-sha1"]],
  ] as const)("(%s %s) is used only when the drop is configured so", async ([kind, names]) => {
    // Ciphers with a digest of their own need no other.
    const cipher = kind === "hmac" ? { cipher: ["aes128-ctr"] } : {};
    const field = await opened(sftpOf({ algorithms: { [kind]: [...names], ...cipher } as object })());
    await expect(listed(field.drop)).rejects.toMatchObject({ code: "HG-DROP-001" });
    expect(await listed(await beside(field, { algorithms: "legacy" }))).toEqual([]);
  });
});
