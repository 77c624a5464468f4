/**
 * Polls that know the files of earlier listings, beside polls that ask the ledger for each of them: over any changes of
 * files and ledger, both must lead to the same reports, claims, arrivals and events.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Clock, systemClock } from "#core/clock.ts";
import type { Drop } from "#gateway/drops/drop.ts";
import { FileBudget, KnownFiles } from "#gateway/drops/known-files.ts";
import { dropOptions } from "#gateway/drops/options.ts";
import { Pickup } from "#gateway/drops/pickup.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { openSqliteLedger } from "#gateway/ledger/sqlite/open.ts";
import type { Arrival, ArrivalState, FileEntry } from "#gateway/model.ts";
import { BINDING } from "../ledger/fixtures.ts";
import { never } from "./field.ts";

const PATHS = ["run.csv", "in/run.csv", "none.csv", "none.csv.done", "in/none.csv"];

interface Version {
  readonly path: string;
  readonly size: number;
  readonly mtime: string;
}

type Step =
  | { readonly kind: "write"; readonly versions: readonly Version[] }
  | { readonly kind: "remove"; readonly path: string }
  /** Some polls, of which the first breaks off after some entries. */
  | { readonly kind: "poll"; readonly times: number; readonly cutAfter: number | null }
  /** A listing does not show the file. */
  | { readonly kind: "blink"; readonly path: string }
  /** A run of the file is finished after a poll began, and before its listing. */
  | { readonly kind: "archive"; readonly path: string }
  /**
   * Another version is there for a poll, by another node, or whose `record` fails after its commit, as when its sync
   * failed. A person skips it.
   */
  | { readonly kind: "other node" | "lost answer"; readonly version: Version }
  | { readonly kind: "state"; readonly path: string; readonly to: ArrivalState }
  | { readonly kind: "finish"; readonly path: string }
  | { readonly kind: "return"; readonly path: string };

let nowMs = 0;
const clock: Clock = {
  ...systemClock,
  now: () => Temporal.Instant.fromEpochMilliseconds(nowMs),
  monotonicMs: () => nowMs,
};

/** A drop, which is new to its ledger. Without `remembers`, its polls ask the ledger for each file. */
class World {
  readonly files = new Map<string, FileEntry>();
  readonly claimed: string[] = [];
  readonly reports: unknown[] = [];
  /** Of its arrivals. */
  readonly #ids = new Set<number>();
  readonly #name: string;
  readonly #remembers: boolean;
  readonly #ledger: Ledger;
  readonly #doneFile: string | undefined;
  #pickup: Pickup;
  #session = 0;
  readonly #groups = new Map<string, readonly FileEntry[]>();
  #cutAfter: number | null = null;
  #losesAnswer = false;
  #beforeListing: (() => Promise<void>) | null = null;

  constructor(name: string, ledger: Ledger, remembers: boolean, doneFile: string | undefined) {
    this.#name = name;
    this.#ledger = ledger;
    this.#remembers = remembers;
    this.#doneFile = doneFile;
    this.#pickup = this.#newPickup();
  }

  async take(step: Step): Promise<void> {
    switch (step.kind) {
      case "write":
        for (const { ...version } of step.versions) this.files.set(version.path, version);
        return;
      case "remove":
        this.files.delete(step.path);
        return;
      case "poll":
        return await this.#poll(step.times, step.cutAfter);
      case "blink":
        return await this.#with(step.path, null, () => this.#poll(1));
      case "archive":
        this.#beforeListing = async () => {
          await this.#changeLedger({ kind: "finish", path: step.path });
          this.files.delete(step.path);
        };
        return await this.#poll(1);
      case "other node":
      case "lost answer":
        await this.#with(step.version.path, step.version, async () => {
          if (step.kind === "other node") await this.#pollElsewhere();
          else {
            this.#losesAnswer = true;
            await this.#poll(1);
            this.#losesAnswer = false;
          }
        });
        return await this.#changeLedger({ kind: "state", path: step.version.path, to: "skipped" });
      default:
        return await this.#changeLedger(step);
    }
  }

  async #with(path: string, version: Version | null, work: () => Promise<void>): Promise<void> {
    const before = this.files.get(path);
    if (version === null) this.files.delete(path);
    else this.files.set(path, version);
    await work();
    if (before === undefined) this.files.delete(path);
    else this.files.set(path, before);
  }

  async ledgerState(): Promise<unknown> {
    const arrivals = await this.#arrivals();
    const events = await Promise.all(arrivals.map(({ id }) => this.#ledger.events(id)));
    return arrivals.map(({ id: _, ...one }, at) => [one, events[at]?.map(({ what, detail }) => [what, detail])]);
  }

  async #poll(times: number, cutAfter: number | null = null): Promise<void> {
    this.#cutAfter = cutAfter;
    for (let nth = 0; nth < times; nth += 1) {
      nowMs += 2_000;
      const { error, ...report } = await this.#pickup.poll(never);
      this.reports.push({ ...report, failed: error !== undefined, waiting: this.#pickup.waiting() });
    }
  }

  async #pollElsewhere(): Promise<void> {
    const own = this.#pickup;
    this.#session += 1;
    this.#pickup = this.#newPickup();
    await this.#poll(1);
    this.#pickup = own;
    this.#session += 1;
  }

  async #changeLedger(step: Extract<Step, { kind: "state" | "finish" | "return" }>): Promise<void> {
    const arrivals = (await this.#arrivals()).filter(({ path }) => path === step.path);
    const present = arrivals.find(({ goneAt }) => goneAt === null);
    if (present === undefined) return;
    if (step.kind === "state" && present.state !== "matched")
      await this.#ledger.advanceArrival(present.id, step.to, "by a person").catch(() => undefined);
    const run = step.kind === "finish" ? await this.#ledger.runOf(present.id) : null;
    if (run !== null) await this.#ledger.noteRun(run.id, { finished: { at: `${clock.now()}`, left: true } });
    const earlier = arrivals.findLast(({ id }) => id < present.id);
    if (step.kind === "return" && earlier !== undefined && present.state === "settling")
      await this.#ledger.recordReturn(earlier.id, present.id, "the same bytes");
  }

  async #arrivals(): Promise<readonly Arrival[]> {
    const states = ["settling", "unmatched", "duplicate", "skipped", "matched"] as const;
    const present = await this.#ledger.arrivalsIn(this.#name, states);
    for (const { id } of present) this.#ids.add(id);
    return await this.#ledger.arrivals([...this.#ids].sort((one, other) => one - other));
  }

  #newPickup(): Pickup {
    const settle = {
      observations: 2,
      interval: "2s",
      ...(this.#doneFile === undefined ? {} : { doneFile: this.#doneFile }),
    };
    const beginPoll: Ledger["beginPoll"] = async (...asked) => {
      const poll = await this.#ledger.beginPoll(...asked);
      const record: typeof poll.record = async (entries, onId) => {
        const noted: [FileEntry, number][] = [];
        const sightings = await poll.record(entries, (...one) => noted.push(one));
        // Files at rest are recorded in one world, and known in the other.
        const lost = this.#losesAnswer && sightings.length > 0;
        if (lost) this.#losesAnswer = false;
        if (lost) throw new Error("the answer was lost");
        for (const one of noted) onId?.(...one);
        return sightings;
      };
      const changed = { session: this.#session, record, ...(this.#remembers ? {} : { noteAtRest: () => false }) };
      return new Proxy(poll, {
        get: (of, key) => {
          const found: unknown = key in changed ? changed[key as keyof typeof changed] : Reflect.get(of, key);
          return typeof found === "function" ? found.bind(of) : found;
        },
      });
    };
    return new Pickup({
      drop: this.#drop(),
      options: dropOptions.parse({ kind: "local", name: this.#name, path: "/drop", settle }),
      journal: { ...this.#ledger, beginPoll },
      clock,
      claim: async (arrivals) => {
        for (const { id, path } of arrivals) {
          this.claimed.push(path);
          if (path.endsWith("run.csv")) await this.#ledger.openRun(id, BINDING, "lane");
          else await this.#ledger.advanceArrival(id, "unmatched", "no trigger");
        }
      },
    });
  }

  /** The group of the listing before, where it has the same files. */
  #sameGroup(folder: string, files: readonly FileEntry[]): readonly FileEntry[] {
    const before = this.#groups.get(folder);
    if (this.#remembers && isDeepStrictEqual(before, files)) return before ?? [];
    const group = files.map((entry) => ({ ...entry }));
    this.#groups.set(folder, group);
    return group;
  }

  readonly #drop = () =>
    ({
      name: this.#name,
      kind: "local",
      modifiedMs: ({ mtime }: FileEntry) => Number(mtime),
      list: async function* (
        this: World,
        _: AbortSignal,
        onFolder?: (folder: string, below: readonly string[]) => void,
      ) {
        await this.#beforeListing?.();
        this.#beforeListing = null;
        let left = this.#cutAfter ?? Number.POSITIVE_INFINITY;
        this.#cutAfter = null;
        for (const folder of ["", "in"]) {
          const files = [...this.files.values()].filter(({ path }) => path.startsWith("in/") === (folder === "in"));
          const shown = files.slice(0, left);
          left -= shown.length;
          if (shown.length > 0) yield this.#sameGroup(folder, shown);
          if (shown.length < files.length) throw new Error("the listing broke off");
          onFolder?.(folder, folder === "" ? ["in"] : []);
        }
      }.bind(this),
    }) as unknown as Drop;
}

const path = fc.constantFrom(...PATHS);
const version = fc.record({ path, size: fc.nat({ max: 1 }), mtime: fc.constantFrom("1", "2") });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("write" as const), versions: fc.array(version) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("remove" as const), path }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("poll" as const),
      times: fc.integer({ min: 1, max: 3 }),
      cutAfter: fc.option(fc.nat({ max: 3 }), { freq: 4 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom("blink" as const, "archive" as const), path }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom("lost answer" as const, "other node" as const), version }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("state" as const),
      path,
      to: fc.constantFrom<ArrivalState>("settling", "unmatched", "skipped", "duplicate"),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom("finish" as const, "return" as const), path }) },
);

const polls = (times: number): Step => ({ kind: "poll", times, cutAfter: null });
const first = (...paths: readonly string[]): Step => ({
  kind: "write",
  versions: paths.map((one) => ({ path: one, size: 1, mtime: "1" })),
});
const second: Version = { path: "none.csv", size: 0, mtime: "2" };

/** What random steps rarely come to. */
const SEQUENCES: readonly Step[][] = [
  [first("none.csv"), polls(3), { kind: "other node", version: second }, polls(1)],
  [first("none.csv"), polls(3), { kind: "lost answer", version: second }, polls(1)],
  [first("none.csv"), polls(3), { kind: "blink", path: "none.csv" }, polls(1), { kind: "blink", path: "none.csv" }],
  [first("run.csv"), polls(3), { kind: "archive", path: "run.csv" }, polls(1)],
];

describe("polls that know the files of earlier listings", () => {
  const folder = mkdtempSync(join(tmpdir(), "headgate-"));
  const ledgers: Ledger[] = [];
  beforeAll(async () => {
    for (const name of ["knowing", "asking"])
      ledgers.push(await openSqliteLedger({ path: join(folder, `${name}.sqlite`), clock }));
  });
  afterAll(async () => {
    for (const ledger of ledgers) await ledger.close();
    rmSync(folder, { recursive: true });
  });
  let count = 0;

  test.each([["no done-files"], ["{name}.done"]])(
    "lead to what polls without a memory lead to, over any changes (%s)",
    async (doneFile) => {
      const steps = fc.array(step, { minLength: 4, maxLength: 24 });
      await fc.assert(
        fc.asyncProperty(steps, async (taken) => {
          count += 1;
          const [knowing, asking] = ledgers.map((ledger, at) => {
            const template = doneFile.includes("{") ? doneFile : undefined;
            return new World(`drop-${count}`, ledger, at === 0, template);
          }) as [World, World];
          for (const one of [...taken, { kind: "poll", times: 3, cutAfter: null } as const]) {
            const beganMs = nowMs;
            await knowing.take(one);
            nowMs = beganMs;
            await asking.take(one);
            expect(knowing.reports).toEqual(asking.reports);
            expect(knowing.claimed).toEqual(asking.claimed);
            expect(await knowing.ledgerState()).toEqual(await asking.ledgerState());
          }
        }),
        { numRuns: 150, examples: SEQUENCES.map((sequence) => [sequence]) },
      );
    },
  );
});

describe("known files", () => {
  const entryOf = (at: number, size = 1) => ({ path: `${at}.csv`, size, mtime: "1" });
  const atRest = { session: null, noteAtRest: (id: number) => id >= 0 };
  const isAtRest = (known: KnownFiles, entry: FileEntry) => known.notAtRest([entry]).length === 0;
  const recording = (ids: readonly number[]) =>
    ({
      record: async (entries: readonly FileEntry[], onId: (entry: FileEntry, id: number) => void) => {
        for (const [at, entry] of entries.entries()) onId(entry, ids[at] ?? 0);
        return [];
      },
    }) as never;

  test("are no more than the limit, and those that vanished make room for others", async () => {
    const known = new KnownFiles(new FileBudget(2));
    known.begin(atRest);
    await known.record(recording([1, 2, 3]), [entryOf(1), entryOf(2), entryOf(3)]);
    known.complete();
    known.begin(atRest);
    expect([1, 2, 3].map((at) => isAtRest(known, entryOf(at)))).toEqual([true, true, false]);
    known.complete();
    known.begin(atRest);
    expect(isAtRest(known, entryOf(2))).toBe(true);
    known.complete();
    known.begin(atRest);
    await known.record(recording([3]), [entryOf(3)]);
    expect([1, 2, 3].map((at) => isAtRest(known, entryOf(at)))).toEqual([false, true, true]);
    expect(isAtRest(known, entryOf(3, 2)), "another version").toBe(false);
  });

  test("of several drops share the limit, and a drop that is no longer polled gives its part back", async () => {
    const budget = new FileBudget(3);
    const [one, other] = [new KnownFiles(budget), new KnownFiles(budget)];
    const listing = async (known: KnownFiles, ids: readonly number[]) => {
      known.begin(atRest);
      const found = ids.map((id) => isAtRest(known, entryOf(id)));
      await known.record(
        recording(ids),
        ids.map((id) => entryOf(id)),
      );
      known.complete();
      return found;
    };
    await listing(one, [1, 2]);
    await listing(other, [1, 2]);
    expect(await listing(other, [1, 2])).toEqual([true, false]);
    one.forgetAll();
    await listing(other, [1, 2]);
    expect(await listing(other, [1, 2])).toEqual([true, true]);
  });

  test("of a group that is listed again are compared with the ledger, and not among each other", async () => {
    const known = new KnownFiles();
    let compared = 0;
    const counted = (at: number) => ({
      ...entryOf(at),
      get mtime() {
        compared += 1;
        return "1";
      },
    });
    const group = [counted(1), counted(2)];
    const listing = (resting = atRest) => {
      known.begin(resting);
      const asked = known.notAtRest(group);
      known.complete();
      return asked.length;
    };
    known.begin(atRest);
    await known.record(recording([1, 2]), group);
    known.complete();
    expect(listing()).toBe(0);
    compared = 0;
    expect(listing()).toBe(0);
    expect(compared).toBe(0);
    expect(listing({ session: null, noteAtRest: (id) => id === 1 })).toBe(1);
    known.begin(atRest);
    await known.record(recording([1, 3]), [entryOf(1), entryOf(2, 2)]);
    known.complete();
    expect(listing(), "one is known in another version now").toBe(1);
    known.begin(atRest);
    known.complete();
    expect(listing(), "all are forgotten").toBe(2);
  });

  test("are found in whatever order they are listed", async () => {
    const known = new KnownFiles();
    const order = fc.shuffledSubarray(Array.from({ length: 8 }, (_, at) => at));
    let listed: readonly number[] = [];
    await fc.assert(
      fc.asyncProperty(order, async (next) => {
        known.begin(atRest);
        for (const at of next) {
          expect(isAtRest(known, entryOf(at))).toBe(listed.includes(at));
          if (!listed.includes(at)) await known.record(recording([at]), [entryOf(at)]);
        }
        known.complete();
        listed = next;
      }),
    );
  });
});
