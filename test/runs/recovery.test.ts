import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openSqliteLedger } from "#gateway/ledger/sqlite/open.ts";
import { resumeRuns } from "#gateway/runs/recovery.ts";
import { deliver, mapped, steppingClock } from "../ledger/fixtures.ts";

it("takes up what is on its way, and not the accepted runs of which nothing more is told", async () => {
  const folder = await mkdtemp(join(tmpdir(), "headgate-"));
  const ledger = await openSqliteLedger({ path: join(folder, "l.sqlite"), clock: steppingClock() });
  const settled = await deliver(ledger, await mapped(ledger, "a.csv"));
  await ledger.noteRun(settled.id, { settled: true });
  expect(await resumeRuns({ ledger }, () => false)).toEqual({});
  await deliver(ledger, await mapped(ledger, "b.csv"));
  await mapped(ledger, "c.csv");
  expect(await resumeRuns({ ledger }, () => false)).toEqual({ accepted: 1, mapped: 1 });
  await ledger.close();
  await rm(folder, { recursive: true });
});
