/** A hub that is killed while files come by each way: every answered file is stored and mapped, once. */
import { createHash } from "node:crypto";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { testCertificate, testKey } from "../drops/certificate.ts";
import { chanceOf, roundsOf, seedOf } from "../e2e/chance.ts";
import { type HubCalls, temporaryDirectory } from "../hub/fixture.ts";
import { HubProcess } from "../hub/hub-process.ts";
import { shortcuts } from "./rig.ts";
import { type Sent, type Target, WAYS, type Way } from "./stubborn-sender.ts";

const ROUNDS = roundsOf(10);
const listen = "127.0.0.1:0";

let hub: HubProcess;
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let variableId: number;
let token: string;
/** Of all tests of this file. */
const files: Sent[] = [];

beforeAll(async () => {
  directory = await temporaryDirectory();
  const [cert = "", key = ""] = ["cert", "key"].map((name) => join(directory.path, name));
  await writeFile(cert, testCertificate);
  await writeFile(key, testKey);
  hub = new HubProcess("platform", {
    users: ["manager", "pusher"].map((username) => ({
      username,
      password: `${username}-password`,
      accounts: [1],
      roles: [username === "manager" ? "Manager" : "Datapusher"],
    })),
    transfer: { sftp: { listen }, ftp: { listen, tls: { cert, key } } },
  });
  const { calls, ...more } = await run();
  variableId = await more.variable("T-1");
  // A version shows a reading that came twice.
  await calls.ok("PATCH", `/variables/${variableId}`, { body: { isVersioned: true } });
  for (const way of ["storage", "sftp", "ftp"])
    await more.trigger(way, "standard", { ingestionType: way === "storage" ? "UploadInStorage" : "SendViaFtp" });
  const pushed = await more.trigger("generic", "standard", { ingestionType: "SendViaHttp" });
  token = (await calls.get(`/fileTrigger/${pushed}`)).token;
  await hub.end("SIGTERM");
});
afterEach(() => hub.end("SIGKILL"));
afterAll(() => directory.remove());

async function run(fault?: string): Promise<Target & ReturnType<typeof shortcuts>> {
  const calls = await hub.run(directory.path, fault);
  return { calls, transfer: hub.transfer, token, ...shortcuts(calls) };
}

/** One reading with its own value, and in a column that the mapper skips, as many bytes. */
function nextFile(way: Way, bytes: number): Sent {
  const nth = files.length;
  const date = new Date(Date.UTC(2026, 2, 1) + nth * 60_000).toISOString();
  const header = "date,value,source_serial_number,mapping_config,note";
  const content = Buffer.from(`${header}\n${date},${nth},T-1,kWh,${"x".repeat(bytes)}\n`);
  const file = { name: `${way.name}_${nth}.csv`, content, isBegun: false, isAnswered: false };
  files.push(file);
  return file;
}

interface Stored {
  readonly id: number;
  readonly fileName: string;
  readonly sha256: string;
  readonly repeatedDate: string | null;
}

const digest = (content: Buffer) => createHash("sha256").update(content).digest("hex");

/** Answered files are stored once, whole and mapped; of others only such a one whose last step was begun. */
async function expectOnce({ calls, became }: Awaited<ReturnType<typeof run>>): Promise<void> {
  const stored: Stored[] = await calls.get("/storage", { "Paging.ItemsPerPage": 10_000 });
  const byName = Map.groupBy(stored, ({ fileName }) => fileName);
  for (const { name, content, isBegun, isAnswered } of files) {
    const found = byName.get(name) ?? [];
    byName.delete(name);
    const words = `${name}, answered: ${isAnswered}, begun: ${isBegun}, stored: ${JSON.stringify(found)}`;
    expect(found.length, words).toBeGreaterThanOrEqual(isAnswered ? 1 : 0);
    expect(found.length, words).toBeLessThanOrEqual(isBegun ? 1 : 0);
    for (const { sha256 } of found) expect(sha256, name).toBe(digest(content));
  }
  expect([...byName.keys()]).toEqual([]);
  await expect.poll(onDisk).toEqual(stored.map(({ sha256 }) => sha256).sort());
  for (const { id } of stored) await became(id, "stored");
  await expectReadings(calls, stored.length);
}

/** Names of the files that hold the bytes of stored files. */
async function onDisk(): Promise<string[]> {
  const all = await readdir(join(directory.path, "files"), { recursive: true, withFileTypes: true });
  const names = all.filter((entry) => entry.isFile() && entry.name !== "store").map(({ name }) => name);
  return names.sort();
}

async function expectReadings(calls: HubCalls, count: number): Promise<void> {
  const query = { VariableId: variableId, AllVersions: true, "Paging.ItemsPerPage": 10_000 };
  const rows: { rawValue: number }[] = await calls.get("/data", query);
  for (const [value, versions] of Map.groupBy(rows, ({ rawValue }) => rawValue))
    expect(versions, `versions of ${value}`).toHaveLength(1);
  expect(rows).toHaveLength(count);
}

test.each([
  ["sftp", "hub.file.durable"],
  ["sftp", "hub.file.recorded"],
  ["sftp", "hub.transfer.marked"],
  ["sftp-part", "hub.transfer.taken"],
  ["sftp-part", "hub.transfer.marked"],
  ["ftp", "hub.transfer.taken"],
  ["ftp-part", "hub.file.recorded"],
])("by %s, a hub killed at %s has the file once when its sender repeats it", async (name, fault) => {
  const way = WAYS.find((one) => one.name === name);
  if (way === undefined) throw new Error(name);
  const file = nextFile(way, 20_000);
  await expect(way.send(await run(fault), file, () => 1)).rejects.toThrow();
  expect(await hub.killed()).toBe("SIGKILL");
  const target = await run();
  await way.send(target, file, () => 1);
  file.isAnswered = true;
  await expectOnce(target);
});

/** Sends files until `isOver`, the first one again that was not answered. */
async function sendAll(
  way: Way,
  target: Target,
  chance: () => number,
  unfinished: Map<Way, Sent>,
  isOver: () => boolean,
) {
  // A client may wait for a server that is gone.
  const gone = hub.killed().then(async () => {
    await sleep(5_000);
    throw new Error("the hub is gone");
  });
  gone.catch(() => null);
  do {
    const file = unfinished.get(way) ?? nextFile(way, Math.floor(chance() ** 2 * 400_000));
    unfinished.set(way, file);
    try {
      await Promise.race([way.send(target, file, chance), gone]);
      file.isAnswered = true;
    } catch (thrown) {
      // Nothing but the end of the hub is a reason.
      if ((await Promise.race([hub.killed(), sleep(20_000)])) !== "SIGKILL") throw thrown;
      if (chance() < 0.8) return;
    }
    unfinished.delete(way);
  } while (!isOver());
}

test(`a hub killed at ${ROUNDS} random instants has every answered file once`, { timeout: 3_600_000 }, async () => {
  const seed = seedOf("upload kills");
  const chance = chanceOf(seed);
  const senders = WAYS.map((way, at) => ({ way, chance: chanceOf(seed + at + 1) }));
  const unfinished = new Map<Way, Sent>();
  const sendFrom = (target: Target, isOver: () => boolean) =>
    Promise.all(senders.map((sender) => sendAll(sender.way, target, sender.chance, unfinished, isOver)));
  for (let round = 0; round < ROUNDS; round += 1) {
    let isOver = false;
    const sending = sendFrom(await run(), () => isOver);
    await sleep(50 + chance() * 1_500);
    isOver = true;
    await hub.end("SIGKILL");
    await sending;
  }
  const last = await run();
  await sendFrom(last, () => true);
  await expectOnce(last);
  const answered = files.filter(({ isAnswered }) => isAnswered).length;
  const stored: Stored[] = await last.calls.get("/storage", { "Paging.ItemsPerPage": 10_000 });
  const again = stored.filter(({ repeatedDate }) => repeatedDate !== null).length;
  process.stderr.write(`upload kills: ${answered} of ${files.length} files were answered, ${again} came again\n`);
  expect(answered).toBeGreaterThan(ROUNDS);
});
