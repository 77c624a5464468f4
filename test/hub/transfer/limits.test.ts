/** Connections that do nothing, or are too many, and configurations that cannot start. */
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createConnection } from "node:net";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { hubOptions } from "../../../src/hub/options.ts";
import { startTransfer } from "../../../src/hub/transfer/transfer.ts";
import { rawOptions, startTestHub, type TestHub, temporaryDirectory } from "../fixture.ts";
import { portOf, sftpSender, signIn, storedFiles } from "./sender.ts";

const hubs: TestHub[] = [];
afterEach(async () => {
  for (const hub of hubs.splice(0)) await hub.close();
});

async function hubWith(transfer: object): Promise<TestHub> {
  const hub = await startTestHub({ transfer: { sftp: { listen: "127.0.0.1:0" }, ...transfer } });
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
