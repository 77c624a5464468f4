/**
 * The reads and writes of evaluation. A change of state is one transaction with its history, mails, events and
 * dispatches, and counts only where the alarm is as its evaluation knew it: of two hubs one makes it.
 */
import type { AlarmState } from "#wire/index.ts";
import type { Memory } from "../../alarms/conditions.ts";
import { change, type Database, insert, type Row, row, rows, type Steps } from "../database.ts";
import { addEvents, type NewEvent } from "../events/events.ts";
import { countOf } from "../owned.ts";
import { number, text } from "../structure-rows.ts";
import { ALARMS, addComment, type NewComment } from "./alarms.ts";
import { type AlarmMail, queueAlarmMails } from "./digests.ts";
import { addDispatch, type NewDispatch } from "./dispatches.ts";
import { type StoredAlarm, type StoredTemplate, storedAlarmOf, templateOf } from "./records.ts";

export interface NewAlarm {
  readonly variableId: number | null;
  readonly triggerId: number | null;
  /** Null: every point counts. */
  readonly watermarkMs: number | null;
}

export interface NewChange {
  readonly state: AlarmState;
  readonly atMs: number;
  readonly value: number | null;
  readonly limit: string | null;
  readonly user: string | null;
  /** Only recorded: many changes came at once, and newer ones are sent. */
  readonly isQuiet?: boolean;
}

/** Everything that a change sends. */
export interface Notices {
  readonly mails: readonly AlarmMail[];
  readonly dispatches: readonly NewDispatch[];
  readonly events: readonly NewEvent[];
}

/** Of a change that was just written. */
export type NoticesOf = (change: NewChange & { readonly id: number }) => Notices;

/** The changes of one alarm that evaluation has found. */
export interface AlarmStep {
  readonly alarm: Pick<StoredAlarm, "id" | "accountId" | "templateId" | "variableId" | "revision">;
  readonly templateRevision: number;
  readonly watermarkMs: number | null;
  readonly memory: Memory;
  /** In order; not empty. */
  readonly changes: readonly NewChange[];
  readonly recordedMs: number;
  readonly noticesOf: NoticesOf;
}

export interface EndedCalculation {
  readonly hasFailed: boolean;
  readonly atMs: number;
  readonly message: string | null;
}

export type Watermark = Pick<StoredAlarm, "id" | "revision" | "templateRevision" | "watermarkMs" | "memory">;

export interface AlarmEvaluationStore {
  /** The number of changes of structure of each account that has templates. */
  versions(): Promise<ReadonlyMap<number, number>>;
  /** The enabled templates of an account. */
  templates(accountId: number): Promise<readonly StoredTemplate[]>;
  /** The alarms of the enabled templates, in the order of their ids, after one. */
  alarms(accountId: number, afterId: number, limit: number): Promise<readonly StoredAlarm[]>;
  /** In the order of their ids, without alarms that are gone. */
  alarmsOf(ids: readonly number[]): Promise<readonly StoredAlarm[]>;
  /** Templates of an account, enabled or not, without those that are gone. */
  templatesOf(accountId: number, ids: readonly number[]): Promise<readonly StoredTemplate[]>;
  /** Alarms that have changed since, by the id of a change; and the newest change. */
  changedSince(changeId: number): Promise<{ readonly alarms: readonly StoredAlarm[]; readonly newest: number }>;
  /** How the newest ended calculation of each of these variables ended. */
  calculations(accountId: number, variableIds: readonly number[]): Promise<ReadonlyMap<number, EndedCalculation>>;
  /** As many as the account may have (`most`) beside those that it has; returns how many were left out. */
  add(
    accountId: number,
    template: StoredTemplate,
    alarms: readonly NewAlarm[],
    nowMs: number,
    most?: number,
  ): Promise<number>;
  remove(accountId: number, ids: readonly number[]): Promise<void>;
  /**
   * One transaction with at most one step for each alarm. False, and nothing is written of it, when the alarm or the
   * rule of its template has changed or gone since, or rests. `mailsAnHour`: of one account; further mails wait for
   * the digests (`digests.ts`).
   */
  advance(steps: readonly AlarmStep[], mailsAnHour: number): Promise<readonly boolean[]>;
  /** Of alarms that are as they were known; others keep theirs. */
  keepWatermarks(watermarks: readonly Watermark[]): Promise<void>;
  /** `missing`: the account has no such alarm; `state`: it is in this one, and cannot be acknowledged. */
  acknowledge(
    accountId: number,
    id: number,
    by: { readonly user: string; readonly nowMs: number; readonly comment: NewComment | null },
    noticesOf: NoticesOf,
  ): Promise<"acknowledged" | "missing" | AlarmState>;
  /** When the newest file of each of these triggers came. */
  newestFiles(accountId: number, triggerIds: readonly number[]): Promise<ReadonlyMap<number, number>>;
}

export function createAlarmEvaluationStore(database: Database): AlarmEvaluationStore {
  return { ...readers(database), ...writers(database) };
}

type Readers = Pick<
  AlarmEvaluationStore,
  "versions" | "templates" | "alarms" | "alarmsOf" | "templatesOf" | "changedSince" | "calculations" | "newestFiles"
>;

const LATE_CHANGES = 50;

function readers(database: Database): Readers {
  const { dialect } = database;
  return {
    versions: () =>
      database.ask(function* () {
        const found = yield* rows(`SELECT account_id, changes FROM structure_change
          WHERE account_id IN (SELECT account_id FROM alarm_template)`);
        return new Map(found.map((one) => [Number(one["account_id"]), Number(one["changes"])]));
      }),
    templates: (accountId) =>
      database.ask(function* () {
        const sql = "SELECT * FROM alarm_template WHERE account_id = ? AND enabled ORDER BY id";
        return (yield* rows(sql, accountId)).map(templateOf);
      }),
    alarms: (accountId, afterId, limit) =>
      database.ask(function* () {
        const sql = `SELECT alarm.* FROM alarm JOIN alarm_template ON alarm_template.id = alarm.template_id
          WHERE alarm.account_id = ? AND alarm.id > ? AND alarm_template.enabled ORDER BY alarm.id LIMIT ?`;
        return (yield* rows(sql, accountId, afterId, limit)).map(storedAlarmOf);
      }),
    changedSince: (changeId) =>
      database.ask(function* () {
        const found = yield* row("SELECT max(id) AS newest FROM alarm_change");
        const newest = Number(found?.["newest"] ?? 0);
        if (newest <= changeId) return { alarms: [], newest };
        // A change with a smaller number may be committed after one with a larger.
        const sql = "SELECT * FROM alarm WHERE id IN (SELECT alarm_id FROM alarm_change WHERE id > ?)";
        return { alarms: (yield* rows(sql, changeId - LATE_CHANGES)).map(storedAlarmOf), newest };
      }),
    calculations: (accountId, variableIds) =>
      database.ask(function* () {
        const sql = `SELECT variable_id, state, finished_ms, started_ms, message FROM calculation
          WHERE id IN (SELECT max(id) FROM calculation WHERE account_id = ? AND state IN ('done', 'failed')
            AND ${dialect.among("variable_id")} GROUP BY variable_id)`;
        const found = yield* rows(sql, accountId, variableIds);
        return new Map(found.map((one) => [Number(one["variable_id"]), endedOf(one)] as const));
      }),
    alarmsOf: (ids) =>
      database.ask(function* () {
        return (yield* rows(`SELECT * FROM alarm WHERE ${dialect.among("id")} ORDER BY id`, ids)).map(storedAlarmOf);
      }),
    templatesOf: (accountId, ids) =>
      database.ask(function* () {
        const sql = `SELECT * FROM alarm_template WHERE account_id = ? AND ${dialect.among("id")}`;
        return (yield* rows(sql, accountId, ids)).map(templateOf);
      }),
    newestFiles: (accountId, triggerIds) =>
      database.ask(function* () {
        const sql = `SELECT trigger_id, max(created_ms) AS newest FROM stored_file
          WHERE account_id = ? AND ${dialect.among("trigger_id")} GROUP BY trigger_id`;
        const found = yield* rows(sql, accountId, triggerIds);
        return new Map(found.map((one) => [Number(one["trigger_id"]), Number(one["newest"])]));
      }),
  };
}

function writers(database: Database): Omit<AlarmEvaluationStore, keyof Readers> {
  const { dialect } = database;
  return {
    add: (accountId, template, alarms, nowMs, most = Number.POSITIVE_INFINITY) =>
      database.write(function* (): Steps<number> {
        // A template that was removed meanwhile, or a variable, gets no alarm.
        if ((yield* row("SELECT 1 FROM alarm_template WHERE id = ?", template.id)) === undefined) return 0;
        const room = Math.max(0, most - (yield* countOf(accountId, "alarm")));
        for (const one of alarms.slice(0, room)) yield* addAlarm(accountId, template, one, nowMs);
        return Math.max(0, alarms.length - room);
      }),
    async remove(accountId, ids) {
      await database.run(`DELETE FROM alarm WHERE account_id = ? AND ${dialect.among("id")}`, accountId, ids);
    },
    advance: (steps, mailsAnHour) =>
      database.write(function* (): Steps<readonly boolean[]> {
        const ids = [...new Set(steps.map(({ alarm }) => alarm.templateId))];
        const sql = `SELECT id, revision FROM alarm_template WHERE enabled AND ${dialect.among("id")}`;
        const revisions = new Map((yield* rows(sql, ids)).map((one) => [Number(one["id"]), Number(one["revision"])]));
        const isOfRule = ({ alarm, templateRevision }: AlarmStep) =>
          revisions.get(alarm.templateId) === templateRevision;
        const written = yield* advance(steps.filter(isOfRule), mailsAnHour);
        return steps.map(({ alarm }) => written.has(alarm.id));
      }),
    keepWatermarks: (watermarks) =>
      database.write(function* () {
        const sql = `UPDATE alarm SET watermark_ms = ?, memory = ?, template_revision = ?
          WHERE id = ? AND revision = ? AND template_revision <= ? AND coalesce(watermark_ms <= ?, TRUE)`;
        // In one order, so that no two hubs wait for each other.
        for (const { id, revision, templateRevision, watermarkMs, memory } of watermarks.toSorted(
          (a, b) => a.id - b.id,
        )) {
          const kept = JSON.stringify(memory);
          yield* change(sql, watermarkMs, kept, templateRevision, id, revision, templateRevision, watermarkMs);
        }
      }),
    acknowledge: (accountId, id, by, noticesOf) =>
      database.write(function* (): Steps<"acknowledged" | "missing" | AlarmState> {
        yield* row(`SELECT 1 FROM alarm WHERE id = ?${dialect.forUpdate("alarm")}`, id);
        const sql = `SELECT ${ALARMS.columns} FROM ${ALARMS.from} WHERE alarm.id = ? AND alarm.account_id = ?`;
        const found = yield* row(sql, id, accountId);
        if (found === undefined) return "missing";
        const alarm = storedAlarmOf(found);
        if (alarm.state !== "Present") return alarm.state;
        if (by.comment !== null) yield* addComment(accountId, id, by.comment);
        const { watermarkMs, memory, templateRevision } = alarm;
        const value = number(found["value"]);
        const limit = typeof found["limit_words"] === "string" ? found["limit_words"] : null;
        const changes = [{ state: "Acknowledged", atMs: by.nowMs, value, limit, user: by.user } as const];
        const recordedMs = by.nowMs;
        yield* advance([{ alarm, templateRevision, watermarkMs, memory, changes, recordedMs, noticesOf }], 0);
        return "acknowledged";
      }),
  };
}

function endedOf(one: Row): EndedCalculation {
  return {
    hasFailed: one["state"] === "failed",
    atMs: number(one["finished_ms"]) ?? Number(one["started_ms"]),
    message: text(one["message"]),
  };
}

function* addAlarm(accountId: number, template: StoredTemplate, one: NewAlarm, nowMs: number): Steps<void> {
  const [table, id] = one.variableId === null ? ["file_trigger", one.triggerId] : ["variable", one.variableId];
  const sql = `INSERT INTO alarm (account_id, template_id, variable_id, trigger_id, state, template_revision,
      watermark_ms, memory, created_ms)
    SELECT CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), 'NotPresent',
      CAST(? AS BIGINT), CAST(? AS BIGINT), '{}', CAST(? AS BIGINT)
    FROM ${table} WHERE id = ? AND account_id = ? ON CONFLICT DO NOTHING`;
  const { id: templateId, revision } = template;
  const values = [accountId, templateId, one.variableId, one.triggerId, revision, one.watermarkMs, nowMs];
  yield* change(sql, ...values, id ?? 0, accountId);
}

/** Returns the ids of the alarms that were as they were known. */
function* advance(steps: readonly AlarmStep[], mailsAnHour: number): Steps<ReadonlySet<number>> {
  const written = new Set<number>();
  const events: NewEvent[] = [];
  const mails: AlarmMail[] = [];
  // In one order, so that no two hubs wait for each other.
  for (const step of steps.toSorted((one, other) => one.alarm.id - other.alarm.id)) {
    const added = yield* advanceOne(step);
    if (added === null) continue;
    written.add(step.alarm.id);
    events.push(...added.events);
    mails.push(...added.mails);
  }
  yield* queueAlarmMails(mails, mailsAnHour);
  yield* addEvents(events);
  return written;
}

/** Its events and mails, which are not written yet; null when the alarm is not as it was known. */
function* advanceOne(step: AlarmStep): Steps<Pick<Notices, "events" | "mails"> | null> {
  const { alarm, templateRevision, watermarkMs, memory, changes, recordedMs, noticesOf } = step;
  const last = changes.at(-1);
  if (last === undefined) throw new RangeError("an alarm was advanced without a change");
  const sql = `UPDATE alarm SET state = ?, since_ms = ?, value = ?, limit_words = ?, template_revision = ?,
      watermark_ms = ?, memory = ?, revision = revision + 1 WHERE id = ? AND revision = ?`;
  const facts = [last.state, last.atMs, last.value, last.limit, templateRevision, watermarkMs, JSON.stringify(memory)];
  if ((yield* change(sql, ...facts, alarm.id, alarm.revision)) === 0) return null;
  const events: NewEvent[] = [];
  const mails: AlarmMail[] = [];
  for (const one of changes) {
    const id = yield* insert("alarm_change", {
      account_id: alarm.accountId,
      alarm_id: alarm.id,
      template_id: alarm.templateId,
      variable_id: alarm.variableId,
      state: one.state,
      at_ms: one.atMs,
      recorded_ms: recordedMs,
      value: one.value,
      limit_words: one.limit,
      user_name: one.user,
    });
    const notices = noticesOf({ ...one, id });
    mails.push(...notices.mails);
    for (const dispatch of notices.dispatches) yield* addDispatch(dispatch);
    events.push(...notices.events);
  }
  return { events, mails };
}
