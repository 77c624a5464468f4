import { expect, it } from "vitest";
import type { FileFilter, Ledger } from "#gateway/ledger/ledger.ts";
import type { Arrival } from "#gateway/model.ts";
import { BINDING, claimed, deliver, list, mapped, record, sight } from "./fixtures.ts";

const BROKEN = { reason: { code: "HG-MAP-004", message: "no number", hint: "Correct it." } };

export function fileConformance(ledger: () => Ledger): void {
  const paths = async (filter: Partial<FileFilter>) =>
    (await ledger().files.list({ limit: 10, ...filter })).files.map(({ arrival }) => arrival.path);

  async function scene() {
    const delivered = await deliver(ledger(), await mapped(ledger(), "north/a.csv"));
    const held = await mapped(ledger(), "south/b.csv", record(["B"]));
    await ledger().advanceRun(held.id, "mapped", "held", { reason: { code: "HG-GUARD-001", message: "no variable" } });
    const other = { ...BINDING, trigger: "daily" };
    const broken = await claimed(ledger(), "south/C_100%.csv", "lane", other);
    await ledger().advanceRun(broken.id, "claimed", "quarantined", BROKEN);
    const { arrival } = await sight(ledger(), "stray.txt", "other");
    await ledger().advanceArrival(arrival.id, "unmatched", "no trigger");
    return { delivered, held, broken, stray: arrival };
  }

  it("returns the events that were added after one, with their files, and of very many the newest", async () => {
    await scene();
    const { files } = ledger();
    const { events: none, last } = await files.eventsAfter(null, 10);
    expect(none).toEqual([]);
    expect(await files.eventsAfter(last, 10)).toEqual({ events: [], last });
    const { arrival } = await sight(ledger(), "new.txt", "other");
    await ledger().advanceArrival(arrival.id, "unmatched", "no trigger");
    const found = await files.eventsAfter(last, 10);
    expect(found.events.at(-1)).toMatchObject({
      ...{ arrivalId: arrival.id, what: "arrival.unmatched", drop: "other", path: "new.txt" },
    });
    expect(found.events.every(({ arrivalId }) => arrivalId === arrival.id)).toBe(true);
    const all = await files.eventsAfter(0, 1_000);
    expect(all.last).toBe(found.last);
    expect((await files.eventsAfter(0, 2)).events).toEqual(all.events.slice(-2));
  });

  it("lists files newest first, by path, standing, drop, trigger and target", async () => {
    const { delivered, broken } = await scene();
    expect(await paths({})).toEqual(["stray.txt", "south/C_100%.csv", "south/b.csv", "north/a.csv"]);
    expect(await paths({ text: "SOUTH/" })).toEqual(["south/C_100%.csv", "south/b.csv"]);
    expect(await paths({ text: "_100%" })).toEqual(["south/C_100%.csv"]);
    expect(await paths({ text: "a_c" })).toEqual([]);
    expect(await paths({ standing: "held" })).toEqual(["south/b.csv"]);
    expect(await paths({ standing: "delivered" })).toEqual(["north/a.csv"]);
    expect(await paths({ standing: "unmatched" })).toEqual(["stray.txt"]);
    expect(await paths({ standing: "pending" })).toEqual([]);
    expect(await paths({ drop: "other" })).toEqual(["stray.txt"]);
    expect(await paths({ trigger: "monthly" })).toEqual(["south/b.csv", "north/a.csv"]);
    expect(await paths({ trigger: "monthly", standing: "held", text: "b" })).toEqual(["south/b.csv"]);
    expect(await paths({ trigger: "daily", standing: "delivered" })).toEqual([]);
    expect(await paths({ trigger: "none" })).toEqual([]);
    expect(
      await paths({
        targets: [
          { kind: "sourceEan", target: "A" },
          { kind: "sourceEan", target: "C" },
        ],
      }),
    ).toEqual(["north/a.csv"]);
    const one = await ledger().files.identified(delivered.id, 10);
    expect(one.map(({ run }) => run?.id)).toEqual([delivered.id]);
    expect(await ledger().files.identified("north/a.csv", 10)).toEqual([]);
    expect((await ledger().files.byId([broken.arrivalId, 99])).map(({ run }) => run?.state)).toEqual(["quarantined"]);
  });

  it("goes on where a part of the list ended, in either order", async () => {
    await scene();
    for (const filter of [{}, { trigger: "monthly" }, { text: "c" }]) {
      const all = await paths(filter);
      const found: string[] = [];
      let after: string | undefined;
      do {
        const part = await ledger().files.list({ ...filter, limit: 1, after });
        found.push(...part.files.map(({ arrival }) => arrival.path));
        after = part.next ?? undefined;
      } while (after !== undefined);
      expect(found).toEqual(all);
    }
  });

  it("lists files by the time at which they were first seen", async () => {
    const { held } = await scene();
    const from = (await ledger().arrival(held.arrivalId))?.seenAt ?? "";
    expect(await paths({ from })).toEqual(["stray.txt", "south/C_100%.csv", "south/b.csv"]);
    expect(await paths({ to: from })).toEqual(["north/a.csv"]);
    expect(await paths({ from, to: from })).toEqual([]);
    expect(await paths({ from, trigger: "monthly" })).toEqual(["south/b.csv"]);
  });

  it("leaves out what was seen and left again, and finds a file under its latest run alone", async () => {
    const first = await claimed(ledger(), "a.csv");
    await ledger().advanceRun(first.id, "claimed", "quarantined", BROKEN);
    const again = await ledger().openRun(first.arrivalId, BINDING, "lane", {
      replay: { of: first.id, rejectedOnly: false, overwrite: false, by: "ann" },
    });
    await sight(ledger(), "gone.csv", "other");
    await list(ledger(), "other", []);
    expect(await paths({})).toEqual(["a.csv"]);
    expect(await paths({ standing: "quarantined" })).toEqual([]);
    const [found] = (await ledger().files.list({ standing: "pending", limit: 10 })).files;
    expect(found?.run?.id).toBe(again.id);
    expect((await ledger().files.life(first.arrivalId))?.runs.map(({ run }) => run.id)).toEqual([first.id, again.id]);
    expect(await ledger().files.life(99)).toBeNull();
  });

  it("counts the unmatched files of a drop, and lists them newest first and in parts", async () => {
    const strays: Arrival[] = [];
    for (const path of ["a.txt", "b.txt", "c.txt"]) {
      const { arrival } = await sight(ledger(), path, "other");
      strays.push(await ledger().advanceArrival(arrival.id, "unmatched", "no trigger"));
    }
    await claimed(ledger(), "matched.csv", "lane", BINDING);
    const [first, , last] = strays;
    expect(await ledger().files.unmatchedCount("other", 10)).toEqual({
      ...{ count: 3, oldest: first?.changedAt, newest: last?.changedAt },
    });
    expect((await ledger().files.unmatchedCount("other", 2)).count).toBe(2);
    expect(await ledger().files.unmatchedCount("field", 10)).toEqual({ count: 0, oldest: null, newest: null });
    const unmatched = async (limit: number, before?: number) =>
      (await ledger().files.unmatched("other", limit, before)).map(({ path }) => path);
    expect(await unmatched(2)).toEqual(["c.txt", "b.txt"]);
    expect(await unmatched(2, strays[1]?.id)).toEqual(["a.txt"]);
  });

  it("tells the causes of runs at rest, without files that a newer version has replaced", async () => {
    const { held, broken } = await scene();
    const cases = await ledger().files.resting(["quarantined", "held"], 10);
    expect(cases).toMatchObject([
      { run: broken.id, state: "quarantined", trigger: "daily", code: "HG-MAP-004", message: "no number" },
      { run: held.id, state: "held", mapper: "standard 1.0.0", code: "HG-GUARD-001", hint: null },
    ]);
    expect(cases[0]).toMatchObject({ hint: "Correct it.", drop: "field" });
    expect(await ledger().files.resting(["quarantined", "held"], 1)).toHaveLength(1);
    await list(ledger(), "field", []);
    const newer = await sight(ledger(), "south/C_100%.csv");
    expect(await ledger().files.replaced([broken.id, held.id])).toEqual(new Set());
    await ledger().openRun(newer.arrival.id, BINDING, "lane");
    expect(await ledger().files.replaced([broken.id, held.id])).toEqual(new Set([broken.id]));
    expect((await ledger().files.resting(["quarantined"], 10)).map(({ run }) => run)).toEqual([]);
    const versions = await ledger().files.versions(newer.arrival, 10);
    expect(versions.files.map(({ arrival }) => arrival.id)).toEqual([broken.arrivalId]);
    expect([versions.total, (await ledger().files.versions(newer.arrival, 0)).total]).toEqual([1, 1]);
  });
}
