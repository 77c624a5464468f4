/** A file that comes again: from a sender that did not get the answer it is the same one, and otherwise another. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestHub, type TestHub } from "../fixture.ts";
import { rawSender } from "./raw-ftp.ts";
import { portOf, sftpSender } from "./sender.ts";

let hub: TestHub;
const listen = "127.0.0.1:0";
const SECOND = { username: "second", password: "second-password" };

beforeAll(async () => {
  hub = await startTestHub({
    transfer: { sftp: { listen }, ftp: { listen } },
    accounts: [
      { id: 1, name: "First" },
      { id: 2, name: "Second", limits: { storedBytes: "1KB" } },
    ],
  });
});
afterAll(() => hub.close());

interface Stored {
  readonly id: number;
  readonly repeatedDate: string | null;
}

const named = (name: string, account = 1): Promise<Stored[]> => hub.get("/storage", { FileName: name }, { account });
const countOf = async (name: string) => (await named(name)).length;

/** Gets the answer; the hub, which hears no more of its sender, cannot know. */
async function lost(name: string, content: string | Buffer, more: object = {}, at: TestHub = hub): Promise<void> {
  const sender = await sftpSender(at, more);
  await sender.put(`/${name}`, content);
  sender.client.destroy();
}

async function answered(name: string, content: string): Promise<void> {
  const sender = await sftpSender(hub);
  await sender.put(`/${name}`, content);
  await sender.stat(`/${name}`);
  sender.end();
}

test("a file whose answer was lost is stored once, and its record says that it came again", async () => {
  await lost("lost.csv", "1");
  expect(await named("lost.csv")).toMatchObject([{ repeatedDate: null }]);
  await lost("lost.csv", "1");
  await hub.restart();
  await lost("lost.csv", "1");
  expect(await named("lost.csv")).toMatchObject([{ repeatedDate: expect.stringMatching(/^\d{4}-/) }]);
});

test("a file whose sender asked for something further is stored again, also after a restart", async () => {
  for (let count = 1; count <= 3; count += 1) {
    await answered("known.csv", "1");
    expect(await countOf("known.csv")).toBe(count);
    await hub.restart();
  }
});

test("by FTP, any further command shows that the answer has arrived", async () => {
  const stored = async (more: readonly string[]) => {
    const raw = await rawSender(portOf(hub.transfer()?.ftp));
    const data = await raw.open();
    await raw.say("STOR by-ftp.csv", "150");
    data.end("1");
    await raw.until("226");
    for (const line of more) await raw.say(line, "221");
    raw.close();
  };
  await stored([]);
  await stored(["QUIT"]);
  expect(await countOf("by-ftp.csv")).toBe(1);
  await stored([]);
  expect(await countOf("by-ftp.csv")).toBe(2);
});

test("a sender that goes back to an earlier content has it stored again", async () => {
  for (const content of ["one", "two", "one"]) await lost("back.csv", content);
  expect(await countOf("back.csv")).toBe(3);
});

test("a file that no trigger claimed is stored again", async () => {
  await lost("unclaimed.csv", "1");
  const [first] = await named("unclaimed.csv");
  await hub.inside().store.files.advance(1, [{ id: first?.id ?? 0, state: "unclaimed", reason: null, atMs: 1 }]);
  await lost("unclaimed.csv", "1");
  expect(await countOf("unclaimed.csv")).toBe(2);
});

test("a file whose answer was lost is answered again when it has used up the quota", async () => {
  await lost("most.csv", Buffer.alloc(900, 1), SECOND);
  await lost("most.csv", Buffer.alloc(900, 1), SECOND);
  await expect(lost("most.csv", Buffer.alloc(900, 2), SECOND)).rejects.toThrow("would exceed 1000 bytes");
  expect(await named("most.csv", 2)).toHaveLength(1);
});

test("a name that was renamed to is stored once, too", async () => {
  for (let round = 0; round < 2; round += 1) {
    const sender = await sftpSender(hub);
    await sender.put("/renamed.part", "1");
    await sender.call("rename", "/renamed.part", "/renamed.csv");
    sender.client.destroy();
  }
  expect(await named("renamed.csv")).toHaveLength(1);
});

test("with `repeats: 0s` every file is another", async () => {
  const other = await startTestHub({ transfer: { sftp: { listen }, repeats: "0s" } });
  try {
    for (let round = 0; round < 2; round += 1) await lost("twice.csv", "1", {}, other);
    expect(await other.get("/storage", { FileName: "twice.csv" })).toHaveLength(2);
  } finally {
    await other.close();
  }
});

test("a name that is renamed to is answered again when its file has used up the quota", async () => {
  for (let round = 0; round < 2; round += 1) {
    const sender = await sftpSender(hub, SECOND);
    await sender.put("/rest.csv.part", Buffer.alloc(100, 1));
    await sender.call("rename", "/rest.csv.part", "/rest.csv");
    sender.client.destroy();
  }
  expect(await named("rest.csv", 2)).toHaveLength(1);
});
