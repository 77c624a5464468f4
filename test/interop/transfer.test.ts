/** The hub's file-transfer server with the clients that senders use: OpenSSH's sftp, lftp and curl. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestHub, type TestHub, temporaryDirectory } from "../hub/fixture.ts";
import { portOf, storedFiles } from "../hub/transfer/sender.ts";
import { describeWith } from "./installed.ts";
import { makeCertificate, makeSshKey } from "./keys.ts";

let hub: TestHub;
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
const at = (name: string) => join(directory.path, name);
const LARGE = Buffer.alloc(3_000_000, "0123456789\n");

beforeAll(async () => {
  directory = await temporaryDirectory();
  const key = await makeSshKey(directory.path, "sender");
  const certificate = await makeCertificate();
  await writeFile(at("cert"), certificate.cert);
  await writeFile(at("key"), certificate.key);
  await writeFile(at("ca"), certificate.ca);
  await writeFile(at("small.csv"), "a;b\n1;2\n");
  await writeFile(at("large.bin"), LARGE);
  hub = await startTestHub({
    transfer: {
      sftp: { listen: "127.0.0.1:0" },
      ftp: { listen: "127.0.0.1:0", tls: { cert: at("cert"), key: at("key"), listen: "127.0.0.1:0" } },
    },
    users: [
      {
        username: "logger",
        password: "logger-password",
        accounts: [1],
        roles: ["Datapusher"],
        sshKeys: [(await readFile(key.publicFile, "utf8")).trim()],
      },
      { username: "manager", password: "manager-password", accounts: [1], roles: ["Manager"] },
    ],
  });
});
afterAll(async () => {
  await hub.close();
  await directory.remove();
});

const run = async (program: string, args: readonly string[]) =>
  (await promisify(execFile)(program, args, { timeout: 60_000 })).stdout;
const named = async (part: string) => (await storedFiles(hub)).filter(({ fileName }) => fileName.includes(part));

const sshOptions = () => [
  ...["-o", "StrictHostKeyChecking=no", "-o", `UserKnownHostsFile=${at("known")}`, "-o", "BatchMode=yes"],
  ...["-o", "IdentitiesOnly=yes", "-i", at("sender")],
];

async function sftp(commands: readonly string[]): Promise<string> {
  await writeFile(at("batch"), commands.join("\n"));
  const place = ["-b", at("batch"), "-P", String(portOf(hub.transfer()?.sftp)), "logger@127.0.0.1"];
  return await run("sftp", [...sshOptions(), ...place]);
}

/** Until the folder has a part of the file; then the client is killed. */
async function killedAfter(child: ChildProcess, name: string): Promise<void> {
  const size = async () => Number(/(\d+)\s+\S+\s+\d+\s+\S+\s+\S*$/m.exec(await listed(name))?.[1] ?? 0);
  await expect.poll(size).toBeGreaterThan(0);
  child.kill("SIGKILL");
}

const listed = (name: string) => sftp([`ls -l ${name}`]).catch(() => "");

describeWith("sftp", "OpenSSH's sftp", () => {
  test("uploads, lists, makes folders and keeps times", async () => {
    const listing = await sftp([
      `put -p ${at("small.csv")} ssh.csv`,
      "mkdir ssh",
      `put ${at("large.bin")} ssh/large.bin`,
      "ls -l ssh",
      "ls -l ssh.csv",
      "rm ssh.csv",
    ]);
    expect(listing).toMatch(/3000000 .*large\.bin/);
    expect(listing).toMatch(/ 8 .*ssh\.csv/);
    expect(await named("ssh")).toEqual([
      { fileName: "ssh.csv", via: "sftp", size: 8 },
      { fileName: "ssh/large.bin", via: "sftp", size: LARGE.length },
    ]);
  });

  test("renames from a temporary name", async () => {
    await sftp([`put ${at("small.csv")} renamed.csv.part`, "rename renamed.csv.part renamed.csv"]);
    expect(await named("renamed")).toEqual([{ fileName: "renamed.csv", via: "sftp", size: 8 }]);
  });

  test("is killed in an upload and continues it with reput", async () => {
    const place = ["-l", "4000", "-P", String(portOf(hub.transfer()?.sftp)), "logger@127.0.0.1"];
    const child = spawn("sftp", [...sshOptions(), ...place], { stdio: ["pipe", "ignore", "ignore"] });
    child.stdin.write(`put ${at("large.bin")} killed.bin\n`);
    await killedAfter(child, "killed.bin");
    expect(await named("killed")).toEqual([]);
    await sftp([`reput ${at("large.bin")} killed.bin`]);
    expect(await named("killed")).toEqual([{ fileName: "killed.bin", via: "sftp", size: LARGE.length }]);
    const [file] = (await hub.get("/storage", { FileName: "killed.bin" })) as { id: number }[];
    expect(Buffer.from(await hub.get("/storage/file", { ids: file?.id ?? 0 })).equals(LARGE)).toBe(true);
  });

  test("gets no shell and no command", async () => {
    const place = ["-p", String(portOf(hub.transfer()?.sftp)), "logger@127.0.0.1"];
    await expect(run("ssh", [...sshOptions(), ...place, "id"])).rejects.toThrow();
  });
});

describeWith("scp", "OpenSSH's scp", () => {
  // In the manner of OpenSSH 9 and later: by SFTP. It reports success by its exit status alone.
  test("uploads, and ends with 0", async () => {
    const place = ["-s", "-P", String(portOf(hub.transfer()?.sftp))];
    await run("scp", [...sshOptions(), ...place, at("small.csv"), "logger@127.0.0.1:scp.csv"]);
    expect(await named("scp")).toEqual([{ fileName: "scp.csv", via: "sftp", size: 8 }]);
  });
});

describeWith("lftp", "lftp", () => {
  const lftp = (address: string, commands: string) =>
    run("lftp", ["-c", `set ssl:verify-certificate no; set net:max-retries 1; open ${address}; ${commands}`]);
  const ftp = () => `-u logger,logger-password ftp://127.0.0.1:${portOf(hub.transfer()?.ftp)}`;

  test.each([
    ["ftp", "set ftp:ssl-allow no", ftp],
    ["ftps", "set ftp:ssl-force yes; set ftp:ssl-protect-data yes", ftp],
    ["ftps", "", () => `-u logger,logger-password ftps://127.0.0.1:${portOf(hub.transfer()?.ftps)}`],
  ])("mirrors a folder by %s (%s)", async (via, settings, address) => {
    const name = `lftp-${via}-${settings.length}`;
    await run("mkdir", ["-p", at(`${name}/deep`)]);
    await writeFile(at(`${name}/one.csv`), "1");
    await writeFile(at(`${name}/deep/two.csv`), "22");
    await lftp(address(), `${settings}; mirror -R ${at(name)} ${name}`);
    expect((await named(name)).toSorted((one, other) => one.size - other.size)).toEqual([
      { fileName: `${name}/one.csv`, via, size: 1 },
      { fileName: `${name}/deep/two.csv`, via, size: 2 },
    ]);
    // A second run finds the files there, and sends nothing.
    await lftp(address(), `${settings}; mirror -R ${at(name)} ${name}`);
    expect(await named(name)).toHaveLength(2);
  });

  test("uploads under a temporary name, and by SFTP", async () => {
    await lftp(ftp(), `set xfer:use-temp-file yes; put ${at("small.csv")} -o temporary.csv`);
    expect(await named("temporary")).toEqual([{ fileName: "temporary.csv", via: "ftps", size: 8 }]);
    const connect = `set sftp:connect-program 'ssh -a -x ${sshOptions().join(" ")}'`;
    const address = `sftp://logger:@127.0.0.1:${portOf(hub.transfer()?.sftp)}`;
    await run("lftp", ["-c", `${connect}; open ${address}; put ${at("large.bin")} -o lftp-sftp.bin`]);
    expect(await named("lftp-sftp")).toEqual([{ fileName: "lftp-sftp.bin", via: "sftp", size: LARGE.length }]);
  });
});

describeWith("curl", "curl", () => {
  const curl = (...args: readonly string[]) =>
    run("curl", ["-sS", "--user", "logger:logger-password", "--cacert", at("ca"), ...args]);

  test.each([
    ["ftp", [], () => `ftp://127.0.0.1:${portOf(hub.transfer()?.ftp)}`],
    ["ftp", ["--ftp-port", "127.0.0.1"], () => `ftp://127.0.0.1:${portOf(hub.transfer()?.ftp)}`],
    ["ftps", ["--ssl-reqd"], () => `ftp://127.0.0.1:${portOf(hub.transfer()?.ftp)}`],
    ["ftps", [], () => `ftps://127.0.0.1:${portOf(hub.transfer()?.ftps)}`],
  ])("uploads by %s %j", async (via, more, address) => {
    const name = `curl-${via}-${more.length}${address().length}`;
    await curl(...more, "-T", at("large.bin"), "--ftp-create-dirs", `${address()}/curl/${name}.bin`);
    expect(await named(name)).toEqual([{ fileName: `curl/${name}.bin`, via, size: LARGE.length }]);
    expect(await curl(...more, "--list-only", `${address()}/curl/`)).toContain(`${name}.bin`);
  });

  test("continues an upload that was killed", async () => {
    const url = `ftp://127.0.0.1:${portOf(hub.transfer()?.ftp)}/curl-killed.bin`;
    const user = ["-sS", "--user", "logger:logger-password"];
    const child = spawn("curl", [...user, "--limit-rate", "200k", "-T", at("large.bin"), url], { stdio: "ignore" });
    await killedAfter(child, "curl-killed.bin");
    expect(await named("curl-killed")).toEqual([]);
    await curl("-C", "-", "-T", at("large.bin"), url);
    expect(await named("curl-killed")).toEqual([{ fileName: "curl-killed.bin", via: "ftp", size: LARGE.length }]);
  });
});
