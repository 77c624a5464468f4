/** What each file waits for, told by a running gateway and by its ledger alone. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "#core/clock.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { openLedger } from "#gateway/ledger/open.ts";
import { summarise, type WaitingFile, waitingFiles } from "#gateway/operations/state-of-work.ts";
import { freePort } from "../drops/intake-rig.ts";
import { HeadgateProcess } from "../e2e/processes.ts";
import { claimed, record, sight } from "../ledger/fixtures.ts";
import { drop, GatewayRig, until } from "../runs/gateway-rig.ts";
import { askOperations } from "../support/operations.ts";

describe("the ledger alone", () => {
  let folder: string;
  let ledger: Ledger;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "headgate-"));
    ledger = await openLedger({ kind: "sqlite", path: join(folder, "l.sqlite") }, { clock: systemClock });
  });
  afterEach(async () => {
    await ledger.close();
    rmSync(folder, { recursive: true });
  });

  const place = { drop: "field", waiting: [], eventsArrive: null, paused: null };
  const waiting = async (overdueAfterMs: number, nowMs = Date.now()) =>
    (await waitingFiles(ledger, [{ ...place, overdueAfterMs }], () => undefined, [], nowMs)).files;

  test("comes in parts, each file once, with the number of all in each part", async () => {
    for (const path of ["a.csv", "b.csv", "c.csv"]) await sight(ledger, path);
    await sight(ledger, "d.csv", "other");
    for (const path of ["e.csv", "f.csv"]) await claimed(ledger, path);
    const container = await claimed(ledger, "g.zip");
    await ledger.advanceRun(container.id, "claimed", "fetched", { sha256: "s" });
    await ledger.recordOpened(container.id, [], "no entries");
    const places = [place, { ...place, drop: "other" }];
    const parts: string[][] = [];
    for (let after: string | undefined, isMore = true; isMore; ) {
      const { files, total, next } = await waitingFiles(ledger, places, () => undefined, [], 0, { limit: 1, after });
      expect(total).toBe(7);
      parts.push(files.map(({ path }) => path));
      after = next ?? undefined;
      isMore = next !== null;
    }
    expect(parts).toEqual([["a.csv", "d.csv", "e.csv", "g.zip"], ["b.csv", "f.csv"], ["c.csv"], []]);
  });

  test("counts none for a drop whose name every object has", async () => {
    const { drops } = await summarise(ledger, [{ name: "constructor", kind: "local" }], "1970-01-01T00:00:00Z");
    expect(drops).toEqual({ constructor: { kind: "local", files: 0 } });
  });

  test("reports since when an unsettled file is known, and when that is too long", async () => {
    const { arrival } = await sight(ledger, "a.csv");
    await ledger.advanceArrival(arrival.id, "settling", "temporary name (*.part)");
    expect(await waiting(60_000)).toEqual([
      {
        drop: "field",
        path: "a.csv",
        state: "settling",
        since: arrival.seenAt,
        reason: "temporary name (*.part); the next poll checks it again",
        runId: null,
        overdue: false,
        eventsArrive: null,
      },
    ]);
    expect(await waiting(60_000, Date.parse(arrival.seenAt) + 60_000)).toMatchObject([{ overdue: true }]);
  });

  test("reports why a run waits by its state, and for which other run", async () => {
    const first = await claimed(ledger, "a.csv");
    const second = await claimed(ledger, "b.csv");
    const third = await claimed(ledger, "c.csv");
    for (const { id } of [first, second]) {
      await ledger.advanceRun(id, "claimed", "fetched");
      await ledger.advanceRun(id, "fetched", "mapping");
      await ledger.recordMapped(id, record(["A"], []));
    }
    expect((await waiting(60_000)).map(({ path, reason }) => [path, reason])).toEqual([
      ["a.csv", "its turn to be delivered"],
      ["b.csv", `waits for a.csv (run ${first.id}), which came earlier and has a target in common`],
      ["c.csv", "its turn to be fetched"],
    ]);
    expect((await waiting(60_000)).at(-1)).toMatchObject({ runId: third.id, overdue: false });
  });
});

test("`runs --waiting` marks overdue files and names failing drops, beside a gateway and without one", async () => {
  const rig = await GatewayRig.start();
  try {
    const listen = `127.0.0.1:${await freePort()}`;
    rig.put("in/a.csv", "x");
    rig.put("in/b.txt", "x");
    const gateway = await rig.open({
      operations: { listen },
      drops: [
        drop("in", {
          include: ["a.csv"],
          watch: true,
          settle: { observations: 2, interval: "1h", limit: "1ms" },
        }),
        drop("other", { path: "./in", include: ["b.txt"] }),
        drop("gone"),
      ],
    });
    const ask = async (what: string) => {
      const answer = await askOperations(gateway, `/operations/${what}`);
      return await answer.json();
    };
    const waiting = async (): Promise<readonly WaitingFile[]> => (await ask("waiting")).files;
    await until("events were tested", async () => (await ask("drops"))[0]?.eventsArrive !== null);
    await until("a file is overdue", async () => (await waiting()).some(({ overdue }) => overdue));
    const reason = "has not settled for a long time: size or time still changing: 1 of 2 equal observations";
    expect(await waiting()).toMatchObject([
      { drop: "in", path: "a.csv", state: "settling", overdue: true, eventsArrive: true, reason },
      { drop: "other", path: "b.txt", state: "unmatched", overdue: false, eventsArrive: null },
    ]);

    const show = async () => {
      const config = join(rig.folder, "gateway.yaml");
      const { stdout } = await new HeadgateProcess(["runs", "-c", config, "--waiting"]).ended();
      return stdout.replaceAll(/ +/g, " ");
    };
    const beside = await show();
    expect(beside).toMatch(/^drop gone: cannot be polled: .*, and is polled again at \d{4}-/m);
    expect(beside).toMatch(new RegExp(`^in a\\.csv settling, overdue \\S+ ${reason}$`, "m"));
    expect(beside).toMatch(/^other b\.txt unmatched \S+ standard: /m);

    await gateway.stop();
    const without = await show();
    expect(without).toContain("no gateway responds; this is the state of its ledger");
    expect(without).toMatch(new RegExp(`^in a\\.csv settling, overdue \\S+ ${reason}; the next poll`, "m"));
  } finally {
    await rig.close();
  }
});
