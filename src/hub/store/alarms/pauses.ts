import { change, type Database, rows, type Steps, type StoreDialect } from "../database.ts";
import { addEvents, type NewEvent } from "../events/events.ts";
import { type AlarmMail, queueAlarmMails } from "./digests.ts";
import { addDispatch, type NewDispatch } from "./dispatches.ts";
import type { Notices } from "./evaluation.ts";
import type { StoredAlarm, StoredPause } from "./records.ts";

export interface PauseStep {
  /** Watermark and memory are kept with the pause. */
  readonly alarm: Pick<StoredAlarm, "id" | "accountId" | "revision" | "watermarkMs" | "memory">;
  /** Null: it resumes. */
  readonly pause: StoredPause | null;
  readonly notices: Notices;
}

/** A variable, and an identifier that alarms may push to. */
export interface MappedVariable {
  readonly id: number;
  readonly sourceId: number;
  readonly mappingConfig: string;
}

export interface AlarmPauseStore {
  /** The variables of the account that have one of these `mappingConfig`. */
  mapped(accountId: number, mappingConfigs: readonly string[]): Promise<readonly MappedVariable[]>;
  /** The alarms of these templates that watch a variable. */
  watching(
    accountId: number,
    templateIds: readonly number[],
  ): Promise<readonly { readonly alarmId: number; readonly templateId: number; readonly variableId: number }[]>;
  /** One transaction. False where the alarm has changed or gone since: nothing is written of that step. */
  set(steps: readonly PauseStep[], mailsAnHour: number): Promise<readonly boolean[]>;
}

export function createAlarmPauseStore(database: Database): AlarmPauseStore {
  const { dialect } = database;
  return {
    mapped: (accountId, mappingConfigs) =>
      database.ask(function* () {
        const sql = `SELECT id, source_id, mapping_config FROM variable
          WHERE account_id = ? AND ${dialect.among("mapping_config")} ORDER BY id`;
        return (yield* rows(sql, accountId, mappingConfigs)).map((one) => ({
          id: Number(one["id"]),
          sourceId: Number(one["source_id"]),
          mappingConfig: String(one["mapping_config"]),
        }));
      }),
    watching: (accountId, templateIds) =>
      database.ask(function* () {
        const sql = `SELECT id, template_id, variable_id FROM alarm
          WHERE account_id = ? AND variable_id IS NOT NULL AND ${dialect.among("template_id")} ORDER BY id`;
        return (yield* rows(sql, accountId, templateIds)).map((one) => ({
          alarmId: Number(one["id"]),
          templateId: Number(one["template_id"]),
          variableId: Number(one["variable_id"]),
        }));
      }),
    set: (steps, mailsAnHour) =>
      database.write(function* (): Steps<readonly boolean[]> {
        const written = new Set<number>();
        const events: NewEvent[] = [];
        const mails: AlarmMail[] = [];
        const paused = new Map<number, Set<number>>();
        const dispatches: NewDispatch[] = [];
        // In one order, so that no two hubs wait for each other.
        for (const { alarm, pause, notices } of steps.toSorted((one, other) => one.alarm.id - other.alarm.id)) {
          const sql = `UPDATE alarm SET pause_cause = ?, pause_words = ?, paused_ms = ?, watermark_ms = ?, memory = ?,
            revision = revision + 1 WHERE id = ? AND revision = ?`;
          const { cause = null, words = null, atMs = null } = pause ?? {};
          const kept = [alarm.watermarkMs, JSON.stringify(alarm.memory)];
          if ((yield* change(sql, cause, words, atMs, ...kept, alarm.id, alarm.revision)) === 0) continue;
          written.add(alarm.id);
          if (pause !== null) paused.getOrInsert(alarm.accountId, new Set()).add(alarm.id);
          dispatches.push(...notices.dispatches);
          events.push(...notices.events);
          mails.push(...notices.mails);
        }
        for (const [accountId, ids] of paused) yield* dropPushes(dialect, accountId, ids);
        for (const dispatch of dispatches) yield* addDispatch(dispatch);
        yield* queueAlarmMails(mails, mailsAnHour);
        yield* addEvents(events);
        return steps.map(({ alarm }) => written.has(alarm.id));
      }),
  };
}

/** States that these alarms have still to push. */
function* dropPushes({ among }: StoreDialect, accountId: number, alarmIds: ReadonlySet<number>): Steps<void> {
  const waiting = yield* rows(
    "SELECT id, target FROM alarm_dispatch WHERE account_id = ? AND kind = 'variable'",
    accountId,
  );
  const own = waiting.filter(({ target }) => alarmIds.has(Number(/^alarm-(\d+)-/.exec(String(target))?.[1])));
  const ids = own.map(({ id }) => Number(id));
  if (ids.length > 0) yield* change(`DELETE FROM alarm_dispatch WHERE ${among("id")}`, ids);
}
