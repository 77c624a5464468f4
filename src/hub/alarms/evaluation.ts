/**
 * Evaluates alarms. Points of a variable are read from the newest evaluated one on, in order of date, so that it does
 * not matter why an alarm is evaluated, or how often: reports of ingestion only make it sooner.
 */
import type { Clock } from "../../support/clock.ts";
import type { Logger } from "../../support/log.ts";
import { breath } from "../../support/turns.ts";
import type { TouchedPoints } from "../push/touched.ts";
import type { HubStore } from "../store/store.ts";
import { type Found, record } from "./changes.ts";
import { type AlarmPoint, leavesState } from "./conditions.ts";
import { costOfPoint } from "./expression.ts";
import { isFilled, isFresh, judgeMoment, type MomentFacts, nextMoment, readMoments } from "./moments.ts";
import { changedPauses, repeatedPauses, setPauses, withRepeats } from "./pauses.ts";
import { progressed } from "./progress.ts";
import { hasBounds, isOfPoints } from "./rule.ts";
import { isRemoved, stepBack } from "./step-back.ts";
import { type Watched, WatchedAlarms } from "./watched.ts";

export interface EvaluationParts {
  readonly store: HubStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** Mails of one account. */
  readonly mailsAnHour: number;
  /** How many alarms an account may have; any number when absent. */
  readonly mostOf?: (accountId: number) => number;
  /** The address of the hub, where it is known: mails link to it. */
  readonly publicUrl?: string | undefined;
  /** Called after a change was written: mails and dispatches may be due. */
  onChanged(): void;
}

/** Variables of one statement; the event loop serves others between two. */
const VARIABLES = 100;
/** Points of a variable that one statement reads. */
const POINTS = 500;
/** Points without an expression that are judged before the event loop serves others. */
const JUDGED = 10_000;
/** Watermarks of one transaction. */
const KEPT = 500;

export class AlarmEvaluation {
  readonly #parts: EvaluationParts;
  readonly watched: WatchedAlarms;
  #change: number | null = null;

  constructor(parts: EvaluationParts) {
    this.#parts = parts;
    this.watched = new WatchedAlarms(parts.store, parts.log, parts.mostOf);
  }

  get #nowMs(): number {
    return this.#parts.clock.now().epochMilliseconds;
  }

  /**
   * Follows templates, structure, and changes by others. New alarms, and those of changed templates, are due. So are
   * those that another hub has changed: points stored here meanwhile were compared with the state before.
   */
  async refresh(): Promise<void> {
    const followed = await this.#follow();
    const fresh = await this.watched.refresh(this.#nowMs, false);
    const resumed = await this.#pause();
    await this.#evaluate([
      ...new Set([...fresh, ...resumed, ...followed.flatMap((id) => this.watched.byId(id) ?? [])]),
    ]);
  }

  /** Evaluates everything, whether it was reported or not, and keeps how far. */
  async sweep(): Promise<void> {
    await this.watched.refresh(this.#nowMs, true);
    await this.#pause();
    await this.#evaluate([...this.watched.all()]);
    await this.keep();
  }

  /** Pauses alarms that write into what they watch, before any of them is evaluated. Returns those that resume. */
  async #pause(): Promise<readonly Watched[]> {
    const { unjudged } = this.watched;
    if (unjudged.size === 0) return [];
    const byAccount = Map.groupBy(this.watched.all(), ({ stored }) => stored.accountId);
    const set: Watched[] = [];
    for (const accountId of [...unjudged]) {
      const wanted = await changedPauses(this.#parts.store, accountId, byAccount.get(accountId) ?? [], this.#nowMs);
      if (wanted.length > 0) {
        set.push(...(await setPauses(this.#parts, accountId, wanted, this.#nowMs)));
        this.#parts.onChanged();
      }
      unjudged.delete(accountId);
      await breath();
    }
    return set.filter(isActive);
  }

  async #pauseRepeated(all: readonly Watched[]): Promise<void> {
    const wanted = repeatedPauses(all, this.#nowMs);
    for (const [accountId, own] of Map.groupBy(wanted, ({ watched }) => watched.stored.accountId))
      await setPauses(this.#parts, accountId, own, this.#nowMs);
    if (wanted.length > 0) this.#parts.onChanged();
  }

  /** Variables that ingestion has written. */
  async take(touched: readonly TouchedPoints[]): Promise<void> {
    const nowMs = this.#nowMs;
    const due = new Set<Watched>();
    const ended = new Set<Watched>();
    for (const { ids, fromMs, toMs, min, max } of touched)
      for (const [index, id] of ids.entries())
        for (const watched of this.watched.of(id).filter(isActive)) {
          const [first = 0, last = 0, low = 0, high = 0] = [fromMs[index], toMs[index], min[index], max[index]];
          if (last > nowMs) {
            watched.futureMs = Math.min(watched.futureMs ?? last, last);
            due.add(watched);
          } else if (watched.rule.condition.kind === "NoData") {
            watched.newestMs = Math.max(watched.newestMs ?? last, last);
            // Also where the newest known point was removed.
            if (watched.stored.state !== "NotPresent" && isFresh(watched.rule, last, nowMs)) ended.add(watched);
          } else if (!this.#isHarmless(watched, low, high)) due.add(watched);
          if (isFilled(watched, first)) ended.add(watched);
        }
    await this.#evaluate([...due]);
    await this.#judgeAll([...ended], nowMs);
  }

  #isHarmless({ rule, stored }: Watched, min: number, max: number): boolean {
    if (!isOfPoints(rule.condition)) return true;
    return hasBounds(rule) && leavesState(rule.condition, stored.state !== "NotPresent", min, max);
  }

  /** Judges what depends on the time, and returns when this is next necessary; null: by nothing that is known. */
  async tick(): Promise<number | null> {
    const nowMs = this.#nowMs;
    const active = () => [...this.watched.all()].filter(isActive);
    await this.#evaluate(active().filter(({ futureMs }) => futureMs !== null && futureMs <= nowMs));
    const due = active().filter((one) => (nextMoment(one, nowMs) ?? Number.POSITIVE_INFINITY) <= nowMs);
    await this.#judgeAll(due, nowMs);
    let next: number | null = null;
    for (const one of active()) {
      for (const moment of [nextMoment(one, nowMs), one.futureMs])
        if (moment !== null && (next === null || moment < next)) next = moment;
    }
    return next;
  }

  async #judgeAll(due: readonly Watched[], nowMs: number): Promise<void> {
    for (let at = 0; at < due.length; at += VARIABLES) {
      await this.#judge(due.slice(at, at + VARIABLES), nowMs);
      await breath();
    }
  }

  async #judge(due: readonly Watched[], nowMs: number): Promise<void> {
    const facts: MomentFacts = await readMoments(this.#parts.store, due, nowMs);
    const found = due.map((watched): Found => {
      if ((watched.futureMs ?? nowMs) <= nowMs) watched.futureMs = null;
      const { memory = watched.stored.memory, watermarkMs, changes } = judgeMoment(watched, facts, nowMs);
      return { watched, memory, watermarkMs, changes };
    });
    await this.#record(found);
  }

  /** Reads the alarms that other hubs, or people, have changed, and returns their ids. */
  async #follow(): Promise<readonly number[]> {
    const followed: number[] = [];
    const { alarms, newest } = await this.#parts.store.alarms.evaluation.changedSince(this.#change ?? 0);
    if (this.#change !== null)
      for (const row of alarms) {
        const watched = this.watched.byId(row.id);
        if (watched === undefined || watched.stored.revision >= row.revision) continue;
        Object.assign(watched, { stored: row, isAhead: false });
        followed.push(row.id);
      }
    this.#change = newest;
    return followed;
  }

  async #evaluate(asked: readonly Watched[]): Promise<void> {
    // Also one whose pause was not written after its changes, since the hub was killed.
    await this.#pauseRepeated(asked);
    const all = asked.filter(isActive);
    const moments = all.filter(({ rule }) => !isOfPoints(rule.condition));
    await this.#judgeAll(moments, this.#nowMs);
    const byVariable = Map.groupBy(
      all.filter(({ facts, rule }) => facts !== null && isOfPoints(rule.condition)),
      ({ facts }) => facts?.id ?? 0,
    );
    const groups = [...byVariable.values()];
    for (let at = 0; at < groups.length; at += VARIABLES) {
      await this.#evaluateGroup(groups.slice(at, at + VARIABLES));
      await breath();
    }
  }

  /** The alarms of some variables, as many points at once as fit, until there are no more. */
  async #evaluateGroup(groups: readonly (readonly Watched[])[]): Promise<void> {
    const page = { order: "ASC", page: { offset: 0, limit: POINTS }, view: { kind: "latest" }, labels: false } as const;
    const nowMs = this.#nowMs;
    let left = groups;
    while (left.length > 0) {
      const asks = left.flatMap((alarms) => {
        const [variable] = alarms.flatMap(({ facts }) => facts ?? []);
        return variable === undefined ? [] : [{ variable, fromMs: earliest(alarms), lastMs: null }];
      });
      const heads = await this.#parts.store.points.heads(asks, page);
      const found: Found[] = [];
      const removed: Watched[] = [];
      let judged = 0;
      for (const [index, alarms] of left.entries())
        for (const watched of alarms.filter(isActive)) {
          const points = heads[index] ?? [];
          if (isRemoved(watched, points, points.length < POINTS)) removed.push(watched);
          else found.push(...foundIn(watched, points, nowMs));
          judged += points.length * costOfPoint(watched.rule.condition);
          if (judged < JUDGED) continue;
          judged = 0;
          await breath();
        }
      await this.#record(found);
      if (removed.length > 0) {
        await stepBack(this.#parts.store, removed);
        await this.#evaluateGroup(removed.map((watched) => [watched]));
      }
      left = left.filter((alarms, index) => {
        const points = heads[index] ?? [];
        // The newest evaluated point is read again: only more than that is progress.
        if (points.length < POINTS || (points.at(-1)?.atMs ?? nowMs) > nowMs) return false;
        return (earliest(alarms) ?? 0) > (asks[index]?.fromMs ?? Number.NEGATIVE_INFINITY);
      });
      if (left.length > 0) await breath();
    }
  }

  async #record(judged: readonly Found[]): Promise<void> {
    const { store, mailsAnHour, publicUrl } = this.#parts;
    const found = judged.map(withRepeats);
    const refused = await record(store, found, { nowMs: this.#nowMs, mailsAnHour, publicUrl });
    if (found.some(({ changes }) => changes.length > 0)) this.#parts.onChanged();
    await this.#pauseRepeated(found.map(({ watched }) => watched));
    if (refused.length > 0) await this.#again(refused);
  }

  /** Another hub, a person, or a change of the template, was first: what is in the store counts. */
  async #again(refused: readonly Watched[]): Promise<void> {
    const ids = refused.map(({ stored }) => stored.id);
    const rows = new Map((await this.#parts.store.alarms.evaluation.alarmsOf(ids)).map((row) => [row.id, row]));
    const again: Watched[] = [];
    for (const watched of refused) {
      const row = rows.get(watched.stored.id);
      if (row === undefined) this.watched.drop(watched);
      // Its template was first: the next refresh reads it.
      if (row === undefined || row.revision === watched.stored.revision) continue;
      Object.assign(watched, { stored: row, isAhead: false });
      again.push(watched);
    }
    if (again.length > 0) await this.#evaluate(again);
  }

  /** Writes how far evaluation has come. */
  async keep(): Promise<void> {
    const ahead = [...this.watched.all()].filter(({ isAhead }) => isAhead);
    for (let at = 0; at < ahead.length; at += KEPT) {
      const part = ahead.slice(at, at + KEPT);
      const kept = part.map(({ stored }) => stored);
      await this.#parts.store.alarms.evaluation.keepWatermarks(kept);
      for (const [index, one] of part.entries()) if (one.stored === kept[index]) one.isAhead = false;
      await breath();
    }
  }
}

function isActive({ stored }: Watched): boolean {
  return stored.pause === null;
}

/** Points after now wait for their moment: one with a wrong date must not hide those that come before it. */
function foundIn(watched: Watched, all: readonly AlarmPoint[], nowMs: number): readonly Found[] {
  const { rule, compiled, zone, stored } = watched;
  const { watermarkMs, state, memory } = stored;
  watched.futureMs = all.find(({ atMs }) => atMs > nowMs)?.atMs ?? null;
  const points = all
    .filter(({ atMs }) => atMs <= nowMs && (watermarkMs === null || atMs >= watermarkMs))
    .map(({ atMs, value }) => ({ atMs, value }));
  const last = points.at(-1);
  if (last === undefined) return [];
  const known = memory.last !== undefined && memory.last.atMs < (points[0]?.atMs ?? 0) ? [memory.last] : [];
  const expression = compiled?.([...known, ...points]) ?? null;
  const next = progressed({ ...rule, expression }, zone, { state, memory }, points);
  return [{ watched, memory: next.memory, watermarkMs: last.atMs, changes: next.changes }];
}

/** From where the points of these alarms of one variable are read; null: from the first one. */
function earliest(alarms: readonly Watched[]): number | null {
  const marks = alarms.map(({ stored }) => stored.watermarkMs);
  return marks.includes(null) ? null : Math.min(...marks.map((mark) => mark ?? 0));
}
