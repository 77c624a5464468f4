import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openSqliteLedger } from "#gateway/ledger/sqlite/open.ts";
import { entry, listOnce, steppingClock } from "./fixtures.ts";

/** More than the first part of a search. */
const FILES = 2_100;

it("a search that takes long says how far it went, continues, and finds names by their beginning", async () => {
  const folder = mkdtempSync(join(tmpdir(), "headgate-"));
  const clock = steppingClock();
  let ms = 0;
  // Each look at the clock finds a second gone.
  const slow = { ...clock, monotonicMs: () => (ms += 1_000) };
  const ledger = await openSqliteLedger({ path: join(folder, "ledger.sqlite"), clock: slow });
  try {
    const names = Array.from(
      { length: FILES },
      (_, index) => `${index < 10 ? "old" : "new"}/meter-${10_000 + index}.csv`,
    );
    await listOnce(
      ledger,
      "field",
      names.map((name) => entry(name)),
    );
    const search = async (text: string, after?: string) => {
      const { files, next, searchedTo } = await ledger.files.list({ text, limit: 5, after });
      return { paths: files.map(({ arrival }) => arrival.path), next: next ?? undefined, searchedTo };
    };
    const first = await search("old/");
    expect(first.paths).toEqual([]);
    const reached = await ledger.files.byId([Number(first.next)]);
    expect(first.searchedTo).toBe(reached[0]?.arrival.seenAt);
    const second = await search("old/", first.next);
    expect(second).toEqual({
      paths: [9, 8, 7, 6, 5].map((index) => `old/meter-1000${index}.csv`),
      next: expect.any(String),
      searchedTo: expect.any(String),
    });
    expect(await search("meter-10003")).toMatchObject({ paths: ["old/meter-10003.csv"], next: expect.any(String) });
    expect((await search("nowhere", first.next)).next).toBeUndefined();
  } finally {
    await ledger.close();
    rmSync(folder, { recursive: true });
  }
});
