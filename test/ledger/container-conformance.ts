/** What a ledger knows of containers and their entries. */
import { expect, it } from "vitest";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import type { Run } from "#gateway/model.ts";
import { BINDING, claimed, deliver, entry, list, mapped, record, sight } from "./fixtures.ts";

const NOW = "2026-03-01T00:00:00.000Z";
const ALWAYS = "1970-01-01T00:00:00.000Z";

export function containerConformance(ledger: () => Ledger): void {
  const opened = async (names: readonly string[]): Promise<Run> => {
    const run = await claimed(ledger(), "in/box.zip");
    await ledger().advanceRun(run.id, "claimed", "fetched", { sha256: "sha-box" });
    const contents = names.map((name) => ({ path: name, size: 7 }));
    return ledger().recordOpened(run.id, contents, `${names.length} entries`);
  };
  const entries = (container: Run) => ledger().entries(container.arrivalId);
  const claimEntry = async (container: Run, nth: number): Promise<Run> => {
    const one = (await entries(container)).unclaimed[nth];
    if (one === undefined) throw new Error("no such entry");
    return ledger().openRun(one.id, BINDING, "lane");
  };
  const finish = (run: Run) => ledger().noteRun(run.id, { finished: { at: NOW, left: false } });
  const rest = (container: Run) => ledger().noteRun(container.id, { settled: true });
  const STAYS = { code: "HG-PACK-008", message: "it stays" };
  const isOpen = async (container: Run) =>
    (await ledger().runsIn(["opened"], { unsettled: true })).some(({ id }) => id === container.id);

  it("makes each entry an arrival inside its container", async () => {
    const container = await opened(["a.csv", "deep/b.csv"]);
    expect(container.state).toBe("opened");
    const { unclaimed } = await entries(container);
    expect(unclaimed).toMatchObject([
      { path: "in/box.zip!/a.csv", parentId: container.arrivalId, state: "settling", size: 7, drop: "field" },
      { path: "in/box.zip!/deep/b.csv", parentId: container.arrivalId },
    ]);
    expect((await ledger().trace("b.csv")).map(({ arrival }) => arrival.id)).toEqual([unclaimed[1]?.id]);
    expect((await ledger().trace("box.zip")).map(({ arrival }) => arrival.path)).toEqual([
      "in/box.zip",
      "in/box.zip!/a.csv",
      "in/box.zip!/deep/b.csv",
    ]);
  });

  it("counts the entries of an opened container instead of it", async () => {
    await opened(["a.csv", "b.csv"]);
    expect((await ledger().tally(ALWAYS)).files).toEqual({ settling: 2 });
  });

  it("counts the entries whose outcome is awaited, also when they are done for their container", async () => {
    const container = await opened(["a.csv"]);
    const run = await claimEntry(container, 0);
    await ledger().advanceRun(run.id, "claimed", "fetched", { sha256: "a" });
    await ledger().advanceRun(run.id, "fetched", "mapping");
    await finish(await deliver(ledger(), await ledger().recordMapped(run.id, record(["A"]))));
    expect(await entries(container)).toMatchObject({ inProgress: null, done: 1 });
    expect(await ledger().awaitedEntries(container.arrivalId)).toBe(1);
    await ledger().advanceRun(run.id, "accepted", "confirmed");
    expect(await ledger().awaitedEntries(container.arrivalId)).toBe(0);
  });

  it("keeps entries out of listings: they neither leave with a poll nor hide a file of such a path", async () => {
    const container = await opened(["a.csv"]);
    const { gone } = await list(ledger(), "field", [entry("in/box.zip"), entry("in/box.zip!/a.csv")]);
    expect(gone).toEqual([]);
    const [inside, file] = await ledger()
      .trace("a.csv")
      .then((found) => found.toReversed());
    expect(inside?.arrival).toMatchObject({ parentId: container.arrivalId, goneAt: null });
    expect(file?.arrival).toMatchObject({ parentId: null, goneAt: null });
  });

  it("lets entries leave with their container, also those of containers in it", async () => {
    const container = await opened(["inner.zip"]);
    const inner = await claimEntry(container, 0);
    await ledger().advanceRun(inner.id, "claimed", "fetched");
    await ledger().recordOpened(inner.id, [{ path: "a.csv", size: 1 }], "");
    await list(ledger(), "field", []);
    const files = [...(await ledger().trace("inner.zip")), ...(await ledger().trace("a.csv"))];
    expect(files.every(({ arrival }) => arrival.goneAt !== null)).toBe(true);
    expect(files.every(({ events }) => events.some(({ what }) => what === "arrival.gone"))).toBe(true);
  });

  it("keeps later files behind a container until each entry needs no run or has one, then behind these", async () => {
    const box = await sight(ledger(), "in/box.zip");
    const unpack = { entriesMax: 9, sizeMax: 9, ratioMax: 9, ignore: [], names: "utf-8" } as const;
    const binding = { ...BINDING, unpack };
    const container = await ledger().openRun(box.arrival.id, binding, "containers", {
      feeds: ["lane", "more"],
    });
    const after = await mapped(ledger(), "in/later.csv");
    const elsewhere = await claimed(ledger(), "in/other.csv", "other lane");
    const before = async () => (await ledger().blockedBy(after))?.id ?? null;
    expect(await before()).toBe(container.id);
    expect(await ledger().blockedBy(elsewhere)).toBeNull();
    expect((await ledger().beginDelivery(after.id, "")).blockedBy?.id).toBe(container.id);
    await ledger().advanceRun(container.id, "claimed", "fetched");
    const contents = ["a.csv", "b.csv"].map((path) => ({ path, size: 7 }));
    await ledger().recordOpened(container.id, contents, "");
    expect(await before()).toBe(container.id);
    const first = await claimEntry(container, 0);
    expect(first.id > container.id && first.id < after.id).toBe(true);
    expect(await before()).toBe(container.id);
    const [second] = (await entries(container)).unclaimed;
    await ledger().advanceArrival(second?.id ?? 0, "unmatched", "no trigger claims it");
    expect(await before()).toBe(first.id);
    await ledger().advanceRun(first.id, "claimed", "quarantined");
    expect(await before()).toBeNull();
    // Matched late, it comes behind what may be delivered by now.
    const late = await ledger().openRun(second?.id ?? 0, BINDING, "lane");
    expect(late.id > after.id).toBe(true);
  });

  it("keeps no file behind a container that is given up", async () => {
    const box = await sight(ledger(), "in/box.zip");
    const binding = {
      ...BINDING,
      unpack: { entriesMax: 9, sizeMax: 9, ratioMax: 9, ignore: [], names: "utf-8" as const },
    };
    const container = await ledger().openRun(box.arrival.id, binding, "containers", { feeds: ["lane"] });
    const after = await mapped(ledger(), "in/later.csv");
    expect((await ledger().blockedBy(after))?.id).toBe(container.id);
    await ledger().advanceRun(container.id, "claimed", "quarantined");
    expect(await ledger().blockedBy(after)).toBeNull();
  });

  it("reports the states of the entries", async () => {
    const container = await opened(["a", "b", "c", "d"]);
    const first = await claimEntry(container, 0);
    expect(await entries(container)).toMatchObject({ inProgress: { id: first.id }, done: 0, staying: [] });
    await ledger().advanceRun(first.id, "claimed", "quarantined");
    expect((await entries(container)).inProgress?.id).toBe(first.id);
    await finish(first);
    const second = await claimEntry(container, 0);
    await ledger().advanceRun(second.id, "claimed", "fetched", { sha256: "b" });
    await ledger().advanceRun(second.id, "fetched", "mapping");
    await finish(await deliver(ledger(), await ledger().recordMapped(second.id, record(["A"]))));
    for (const [nth, to] of (["duplicate", "unmatched"] as const).entries()) {
      const one = (await entries(container)).unclaimed[0];
      await ledger().advanceArrival(one?.id ?? nth, to, "because");
    }
    expect(await entries(container)).toEqual({
      unclaimed: [],
      inProgress: null,
      done: 2,
      staying: [
        { path: "in/box.zip!/a", state: "quarantined", runId: first.id },
        { path: "in/box.zip!/d", state: "unmatched", runId: null },
      ],
    });
  });

  it("lets a container rest only with its entries as seen, and records it once", async () => {
    const container = await opened(["a", "b"]);
    const before = await entries(container);
    await ledger().advanceArrival(before.unclaimed[0]?.id ?? 0, "unmatched", "no trigger");
    expect(await ledger().restContainer(container.id, before, STAYS)).toBe(false);
    expect(await isOpen(container)).toBe(true);
    for (const _ of [1, 2])
      expect(await ledger().restContainer(container.id, await entries(container), STAYS)).toBe(true);
    expect(await isOpen(container)).toBe(false);
    expect((await ledger().run(container.id))?.reason).toEqual(STAYS);
    const said = (await ledger().events(container.arrivalId)).filter(({ what }) => what === "container.stays");
    expect(said).toHaveLength(1);
  });

  it("opens a resting container again whenever one of its entries changes", async () => {
    const container = await opened(["a"]);
    await rest(container);
    expect(await isOpen(container)).toBe(false);
    const run = await claimEntry(container, 0);
    expect(await isOpen(container)).toBe(true);
    await rest(container);
    await ledger().advanceRun(run.id, "claimed", "quarantined");
    expect(await isOpen(container)).toBe(true);
    await rest(container);
    await ledger().openRun(run.arrivalId, BINDING, "lane");
    expect(await isOpen(container)).toBe(true);
    await ledger().noteRun(container.id, { finished: { at: NOW, left: true }, settled: true });
    await finish(run);
    expect(await isOpen(container)).toBe(false);
  });

  it("recognizes the same container unless it rests with an entry that was not delivered", async () => {
    const container = await opened(["a"]);
    await list(ledger(), "field", []);
    const { arrival } = await sight(ledger(), "in/box.zip");
    const again = () => ledger().duplicateOf(arrival, "sha-box");
    expect(await again()).toMatchObject({ id: container.arrivalId });
    await rest(container);
    expect(await again()).toBeNull();
    await finish(container);
    expect(await again()).toMatchObject({ id: container.arrivalId });
  });

  it("keeps the records of an earlier opening when a container is opened again", async () => {
    const container = await opened(["a", "b"]);
    const first = await claimEntry(container, 0);
    const again = await ledger().openRun(container.arrivalId, BINDING, "lane");
    await ledger().advanceRun(again.id, "claimed", "fetched");
    await ledger().recordOpened(
      again.id,
      [
        { path: "a", size: 7 },
        { path: "c", size: 7 },
      ],
      "",
    );
    const state = await entries(again);
    expect(state.unclaimed.map(({ path }) => path)).toEqual(["in/box.zip!/b", "in/box.zip!/c"]);
    expect(state.inProgress?.id).toBe(first.id);
    expect((await ledger().runOf(container.arrivalId))?.id).toBe(again.id);
  });

  it("forgets a container after all its entries", async () => {
    const container = await opened(["a"]);
    await ledger().noteRun(container.id, { finished: { at: NOW, left: true } });
    const later = "2030-01-01T00:00:00.000Z";
    expect(await ledger().prune(later, 10)).toBe(1);
    expect(await ledger().trace("a")).toEqual([]);
    expect(await ledger().prune(later, 10)).toBe(1);
    expect(await ledger().trace("box.zip")).toEqual([]);
  });
  it("never forgets an entry while one of a later version of its container is at its path", async () => {
    const opening = async (size: number) => {
      const poll = await ledger().beginPoll("field");
      const [box] = await poll.record([entry("in/box.zip", size)]);
      await poll.abandon();
      const run = await ledger().openRun(box?.arrival.id ?? 0, BINDING, "lane");
      await ledger().advanceRun(run.id, "claimed", "fetched", { sha256: `sha-${size}` });
      return ledger().recordOpened(run.id, [{ path: "a", size: 7 }], "");
    };
    const first = await opening(1);
    const [before] = (await entries(first)).unclaimed;
    const { id } = await opening(2);
    expect((await ledger().arrival(before?.id ?? 0))?.goneAt).not.toBeNull();
    expect(await ledger().prune("2999-01-01T00:00:00.000Z", 10)).toBe(0);
    await ledger().noteRun(id, { finished: { at: NOW, left: true } });
    expect(await ledger().prune("2999-01-01T00:00:00.000Z", 10)).toBe(2);
  });
}
