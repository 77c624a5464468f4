/** The order of a lane, whoever is in front (invariant 7). */
import fc from "fast-check";
import { expect, it } from "vitest";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import type { Run, RunState } from "#gateway/model.ts";
import { claimed, slice } from "./fixtures.ts";

const STATES = ["claimed", "mapped", "delivering", "held", "accepted", "quarantined"] as const;

interface Piece {
  readonly state: (typeof STATES)[number];
  /** `<kind> <target>` each. */
  readonly targets: readonly string[];
}

const PIECE: fc.Arbitrary<Piece> = fc.record({
  state: fc.constantFrom(...STATES),
  targets: fc.uniqueArray(fc.constantFrom("ean A", "ean B", "ean C", "ean D", "id A"), { maxLength: 2 }),
});
/** Also more runs than are asked one by one, and mostly of one kind, so that it comes to their targets. */
const PIECES = fc.oneof(
  fc.array(PIECE, { minLength: 2, maxLength: 5 }),
  fc.array(
    fc.record({
      state: fc.constantFrom("mapped", "delivering", "held", "accepted"),
      targets: fc.uniqueArray(
        fc.nat(9).map((n) => `ean ${n}`),
        { minLength: 1, maxLength: 2 },
      ),
    }),
    { minLength: 7, maxLength: 9 },
  ),
);

const kindsOf = ({ targets }: Piece) => new Set(targets.map((target) => target.split(" ")[0]));

function isInTheWay(other: Piece, own: Piece): boolean {
  if (other.state === "claimed") return true;
  if (other.state !== "mapped" && other.state !== "delivering") return false;
  if (own.state === "claimed") return true;
  if (other.targets.length === 0 || own.targets.length === 0) return false;
  const kinds = new Set([...kindsOf(own), ...kindsOf(other)]);
  return kinds.size > 1 || own.targets.some((target) => other.targets.includes(target));
}

async function open(ledger: Ledger, lane: string, place: number, piece: Piece): Promise<Run> {
  const run = await claimed(ledger, `${lane}-${place}`, lane);
  if (piece.state === "claimed") return run;
  const advance = (from: RunState, to: RunState) => ledger.advanceRun(run.id, from, to);
  const mapped = {
    ...{ batches: [slice("1")], points: 10, rejected: [], rejectedCount: 0, findings: [], detail: "" },
    targets: piece.targets.map((words) => {
      const [kind = "", target = ""] = words.split(" ");
      return { kind, target };
    }),
  };
  const fetched = { to: "fetched", change: { sha256: run.path } } as const;
  await ledger.advanceRuns([
    { id: run.id, from: "claimed", through: [fetched, { to: "mapping" }, { to: "mapped" }], mapped },
  ]);
  if (piece.state === "held" || piece.state === "quarantined") await advance("mapped", piece.state);
  if (piece.state === "delivering" || piece.state === "accepted") await advance("mapped", "delivering");
  if (piece.state === "accepted") await advance("delivering", "accepted");
  return run;
}

export function laneConformance(ledger: () => Ledger): void {
  it("lets a run wait exactly for earlier ones that are not mapped or may share a target, however many", async () => {
    let lanes = 0;
    await fc.assert(
      fc.asyncProperty(PIECES, async (pieces) => {
        lanes += 1;
        const runs: Run[] = [];
        for (const [place, piece] of pieces.entries()) runs.push(await open(ledger(), `lane ${lanes}`, place, piece));
        for (const [place, piece] of pieces.entries()) {
          // At rest it waits for nobody.
          if (piece.state === "accepted" || piece.state === "quarantined") continue;
          const before = await ledger().blockedBy(runs[place] as Run);
          const inTheWay = runs.filter((_run, at) => at < place && isInTheWay(pieces[at] as Piece, piece));
          const ids = inTheWay.map(({ id }) => id);
          if (before === null) expect(ids, JSON.stringify(pieces)).toEqual([]);
          else expect(ids, JSON.stringify(pieces)).toContain(before.id);
        }
      }),
      { numRuns: 12 },
    );
  });

  it("finds the last earlier run that shares a target among few or many, and any with other kinds", async () => {
    const STANDING = ["mapped", "delivering"] as const;
    const crowd = async (lane: string, targets: readonly (readonly string[])[]) => {
      const front: Run[] = [];
      for (const [place, own] of targets.entries())
        front.push(await open(ledger(), lane, place, { state: STANDING[place % 2] ?? "mapped", targets: own }));
      let place = targets.length;
      const inFrontOf = async (...own: readonly string[]) => {
        place += 1;
        const run = await open(ledger(), lane, place, { state: "mapped", targets: own });
        const before = await ledger().blockedBy(run);
        await ledger().advanceRun(run.id, "mapped", "quarantined");
        return front.findIndex(({ id }) => id === before?.id);
      };
      return { inFrontOf };
    };
    // Of two and of nine some are in each state: a few, and more than that.
    for (const size of [2, 9]) {
      const each = Array.from({ length: size }, (_, place) => [`ean ${place}`]);
      const { inFrontOf } = await crowd(`crowd of ${size}`, each);
      for (const place of each.keys()) expect(await inFrontOf("ean other", `ean ${place}`)).toBe(place);
      expect(await inFrontOf("ean other")).toBe(-1);
      // Runs of one queue wait for one another, and not all for the first.
      const last = size - 1;
      expect(await inFrontOf(...each.flat())).toBe(last);
      expect(await inFrontOf("id other")).toBe(last);
      expect(await inFrontOf("ean other", "id other")).toBe(last);
    }
    const { inFrontOf } = await crowd("several kinds", [["ean 1", "id 1"]]);
    expect(await inFrontOf("ean 2", "id 2")).toBe(0);
    for (const others of [0, 1]) {
      const kinds = [["ean 1"], ["ean 2"]].with(others, ["id 1"]);
      expect(await (await crowd(`other at ${others}`, kinds)).inFrontOf("ean 3")).toBe(others);
    }
  });

  it("returns the first run of each lane, how many wait behind it, and since when it has not moved", async () => {
    const { laneHeads } = ledger();
    const headOf = async (lane: string) => {
      const head = (await laneHeads.list()).find((one) => one.lane === lane);
      if (head === undefined) throw new Error(`nothing in ${lane}`);
      return head;
    };
    /** When the run came to a state. */
    const cameTo = async ({ arrivalId }: Run, state: RunState) =>
      (await ledger().events(arrivalId)).find(({ what }) => what === `run.${state}`)?.at ?? "";
    const lane = "front";
    const targets = ["ean A"];
    const first = await open(ledger(), lane, 0, { state: "delivering", targets });
    const held = await open(ledger(), lane, 1, { state: "held", targets });
    const second = await open(ledger(), lane, 2, { state: "mapped", targets });
    const third = await open(ledger(), lane, 3, { state: "claimed", targets });
    await open(ledger(), "other", 0, { state: "mapped", targets });
    expect(await headOf(lane)).toMatchObject({ run: { id: first.id }, behind: 2 });
    expect(await headOf("other")).toMatchObject({ behind: 0 });

    const noted = await ledger().noteRun(second.id, { event: "run.waiting", detail: "once more" });
    const movedAt = await laneHeads.movedAt(noted);
    expect(movedAt).toBe(await cameTo(second, "mapped"));
    expect(noted.changedAt > movedAt).toBe(true);

    await ledger().advanceRun(first.id, "delivering", "accepted");
    const acceptedAt = await cameTo(first, "accepted");
    const confirmed = await ledger().advanceRun(first.id, "accepted", "confirmed");
    const head = await headOf(lane);
    expect(head).toMatchObject({ run: { id: second.id }, behind: 1 });
    expect(await laneHeads.aheadLeftAt(head, movedAt)).toBe(acceptedAt);
    expect(confirmed.changedAt > acceptedAt).toBe(true);
    expect(await laneHeads.aheadLeftAt(head, acceptedAt)).toBeNull();

    await ledger().advanceRun(held.id, "held", "quarantined");
    await ledger().advanceRun(second.id, "mapped", "quarantined");
    expect(await headOf(lane)).toMatchObject({ run: { id: third.id }, behind: 0 });
  });
}
