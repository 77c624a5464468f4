/**
 * Lanes whose first run has made no progress for too long; health, metrics, log and notifications share this one
 * source. The wait of a run counts from its last change of state and from when it became the first, so that a long
 * backlog that moves is no false alarm.
 */

import { type Clock, isoInstant } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { LaneHead, Ledger } from "../ledger/ledger.ts";
import type { IsoInstant, Run } from "../model.ts";
import { RUN_STATES } from "../states.ts";
import type { HealthPart } from "./state-of-work.ts";

/** A lane and its first run. */
export interface LaneWait extends LaneHead {
  /** Since when the run is the first and has not moved. */
  readonly since: IsoInstant;
  readonly waitedMs: number;
  /** It has waited for longer than `afterMs`. */
  readonly overdue: boolean;
  /** Why the run does not move, as far as that is known. */
  readonly reason: string;
}

export interface LaneParts {
  readonly ledger: Pick<Ledger, "laneHeads">;
  /** Milliseconds (`operations.laneAfter`). */
  readonly afterMs: number;
  readonly clock: Clock;
  /** Why a run is not in progress, as far as the scheduler knows more than the ledger. */
  waitReason(run: Run): string | undefined;
  /** True for a service that cannot be used. A lane that waits for that alone is reported with the service. */
  isDown(service: string): boolean;
}

const CHECK_EVERY_MS = 30_000;

export class WaitingLanes {
  readonly #parts: LaneParts;
  /** The first run of each lane at the last check, and since when. */
  readonly #fronts = new Map<string, { readonly id: string; readonly since: IsoInstant }>();

  constructor(parts: LaneParts) {
    this.#parts = parts;
  }

  /** All lanes that have work. */
  async all(): Promise<readonly LaneWait[]> {
    const { ledger, afterMs, clock, waitReason, isDown } = this.#parts;
    const heads = await ledger.laneHeads.list();
    const lanes = new Set(heads.map(({ lane }) => lane));
    for (const lane of this.#fronts.keys()) if (!lanes.has(lane)) this.#fronts.delete(lane);
    const waits: LaneWait[] = [];
    for (const head of heads) {
      const { run } = head;
      const movedAt = await ledger.laneHeads.movedAt(run);
      const frontAt = await this.#frontSince(head, movedAt);
      const since = movedAt > frontAt ? movedAt : frontAt;
      const waitedMs = Math.max(0, clock.now().epochMilliseconds - Date.parse(since));
      const isReportedWithService = RUN_STATES[run.state].stage === "delivery" && isDown(run.binding.service);
      const overdue = waitedMs >= afterMs && !isReportedWithService;
      const reason = waitReason(run) ?? run.reason?.message ?? RUN_STATES[run.state].waitsFor;
      waits.push({ ...head, since, waitedMs, overdue, reason });
    }
    return waits;
  }

  /** Lanes that have waited too long. */
  async overdue(): Promise<readonly LaneWait[]> {
    return (await this.all()).filter(({ overdue }) => overdue);
  }

  /**
   * The ledger is queried for a lane that was not seen before; after that, each change of the first run is seen as it
   * happens.
   */
  async #frontSince(head: LaneHead, movedAt: IsoInstant): Promise<IsoInstant> {
    const { ledger, clock } = this.#parts;
    const { lane, run } = head;
    const known = this.#fronts.get(lane);
    if (known?.id === run.id) return known.since;
    const since =
      known === undefined ? ((await ledger.laneHeads.aheadLeftAt(head, movedAt)) ?? movedAt) : isoInstant(clock.now());
    this.#fronts.set(lane, { id: run.id, since });
    return since;
  }
}

/** Warns once of each run that blocks its lane, and reports when the lane resumes. */
export class LaneLog {
  readonly #parts: { readonly lanes: WaitingLanes; readonly clock: Clock; readonly log: Logger };
  readonly #stop = new AbortController();
  /** The waits that were logged, by run. */
  readonly #reported = new Map<string, LaneWait>();
  #loop: Promise<void> | null = null;

  constructor(parts: { readonly lanes: WaitingLanes; readonly clock: Clock; readonly log: Logger }) {
    this.#parts = parts;
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
  }

  async look(): Promise<void> {
    const { lanes, log } = this.#parts;
    const waits = await lanes.all();
    for (const [key, before] of this.#reported) {
      // A lane is also no longer overdue when its service is down now: the same wait is not reported twice.
      if (waits.some((wait) => keyOf(wait) === key && wait.since === before.since)) continue;
      this.#reported.delete(key);
      log.info(
        factsOf(before),
        `${laneWords(before.lane)} resumes: ${before.run.path} at ${before.run.drop} has moved`,
      );
    }
    for (const wait of waits) {
      if (!wait.overdue || this.#reported.has(keyOf(wait))) continue;
      this.#reported.set(keyOf(wait), wait);
      log.warn(factsOf(wait), waitWords(wait));
    }
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#parts;
    do {
      await this.look().catch((thrown: unknown) =>
        log.warn({ reason: wordsOf(thrown) }, "the check for waiting lanes failed"),
      );
    } while (await clock.sleep(CHECK_EVERY_MS, this.#stop.signal));
  }
}

/** The gateway is ready all the same: other lanes make progress. */
export function laneHealth(waits: readonly LaneWait[]): readonly HealthPart[] {
  return waits
    .filter(({ overdue }) => overdue)
    .map((wait) => ({ part: laneWords(wait.lane), ready: true, reason: waitWords(wait) }));
}

/** `a.csv at field (run 01…, claimed) has not moved since …, and 2 runs wait behind it: <reason>` */
export function waitWords({ run, since, behind, reason }: LaneWait): string {
  const others = behind === 1 ? "1 run waits" : `${behind} runs wait`;
  return (
    `${run.path} at ${run.drop} (run ${run.id}, ${run.state}) has not moved since ${since}, and ${others} ` +
    `behind it: ${reason}`
  );
}

/** The name of a lane is a JSON array of configured names (`laneOf`). */
function laneWords(lane: string): string {
  return `lane ${lane.replaceAll(/[[\]"]/g, "").replaceAll(",", "/")}`;
}

function keyOf({ lane, run }: LaneWait): string {
  return `${run.id} ${lane}`;
}

function factsOf({ lane, run, since, behind }: LaneWait) {
  return {
    lane,
    run: run.id,
    drop: run.drop,
    file: run.path,
    trigger: run.binding.trigger,
    service: run.binding.service,
    state: run.state,
    code: run.reason?.code ?? null,
    since,
    behind,
  };
}
