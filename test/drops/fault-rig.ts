/** Pick-up over a real drop and a real ledger, with the shortest of deliveries behind it. */

import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { type Clock, isoInstant, systemClock } from "#core/clock.ts";
import { TransientError } from "#core/errors.ts";
import { fetchFile, finishFile } from "#gateway/drops/drop.ts";
import { planFinish } from "#gateway/drops/finish.ts";
import { Pickup, type PickupReport } from "#gateway/drops/pickup.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { openLedger } from "#gateway/ledger/open.ts";
import type { Arrival, ArrivalState, Run } from "#gateway/model.ts";
import { BINDING, record } from "../ledger/fixtures.ts";
import { type Field, never, type OpenField, type Settings } from "./field.ts";

const STATES: readonly ArrivalState[] = ["settling", "unmatched", "duplicate", "skipped", "matched"];
const AT_REST = ["accepted", "cancelled", "quarantined"];

export interface Delivered {
  readonly path: string;
  readonly content: string;
}

const VANISHED = "vanished or replaced";

export class FaultRig {
  readonly field: Field;
  readonly ledger: Ledger;
  readonly delivered: Delivered[] = [];
  readonly #pickup: Pickup;
  #nowMs = 0;

  static async open(open: OpenField, settings: Settings = {}): Promise<FaultRig> {
    const field = await open({ settle: { observations: 2, interval: "1s" }, ...settings });
    const ledger = await openLedger(
      { kind: "sqlite", path: join(field.outside, "ledger.sqlite") },
      { clock: systemClock },
    );
    return new FaultRig(field, ledger);
  }

  private constructor(field: Field, ledger: Ledger) {
    this.field = field;
    this.ledger = ledger;
    const clock: Clock = { ...systemClock, monotonicMs: () => this.#nowMs };
    const { drop, options } = field;
    const claim = async (arrivals: readonly Arrival[]) => {
      for (const { id } of arrivals) await ledger.openRun(id, BINDING, "lane");
    };
    this.#pickup = new Pickup({ drop, options, journal: ledger, clock, claim });
  }

  /** A poll, one settling interval later. */
  poll(): Promise<PickupReport> {
    this.#nowMs += 1_000;
    return this.#pickup.poll(never);
  }

  /** Fetches and delivers what was claimed, as far as that goes now. */
  async deliver(): Promise<void> {
    for (const run of await this.ledger.runsIn(["claimed"])) await this.#lead(run);
  }

  async round(): Promise<PickupReport> {
    const report = await this.poll();
    await this.deliver();
    return report;
  }

  /** Rounds until nothing more happens; then every file is in one state, and nothing was delivered twice. */
  async settle(): Promise<void> {
    for (let round = 0; round < 8; round += 1) await this.round();
    await this.#expectOrder();
  }

  async #lead(run: Run): Promise<void> {
    const { drop, options, outside } = this.field;
    const entry = { path: run.path, size: run.size, mtime: run.mtime };
    const copy = join(outside, "spool", run.id);
    const give = (to: "cancelled" | "quarantined", message: string) =>
      this.ledger.advanceRun(run.id, "claimed", to, {
        reason: { code: "HG-RUN-002", message },
        gone: message === VANISHED,
      });
    try {
      const { sha256 } = await fetchFile(drop, entry, copy, never);
      const arrival = await this.ledger.arrival(run.arrivalId);
      if (arrival !== null && (await this.ledger.duplicateOf(arrival, sha256)) !== null) {
        await this.ledger.advanceArrival(arrival.id, "duplicate", "the same bytes came before");
        await give("cancelled", "duplicate");
        return;
      }
      await this.ledger.advanceRun(run.id, "claimed", "fetched", { sha256 });
    } catch (thrown) {
      const there = await drop.stat(entry.path, never).catch(() => entry);
      const same = there !== null && there.size === entry.size && there.mtime === entry.mtime;
      if (!same) await give("cancelled", VANISHED);
      else if (!(thrown instanceof TransientError)) await give("quarantined", String(thrown));
      return;
    }
    this.delivered.push({ path: run.path, content: await readFile(copy, "latin1") });
    await this.ledger.advanceRun(run.id, "fetched", "mapping");
    await this.ledger.recordMapped(run.id, record(["A"], []));
    await this.ledger.advanceRun(run.id, "mapped", "delivering");
    await this.ledger.advanceRun(run.id, "delivering", "accepted");
    const plan = planFinish(options.finish.delivered, entry, run.id);
    await this.ledger.noteRun(run.id, { finishPlan: plan });
    const result = await finishFile(drop, entry, plan, never);
    const left = plan.action !== "leave" && result !== "changed";
    await this.ledger.noteRun(run.id, { finished: { at: isoInstant(systemClock.now()), left } });
  }

  async #expectOrder(): Promise<void> {
    const lying = await this.ledger.arrivalsIn("field", STATES);
    const files: string[] = [];
    for (const item of await readdir(this.field.root, { recursive: true })) {
      if (item.startsWith("archive")) continue;
      if ((await stat(join(this.field.root, item))).isFile()) files.push(item);
    }
    expect(lying.map(({ path }) => path).toSorted(), "one arrival for each file that lies there").toEqual(
      files.toSorted(),
    );
    for (const { reason } of lying) expect(reason).not.toBe("");
    const runs = await this.ledger.recentRuns(1000);
    expect(runs.filter(({ state }) => !AT_REST.includes(state)).map(({ path, state }) => [path, state])).toEqual([]);
    const prints = this.delivered.map(({ path, content }) => `${path} ${digest(content)}`);
    expect(new Set(prints).size, "nothing is delivered twice").toBe(prints.length);
  }

  async close(): Promise<void> {
    await this.ledger.close();
    await this.field.close();
  }
}

function digest(content: string): string {
  return createHash("sha256").update(content).digest("hex");
}
