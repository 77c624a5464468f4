/** The records of stored files, as the contract of the store has them. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { FILE_STATES } from "#hub/files/states.ts";
import { hubOptions } from "#hub/options.ts";
import { openStore } from "#hub/store/open.ts";
import type { HubStore } from "#hub/store/store.ts";
import type { NewFile } from "#hub/store/stored-files.ts";
import { FILE_STATE_NAMES, type FileState } from "#wire/index.ts";
import { rawOptions, temporaryDirectory } from "../fixture.ts";

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let store: HubStore;
beforeEach(async () => {
  directory = await temporaryDirectory();
  store = await openStore(hubOptions.parse(rawOptions(directory.path)).store);
  for (const id of [1, 2]) await store.identity.putAccount({ id, name: `${id}` });
});
afterEach(async () => {
  await store.close();
  await directory.remove();
});

const FILE: NewFile = {
  fileName: "a/x.csv",
  size: 10,
  sha256: "0".repeat(64),
  cloudItemTypeId: "Text",
  contentType: "text/csv",
  tags: ["tag"],
  siteId: null,
  createdBy: "manager",
  via: "sftp",
  createdMs: 1_000,
  isScanned: false,
};

async function added(more: Partial<NewFile> = {}, account = 1): Promise<number> {
  const result = await store.files.add(account, { ...FILE, ...more }, null);
  if (result.kind !== "added") throw new Error(result.kind);
  return result.id;
}

/** Brings a new file into a state by permitted changes. */
async function inState(state: FileState): Promise<number> {
  const id = await added();
  const path: readonly FileState[] =
    state === "received"
      ? []
      : state === "unclaimed"
        ? [state]
        : ["processing", ...(state === "processing" ? [] : [state])];
  for (const step of path)
    expect(await store.files.advance(1, [{ id, state: step, reason: null, atMs: 1 }])).toEqual([true]);
  return id;
}

test("a record keeps what it was given, and what became of it", async () => {
  const id = await added();
  expect(await store.files.one(1, id)).toMatchObject({
    ...FILE_KEPT,
    id,
    accountId: 1,
    state: "received",
    scan: "none",
  });
  const change = { state: "processing", reason: "claimed", atMs: 2_000, run: "run-1", triggerId: 7 } as const;
  expect(await store.files.advance(1, [{ id, ...change }])).toEqual([true]);
  expect(await store.files.advance(1, [{ id, state: "stored", reason: null, atMs: 3_000 }])).toEqual([true]);
  const kept = { state: "stored", reason: null, updatedMs: 3_000, run: "run-1", triggerId: 7 };
  expect(await store.files.one(1, id)).toMatchObject(kept);
  expect(await store.files.one(2, id)).toBe(null);
});
const { isScanned: _, ...FILE_KEPT } = FILE;

test("changes of a list are made in their order, and each has its answer", async () => {
  const [one, other] = [await added(), await added()];
  const to = (id: number, state: FileState) => ({ id, state, reason: null, atMs: 1 });
  const changes = [to(one, "stored"), to(one, "processing"), to(other, "unclaimed"), to(one, "stored")];
  expect(await store.files.advance(1, changes)).toEqual([false, true, true, true]);
  expect(await store.files.one(1, one)).toMatchObject({ state: "stored" });
  expect(await store.files.one(1, other)).toMatchObject({ state: "unclaimed" });
});

test.each(FILE_STATE_NAMES.flatMap((from) => FILE_STATE_NAMES.map((to) => [from, to] as const)))(
  "a change from %s to %s is made if the states permit it",
  async (from, to) => {
    const id = await inState(from);
    const permitted = (FILE_STATES[from].next as readonly FileState[]).includes(to);
    expect(await store.files.advance(1, [{ id, state: to, reason: null, atMs: 2 }])).toEqual([permitted]);
    expect(await store.files.one(1, id)).toMatchObject({ state: permitted ? to : from });
    expect(await store.files.advance(2, [{ id, state: to, reason: null, atMs: 2 }])).toEqual([false]);
  },
);

test.each(FILE_STATE_NAMES)("a file in state %s is offered again if that permits it", async (state) => {
  const id = await inState(state);
  const again = { atMs: 5_000, isScanned: false };
  expect(await store.files.process(2, id, again)).toBe("missing");
  const { mayBeOffered } = FILE_STATES[state];
  expect(await store.files.process(1, id, again)).toBe(mayBeOffered ? "offered" : state);
  const offered = { state: "received", updatedMs: 5_000, run: null, triggerId: null };
  expect(await store.files.one(1, id)).toMatchObject(mayBeOffered ? offered : { state });
});

test("files wait in order, for their account, and until a scan or its end releases them", async () => {
  const first = await added();
  const held = await added({ isScanned: true });
  const last = await added();
  await added({}, 2);
  const waiting = async (limit: number) => (await store.files.waiting(1, limit)).map(({ id }) => id);
  expect(await waiting(10)).toEqual([first, last]);
  expect(await waiting(1)).toEqual([first]);
  expect(await store.files.unscannedAccounts()).toEqual([1]);
  expect((await store.files.unscanned(1, 0))?.id).toBe(held);
  expect(await store.files.unscanned(1, held)).toBeNull();
  expect(await store.files.unscanned(2, 0)).toBeNull();
  await store.files.scanned(1, held, { kind: "clean" }, 9);
  expect(await waiting(10)).toEqual([first, held, last]);
  const infected = { kind: "infected", reason: "EICAR" } as const;
  await store.files.scanned(1, held, infected, 9);
  expect(await store.files.one(1, held)).toMatchObject({ state: "received", scan: "clean" });
  const other = await added({ isScanned: true });
  await store.files.releaseUnscanned();
  expect(await store.files.one(1, other)).toMatchObject({ scan: "none" });
  expect(await waiting(10)).toEqual([first, held, last, other]);
});

test("the bytes of an account are counted, limited and given back, and those of others are not", async () => {
  await added({ size: 60 });
  const second = await added({ size: 40 });
  expect(await store.files.usedBytes(1)).toBe(100);
  expect(await store.files.usedBytes(2)).toBe(0);
  const one = { ...FILE, size: 1 };
  expect(await store.files.add(1, one, 100)).toEqual({ kind: "full" });
  expect(await store.files.add(2, one, 100)).toMatchObject({ kind: "added" });
  expect(await store.files.add(1, one, 101)).toMatchObject({ kind: "added" });
  expect(await store.files.remove(1, [second])).toEqual({ kind: "removed", sha256s: [FILE.sha256] });
  expect(await store.files.usedBytes(1)).toBe(61);
});

test("uploads at the same time do not exceed the limit together", async () => {
  const results = await Promise.all(Array.from({ length: 10 }, () => store.files.add(1, FILE, 55)));
  expect(results.filter(({ kind }) => kind === "added")).toHaveLength(5);
  expect(await store.files.usedBytes(1)).toBe(50);
});

test("a file with a key is stored once in its account, whoever asks and however often", async () => {
  const keyed = { ...FILE, idempotencyKey: "k" };
  const results = await Promise.all(Array.from({ length: 5 }, () => store.files.add(1, keyed, 10)));
  expect(results.map(({ kind }) => kind).sort()).toEqual(["added", ...Array(4).fill("repeated")]);
  expect(new Set(results.map((result) => "id" in result && result.id)).size).toBe(1);
  expect(await store.files.usedBytes(1)).toBe(10);
  const [first] = (await store.files.list(1, {}, { offset: 0, limit: null })).rows;
  const others = [{ sha256: "1".repeat(64) }, { fileName: "b.csv" }, { via: "generic", triggerId: 1 }] as const;
  for (const other of others)
    expect(await store.files.add(1, { ...keyed, ...other }, null)).toEqual({ kind: "conflict", id: first?.id });
  expect(await store.files.add(2, { ...keyed, sha256: "1".repeat(64) }, null)).toMatchObject({ kind: "added" });
  expect(await Promise.all([1, 2, 3].map((account) => store.files.hasKey(account, "k")))).toEqual([true, true, false]);
  await store.files.remove(1, [first?.id ?? 0]);
  expect(await store.files.hasKey(1, "k")).toBe(false);
  expect(await store.files.add(1, keyed, null)).toMatchObject({ kind: "added" });
});

test("a pushed file with a key is the same under another name, and another for another trigger", async () => {
  const pushed = { ...FILE, via: "generic", triggerId: 7, idempotencyKey: "k" } as const;
  const first = await store.files.add(1, pushed, null);
  expect(await store.files.add(1, { ...pushed, fileName: "b.csv" }, null)).toEqual({ ...first, kind: "repeated" });
  expect(await store.files.add(1, { ...pushed, triggerId: 8 }, null)).toEqual({ ...first, kind: "conflict" });
});

test("a removal takes all files, or none when one is not the account's", async () => {
  const own = await added();
  const theirs = await added({ sha256: "1".repeat(64) }, 2);
  expect(await store.files.remove(1, [own, theirs])).toEqual({ kind: "missing", ids: [theirs] });
  expect(await store.files.one(1, own)).not.toBe(null);
  const digests = [FILE.sha256, "1".repeat(64), "2".repeat(64)];
  expect([...(await store.files.referred(digests))].sort()).toEqual(digests.slice(0, 2));
});

test("the store has one id for its folder, for ever", async () => {
  const [one, other] = await Promise.all([store.files.folderId(), store.files.folderId()]);
  expect(one).toBe(other);
  expect(one).toMatch(/^[0-9a-f-]{36}$/);
});
