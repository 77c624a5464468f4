import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { systemClock } from "#core/clock.ts";
import type { Ledger, TracedFile } from "#gateway/ledger/ledger.ts";
import { openSqliteLedger } from "#gateway/ledger/sqlite/open.ts";
import { FAULT_POINTS } from "#gateway/ledger/transitions.ts";

const CHILD = join(import.meta.dirname, "crash-child.ts");

interface Ending {
  readonly signal: NodeJS.Signals | null;
  readonly told: string;
  readonly faults: string;
}

/** Of a plain file, which passes several states in one commit. */
const TOGETHER = ["mapped", "accepted"].flatMap((state) => [
  `ledger.run.${state}.before#2`,
  `ledger.run.${state}.after#2`,
]);

it.concurrent.each([...FAULT_POINTS, ...TOGETHER])(
  "a process killed at %s leaves every acknowledged record, and no partial one",
  async (fault) => {
    const folder = await mkdtemp(join(tmpdir(), "headgate-"));
    try {
      const path = join(folder, "ledger.sqlite");
      const { signal, told, faults } = await runChild(path, fault);
      expect(faults).toBe("");
      expect(signal).toBe("SIGKILL");
      const ledger = await openSqliteLedger({ path, clock: systemClock });
      const files = await allFiles(ledger);
      expect(eventNames(files)).toEqual(expectedEvents(told, fault.includes(".after")));
      for (const file of files) assertWhole(file);
      await ledger.close();
    } finally {
      await rm(folder, { recursive: true });
    }
  },
);

function runChild(path: string, fault: string): Promise<Ending> {
  const child = spawn(process.execPath, [CHILD, path, fault], { stdio: ["ignore", "pipe", "pipe"] });
  let told = "";
  let faults = "";
  child.stdout.on("data", (bytes) => {
    told += bytes;
  });
  child.stderr.on("data", (bytes) => {
    faults += bytes;
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (_code, signal) => resolve({ signal, told, faults }));
  });
}

/** What every step promised that was done; and when killed after its commit, what the step in hand has written. */
function expectedEvents(told: string, after: boolean): readonly string[] {
  const lines = told.trimEnd().split("\n");
  const begun = lines.filter((line) => line.startsWith("begin")).map((line) => line.split(" ").slice(1));
  expect(lines.at(-1)).toMatch(/^begin/);
  const promised = after ? begun : begun.slice(0, -1);
  return promised
    .flat()
    .filter((name) => name !== "")
    .sort();
}

async function allFiles(ledger: Ledger): Promise<readonly TracedFile[]> {
  const found = await Promise.all(["a", "b", "c", "d", "e", "f", "g", "h", "i"].map((name) => ledger.trace(name)));
  return found.flat();
}

function eventNames(files: readonly TracedFile[]): readonly string[] {
  return files.flatMap((file) => file.events.map(({ what }) => what)).sort();
}

/** The records say the same as the events, so each of them was written with its event or not at all. */
function assertWhole({ arrival, runs, events }: TracedFile): void {
  const last = (kind: string, of: (event: (typeof events)[number]) => boolean) =>
    events
      .filter((event) => event.what.startsWith(`${kind}.`) && of(event))
      .at(-1)
      ?.what.slice(kind.length + 1);
  const ownEvent = last("arrival", ({ what }) => what !== "arrival.gone");
  expect(arrival.state).toBe(ownEvent);
  expect(runs.length > 0).toBe(arrival.state === "matched");
  for (const { run, batches } of runs) {
    expect(run.state).toBe(last("run", ({ runId }) => runId === run.id));
    expect(run.finishedAt !== null).toBe(events.some(({ what }) => what === "source.archived"));
    const leaves = batches.filter(({ state }) => state !== "split");
    const points = (state: string) =>
      leaves.reduce((sum, batch) => sum + (batch.state === state ? batch.points : 0), 0);
    expect(leaves.reduce((sum, batch) => sum + batch.points, 0)).toBe(run.points.mapped);
    expect(run.points).toMatchObject({ accepted: points("accepted"), rejected: points("rejected") });
    for (const batch of batches)
      expect(batch.state).toBe(last("batch", ({ operationId }) => operationId === batch.operationId) ?? "ready");
  }
}
