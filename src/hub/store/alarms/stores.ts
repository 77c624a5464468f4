import { type AlarmView, type AlarmViewBody, alarmView } from "#wire/index.ts";
import { type Database, insert, listed, type Row, type Steps } from "../database.ts";
import { requireRoom } from "../owned.ts";
import type { Listing, Page } from "../records.ts";
import { jsonOf } from "../structure-rows.ts";
import { Where } from "../where.ts";
import { type AlarmStore, createAlarmStore } from "./alarms.ts";
import { type AlarmDigestStore, createAlarmDigestStore } from "./digests.ts";
import { type AlarmDispatchStore, createAlarmDispatchStore } from "./dispatches.ts";
import { type AlarmEvaluationStore, createAlarmEvaluationStore } from "./evaluation.ts";
import { type AlarmPauseStore, createAlarmPauseStore } from "./pauses.ts";
import { type AlarmTemplateStore, createAlarmTemplateStore } from "./templates.ts";

export interface AlarmStores {
  readonly templates: AlarmTemplateStore;
  readonly alarms: AlarmStore;
  readonly views: AlarmViewStore;
  readonly evaluation: AlarmEvaluationStore;
  readonly dispatches: AlarmDispatchStore;
  readonly pauses: AlarmPauseStore;
  readonly digests: AlarmDigestStore;
}

const VIEWS = { columns: "*", from: "alarm_view", order: "id" };

export function createAlarmStores(database: Database): AlarmStores {
  return {
    templates: createAlarmTemplateStore(database),
    alarms: createAlarmStore(database),
    views: createAlarmViewStore(database),
    evaluation: createAlarmEvaluationStore(database),
    dispatches: createAlarmDispatchStore(database),
    pauses: createAlarmPauseStore(database),
    digests: createAlarmDigestStore(database),
  };
}

// Views: named conditions of the lists of alarms and of their templates.

interface AlarmViewStore {
  create(accountId: number, body: AlarmViewBody, most: number): Promise<number>;
  /** Ordered by id. */
  list(
    accountId: number,
    ofTemplates: boolean,
    ids: readonly number[] | undefined,
    page: Page,
  ): Promise<Listing<AlarmView>>;
  /** False when the account has no such view, as `remove`. */
  replace(accountId: number, id: number, body: AlarmViewBody): Promise<boolean>;
  remove(accountId: number, id: number, ofTemplates: boolean): Promise<boolean>;
}

function createAlarmViewStore(database: Database): AlarmViewStore {
  const { dialect } = database;
  return {
    create: (accountId, body, most) =>
      database.write(function* (): Steps<number> {
        yield* requireRoom(dialect, accountId, "alarm_view", most);
        return yield* insert("alarm_view", { account_id: accountId, ...columnsOf(body) });
      }),
    list(accountId, ofTemplates, ids, page) {
      const where = new Where(dialect)
        .equal("account_id", accountId)
        .condition({ sql: ofTemplates ? "template_views" : "NOT template_views", values: [] })
        .among("id", ids);
      return listed(database, VIEWS, where, page, viewOf);
    },
    async replace(accountId, id, body) {
      const { name, template_views, filter } = columnsOf(body);
      const sql = `UPDATE alarm_view SET name = ?, filter = ?
        WHERE id = ? AND account_id = ? AND template_views = ${template_views ? "TRUE" : "FALSE"}`;
      return (await database.run(sql, name, filter, id, accountId)) > 0;
    },
    async remove(accountId, id, ofTemplates) {
      const kind = ofTemplates ? "template_views" : "NOT template_views";
      return (
        (await database.run(`DELETE FROM alarm_view WHERE id = ? AND account_id = ? AND ${kind}`, id, accountId)) > 0
      );
    },
  };
}

function columnsOf({ name, templateViews = false, filter }: AlarmViewBody) {
  return { name: name.toWellFormed(), template_views: templateViews, filter: jsonOf(filter) };
}

function viewOf(row: Row): AlarmView {
  const { id, name, template_views: templateViews, filter } = row;
  return alarmView.parse({ id, name, templateViews: Boolean(templateViews), filter: JSON.parse(String(filter)) });
}
