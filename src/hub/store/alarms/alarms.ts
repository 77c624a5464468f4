/** Alarms as people see them: lists, history, comments. */
import {
  type Alarm,
  type AlarmChange,
  type AlarmComment,
  type AlarmFilter,
  type AlarmState,
  alarm,
  alarmChange,
} from "#wire/index.ts";
import { isoOfMs } from "../../time.ts";
import { apartFor, change, type Database, insert, listed, type Row, row, rows, type Steps } from "../database.ts";
import { inSteps, PURGE_ROWS } from "../queue.ts";
import type { Listing, Page } from "../records.ts";
import { number, text } from "../structure-rows.ts";
import { Where } from "../where.ts";
import { pauseOf } from "./records.ts";

type AlarmsFilter = Omit<AlarmFilter, "kinds" | "name"> & { readonly ids?: readonly number[] | undefined };

export interface ChangesFilter {
  readonly alarmIds?: readonly number[] | undefined;
  readonly templateIds?: readonly number[] | undefined;
  readonly variableIds?: readonly number[] | undefined;
  readonly fromMs?: number | null;
  /** Excluded. */
  readonly toMs?: number | null;
}

export interface AlarmStore {
  /** Ordered by id. All filters must fit. */
  list(accountId: number, filters: readonly AlarmsFilter[], page: Page): Promise<Listing<Alarm>>;
  /** Newest first. */
  changes(accountId: number, filter: ChangesFilter, page: Page): Promise<Listing<AlarmChange>>;
  /** Removes changes that were recorded before, in small transactions; the newest of each alarm stays. */
  purge(beforeMs: number): Promise<void>;
  /** Oldest first. */
  comments(accountId: number, alarmId: number): Promise<readonly AlarmComment[]>;
  /** Null when the account has no such alarm; `full`: the alarm has `most`. */
  comment(accountId: number, alarmId: number, comment: NewComment, most: number): Promise<number | null | "full">;
  /** Of all accounts: alarms that are present or acknowledged, by severity and state. */
  counts(): Promise<readonly { readonly severity: string; readonly state: AlarmState; readonly count: number }[]>;
  /** Of all accounts: alarms of enabled templates that are paused. */
  paused(): Promise<number>;
}

export interface NewComment {
  readonly userId: number;
  readonly author: string;
  readonly text: string;
  readonly atMs: number;
}

/** Ids are in the order of recording, up to moments. */
const FIRST_KEPT = "SELECT id FROM alarm_change WHERE recorded_ms >= ? ORDER BY id LIMIT 1";
const FORGET = `DELETE FROM alarm_change WHERE id IN (SELECT old.id FROM alarm_change AS old
  WHERE old.id < ? AND EXISTS (SELECT 1 FROM alarm_change AS newer
    WHERE newer.alarm_id = old.alarm_id AND newer.id > old.id)
  ORDER BY old.id LIMIT ${PURGE_ROWS})`;

export const ALARMS = {
  columns: `alarm.*, alarm_template.name AS template_name, alarm_template.kind, alarm_template.severity,
    variable.name AS variable_name, source.id AS source_id, source.name AS source_name,
    site.id AS site_id, site.name AS site_name`,
  from: `alarm JOIN alarm_template ON alarm_template.id = alarm.template_id
    LEFT JOIN variable ON variable.id = alarm.variable_id
    LEFT JOIN source ON source.id = variable.source_id LEFT JOIN site ON site.id = source.site_id`,
  order: "alarm.id",
};
const CHANGES = { columns: "*", from: "alarm_change", order: "id DESC" };

export function createAlarmStore(database: Database): AlarmStore {
  const { dialect } = database;
  return {
    list(accountId, filters, page) {
      const where = new Where(dialect).equal("alarm.account_id", accountId);
      for (const filter of filters)
        where
          .among("alarm.id", filter.ids)
          .among("alarm.state", filter.states)
          .among("alarm_template.severity", filter.severities)
          .among("alarm.template_id", filter.templateIds)
          .among("alarm.variable_id", filter.variableIds)
          .among("source.id", filter.sourceIds)
          .among("site.id", filter.siteIds);
      const given = filters.flatMap(({ states, severities, sourceIds, siteIds }) => [
        states,
        severities,
        sourceIds,
        siteIds,
      ]);
      return listed(apartFor(database, accountId, given), ALARMS, where, page, alarmOf);
    },
    changes(accountId, { alarmIds, templateIds, variableIds, fromMs = null, toMs = null }, page) {
      const where = new Where(dialect)
        .equal("account_id", accountId)
        .among("alarm_id", alarmIds)
        .among("template_id", templateIds)
        .among("variable_id", variableIds);
      if (fromMs !== null) where.condition({ sql: "at_ms >= ?", values: [fromMs] });
      if (toMs !== null) where.condition({ sql: "at_ms < ?", values: [toMs] });
      const given = [templateIds, variableIds, fromMs, toMs];
      return listed(apartFor(database, accountId, given), CHANGES, where, page, changeOf);
    },
    purge: (beforeMs) => purgeChanges(database, beforeMs),
    comments: (accountId, alarmId) =>
      database.ask(function* () {
        const sql = "SELECT * FROM alarm_comment WHERE account_id = ? AND alarm_id = ? ORDER BY id";
        return (yield* rows(sql, accountId, alarmId)).map((one) => ({
          id: Number(one["id"]),
          author: String(one["author"]),
          date: isoOfMs(Number(one["at_ms"])),
          text: String(one["text"]),
        }));
      }),
    comment: (accountId, alarmId, comment, most) =>
      database.write(function* (): Steps<number | null | "full"> {
        const sql = `SELECT 1 FROM alarm WHERE id = ? AND account_id = ?${dialect.forKeyShare}`;
        if ((yield* row(sql, alarmId, accountId)) === undefined) return null;
        const counted = yield* row("SELECT count(*) AS held FROM alarm_comment WHERE alarm_id = ?", alarmId);
        return Number(counted?.["held"]) >= most ? "full" : yield* addComment(accountId, alarmId, comment);
      }),
    counts: () =>
      database.ask(function* () {
        const found = yield* rows(`SELECT alarm_template.severity, alarm.state, count(*) AS total FROM alarm
          JOIN alarm_template ON alarm_template.id = alarm.template_id
          WHERE alarm.state <> 'NotPresent' GROUP BY alarm_template.severity, alarm.state`);
        return found.map((one) => ({
          severity: String(one["severity"]),
          state: text(one["state"]) as AlarmState,
          count: Number(one["total"]),
        }));
      }),
    paused: () =>
      database.ask(function* () {
        const found = yield* row(`SELECT count(*) AS total FROM alarm JOIN alarm_template
          ON alarm_template.id = alarm.template_id WHERE alarm.pause_cause IS NOT NULL AND alarm_template.enabled`);
        return Number(found?.["total"]);
      }),
  };
}

/** For use inside a write. */
export function* addComment(accountId: number, alarmId: number, comment: NewComment): Steps<number> {
  return yield* insert("alarm_comment", {
    account_id: accountId,
    alarm_id: alarmId,
    user_id: comment.userId,
    author: comment.author,
    at_ms: comment.atMs,
    text: comment.text.toWellFormed(),
  });
}

function alarmOf(one: Row): Alarm {
  const pause = pauseOf(one);
  return alarm.parse({
    id: one["id"],
    templateId: one["template_id"],
    name: one["template_name"],
    kind: one["kind"],
    severity: one["severity"],
    state: one["state"],
    variableId: number(one["variable_id"]),
    variableName: text(one["variable_name"]),
    sourceId: number(one["source_id"]),
    sourceName: text(one["source_name"]),
    siteId: number(one["site_id"]),
    siteName: text(one["site_name"]),
    triggerId: number(one["trigger_id"]),
    since: dateOf(one["since_ms"]),
    value: number(one["value"]),
    limit: text(one["limit_words"]),
    evaluatedUntil: dateOf(one["watermark_ms"]),
    paused: pause === null ? null : { cause: pause.cause, reason: pause.words, since: isoOfMs(pause.atMs) },
  });
}

function changeOf(one: Row): AlarmChange {
  return alarmChange.parse({
    id: one["id"],
    alarmId: one["alarm_id"],
    templateId: one["template_id"],
    variableId: number(one["variable_id"]),
    state: one["state"],
    date: dateOf(one["at_ms"]),
    recorded: dateOf(one["recorded_ms"]),
    value: number(one["value"]),
    limit: text(one["limit_words"]),
    user: text(one["user_name"]),
  });
}

function dateOf(ms: unknown): string | null {
  return typeof ms === "number" ? isoOfMs(ms) : null;
}

/** Removes old changes of alarms, but never the newest of an alarm, by which its state is known. */
async function purgeChanges(database: Database, beforeMs: number): Promise<void> {
  const kept = await database.ask(() => row(FIRST_KEPT, beforeMs));
  const end = kept === undefined ? Number.MAX_SAFE_INTEGER : Number(kept["id"]);
  await inSteps(database, () => change(FORGET, end));
}
