/** Uploads to a hub that is killed as a power cut would: what was answered stays, and nothing is there by half. */
import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { roundsOf } from "../../e2e/chance.ts";
import { type HubCalls, multipartOf, temporaryDirectory } from "../fixture.ts";
import { HubProcess } from "../hub-process.ts";

const hub = new HubProcess();
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(async () => {
  await hub.end("SIGKILL");
  await directory.remove();
});

const digest = (content: string) => createHash("sha256").update(content).digest("hex");

/** Names of the files below the folder of the stored ones. */
async function onDisk(): Promise<string[]> {
  const all = await readdir(join(directory.path, "files"), { recursive: true, withFileTypes: true });
  return all.filter((entry) => entry.isFile() && entry.name !== "store").map(({ name }) => name);
}

/** Every record has its bytes, and all bytes have a record. */
async function expectWhole(calls: HubCalls): Promise<{ id: number; fileName: string; sha256: string }[]> {
  const records = await calls.get("/storage");
  for (const { id, sha256 } of records) {
    const { status, body } = await calls.call("GET", "/storage/file", { query: { ids: id } });
    expect([status, digest(body)]).toEqual([200, sha256]);
  }
  const needed = [...new Set(records.map(({ sha256 }: { sha256: string }) => sha256))].sort();
  await expect.poll(async () => (await onDisk()).sort()).toEqual(needed);
  return records;
}

test.each([
  ["hub.file.durable", 0],
  ["hub.file.recorded", 1],
])(
  "a hub killed at %s keeps %i records of an upload that was not answered, and nothing by half",
  async (fault, kept) => {
    const dying = await hub.run(directory.path, fault);
    await expect(dying.upload("content", "x.csv")).rejects.toThrow();
    expect(await hub.killed()).toBe("SIGKILL");
    expect(await onDisk()).toEqual([digest("content")]);
    expect(await expectWhole(await hub.run(directory.path))).toHaveLength(kept);
  },
);

test("a hub killed in the middle of a body keeps nothing of it", async () => {
  const calls = await hub.run(directory.path);
  const { raw, headers } = multipartOf("x".repeat(1_000_000));
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(raw.subarray(0, 900_000)),
  });
  const authorization = `Bearer ${await calls.token()}`;
  const init = { method: "POST", headers: { authorization, ...headers }, body, duplex: "half" } as RequestInit;
  const sending = fetch(`${calls.url()}/storage?Filename=x.csv`, init);
  await expect.poll(onDisk).toHaveLength(1);
  await Promise.all([expect(sending).rejects.toThrow(), hub.end("SIGKILL")]);
  expect(await expectWhole(await hub.run(directory.path))).toEqual([]);
});

const ROUNDS = roundsOf(8);
const SENDERS = 4;

test(`a hub killed at ${ROUNDS} random instants keeps every file that it answered`, async () => {
  const answered = new Map<number, string>();
  const removed = new Set<number>();
  for (let round = 0; round < ROUNDS; round += 1) {
    const calls = await hub.run(directory.path);
    await calls.token();
    const before = answered.size;
    const sender = async (at: number) => {
      for (let index = 0; ; index += 1) {
        // Some contents come again and again, from several senders at a time.
        const content = index % 3 === 0 ? `shared ${index % 2}` : `${round} ${at} ${index} `.repeat(1 + index * 500);
        const name = `${at}/${round}-${index}.csv`;
        const answer = await calls.upload(content, name);
        expect(answer.status, JSON.stringify(answer.body)).toBe(200);
        answered.set(answer.body, `${name} ${digest(content)}`);
        if (index % 4 !== 3) continue;
        // Once it is asked for, a removal that was not answered may have happened.
        removed.add(answer.body);
        expect((await calls.call("DELETE", "/storage", { query: { ids: answer.body } })).status).toBe(200);
      }
    };
    const sending = Array.from({ length: SENDERS }, (_, at) => sender(at).catch((thrown: unknown) => thrown));
    // On a busy machine, the first answers may take longer than the pause.
    await expect.poll(() => answered.size, { interval: 5 }).toBeGreaterThan(before + 1);
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 250));
    await hub.end("SIGKILL");
    for (const thrown of await Promise.all(sending)) expect(thrown).toBeInstanceOf(TypeError);
  }
  const records = await expectWhole(await hub.run(directory.path));
  const kept = new Map(records.map(({ id, fileName, sha256 }) => [id, `${fileName} ${sha256}`]));
  const owed = [...answered].filter(([id]) => !removed.has(id));
  expect(owed.length).toBeGreaterThan(ROUNDS);
  expect(owed.filter(([id, words]) => kept.get(id) !== words)).toEqual([]);
  // At most the last of each sender was stored without its answer.
  expect(kept.size - owed.length).toBeLessThanOrEqual(ROUNDS * SENDERS);
}, 900_000);
