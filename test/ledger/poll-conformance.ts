import fc from "fast-check";
import { expect, it } from "vitest";
import { InvariantError } from "#core/errors.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import type { FileEntry } from "#gateway/model.ts";
import { BINDING, claimed, entry, list, listOnce, sight } from "./fixtures.ts";

const entriesOf = (...paths: readonly string[]) => paths.map((path) => entry(path));

export function pollConformance(ledger: () => Ledger): void {
  it("recognizes an unchanged file, and records the change of one that still settles", async () => {
    const first = await sight(ledger(), "a.csv");
    expect(first).toMatchObject({ seen: "new", arrival: { state: "settling", size: 100, mtime: "1" } });
    expect(await sight(ledger(), "a.csv")).toEqual({ seen: "known", arrival: first.arrival });
    await list(ledger(), "field", [entry("a.csv", 150, "2")]);
    const { sightings } = await list(ledger(), "field", [entry("a.csv", 200, "3")]);
    expect(sightings[0]).toMatchObject({
      seen: "changed",
      arrival: { id: first.arrival.id, size: 200, mtime: "3" },
    });
    const events = await ledger().events(first.arrival.id);
    expect(events.map(({ what }) => what)).toEqual(["arrival.settling", "arrival.changed"]);
  });

  it("lets an unmatched file that changed settle again", async () => {
    const { arrival } = await sight(ledger(), "a.csv");
    await ledger().advanceArrival(arrival.id, "unmatched", "no trigger");
    const { sightings } = await list(ledger(), "field", [entry("a.csv", 101)]);
    expect(sightings[0]).toMatchObject({ seen: "changed", arrival: { id: arrival.id, state: "settling" } });
  });

  it("creates a new arrival for another version when the earlier one had been picked up", async () => {
    const { arrival } = await sight(ledger(), "a.csv");
    await ledger().openRun(arrival.id, BINDING, "lane");
    const { sightings, gone } = await list(ledger(), "field", [entry("a.csv", 100, "2")]);
    expect(sightings[0]?.seen).toBe("new");
    expect(sightings[0]?.arrival.id).toBeGreaterThan(arrival.id);
    expect(gone).toEqual([]);
    expect((await ledger().arrival(arrival.id))?.goneAt).not.toBeNull();
  });

  it("returns the ages of settling arrivals of a drop in parts, by id, and of no others", async () => {
    const { sightings } = await list(
      ledger(),
      "field",
      ["a", "b", "c", "d"].map((path) => entry(path, 100, `${path}1`)),
    );
    const [a, b, c, d] = sightings.map(({ arrival }) => arrival.id);
    await sight(ledger(), "e", "other");
    await ledger().advanceArrival(b ?? 0, "unmatched", "no trigger");
    const first = await ledger().settlingAges("field", 2, 0);
    expect(first).toEqual([
      { id: a, path: "a", mtime: "a1" },
      { id: c, path: "c", mtime: "c1" },
    ]);
    expect(await ledger().settlingAges("field", 2, c ?? 0)).toEqual([{ id: d, path: "d", mtime: "d1" }]);
    await list(ledger(), "field", [entry("d", 100, "d1")]);
    expect((await ledger().settlingAges("field", 9, 0)).map(({ path }) => path)).toEqual(["d"]);
  });

  it("returns arrivals one by one and many at a time, in the requested order", async () => {
    const { sightings } = await list(ledger(), "field", [entry("a"), entry("b"), entry("c")]);
    const [a, b, c] = sightings.map(({ arrival }) => arrival);
    expect(await ledger().arrival(b?.id ?? 0)).toEqual(b);
    expect(await ledger().arrivals([c?.id ?? 0, 4711, a?.id ?? 0])).toEqual([c, a]);
    expect(await ledger().arrival(c?.id ?? 0)).toEqual(c);
    expect(await ledger().arrival(4711)).toBeNull();
    expect(await ledger().arrivals([])).toEqual([]);
  });

  it("reports gone files only when the listing was complete", async () => {
    const [, b] = (await list(ledger(), "field", [entry("a"), entry("b")])).sightings;
    const broken = await ledger().beginPoll("field");
    await broken.record([entry("a")]);
    await broken.abandon();
    expect(await ledger().arrivalsIn("field", ["settling"])).toHaveLength(2);
    const { gone } = await list(ledger(), "field", [entry("a")]);
    expect(gone).toEqual([b?.arrival.id]);
    expect((await ledger().arrival(gone[0] ?? 0))?.goneAt).not.toBeNull();
    expect((await list(ledger(), "field", [entry("a")])).gone).toEqual([]);
  });

  it("is at first contact with a drop until one listing was complete", async () => {
    const broken = await ledger().beginPoll("field");
    expect(broken.firstContact).toBe(true);
    await broken.record([entry("a")]);
    await broken.abandon();
    const whole = await ledger().beginPoll("field");
    expect(whole.firstContact).toBe(true);
    await whole.complete();
    const later = await ledger().beginPoll("field");
    expect(later.firstContact).toBe(false);
    await later.abandon();
    const other = await ledger().beginPoll("elsewhere");
    expect(other.firstContact).toBe(true);
    await other.abandon();
  });

  it("is at first contact with each folder until it was listed in full, and not with folders added since", async () => {
    const broken = await ledger().beginPoll("field");
    for (const path of ["a", "in/a", "deep/in/a"]) expect(broken.wasThere(path)).toBe(true);
    await broken.record([entry("a"), entry("in/a")]);
    broken.folderListed("", ["in", "deep"]);
    broken.folderListed("in", []);
    expect(broken.wasThere("a")).toBe(true);
    await broken.cutShort(() => true, true);
    await broken.abandon();
    const again = await ledger().beginPoll("field");
    const asked = ["a", "in/a", "in/new/a", "new/a", "deep/a", "deep/in/a"];
    expect(asked.filter((path) => again.wasThere(path))).toEqual(["deep/a", "deep/in/a"]);
    await again.complete();
    const later = await ledger().beginPoll("field");
    expect(asked.filter((path) => later.wasThere(path))).toEqual([]);
    await later.abandon();
  });

  it("makes files that an interrupted listing did not show awaited until they have settled or gone", async () => {
    await list(ledger(), "field", [entry("a/one"), entry("b/two"), entry("b/two.part"), entry("c/three")]);
    const broken = await ledger().beginPoll("field");
    await broken.record([entry("a/one")]);
    broken.folderListed("c", []);
    const { awaited } = await broken.cutShort((path) => !path.endsWith(".part"), true);
    expect(awaited).toMatchObject([
      { path: "b/two", mtime: "1" },
      { path: "c/three", mtime: "1" },
    ]);
    await broken.abandon();
    expect(await ledger().awaited("field")).toEqual(awaited);
    expect(await ledger().awaited("elsewhere")).toEqual([]);
    const again = await ledger().beginPoll("field");
    // The same moment, although it is cut again.
    expect((await again.cutShort(() => true, true)).awaited).toContainEqual(awaited[0]);
    await again.abandon();
    const whole = await ledger().beginPoll("field");
    await whole.record([entry("b/two")]);
    expect((await whole.complete()).awaited).toContainEqual(awaited[0]);
    await ledger().advanceArrival(awaited[0]?.id ?? 0, "unmatched", "it has settled");
    const settled = await ledger().beginPoll("field");
    expect((await settled.complete()).awaited.map(({ path }) => path)).not.toContain("b/two");
  });

  it("marks settling files as gone after two full listings of their folder, not after unrecorded ones", async () => {
    const { sightings } = await list(ledger(), "field", [entry("a/one"), entry("a/two"), entry("b/three")]);
    const [one] = sightings.map(({ arrival }) => arrival);
    const cut = async (shown: readonly string[], isRecorded: boolean) => {
      const open = await ledger().beginPoll("field");
      await open.record(shown.map((path) => entry(path)));
      open.folderListed("a", []);
      const { gone, missing, awaited } = await open.cutShort(() => true, isRecorded);
      await open.abandon();
      return { gone, missing, awaited: awaited.map(({ path }) => path) };
    };
    const all = ["a/one", "a/two", "b/three"];
    expect(await cut([], false)).toEqual({ gone: [], missing: 0, awaited: all });
    expect(await cut(["a/two"], true)).toEqual({ gone: [], missing: 1, awaited: all });
    expect(await cut(["a/two"], true)).toEqual({
      gone: [one?.id],
      missing: 0,
      awaited: ["a/two", "b/three"],
    });
    expect((await ledger().awaited("field")).map(({ path }) => path)).toEqual(["a/two", "b/three"]);
  });

  it("makes settling files that one complete listing lacks awaited, until they have settled or gone", async () => {
    const taken = await claimed(ledger(), "taken");
    const [one] = (await list(ledger(), "field", [entry("one"), entry("two"), entry("one.part"), entry("taken")]))
      .sightings;
    const notTemporary = (path: string) => !path.endsWith(".part");
    const poll = async (paths: readonly string[]) => {
      const open = await ledger().beginPoll("field");
      await open.record(paths.map((path) => entry(path)));
      return open.complete(notTemporary);
    };
    const first = await poll(["two"]);
    expect(first).toMatchObject({
      gone: [],
      missing: 3,
      awaited: [{ id: one?.arrival.id, path: "one", mtime: "1" }],
    });
    // Back, and since the same moment, also when another is missing now.
    const back = await poll(["one", "one.part", "taken"]);
    expect(back.awaited).toContainEqual(first.awaited[0]);
    expect(back.awaited.map(({ path }) => path)).toEqual(["one", "two"]);
    expect((await poll(["one", "one.part", "taken"])).awaited).toEqual(first.awaited);
    expect((await poll(["one.part"])).awaited).toEqual(first.awaited);
    expect(await poll(["one.part"])).toMatchObject({ gone: [taken.arrivalId, one?.arrival.id], awaited: [] });
    expect((await poll(["one.part"])).awaited).toEqual([]);
  });

  it("records a warning of a run in the history of its file from the beginning", async () => {
    const { arrival } = await sight(ledger(), "warned.csv");
    const run = await ledger().openRun(arrival.id, BINDING, "lane", { warning: "it goes before another" });
    const told = (await ledger().events(arrival.id)).filter(({ what }) => what === "run.warned");
    expect(told).toMatchObject([{ runId: run.id, detail: "it goes before another" }]);
  });

  it("leaves out unchanged files at rest", async () => {
    const states = ["unmatched", "skipped", "duplicate"] as const;
    for (const state of states)
      await ledger().advanceArrival((await sight(ledger(), `${state}.csv`)).arrival.id, state, "at rest");
    await claimed(ledger(), "matched.csv");
    const names = [...states, "matched"].map((state) => `${state}.csv`);
    const { sightings, gone } = await list(
      ledger(),
      "field",
      [...names, "new.csv"].map((name) => entry(name)),
    );
    expect(sightings.map(({ arrival, seen }) => [arrival.path, seen])).toEqual([["new.csv", "new"]]);
    expect(gone).toEqual([]);
  });

  it("reports more files that went than one transaction can hold, each once", async () => {
    const names = Array.from({ length: 1_203 }, (_, at) => entry(`${at}.csv`));
    await list(ledger(), "field", names);
    const { gone } = await list(ledger(), "field", names.slice(0, 2));
    expect(new Set(gone).size).toBe(1_201);
    expect((await ledger().arrivalsIn("field", ["settling"])).map(({ path }) => path)).toEqual(["0.csv", "1.csv"]);
    for (const id of gone.slice(498, 502))
      expect((await ledger().events(id)).map(({ what }) => what)).toEqual(["arrival.settling", "arrival.gone"]);
  });

  it("leaves a skipped file alone, and treats another version of it as new", async () => {
    const { arrival } = await sight(ledger(), "a.csv");
    await ledger().advanceArrival(arrival.id, "skipped", "it lay there before");
    expect((await ledger().tally("1970-01-01T00:00:00.000Z")).files).toEqual({ skipped: 1 });
    const { sightings } = await list(ledger(), "field", [entry("a.csv", 101)]);
    expect(sightings[0]).toMatchObject({ seen: "new", arrival: { state: "settling" } });
  });

  it("knows each arrival at a drop with more of them than are read at once", async () => {
    const entries = Array.from({ length: 10_001 }, (_, at) => entry(`${at}.csv`));
    await listOnce(ledger(), "field", entries);
    expect(await listOnce(ledger(), "field", entries.slice(0, 1))).toMatchObject({ missing: 10_000 });
  });

  it("marks no file as gone after a single listing, also when another process did the next one", async () => {
    const [a, b] = (await list(ledger(), "field", [entry("a"), entry("b")])).sightings;
    await ledger().openRun(b?.arrival.id ?? 0, BINDING, "lane");
    expect(await listOnce(ledger(), "field", [])).toMatchObject({ gone: [], missing: 2 });
    const broken = await ledger().beginPoll("field");
    await broken.abandon();
    expect(await listOnce(ledger(), "field", [entry("b")])).toMatchObject({
      gone: [a?.arrival.id],
      missing: 0,
    });
    expect(await listOnce(ledger(), "field", [])).toMatchObject({ gone: [], missing: 1 });
    const shown = await ledger().beginPoll("field");
    await shown.record([entry("b")]);
    await shown.abandon();
    expect(await listOnce(ledger(), "field", []), "it was shown in between").toMatchObject({
      gone: [],
      missing: 1,
    });
    expect(await listOnce(ledger(), "field", [])).toMatchObject({ gone: [b?.arrival.id], missing: 0 });
  });

  it("treats a file that had gone and returned as new", async () => {
    const first = await sight(ledger(), "a");
    await list(ledger(), "field", []);
    const back = await sight(ledger(), "a");
    expect(back.seen).toBe("new");
    expect(back.arrival.id).not.toBe(first.arrival.id);
  });

  it("does not treat a file as new that was archived during the listing", async () => {
    const { arrival } = await sight(ledger(), "a");
    const run = await ledger().openRun(arrival.id, BINDING, "lane");
    const poll = await ledger().beginPoll("field");
    const { at } = (await ledger().events(arrival.id)).at(-1) ?? { at: "" };
    const later = new Date(Date.parse(at) + 60_000).toISOString();
    await ledger().noteRun(run.id, { finished: { at: later, left: true } });
    expect(await poll.record([entry("a")])).toEqual([]);
    await poll.complete();
    expect(await ledger().arrivalsIn("field", ["settling", "matched"])).toEqual([]);
  });

  it("knows by its id an arrival that was at rest when the poll began, and counts it as shown", async () => {
    const { sightings } = await list(ledger(), "field", entriesOf("rests", "settles", "blinks", "leaves"));
    const [rests = 0, settles = 0, blinks = 0, leaves = 0] = sightings.map(({ arrival }) => arrival.id);
    for (const id of [rests, blinks]) await ledger().advanceArrival(id, "unmatched", "no trigger");
    const run = await ledger().openRun(leaves, BINDING, "lane");
    await listOnce(ledger(), "field", entriesOf("rests", "settles", "leaves"));
    const poll = await ledger().beginPoll("field");
    const shown = [rests, settles, blinks, 4711].map((id) => poll.noteAtRest(id));
    expect(shown, "the others settle, were missing, or are unknown").toEqual([true, false, false, false]);
    await ledger().noteRun(run.id, { finished: { at: "2030-01-01T00:00:00.000Z", left: true } });
    const noted: [string, number][] = [];
    await poll.record([entry("rests"), entry("blinks"), entry("new")], ({ path }, id) => noted.push([path, id]));
    expect(noted.slice(0, 2)).toEqual([
      ["rests", rests],
      ["blinks", blinks],
    ]);
    expect(noted[2]?.[1]).toBeGreaterThan(leaves);
    expect(await poll.complete(), "one left during the poll").toMatchObject({ gone: [], missing: 1 });
    expect((await listOnce(ledger(), "field", [])).gone).toEqual([settles]);
  });

  it("runs one poll of a drop at a time, and polls of other drops concurrently", async () => {
    const poll = await ledger().beginPoll("field");
    await expect(ledger().beginPoll("field")).rejects.toThrow(InvariantError);
    await (await ledger().beginPoll("other")).complete();
    await poll.complete();
    await expect(poll.record([entry("a")])).rejects.toThrow(InvariantError);
    await (await ledger().beginPoll("field")).abandon();
  });

  it("agrees with a simple model of the files at a drop, over any listings", async () => {
    const version = fc.record({
      path: fc.constantFrom("a", "in/b", "in/c", "d"),
      size: fc.integer({ min: 0, max: 1 }),
      mtime: fc.constantFrom("1", "2"),
    });
    const listing = fc.uniqueArray(version, { selector: ({ path }) => path });
    const step = fc.oneof(
      fc.record({ entries: listing, complete: fc.boolean() }),
      fc.record({ take: fc.constantFrom("a", "in/b", "in/c", "d") }),
    );
    let number = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        number += 1;
        const drop = `drop ${number}`;
        const model: Model = new Map();
        for (const one of steps) {
          if ("take" in one) await take(ledger(), model.get(one.take));
          else await compare(ledger(), drop, model, one.entries, one.complete);
        }
      }),
      { numRuns: 40 },
    );
  });
}

type Model = Map<string, FileEntry & { id: number; taken: boolean; missing: boolean }>;

async function take(ledger: Ledger, lying: { id: number; taken: boolean } | undefined): Promise<void> {
  if (lying === undefined || lying.taken) return;
  await ledger.openRun(lying.id, BINDING, "lane");
  lying.taken = true;
}

async function compare(
  ledger: Ledger,
  drop: string,
  model: Model,
  entries: readonly FileEntry[],
  complete: boolean,
): Promise<void> {
  const poll = await ledger.beginPoll(drop);
  const sightings = new Map((await poll.record(entries)).map((one) => [one.arrival.path, one]));
  for (const now of entries) {
    const before = model.get(now.path);
    const sighting = sightings.get(now.path);
    const same = before?.size === now.size && before.mtime === now.mtime;
    const expected = before === undefined ? "new" : same ? "known" : before.taken ? "new" : "changed";
    const taken = expected === "known" && before?.taken === true;
    expect(sighting?.seen).toBe(taken ? undefined : expected);
    if (expected !== "new" && !taken) expect(sighting?.arrival.id).toBe(before?.id);
    model.set(now.path, { ...now, id: sighting?.arrival.id ?? before?.id ?? 0, taken, missing: false });
  }
  const unlisted = [...model].filter(([path]) => !entries.some((one) => one.path === path));
  if (complete) {
    const went = unlisted.filter(([, { missing }]) => missing);
    const gone = went.map(([, { id }]) => id).sort((a, b) => a - b);
    expect(await poll.complete()).toMatchObject({ gone, missing: unlisted.length - went.length });
    for (const [, file] of unlisted) file.missing = true;
    for (const [path] of went) model.delete(path);
  } else await poll.abandon();
  const lying = await ledger.arrivalsIn(drop, ["settling", "matched"]);
  expect(new Set(lying.map(({ id }) => id))).toEqual(new Set([...model.values()].map(({ id }) => id)));
}
