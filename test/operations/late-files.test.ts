import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Clock, systemClock } from "#core/clock.ts";
import { createLog } from "#core/log.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { openLedger } from "#gateway/ledger/open.ts";
import { LateFiles, type MissingFile, missingWords } from "#gateway/operations/late-files.ts";
import { expectOptions, missingFiles } from "#gateway/triggers/expectation.ts";

let folder: string;
let ledger: Ledger;
let now: Temporal.Instant;
let warnings: string[];
const clock: Clock = { ...systemClock, now: () => now };
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-"));
  now = Temporal.Instant.from("2026-03-09T05:00:00Z");
  ledger = await openLedger({ kind: "sqlite", path: join(folder, "ledger.sqlite") }, { clock });
  warnings = [];
});
afterEach(async () => {
  await ledger.close();
  rmSync(folder, { recursive: true });
});

async function fileComes(trigger: string): Promise<void> {
  const poll = await ledger.beginPoll("in");
  const [sighting] = await poll.record([{ path: `${now.epochMilliseconds}.csv`, size: 1, mtime: "1" }]);
  await poll.complete();
  const binding = {
    trigger,
    service: "hub",
    mapper: { name: "standard", version: "1", digest: "" },
    settings: {},
    rows: "strict" as const,
    limits: { pointsMax: 1, bytesMax: 1 },
  };
  await ledger.openRun(sighting?.arrival.id ?? 0, binding, "lane");
}

function watcher(counted: MissingFile[][] = []): LateFiles {
  const triggers = [
    {
      name: "daily",
      state: "Active",
      expect: expectOptions.parse({ by: "07:00", timeZone: "Europe/Brussels" }),
    },
  ];
  const since = Temporal.Instant.from("2026-03-01T00:00:00Z");
  return new LateFiles({
    find: () => missingFiles(triggers, ledger, since, now),
    count: (missing) => counted.push([...missing]),
    clock,
    log: createLog("warn", { write: (line) => void warnings.push(line) }),
  });
}

describe("a file that does not arrive by its time", () => {
  it("is one warning for each due time, and none after it arrived", async () => {
    const late = watcher();
    await fileComes("daily");
    await late.look();
    expect(late.missing()).toEqual([]);

    now = Temporal.Instant.from("2026-03-10T06:00:01Z");
    await late.look();
    await late.look();
    expect(warnings).toHaveLength(1);
    expect(late.missing()).toEqual([
      { trigger: "daily", due: "2026-03-10T06:00:00Z", lastSeen: "2026-03-09T05:00:00.000Z" },
    ]);

    await fileComes("daily");
    await late.look();
    expect(late.missing()).toEqual([]);
    expect(warnings).toHaveLength(1);
  });

  it("is counted by trigger at every check", async () => {
    const counted: MissingFile[][] = [];
    now = Temporal.Instant.from("2026-03-10T06:00:01Z");
    await watcher(counted).look();
    expect(counted).toEqual([[{ trigger: "daily", due: "2026-03-10T06:00:00Z", lastSeen: null }]]);
    expect(missingWords(counted[0]?.[0] as MissingFile)).toBe(
      "trigger daily expected a file by 2026-03-10T06:00:00Z; none has come yet",
    );
  });
});
