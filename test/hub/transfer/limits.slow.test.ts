/** Connections that do nothing, or are too many, and configurations that cannot start. */
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createConnection } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { hubOptions } from "#hub/options.ts";
import { startTransfer } from "#hub/transfer/transfer.ts";
import { rawOptions, startTestHub, type TestHub, temporaryDirectory } from "../fixture.ts";
import { type RawFtp, rawFtp, rawSender } from "./raw-ftp.ts";
import { portOf, sftpSender, signIn, storedFiles } from "./sender.ts";

const hubs: TestHub[] = [];
afterEach(async () => {
  for (const hub of hubs.splice(0)) await hub.close();
});

async function hubWith(transfer: object, more: object = {}): Promise<TestHub> {
  const hub = await startTestHub({ ...more, transfer: { sftp: { listen: "127.0.0.1:0" }, ...transfer } });
  hubs.push(hub);
  return hub;
}

test("an idle connection is ended, and one that does not sign in", async () => {
  const hub = await hubWith({ idle: "1s", signIn: "1s" });
  const sender = await sftpSender(hub);
  const closed = once(sender.client, "close");
  const silent = createConnection(portOf(hub.transfer()?.sftp), "127.0.0.1").resume();
  await Promise.all([closed, once(silent, "close")]);
});

test("a stalled upload is cut, and can be continued", async () => {
  const hub = await hubWith({ stalled: "1s" });
  const sender = await sftpSender(hub);
  const handle = await sender.open("/stalled.csv", "w");
  await sender.write(handle, "abc", 0);
  await once(sender.client, "close");
  const again = await sftpSender(hub);
  expect(await again.stat("/stalled.csv")).toMatchObject({ size: 3 });
  expect(await storedFiles(hub)).toEqual([]);
  again.end();
});

const ftp = { listen: "127.0.0.1:0" };

async function sizeBy(raw: RawFtp, name: string): Promise<number> {
  return Number(/213 (\d+)/.exec(await raw.say(`SIZE ${name}`, "213"))?.[1]);
}

test("by FTP, an idle connection is ended, and one that does not sign in", async () => {
  const hub = await hubWith({ ftp, idle: "1s", signIn: "1s" });
  const port = portOf(hub.transfer()?.ftp);
  const raws = [await rawSender(port), await rawFtp(port)];
  await expect.poll(() => raws.map(({ socket }) => socket.destroyed)).toEqual([true, true]);
});

test("by FTP, a stalled upload is cut, and can be continued", async () => {
  const hub = await hubWith({ ftp, stalled: "1s" });
  const port = portOf(hub.transfer()?.ftp);
  const raw = await rawSender(port);
  const data = await raw.open();
  await raw.say("STOR stalled.csv", "150");
  data.write("abc");
  await expect.poll(() => [raw.socket.destroyed, data.destroyed]).toEqual([true, true]);
  const again = await rawSender(port);
  expect(await sizeBy(again, "stalled.csv")).toBe(3);
  expect(await storedFiles(hub)).toEqual([]);
  const rest = await again.open();
  await again.say("APPE stalled.csv", "150");
  rest.end("def");
  await again.until("226");
  expect(await storedFiles(hub)).toEqual([{ fileName: "stalled.csv", via: "ftp", size: 6 }]);
  again.close();
});

test("by FTP, a data connection that does not come is given up, and the session stays", async () => {
  const hub = await hubWith({ ftp, stalled: "1s" });
  const raw = await rawSender(portOf(hub.transfer()?.ftp));
  await raw.say("EPSV", "229");
  await raw.say("STOR never.csv", "425");
  await raw.say("NOOP", "200");
  expect(await storedFiles(hub)).toEqual([]);
  raw.close();
});

describe("the quota of the account refuses an upload before its end", () => {
  const QUOTA = 100_000;
  const SECOND = { id: 2, name: "Second" };
  const own = () => hubWith({ ftp }, { accounts: [account(QUOTA), SECOND] });
  const account = (storedBytes: number) => ({ id: 1, name: "First", limits: { storedBytes: `${storedBytes}B` } });
  const words = `would exceed ${QUOTA} bytes`;

  test("and is asked for once by an upload, also under a temporary name, and by one beyond it at its end", async () => {
    const hub = await own();
    const asked = vi.spyOn(hub.inside().store.files, "usedBytes");
    const sender = await sftpSender(hub);
    await sender.put("/short.csv", "x".repeat(40_000));
    expect(asked).toHaveBeenCalledTimes(1);
    await sender.put("/later.csv.part", "x".repeat(40_000));
    await sender.call("rename", "/later.csv.part", "/later.csv");
    expect(asked).toHaveBeenCalledTimes(2);
    // Another way uses the quota up between the first byte and the last.
    const handle = await sender.open("/last.csv", "w");
    await sender.write(handle, "x".repeat(15_000), 0);
    expect((await hub.upload("x".repeat(10_000), { Filename: "other.csv" })).status).toBe(200);
    await expect(sender.close(handle)).rejects.toThrow(words);
    expect(await storedFiles(hub)).toHaveLength(3);
    sender.end();
  });

  test("by SFTP, at the first byte too many", async () => {
    const hub = await own();
    const sender = await sftpSender(hub);
    const handle = await sender.open("/long.csv", "w");
    await sender.write(handle, "x".repeat(60_000), 0);
    await expect(sender.write(handle, "x".repeat(60_000), 60_000)).rejects.toThrow(words);
    await expect(sender.close(handle)).rejects.toThrow(words);
    sender.end();
  });

  test("by FTP, while the sender still writes, and once it is used up before a byte is sent", async () => {
    const hub = await own();
    const raw = await rawSender(portOf(hub.transfer()?.ftp));
    const data = await raw.open();
    data.on("error", () => null);
    await raw.say("STOR long.csv", "150");
    // Never ended: the refusal does not wait for that.
    data.write(Buffer.alloc(QUOTA + 1));
    await raw.until("552");
    expect(raw.received()).toContain(words);
    await hub.upload("x".repeat(QUOTA), "all.csv");
    await raw.open();
    await raw.say("STOR other.csv", "552");
    await raw.say("STOR other.csv.part", "552");
    raw.close();
  });

  test("when other files use it up meanwhile", async () => {
    const hub = await hubWith({ ftp }, { accounts: [account(30_000_000), SECOND] });
    const raw = await rawSender(portOf(hub.transfer()?.ftp));
    const data = await raw.open();
    data.on("error", () => null);
    await raw.say("STOR long.csv", "150");
    data.write(Buffer.alloc(1_000));
    await expect.poll(() => sizeOnDisk(hub, "long.csv")).toBe(1_000);
    await hub.upload("x".repeat(25_000_000), "other.csv");
    data.write(Buffer.alloc(20_000_000));
    await raw.until("552");
    expect(await storedFiles(hub)).toMatchObject([{ fileName: "other.csv" }]);
    raw.close();
  });

  async function sizeOnDisk(hub: TestHub, name: string): Promise<number> {
    const raw = await rawSender(portOf(hub.transfer()?.ftp));
    try {
      return await sizeBy(raw, name);
    } finally {
      raw.close();
    }
  }
});

test("connections beyond the limit are closed", async () => {
  const hub = await hubWith({ connectionsPerAddress: 1 });
  const sender = await sftpSender(hub);
  await expect(signIn(hub)).rejects.toThrow();
  const ended = once(sender.client, "close");
  sender.end();
  await ended;
  const accepted = () =>
    signIn(hub).then(
      (client) => Boolean(client.end()),
      () => false,
    );
  await expect.poll(accepted).toBe(true);
});

describe("connections of one account beyond its limit are ended after the sign-in", () => {
  const user = (username: string, accounts: readonly number[]) => ({
    ...{ username, password: `${username}-password`, accounts: [...accounts], roles: ["Datapusher"] },
  });
  const users = [user("pusher", [1]), user("second", [2]), user("both", [1, 2])];
  const of = (username: string) => ({ username, password: `${username}-password` });

  test("by SFTP, and those of another account are not", async () => {
    const hub = await hubWith({ connectionsPerAccount: 2 }, { users });
    const own = [await sftpSender(hub), await sftpSender(hub)];
    await expect(sftpSender(hub)).rejects.toThrow();
    const other = await sftpSender(hub, of("second"));
    await other.put("/other.csv", "1");
    const both = await sftpSender(hub, of("both"));
    await expect(sftpSender(hub, of("second"))).rejects.toThrow();
    const ended = once(own[0]!.client, "close");
    own[0]!.end();
    await ended;
    // The third is the user of both accounts.
    both.end();
    const again = () =>
      sftpSender(hub).then(
        (sender) => Boolean(own.push(sender)),
        () => false,
      );
    await expect.poll(again).toBe(true);
    for (const sender of [...own, other]) sender.end();
  });

  test("by FTP with the reason, and never more than half of all", async () => {
    const hub = await hubWith({ ftp, connections: 4 }, { users });
    const port = portOf(hub.transfer()?.ftp);
    const own = [await rawSender(port), await rawSender(port)];
    const third = await rawFtp(port);
    await third.say("USER pusher", "331");
    expect(await third.say("PASS pusher-password", "421")).toContain("the account has too many connections");
    await expect.poll(() => third.socket.destroyed).toBe(true);
    const other = await rawFtp(port);
    await other.say("USER second", "331");
    await other.say("PASS second-password", "230");
    for (const raw of [...own, other]) raw.close();
  });
});

test("a broken-off upload is removed after its time, as is the mark of a taken file", async () => {
  const hub = await hubWith({ keepUnfinished: "1ms", keepListed: "1ms" });
  const sender = await sftpSender(hub);
  await sender.put("/taken.csv", "x");
  await sender.put("/unfinished.part", "x");
  await sender.call("mkdir", "/folder");
  sender.end();
  await hub.restart();
  const again = await sftpSender(hub);
  expect(await again.names()).toEqual(["folder"]);
  expect(await storedFiles(hub)).toHaveLength(1);
  again.end();
});

test("of the taken files the newest stay listed", async () => {
  const hub = await hubWith({ listed: 10 });
  const sender = await sftpSender(hub);
  for (let at = 10; at < 22; at += 1) await sender.put(`/${at}.csv`, `${at}`);
  const names = await sender.names();
  expect(names.length).toBeLessThanOrEqual(11);
  expect(names.at(-1)).toBe("21.csv");
  expect(await storedFiles(hub)).toHaveLength(12);
  sender.end();
});

test.each([
  ["missing", null, "does not exist"],
  ["no key", "no key", "cannot be read"],
])("a host key that is %s stops the start", async (_name, content, words) => {
  const directory = await temporaryDirectory();
  const path = join(directory.path, "key");
  if (content !== null) await writeFile(path, content);
  await expect(hubWith({ sftp: { listen: "127.0.0.1:0", hostKeys: [path] } })).rejects.toThrow(words);
  await directory.remove();
});

test("with a database that hubs share, the folder of uploads has to be named", async () => {
  const store = { kind: "postgres", url: "postgres://hub@127.0.0.1/hub" };
  const options = hubOptions.parse({ ...rawOptions("", { transfer: { path: undefined } }), store });
  await expect(startTransfer({ options } as Parameters<typeof startTransfer>[0])).rejects.toThrow("transfer.path");
});

test("a port that is taken stops the start", async () => {
  const hub = await hubWith({});
  const listen = hub.transfer()?.sftp;
  await expect(hubWith({ sftp: { listen } })).rejects.toThrow("transfer.sftp.listen");
});
