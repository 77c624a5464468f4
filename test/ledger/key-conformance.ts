/** Idempotency-Keys follow from what is delivered, so that a ledger that was lost is made up for. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { openSqliteLedger } from "#gateway/ledger/sqlite/open.ts";
import type { Arrival, Binding, FileEntry, Run } from "#gateway/model.ts";
import { BINDING, claimed, deliver, list, record, slice, steppingClock } from "./fixtures.ts";

/** A file that was fetched and mapped; its keys. */
async function keysOf(
  ledger: Ledger,
  file: Partial<FileEntry> & { readonly path: string },
  binding: Binding = ADDRESSED,
): Promise<readonly string[]> {
  const { sightings } = await list(ledger, "field", [{ size: 100, mtime: "1", ...file }]);
  const run = await ledger.openRun(sightings[0]?.arrival.id ?? 0, binding, "lane");
  await ledger.advanceRun(run.id, "claimed", "fetched", { sha256: "sha" });
  await ledger.advanceRun(run.id, "fetched", "mapping");
  await ledger.recordMapped(run.id, record(["A"], [slice("1"), slice("2")]));
  const batches = await ledger.batches(run.id);
  await deliver(ledger, await mustRun(ledger, run.id));
  await list(ledger, "field", []);
  return batches.map(({ idempotencyKey }) => idempotencyKey);
}

const ADDRESSED: Binding = { ...BINDING, address: "sftp://plant:22/out" };

async function mustRun(ledger: Ledger, id: string): Promise<Run> {
  const run = await ledger.run(id);
  if (run === null) throw new Error(`no run ${id}`);
  return run;
}

export function keyConformance(ledger: () => Ledger): void {
  /** As another gateway, or one whose ledger was lost, makes them. */
  const elsewhere = async (file: Partial<FileEntry> & { readonly path: string }, binding = ADDRESSED) => {
    const folder = await mkdtemp(join(tmpdir(), "headgate-"));
    const other = await openSqliteLedger({ path: join(folder, "ledger.sqlite"), clock: steppingClock() });
    try {
      return await keysOf(other, file, binding);
    } finally {
      await other.close();
      await rm(folder, { recursive: true });
    }
  };

  it("are those that any other ledger makes of a delivery, and differ with file, binding and occurrence", async () => {
    const first = await keysOf(ledger(), { path: "a.csv" });
    expect(new Set(first).size).toBe(2);
    expect(await elsewhere({ path: "a.csv" })).toEqual(first);
    const renamed = { ...ADDRESSED, trigger: "renamed", service: "other", address: "sftp://plant:22" };
    expect(await elsewhere({ path: "out/a.csv" }, renamed), "the same file of the same server").toEqual(first);
    const settings = { b: 1, a: 2 };
    expect(await elsewhere({ path: "a.csv" }, { ...ADDRESSED, settings: { a: 2, b: 1 } })).toEqual(
      await elsewhere({ path: "a.csv" }, { ...ADDRESSED, settings }),
    );
    const others = [
      await keysOf(ledger(), { path: "a.csv" }),
      await elsewhere({ path: "b.csv" }),
      await elsewhere({ path: "a.csv", mtime: "2" }),
      await elsewhere({ path: "a.csv", size: 101 }),
      await elsewhere({ path: "a.csv" }, { ...ADDRESSED, address: "sftp://plant:23/out" }),
      await elsewhere({ path: "a.csv" }, { ...ADDRESSED, mapper: { ...ADDRESSED.mapper, digest: "d2" } }),
      await elsewhere({ path: "a.csv" }, { ...ADDRESSED, settings }),
      await elsewhere({ path: "a.csv" }, { ...ADDRESSED, limits: { ...ADDRESSED.limits, pointsMax: 7 } }),
      await elsewhere({ path: "a.csv" }, { ...ADDRESSED, version: { tag: "T" } }),
    ];
    expect(new Set([...first, ...others.flat()]).size).toBe(20);
  });

  it("do not count an earlier arrival of the same version of which nothing was sent", async () => {
    const run = await claimed(ledger(), "a.csv", "lane", ADDRESSED);
    const reason = { code: "HG-MAP-002", message: "the mapper refused it" };
    await ledger().advanceRun(run.id, "claimed", "quarantined", { sha256: "sha", reason });
    await list(ledger(), "field", []);
    const { size, mtime } = run;
    expect(await keysOf(ledger(), { path: "a.csv", size, mtime })).toEqual(
      await elsewhere({ path: "a.csv", size, mtime }),
    );
  });

  it("are others for a file that was forgotten, and the operation ids for a drop without an address", async () => {
    const first = await keysOf(ledger(), { path: "a.csv" });
    for (const { id } of await ledger().recentRuns(10, ["accepted"]))
      await ledger().noteRun(id, { settled: true, finished: { at: "2026-03-01T00:00:00.000Z", left: true } });
    await ledger().forget("field", "a.csv", { by: "ops", why: "" });
    const second = await keysOf(ledger(), { path: "a.csv" });
    expect(second).not.toEqual(first);
    const [own] = await keysOf(ledger(), { path: "b.csv" }, BINDING);
    const run = await ledger().runOfOperation(own ?? "");
    expect(own).toBe(`${run?.id}-1`);
  });

  it("are compared first where an older copy of the ledger knows that the file was delivered", async () => {
    await keysOf(ledger(), { path: "a.csv" });
    const [before] = await ledger().recentRuns(1);
    const duplicates = async () => {
      const { sightings } = await list(ledger(), "field", [{ path: "a.csv", size: 100, mtime: "1" }]);
      const found = await ledger().duplicateOf(sightings[0]?.arrival as Arrival, "sha");
      await list(ledger(), "field", []);
      return found?.id;
    };
    expect(await ledger().noteOlderCopy(before?.id ?? "")).toBe(false);
    expect(await duplicates()).toBe(before?.arrivalId);
    expect(await ledger().noteOlderCopy("zz")).toBe(true);
    expect(await ledger().noteOlderCopy("zz")).toBe(false);
    expect(await duplicates()).toBeUndefined();
    await keysOf(ledger(), { path: "a.csv" });
    const [run] = await ledger().recentRuns(1);
    const operation = `${before?.id}-2`;
    expect(await ledger().batches(run?.id ?? "")).toMatchObject([{ repeats: operation }, { repeats: operation }]);
    expect(await duplicates(), "what came since is known").toBe(run?.arrivalId);
  });

  it("of children follow from their parent's, and a renewed one from the one before", async () => {
    const start = async (path: string) => {
      const run = await claimed(ledger(), path, "lane", ADDRESSED);
      await ledger().advanceRun(run.id, "claimed", "fetched", { sha256: path });
      await ledger().advanceRun(run.id, "fetched", "mapping");
      await ledger().recordMapped(run.id, record(["A"]));
      await ledger().advanceBatch(`${run.id}-1`, "ready", "sending", { attempted: true });
      return `${run.id}-1`;
    };
    const id = await start("a.csv");
    const [parent] = await ledger().batches(id.slice(0, -2));
    const children = await ledger().splitBatch(id, [slice("1.1", 6), slice("1.2", 4)], "some are there", "earlier-1");
    expect(children).toMatchObject([{ repeats: "earlier-1" }, { repeats: "earlier-1" }]);
    expect(new Set([parent, ...children].map((batch) => batch?.idempotencyKey)).size).toBe(3);
    const again = await start("b.csv");
    const [before] = await ledger().batches(again.slice(0, -2));
    const renewed = await ledger().renewKey(again, "nothing is there");
    expect(renewed).toMatchObject({ state: "ready", operationId: again, answer: "nothing is there" });
    expect(renewed.idempotencyKey).not.toBe(before?.idempotencyKey);
    expect(await ledger().batches(again.slice(0, -2))).toEqual([renewed]);
    await ledger().advanceRun(again.slice(0, -2), "mapped", "delivering");
    await ledger().advanceBatch(again, "ready", "sending", { attempted: true });
    const run = await ledger().acceptBatch(again, "already delivered", { service: "main" }, "earlier-2");
    expect((await ledger().events(run?.arrivalId ?? 0)).at(-1)?.detail).toBe(
      "10 points accepted by main, 10 of which were already delivered by earlier-2",
    );
  });
}
