/** Writes what evaluation has found: in memory alone where the state stays, otherwise with all that follows from it. */
import { faultPoint } from "#core/faults.ts";
import type { AlarmStep, NewChange } from "../store/alarms/evaluation.ts";
import type { HubStore } from "../store/store.ts";
import type { Memory } from "./conditions.ts";
import { noticesOf, notifiedOf } from "./notices.ts";
import type { StateChange } from "./progress.ts";
import { limitWords } from "./rule.ts";
import type { Watched } from "./watched.ts";

export interface Found {
  readonly watched: Watched;
  readonly memory: Memory;
  /** Null: as it was. */
  readonly watermarkMs: number | null;
  /** In order. */
  readonly changes: readonly StateChange[];
}

interface Recording {
  readonly nowMs: number;
  readonly mailsAnHour: number;
  /** The address of the hub, where it is known. */
  readonly publicUrl: string | undefined;
}

/** Of the changes of an alarm that are found at once, so many of the newest are sent; all are recorded. */
const SENT = 20;
/** Changes of one transaction: each costs the writer of points its wait, and a sync. */
const CHANGES = 1_000;

/**
 * Each alarm occurs once. Returns those whose changes were not written: another hub, a person, or a change of the
 * template, was first.
 */
export async function record(
  store: HubStore,
  found: readonly Found[],
  { nowMs, mailsAnHour, publicUrl }: Recording,
): Promise<readonly Watched[]> {
  const changed = found.filter((one) => {
    if (one.changes.length === 0) remember(one);
    return one.changes.length > 0;
  });
  const refused: Watched[] = [];
  for (const list of listsOf(changed)) {
    const steps = await stepsOf(store, list, { nowMs, publicUrl });
    faultPoint("hub.alarm.found");
    const written = await store.alarms.evaluation.advance(steps, mailsAnHour);
    const ids = new Set(steps.flatMap(({ alarm }, index) => (written[index] === true ? [alarm.id] : [])));
    if (ids.size > 0) faultPoint("hub.alarm.changed");
    for (const one of list)
      if (ids.has(one.watched.stored.id)) keep(one);
      else refused.push(one.watched);
  }
  return refused;
}

function* listsOf(found: readonly Found[]): Generator<readonly Found[]> {
  let list: Found[] = [];
  let changes = 0;
  for (const one of found) {
    list.push(one);
    changes += one.changes.length;
    if (changes < CHANGES) continue;
    yield list;
    list = [];
    changes = 0;
  }
  if (list.length > 0) yield list;
}

/** Without those that are gone. */
async function stepsOf(
  store: HubStore,
  list: readonly Found[],
  { nowMs: recordedMs, publicUrl }: Omit<Recording, "mailsAnHour">,
): Promise<readonly AlarmStep[]> {
  const steps: AlarmStep[] = [];
  for (const [accountId, own] of Map.groupBy(list, ({ watched }) => watched.stored.accountId)) {
    const ids = own.map(({ watched }) => watched.stored.id);
    const notified = await notifiedOf(store, accountId, ids, publicUrl);
    for (const { watched, memory, watermarkMs, changes } of own) {
      const { stored: alarm, template } = watched;
      const facts = notified.get(alarm.id);
      if (facts === undefined) continue;
      steps.push({
        ...{ alarm, templateRevision: template.revision, watermarkMs: watermarkMs ?? alarm.watermarkMs, memory },
        ...{ changes: newChanges(watched, changes), recordedMs, noticesOf: noticesOf(facts, recordedMs) },
      });
    }
  }
  return steps;
}

function newChanges({ template }: Watched, changes: readonly StateChange[]): readonly NewChange[] {
  const limit = limitWords(template.body.condition);
  return changes.map((change, index) => ({
    ...{ ...change, limit, user: null },
    ...(index < changes.length - SENT ? { isQuiet: true } : {}),
  }));
}

function remember({ watched, memory, ...found }: Found): void {
  const { stored } = watched;
  const watermarkMs = found.watermarkMs ?? stored.watermarkMs;
  watched.isAhead ||= watermarkMs !== stored.watermarkMs || memory !== stored.memory;
  watched.stored = { ...stored, memory, watermarkMs };
}

/** As the row is now. */
function keep({ watched, memory, changes, ...found }: Found): void {
  const { stored } = watched;
  const { state = stored.state, atMs: sinceMs = stored.sinceMs } = changes.at(-1) ?? {};
  const watermarkMs = found.watermarkMs ?? stored.watermarkMs;
  watched.stored = { ...stored, state, sinceMs, memory, watermarkMs, revision: stored.revision + 1 };
  watched.isAhead = false;
}
