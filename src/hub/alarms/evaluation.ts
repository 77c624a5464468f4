/**
 * Evaluates alarms. Points of a variable are read from the newest evaluated one on, in order of date, so that it does
 * not matter why an alarm is evaluated, or how often: reports of ingestion only make it sooner. Accounts take turns,
 * slice by slice.
 */
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import { breath } from "#core/turns.ts";
import type { TouchedPoints } from "../push/touched.ts";
import type { StoredPause } from "../store/alarms/records.ts";
import type { HubStore } from "../store/store.ts";
import { isoOfMs } from "../time.ts";
import { type AlarmPoint, leavesState } from "./conditions.ts";
import { costOfPoint } from "./expression.ts";
import { feedbackOf, mappedOf, stateWrites, writesInto } from "./feedback.ts";
import { isFilled, isFresh, judgeMoment, type MomentFacts, nextMoment, readMoments } from "./moments.ts";
import { notifiedOf, pauseNotices } from "./notices.ts";
import { progressed } from "./progress.ts";
import { type Found, hasBounds, isOfPoints, record, type Watched, WatchedAlarms } from "./watched.ts";

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

/** So many changes in a row at one date are no correction: something writes the point after each of them. */
const REPEATS_MAX = 20;
/** Pauses of one transaction. */
const PAUSES = 500;
/** Another hub, or a person, may change the row between a read and the pause. */
const ATTEMPTS = 3;

/** The point that counts again, and the one before it, by which a rate of change is judged. */
const LEFT = { order: "DESC", page: { offset: 0, limit: 2 }, view: { kind: "latest" }, labels: false } as const;

/** Variables of one slice. */
const VARIABLES = 100;
/** Points of a variable that one statement reads. */
const POINTS = 500;
/** Points without an expression that are judged before the event loop serves others. */
const JUDGED = 10_000;
/** A slice ends early with so much that was judged, or so many changes; its next one has fewer variables. */
const JUDGED_MAX = 50_000;
const CHANGES_MAX = 500;
/** Watermarks of one transaction. */
const KEPT = 500;
const PAGE = { order: "ASC", page: { offset: 0, limit: POINTS }, view: { kind: "latest" }, labels: false } as const;

/** Alarms of one account that are to be evaluated, by their ids, since a refresh may replace what is known of them. */
interface Due {
  /** By points. */
  readonly points: Set<number>;
  /** By the time, after their points. */
  readonly moments: Set<number>;
  /** Variables of the next slice. */
  variables: number;
}

export class AlarmEvaluation {
  readonly #parts: EvaluationParts;
  readonly watched: WatchedAlarms;
  /** By account, in the order of their turns. */
  readonly #due = new Map<number, Due>();
  #isSwept = false;
  #change: number | null = null;

  constructor(parts: EvaluationParts) {
    this.#parts = parts;
    this.watched = new WatchedAlarms(parts.store, parts.log, parts.mostOf);
  }

  get #nowMs(): number {
    return this.#parts.clock.now().epochMilliseconds;
  }

  /** Whether a further round is needed. */
  get isBehind(): boolean {
    return this.#due.size > 0;
  }

  /** Evaluates one slice of each account with alarms that are due. */
  async round(): Promise<void> {
    for (const [accountId, due] of [...this.#due]) {
      // The account is the last one of the next round, also where this fails.
      this.#due.delete(accountId);
      this.#due.set(accountId, due);
      await this.#evaluate(due);
      if (due.points.size + due.moments.size === 0) this.#due.delete(accountId);
      await breath();
    }
    if (!this.#isSwept || this.isBehind) return;
    this.#isSwept = false;
    await this.keep();
  }

  /**
   * Follows templates, structure, and changes by others. New alarms, and those of changed templates, are due. So are
   * those that another hub has changed: points stored here meanwhile were compared with the state before.
   */
  async refresh(): Promise<void> {
    const followed = await this.#follow();
    const fresh = await this.watched.refresh(this.#nowMs, false);
    const resumed = await this.#pause();
    this.#note([...fresh, ...resumed, ...followed.flatMap((id) => this.watched.byId(id) ?? [])]);
  }

  /** Everything is due, whether it was reported or not; how far that came is kept. */
  async sweep(): Promise<void> {
    await this.watched.refresh(this.#nowMs, true);
    await this.#pause();
    this.#note(this.watched.all());
    this.#isSwept = true;
  }

  #dueOf({ stored: { accountId } }: Watched): Due {
    return this.#due.getOrInsertComputed(accountId, () => ({
      points: new Set(),
      moments: new Set(),
      variables: VARIABLES,
    }));
  }

  #note(all: Iterable<Watched>): void {
    for (const watched of all) {
      const due = this.#dueOf(watched);
      (isOfPoints(watched.rule.condition) ? due.points : due.moments).add(watched.stored.id);
    }
  }

  #noteMoments(all: Iterable<Watched>): void {
    for (const watched of all) this.#dueOf(watched).moments.add(watched.stored.id);
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
  take(touched: readonly TouchedPoints[]): void {
    const nowMs = this.#nowMs;
    for (const { ids, fromMs, toMs, min, max } of touched)
      for (const [index, id] of ids.entries())
        for (const watched of this.watched.of(id).filter(isActive)) {
          const [first = 0, last = 0, low = 0, high = 0] = [fromMs[index], toMs[index], min[index], max[index]];
          if (last > nowMs) {
            watched.futureMs = Math.min(watched.futureMs ?? last, last);
            this.#note([watched]);
          } else if (watched.rule.condition.kind === "NoData") {
            watched.newestMs = Math.max(watched.newestMs ?? last, last);
            // Also where the newest known point was removed.
            if (watched.stored.state !== "NotPresent" && isFresh(watched.rule, last, nowMs))
              this.#noteMoments([watched]);
          } else if (!this.#isHarmless(watched, low, high)) this.#note([watched]);
          if (isFilled(watched, first)) this.#noteMoments([watched]);
        }
  }

  #isHarmless({ rule, stored }: Watched, min: number, max: number): boolean {
    if (!isOfPoints(rule.condition)) return true;
    return hasBounds(rule) && leavesState(rule.condition, stored.state !== "NotPresent", min, max);
  }

  /** Alarms whose moment has come are due. Returns when the next one comes; null: by nothing that is known. */
  tick(): number | null {
    const nowMs = this.#nowMs;
    let next: number | null = null;
    for (const one of this.watched.all()) {
      if (!isActive(one)) continue;
      const moment = nextMoment(one, nowMs);
      if (one.futureMs !== null && one.futureMs <= nowMs) this.#note([one]);
      if (moment !== null && moment <= nowMs) this.#noteMoments([one]);
      for (const ms of [moment, one.futureMs]) if (ms !== null && (next === null || ms < next)) next = ms;
    }
    return next;
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

  /** Evaluates one slice of an account. */
  async #evaluate(due: Due): Promise<void> {
    const first = this.#taken(due.points, due.variables);
    // The points of a variable are read once for all of its alarms.
    const others = first.flatMap(({ facts }) => this.watched.of(facts?.id ?? 0));
    const points = [...first, ...others.filter(({ stored }) => due.points.delete(stored.id))];
    const moments = this.#taken(due.moments, VARIABLES);
    try {
      // Also one whose pause was not written after its changes, since the hub was killed.
      await this.#pauseRepeated([...points, ...moments]);
      await this.#evaluatePoints(points.filter(isActive), due);
      const isLater = ({ stored }: Watched) => due.points.has(stored.id);
      this.#noteMoments(moments.filter(isLater));
      await this.#judge(
        moments.filter((one) => isActive(one) && !isLater(one)),
        this.#nowMs,
      );
    } catch (thrown) {
      this.#note(points);
      this.#noteMoments(moments);
      throw thrown;
    }
  }

  /** Without those that are gone. */
  #taken(ids: Set<number>, most: number): readonly Watched[] {
    return [...ids.values().take(most)].flatMap((id) => {
      ids.delete(id);
      return this.watched.byId(id) ?? [];
    });
  }

  /** Reads as many points of the variables as one statement gives. A variable with more of them is due again. */
  async #evaluatePoints(all: readonly Watched[], due: Due): Promise<void> {
    const nowMs = this.#nowMs;
    const own = all.filter(({ facts }) => facts !== null);
    const groups = [...Map.groupBy(own, ({ facts }) => facts?.id ?? 0).values()];
    const asks = groups.flatMap((alarms) => {
      const [variable] = alarms.flatMap(({ facts }) => facts ?? []);
      return variable === undefined ? [] : [{ variable, fromMs: earliest(alarms), lastMs: null }];
    });
    if (asks.length === 0) return;
    const heads = await this.#parts.store.points.heads(asks, PAGE);
    const found: Found[] = [];
    const removed: Watched[] = [];
    const again: Watched[] = [];
    const size = { judged: 0, changes: 0 };
    let whole = 0;
    for (const [index, alarms] of groups.entries()) {
      const points = heads[index] ?? [];
      const isMore = points.length === POINTS && (points.at(-1)?.atMs ?? nowMs) <= nowMs;
      let done = 0;
      let hasProgress = false;
      for (const watched of alarms) {
        if (size.judged >= JUDGED_MAX || size.changes >= CHANGES_MAX) break;
        done += 1;
        const one = isRemoved(watched, points, points.length < POINTS) ? null : foundIn(watched, points, nowMs);
        if (one === null) removed.push(watched);
        else found.push(...one);
        // The newest evaluated point is read again: only more than that is progress.
        hasProgress ||= one?.some(({ watermarkMs }) => watermarkMs !== watched.stored.watermarkMs) ?? false;
        await this.#count(size, points.length * costOfPoint(watched.rule.condition), one?.[0]?.changes.length ?? 0);
      }
      if (done === alarms.length) whole += 1;
      // Alarms that did not fit in come first.
      if (done < alarms.length || (isMore && hasProgress)) again.push(...alarms.slice(done), ...alarms.slice(0, done));
    }
    due.variables = whole < groups.length ? Math.max(1, whole) : Math.min(VARIABLES, due.variables * 2);
    await this.#record(found);
    if (removed.length > 0) await stepBack(this.#parts.store, removed);
    this.#note([...again, ...removed]);
  }

  async #count(size: { judged: number; changes: number }, judged: number, changes: number): Promise<void> {
    const before = Math.floor(size.judged / JUDGED);
    size.judged += judged;
    size.changes += changes;
    if (Math.floor(size.judged / JUDGED) > before) await breath();
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
    this.#note(again);
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

// Alarms whose newest judged point was removed. The newest one of those before it that is left counts again, so that
// neither the removed one nor its date decides, and later ones follow.

/** `points`: from the newest judged one on, or from an earlier one, in order of date; not `isAll` where more follow. */
function isRemoved({ stored }: Watched, points: readonly AlarmPoint[], isAll: boolean): boolean {
  const { watermarkMs } = stored;
  if (watermarkMs === null || points.some(({ atMs }) => atMs === watermarkMs)) return false;
  return isAll || (points.at(-1)?.atMs ?? watermarkMs) > watermarkMs;
}

/** They know no more than what came before the point that counts again. A hold begins again. */
async function stepBack({ points }: HubStore, removed: readonly Watched[]): Promise<void> {
  const asks = removed.flatMap(({ facts, stored: { memory, watermarkMs } }) =>
    facts === null ? [] : [{ variable: facts, fromMs: null, lastMs: memory.before?.atMs ?? watermarkMs }],
  );
  const found = await points.heads(asks, LEFT);
  for (const [index, watched] of removed.entries()) {
    const [newest, before] = found[index] ?? [];
    const { memory } = watched.stored;
    const { gap } = memory;
    // The run that the memory keeps beside the newest one ended in the point before the removed one.
    const isKnown = newest !== undefined && memory.before?.atMs === newest.atMs && memory.ran !== undefined;
    watched.stored = {
      ...watched.stored,
      watermarkMs: newest?.atMs ?? null,
      memory: {
        ...(before === undefined ? {} : { last: { atMs: before.atMs, value: before.value } }),
        ...(isKnown ? { run: memory.ran } : {}),
        ...(gap === undefined ? {} : { gap }),
      },
    };
    watched.isAhead = true;
  }
}

// Alarms that rest until a person acts: those with feedback, and those that changed again and again at one date.

interface PauseParts {
  readonly store: HubStore;
  readonly log: Logger;
  readonly mailsAnHour: number;
  readonly publicUrl?: string | undefined;
}

interface WantedPause {
  readonly watched: Watched;
  /** Null: it resumes. */
  readonly pause: StoredPause | null;
}

/** With the number of changes in a row at one date, which each reading of a point would forget. */
function withRepeats(found: Found): Found {
  const { watched, memory, changes } = found;
  let { repeats } = watched.stored.memory;
  for (const { atMs } of changes) repeats = { atMs, count: repeats?.atMs === atMs ? repeats.count + 1 : 1 };
  return repeats === memory.repeats || repeats === undefined ? found : { ...found, memory: { ...memory, repeats } };
}

/** Pauses for those of these alarms that have changed too often at one date. */
function repeatedPauses(all: readonly Watched[], nowMs: number): readonly WantedPause[] {
  return all.flatMap((watched) => {
    const { repeats } = watched.stored.memory;
    if (watched.stored.pause !== null || repeats === undefined || repeats.count < REPEATS_MAX) return [];
    const words =
      `it changed ${repeats.count} times in a row at ${isoOfMs(repeats.atMs)}, as where something writes that point ` +
      `after each change. Find what does, and save the template again (PUT /alarms/template/${watched.template.id})`;
    return [{ watched, pause: { cause: "Repeats", words, atMs: nowMs } }];
  });
}

/** Pauses that begin or end for the alarms of one account, by their templates and the structure as they are now. */
async function changedPauses(
  store: HubStore,
  accountId: number,
  all: readonly Watched[],
  nowMs: number,
): Promise<readonly WantedPause[]> {
  const byTemplate = [...Map.groupBy(all, ({ template }) => template).entries()];
  const writing = byTemplate.filter(([{ body }]) => writesInto(body));
  const mapped = await mappedOf(
    store,
    accountId,
    writing.map(([{ body }]) => body),
  );
  const writes = writing.flatMap(([template, own]) => {
    const watching = own.flatMap(({ stored, facts }) =>
      facts === null ? [] : [{ id: facts.id, sourceId: facts.sourceId, alarmId: stored.id }],
    );
    return stateWrites(template, watching, mapped);
  });
  const found = writes.length === 0 ? new Map() : feedbackOf(writes, await store.calculated.graph(accountId));
  const ways = new Map([...found].map(([{ alarmId }, way]) => [alarmId, way]));
  return all.flatMap((watched): WantedPause[] => {
    const { pause } = watched.stored;
    const way = ways.get(watched.stored.id);
    const isKept = pause?.cause === "Repeats" && watched.template.changedMs <= pause.atMs;
    const wanted = way === undefined ? (isKept ? pause : null) : feedbackPause(way, nowMs);
    return (pause?.cause ?? null) === (wanted?.cause ?? null) ? [] : [{ watched, pause: wanted }];
  });
}

function feedbackPause(way: string, atMs: number): StoredPause {
  const words = `its state would be pushed into what it watches: ${way}. Change its notifications, or its selection`;
  return { cause: "Feedback", words, atMs };
}

/** Sets pauses of one account, in parts between which others have their turn. Returns the alarms that are as wanted. */
async function setPauses(
  parts: PauseParts,
  accountId: number,
  wanted: readonly WantedPause[],
  nowMs: number,
): Promise<readonly Watched[]> {
  const done: Watched[] = [];
  for (let at = 0; at < wanted.length; at += PAUSES) {
    done.push(...(await setSome(parts, accountId, wanted.slice(at, at + PAUSES), nowMs)));
    await breath();
  }
  return done;
}

async function setSome(
  parts: PauseParts,
  accountId: number,
  wanted: readonly WantedPause[],
  nowMs: number,
): Promise<readonly Watched[]> {
  const { store, mailsAnHour } = parts;
  const done: Watched[] = [];
  let left = wanted;
  for (let attempt = 0; attempt < ATTEMPTS && left.length > 0; attempt += 1) {
    const ids = left.map(({ watched }) => watched.stored.id);
    if (attempt > 0) await follow(store, left);
    const notified = await notifiedOf(store, accountId, ids, parts.publicUrl);
    const steps = left.flatMap(({ watched, pause }) => {
      const facts = notified.get(watched.stored.id);
      if (facts === undefined || isAs(watched, pause)) return [];
      const { repeats: _, ...memory } = watched.stored.memory;
      const alarm = pause === null ? { ...watched.stored, memory } : watched.stored;
      return [{ watched, alarm, pause, notices: pauseNotices(facts, pause, nowMs) }];
    });
    const written = await store.alarms.pauses.set(steps, mailsAnHour);
    for (const [index, { watched, alarm, pause }] of steps.entries()) {
      if (written[index] !== true) continue;
      watched.stored = { ...alarm, pause, revision: alarm.revision + 1 };
      watched.isAhead = false;
      say(parts.log, watched, pause);
    }
    done.push(...left.filter(({ watched, pause }) => isAs(watched, pause)).map(({ watched }) => watched));
    left = left.filter(({ watched, pause }) => notified.has(watched.stored.id) && !isAs(watched, pause));
  }
  return done;
}

function isAs({ stored }: Watched, pause: StoredPause | null): boolean {
  return (stored.pause?.cause ?? null) === (pause?.cause ?? null);
}

async function follow({ alarms }: HubStore, left: readonly WantedPause[]): Promise<void> {
  const ids = left.map(({ watched }) => watched.stored.id);
  const rows = new Map((await alarms.evaluation.alarmsOf(ids)).map((row) => [row.id, row]));
  for (const { watched } of left) {
    const row = rows.get(watched.stored.id);
    if (row !== undefined) Object.assign(watched, { stored: row, isAhead: false });
  }
}

function say(log: Logger, { stored, template }: Watched, pause: StoredPause | null): void {
  const facts = { account: stored.accountId, alarm: stored.id, template: template.id, variable: stored.variableId };
  if (pause === null) log.info(facts, "an alarm that was paused is evaluated again");
  else log.warn({ ...facts, cause: pause.words }, "an alarm is paused: it is not evaluated, and writes nothing");
}
