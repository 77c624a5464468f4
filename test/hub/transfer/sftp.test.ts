/** The SFTP server of the hub: what becomes a stored file, and what does not. */
import { generateKeyPairSync } from "node:crypto";
import ssh2 from "ssh2";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { rawOptions, startTestHub, type TestHub } from "../fixture.ts";
import { portOf, type SftpSender, sftpSender, signIn, storedFiles } from "./sender.ts";

const key = ssh2.utils.generateKeyPairSync("ecdsa", { bits: 256 });
let hub: TestHub;
let sender: SftpSender;
const senders: SftpSender[] = [];

beforeAll(async () => {
  const { users } = rawOptions("", {}) as { users: { username: string }[] };
  hub = await startTestHub({
    transfer: { sftp: { listen: "127.0.0.1:0" }, unfinishedBytes: "1MB", entries: 50, attempts: 3 },
    limits: { file: "500KB" },
    accounts: [
      { id: 1, name: "First" },
      { id: 2, name: "Second", limits: { storedBytes: "1KB" } },
    ],
    users: users.map((user) => (user.username === "pusher" ? { ...user, sshKeys: [key.public] } : user)),
    tokenThrottle: { failures: 4, addressFailures: 1_000 },
  });
});
afterAll(() => hub.close());
beforeEach(async () => {
  for (const one of senders.splice(0)) one.end();
  sender = await connected();
});

async function connected(more: ssh2.ConnectConfig = {}): Promise<SftpSender> {
  const one = await sftpSender(hub, more);
  senders.push(one);
  return one;
}

const named = async (part: string, account = 1) =>
  (await storedFiles(hub, account)).filter(({ fileName }) => fileName.includes(part));

async function contentOf(name: string): Promise<string> {
  const [file] = (await hub.get("/storage", { Filename: name })) as { id: number; fileName: string }[];
  return await hub.get("/storage/file", { ids: file?.id ?? 0 });
}

describe("a file", () => {
  test("is stored when it was closed, and stays listed", async () => {
    await sender.put("/closed.csv", "1;2\n");
    expect(await named("closed.csv")).toEqual([{ fileName: "closed.csv", via: "sftp", size: 4 }]);
    expect(await contentOf("closed.csv")).toBe("1;2\n");
    expect(await sender.names()).toContain("closed.csv");
    expect(await sender.stat("/closed.csv")).toMatchObject({ size: 4, isFolder: false });
    await hub.restart();
    const later = await connected();
    expect(await later.stat("/closed.csv")).toMatchObject({ size: 4 });
    await later.call("unlink", "/closed.csv");
    expect(await later.names()).not.toContain("closed.csv");
    expect(await named("closed.csv")).toHaveLength(1);
  });

  test("of a sub-folder has the folder in its name", async () => {
    await sender.call("mkdir", "/site");
    await sender.call("mkdir", "site/day");
    await sender.put("site/day/a.csv", "a");
    expect(await named("site/")).toEqual([{ fileName: "site/day/a.csv", via: "sftp", size: 1 }]);
    await expect(sender.call("rmdir", "/site")).rejects.toThrow("not empty");
    await sender.call("unlink", "/site/day/a.csv");
    await sender.call("rmdir", "/site/day");
    expect(await sender.names("/site")).toEqual([]);
  });

  test.each(["x.part", "x.TMP", "x.filepart", ".in.x"])(
    "under the temporary name %s waits for its name",
    async (name) => {
      await sender.put(`/${name}`, "whole");
      expect(await named(name)).toEqual([]);
      const target = `renamed-${name.replace(/\W/g, "")}.csv`;
      await sender.call("rename", `/${name}`, `/${target}`);
      expect(await named(target)).toEqual([{ fileName: target, via: "sftp", size: 5 }]);
      expect(await sender.names()).not.toContain(name);
      expect(await sender.names()).toContain(target);
    },
  );

  test("under a temporary name that broke off gets no other name", async () => {
    const handle = await sender.open("/broken.part", "w");
    await sender.write(handle, "beg", 0);
    await expect(sender.call("rename", "/broken.part", "/broken.csv")).rejects.toThrow("being written");
    sender.client.destroy();
    const again = await connected();
    await expect
      .poll(() => again.call("rename", "/broken.part", "/broken.csv").catch((fault: Error) => fault.message))
      .toMatch("not written to its end");
    expect(await named("broken")).toEqual([]);
  });

  test("that broke off is no file, and is continued", async () => {
    const handle = await sender.open("/resumed.csv", "w");
    await sender.write(handle, "012", 0);
    sender.client.destroy();
    const again = await connected();
    expect(await again.stat("/resumed.csv")).toMatchObject({ size: 3 });
    expect(await named("resumed")).toEqual([]);
    const rest = await again.open("/resumed.csv", "r+");
    await again.write(rest, "345", 3);
    await again.close(rest);
    expect(await contentOf("resumed.csv")).toBe("012345");
  });

  test("that broke off is continued after a restart, and at its end with append", async () => {
    const handle = await sender.open("/appended.csv", "w");
    await sender.write(handle, "abc", 0);
    await hub.restart();
    const again = await connected();
    const rest = await again.open("/appended.csv", "a");
    await Promise.all([again.write(rest, "de", 0), again.write(rest, "f", 0)]);
    await again.close(rest);
    expect(await contentOf("appended.csv")).toBe("abcdef");
  });

  test("may be written in any order, and not with a hole", async () => {
    const handle = await sender.open("/order.csv", "w");
    const second = sender.write(handle, "cd", 2);
    await Promise.all([second, sender.write(handle, "ab", 0)]);
    await sender.close(handle);
    expect(await contentOf("order.csv")).toBe("abcd");
    const hole = await sender.open("/hole.csv", "w");
    const ahead = sender.write(hole, "zz", 10);
    await Promise.all([
      expect(ahead).rejects.toThrow("missing from position 0"),
      expect(sender.close(hole)).rejects.toThrow("missing from position 0"),
    ]);
    expect(await named("hole")).toEqual([]);
  });

  test("that is empty does not become a stored one", async () => {
    await sender.put("/empty.csv", "");
    expect(await named("empty")).toEqual([]);
    await sender.put("/empty.csv", "x");
    expect(await named("empty")).toHaveLength(1);
  });

  test("that comes again is stored again", async () => {
    await sender.put("/twice.csv", "1");
    await sender.put("/twice.csv", "22");
    expect((await named("twice")).map(({ size }) => size)).toEqual([1, 2]);
    expect(await sender.stat("/twice.csv")).toMatchObject({ size: 2 });
  });

  test("that was taken is neither continued, renamed, shortened nor read", async () => {
    await sender.put("/taken.csv", "taken");
    await expect(sender.open("/taken.csv", "a")).rejects.toThrow("taken already");
    await expect(sender.open("/taken.csv", "r")).rejects.toThrow("only sent");
    await expect(sender.call("rename", "/taken.csv", "/other.csv")).rejects.toThrow("taken already");
    expect(await named("taken")).toHaveLength(1);
  });

  test("is written by the connection that opened it last", async () => {
    const old = await sender.open("/both.csv", "w");
    await sender.write(old, "old old", 0);
    const other = await connected();
    const own = await other.open("/both.csv", "w");
    await other.write(own, "new", 0);
    await expect(sender.write(old, "more", 7)).rejects.toThrow("another connection");
    await expect(sender.close(old)).rejects.toThrow("another connection");
    await other.close(own);
    expect(await contentOf("both.csv")).toBe("new");
  });

  test("keeps the time that its sender gives it", async () => {
    const handle = await sender.open("/time.csv", "w");
    await sender.write(handle, "x", 0);
    await new Promise((resolve) => sender.sftp.futimes(handle, 1_700_000_000, 1_700_000_000, resolve));
    await sender.close(handle);
    expect(await sender.stat("/time.csv")).toMatchObject({ mtime: 1_700_000_000 });
  });
});

describe("limits", () => {
  test("of a file", async () => {
    const large = Buffer.alloc(600_000, 1);
    await expect(sender.put("/large.bin", large)).rejects.toThrow("larger than 500000 bytes");
    expect(await named("large")).toEqual([]);
    await sender.call("unlink", "/large.bin");
  });

  test("of the account's stored bytes", async () => {
    const second = await connected({ username: "second", password: "second-password" });
    await second.put("/fits.csv", Buffer.alloc(600, 1));
    await expect(second.put("/beyond.csv", Buffer.alloc(600, 2))).rejects.toThrow("would exceed 1000 bytes");
    expect(await named("", 2)).toEqual([{ fileName: "fits.csv", via: "sftp", size: 600 }]);
  });

  test("of unfinished uploads", async () => {
    const part = Buffer.alloc(400_000, 1);
    await sender.put("/one.part", part);
    await sender.put("/two.part", part);
    await expect(sender.put("/three.part", part)).rejects.toThrow("unfinished uploads");
    for (const name of ["one", "two", "three"]) await sender.call("unlink", `/${name}.part`);
    await sender.put("/four.part", part);
    await sender.call("unlink", "/four.part");
  });

  test("of entries", async () => {
    await sender.call("mkdir", "/many");
    const made = Array.from({ length: 60 }, (_, at) => sender.call("mkdir", `/many/${at}`));
    const failed = (await Promise.allSettled(made)).filter(({ status }) => status === "rejected");
    expect(failed.length).toBeGreaterThan(9);
    for (const name of await sender.names("/many")) await sender.call("rmdir", `/many/${name}`);
  });
});

describe("a sender stays in the folder of the account", () => {
  test.each(["../escape.csv", "/../../escape.csv", "a/../../../escape.csv"])("with %s", async (path) => {
    await sender.put(path, "x");
    expect((await named("escape")).at(-1)).toMatchObject({ fileName: "escape.csv" });
  });

  test.each(["a\\b.csv", "C:x.csv", "a\u0001b.csv", `${"x".repeat(256)}.csv`])(
    "and names as %j are refused",
    async (name) => {
      await expect(sender.put(`/${name}`, "x")).rejects.toThrow("the name");
    },
  );

  test("and makes no links", async () => {
    const linked = new Promise<Error | null | undefined>((resolve) =>
      sender.sftp.symlink("/etc", "/etc-link", resolve),
    );
    expect((await linked)?.message).toMatch("unsupported");
    expect(await sender.names()).not.toContain("etc-link");
  });

  test("and sees no other account", async () => {
    const second = await connected({ username: "second", password: "second-password" });
    await sender.put("/mine.csv", "mine");
    expect(await second.names()).not.toContain("mine.csv");
    await expect(second.stat("/../1/mine.csv")).rejects.toThrow("no such file");
  });

  test("and has a folder for each of several accounts", async () => {
    const manager = await connected({ username: "manager", password: "manager-password" });
    expect(await manager.names()).toEqual(["1", "2"]);
    await manager.put("/1/by-manager.csv", "x");
    expect(await named("by-manager")).toHaveLength(1);
    await expect(manager.put("/x.csv", "x")).rejects.toThrow("account");
    await expect(manager.put("/3/x.csv", "x")).rejects.toThrow("no such file");
    await manager.put("/1/move.part", "x");
    await expect(manager.call("rename", "/1/move.part", "/2/move.csv")).rejects.toThrow("stays");
  });
});

describe("sign-in", () => {
  const pusher = { username: "pusher" };

  test("by public key", async () => {
    const own = await connected({ ...pusher, password: "", privateKey: key.private });
    await own.put("/by-key.csv", "x");
    expect(await named("by-key")).toHaveLength(1);
  });

  test("by an unknown key, or the key of another user, fails", async () => {
    const other = generateKeyPairSync("rsa", {
      modulusLength: 2048,
      publicKeyEncoding: { type: "pkcs1", format: "pem" },
      privateKeyEncoding: { type: "pkcs1", format: "pem" },
    });
    const refused = async (config: object) =>
      await expect(signIn(hub, { password: "", ...config })).rejects.toThrow("authentication");
    await refused({ ...pusher, privateKey: other.privateKey });
    await refused({ username: "second", privateKey: key.private });
    await refused({ username: "nobody", privateKey: key.private });
  });

  test("by keyboard-interactive", async () => {
    const client = new ssh2.Client();
    const port = portOf(hub.transfer()?.sftp);
    const ready = new Promise((resolve, reject) => client.on("ready", () => resolve("in")).on("error", reject));
    client.on("keyboard-interactive", (_name, _text, _language, _prompts, answer) => answer(["pusher-password"]));
    client.connect({ host: "127.0.0.1", port, username: "pusher", tryKeyboard: true });
    expect(await ready).toBe("in");
    client.end();
  });

  test("needs the right to push", async () => {
    await expect(signIn(hub, { username: "plain", password: "plain-password" })).rejects.toThrow("authentication");
  });

  test("with wrong passwords is throttled", async () => {
    const wrong = () => signIn(hub, { username: "admin", password: "wrong-password" });
    for (let at = 0; at < 4; at += 1) await expect(wrong()).rejects.toThrow();
    await expect(signIn(hub, { username: "admin", password: "admin-password" })).rejects.toThrow();
    expect(
      (
        await hub.form({
          grant_type: "password",
          client_id: "gateway",
          client_secret: "gateway-secret",
          username: "admin",
          password: "admin-password",
          scope: "datahub-api",
        })
      ).status,
    ).toBe(429);
  });

  test("gives no shell, no command and no forwarding", async () => {
    const { client } = sender;
    const refused = (call: (done: (fault: Error | undefined) => void) => unknown) =>
      new Promise<string | undefined>((resolve) => call((fault) => resolve(fault?.message)));
    expect(await refused((done) => client.exec("id", done))).toMatch("exec");
    expect(await refused((done) => client.shell(done))).toMatch("terminal");
    expect(await refused((done) => client.forwardOut("127.0.0.1", 1, "127.0.0.1", 22, done))).toMatch("open failure");
    expect(await refused((done) => client.forwardIn("127.0.0.1", 0, done))).toMatch("bind");
  });
});
