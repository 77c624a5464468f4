/** Alarms that rest until a person acts: those with feedback, and those that changed again and again at one date. */
import type { Logger } from "#core/log.ts";
import { breath } from "#core/turns.ts";
import type { StoredPause } from "../store/alarms/pauses.ts";
import type { HubStore } from "../store/store.ts";
import { isoOfMs } from "../time.ts";
import type { Found } from "./changes.ts";
import { feedbackOf, mappedOf, stateWrites, writesInto } from "./feedback.ts";
import { notifiedOf, pauseNotices } from "./notices.ts";
import type { Watched } from "./watched.ts";

export interface PauseParts {
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

/** So many changes in a row at one date are no correction: something writes the point after each of them. */
const REPEATS_MAX = 20;
/** Pauses of one transaction. */
const PAUSES = 500;
/** Another hub, or a person, may change the row between a read and the pause. */
const ATTEMPTS = 3;

/** With the number of changes in a row at one date, which each reading of a point would forget. */
export function withRepeats(found: Found): Found {
  const { watched, memory, changes } = found;
  let { repeats } = watched.stored.memory;
  for (const { atMs } of changes) repeats = { atMs, count: repeats?.atMs === atMs ? repeats.count + 1 : 1 };
  return repeats === memory.repeats || repeats === undefined ? found : { ...found, memory: { ...memory, repeats } };
}

/** Pauses for those of these alarms that have changed too often at one date. */
export function repeatedPauses(all: readonly Watched[], nowMs: number): readonly WantedPause[] {
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
export async function changedPauses(
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
export async function setPauses(
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
