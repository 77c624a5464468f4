/** Sessions of SFTP and FTP that were opened before the user lost the right, the account or the password. */
import { once } from "node:events";
import { afterEach, expect, test } from "vitest";
import { putMembership, removeMembership, setPassword, setState } from "#hub/store/people/users.ts";
import type { HubStore } from "#hub/store/store.ts";
import { startTestHub, type TestHub } from "../fixture.ts";
import { type RawFtp, rawSender } from "./raw-ftp.ts";
import { portOf, type SftpSender, sftpSender, storedFiles } from "./sender.ts";

const listen = "127.0.0.1:0";
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const LOSSES = {
  deactivation: (id: number) => setState(id, "Inactive"),
  "another password": (id: number) => setPassword(id, "another"),
  "a lost role": (id: number) => putMembership(id, { accountId: 1, roles: ["User"], origin: "people" }),
  "an account left": (id: number) => removeMembership(id, 1),
};

async function started() {
  const hub = await startTestHub({ transfer: { sftp: { listen }, ftp: { listen } } });
  closers.push(() => hub.close());
  const { people } = hub.inside().store as HubStore;
  const lose = async (how: keyof typeof LOSSES) => {
    const user = await people.userByName("pusher");
    await people.change(function* () {
      yield* LOSSES[how](user?.id ?? 0);
    });
  };
  return { hub, lose };
}

async function bySftp(hub: TestHub): Promise<SftpSender> {
  const sender = await sftpSender(hub);
  closers.push(() => sender.end());
  return sender;
}

async function byFtp(hub: TestHub): Promise<RawFtp> {
  const raw = await rawSender(portOf(hub.transfer()?.ftp));
  closers.push(() => raw.close());
  return raw;
}

const names = Object.keys(LOSSES) as (keyof typeof LOSSES)[];

test.each(names)("after %s an open SFTP session stores and shows nothing", async (how) => {
  const { hub, lose } = await started();
  const sender = await bySftp(hub);
  await sender.put("/before.csv", "1");
  await sender.put("/waiting.part", "1");
  const opened = await sender.open("/opened.csv", "w");
  await sender.write(opened, "1", 0);
  await lose(how);
  const refused = { message: /deactivated|sign in again|no longer send files/ };
  await expect(sender.close(opened)).rejects.toMatchObject(refused);
  await expect(sender.open("/later.csv", "w")).rejects.toMatchObject(refused);
  await expect(sender.call("rename", "/waiting.part", "/waiting.csv")).rejects.toMatchObject(refused);
  await expect(sender.call("unlink", "/before.csv")).rejects.toMatchObject(refused);
  await expect(sender.names()).rejects.toMatchObject(refused);
  expect(await storedFiles(hub)).toEqual([{ fileName: "before.csv", via: "sftp", size: 1 }]);
});

test.each(names)("after %s an open FTP session stores and shows nothing", async (how) => {
  const { hub, lose } = await started();
  const raw = await byFtp(hub);
  const data = await raw.open();
  await raw.say("STOR opened.csv", "150");
  await lose(how);
  data.end("1");
  await once(data, "close");
  await raw.until("550");
  await raw.open();
  await raw.say("STOR later.csv", "550");
  await raw.say("MKD later", "550");
  await raw.say("MLST /", "550");
  expect(await storedFiles(hub)).toEqual([]);
});
