/** Templates of alarms. Each change notes one of the account's structure, from which evaluation learns of it. */
import type { AlarmFilter, AlarmTemplateBody } from "#wire/index.ts";
import { change, type Database, insert, listed, row, type Steps } from "../database.ts";
import { containing } from "../filter-sql.ts";
import { requireRoom } from "../owned.ts";
import type { Listing, Page } from "../records.ts";
import { noteChange } from "../source-zones.ts";
import { jsonOf } from "../structure-rows.ts";
import { Where } from "../where.ts";
import { type StoredTemplate, templateOf } from "./records.ts";

export interface ListedTemplate extends StoredTemplate {
  readonly alarms: number;
  readonly present: number;
  readonly paused: number;
}

type TemplatesFilter = Pick<AlarmFilter, "severities" | "kinds" | "name"> & {
  readonly templateIds?: readonly number[] | undefined;
};

export interface AlarmTemplateStore {
  /** Throws `AccountFull` where the account has `most`. */
  create(accountId: number, body: AlarmTemplateBody, nowMs: number, most?: number): Promise<number>;
  /** Ordered by id. All filters must fit. */
  list(accountId: number, filters: readonly TemplatesFilter[], page: Page): Promise<Listing<ListedTemplate>>;
  /** False when the account has no such template. */
  replace(accountId: number, id: number, body: AlarmTemplateBody, nowMs: number): Promise<boolean>;
  /** With its alarms, their history and comments. False when the account has no such template. */
  remove(accountId: number, id: number): Promise<boolean>;
}

const TEMPLATES = {
  columns: `alarm_template.*,
    (SELECT count(*) FROM alarm WHERE alarm.template_id = alarm_template.id) AS alarms,
    (SELECT count(*) FROM alarm WHERE alarm.template_id = alarm_template.id AND state <> 'NotPresent') AS present,
    (SELECT count(*) FROM alarm WHERE alarm.template_id = alarm_template.id AND pause_cause IS NOT NULL) AS paused`,
  from: "alarm_template",
  order: "id",
};

export function createAlarmTemplateStore(database: Database): AlarmTemplateStore {
  const { dialect } = database;
  return {
    create: (accountId, body, nowMs, most) =>
      database.write(function* (): Steps<number> {
        yield* noteChange(accountId);
        yield* requireRoom(dialect, accountId, "alarm_template", most);
        return yield* insert("alarm_template", {
          account_id: accountId,
          ...columnsOf(body),
          revision: 1,
          created_ms: nowMs,
          changed_ms: nowMs,
          last_variable_id: yield* newestVariable(),
        });
      }),
    list(accountId, filters, page) {
      const where = new Where(dialect).equal("account_id", accountId);
      for (const { templateIds, severities, kinds, name } of filters) {
        where.among("id", templateIds).among("severity", severities).among("kind", kinds);
        if (name !== undefined) where.condition(containing("name", name, dialect));
      }
      return listed(database, TEMPLATES, where, page, (one) => ({
        ...templateOf(one),
        alarms: Number(one["alarms"]),
        present: Number(one["present"]),
        paused: Number(one["paused"]),
      }));
    },
    replace: (accountId, id, body, nowMs) =>
      database.write(function* (): Steps<boolean> {
        yield* noteChange(accountId);
        const columns = columnsOf(body);
        const sets = Object.keys(columns).map((name) => `${name} = ?`);
        const known = "SELECT * FROM alarm_template WHERE id = ? AND account_id = ?";
        const before = yield* row(`${known}${dialect.forUpdate("alarm_template")}`, id, accountId);
        if (before === undefined) return false;
        const steps = rulePart(templateOf(before).body) === rulePart(body) ? 0 : 1;
        const sql = `UPDATE alarm_template SET ${sets.join(", ")}, revision = revision + ?, changed_ms = ?
          WHERE id = ?`;
        yield* change(sql, ...Object.values(columns), steps, nowMs, id);
        return true;
      }),
    remove: (accountId, id) =>
      database.write(function* (): Steps<boolean> {
        yield* noteChange(accountId);
        return (yield* change("DELETE FROM alarm_template WHERE id = ? AND account_id = ?", id, accountId)) > 0;
      }),
  };
}

function* newestVariable(): Steps<number> {
  return Number((yield* row("SELECT max(id) AS newest FROM variable"))?.["newest"] ?? 0);
}

/** The rule, by which evaluation judges; the fields are in the order of their schema. */
function rulePart({ condition, holdMinutes = 0, schedule }: AlarmTemplateBody): string {
  return JSON.stringify({ condition, holdMinutes, schedule });
}

function columnsOf(body: AlarmTemplateBody) {
  return {
    name: body.name.toWellFormed(),
    severity: body.severity ?? "Warning",
    kind: body.condition.kind,
    enabled: body.enabled !== false,
    body: jsonOf(body),
  };
}
