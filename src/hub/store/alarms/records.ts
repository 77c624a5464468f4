/** Rows of alarms and their templates, as both databases give them. */

import { type AlarmPause, type AlarmState, type AlarmTemplateBody, alarmTemplateBody } from "#wire/index.ts";
import type { Memory } from "../../alarms/conditions.ts";
import type { Row } from "../database.ts";
import { number, text } from "../structure-rows.ts";

export interface StoredTemplate {
  readonly id: number;
  readonly accountId: number;
  readonly body: AlarmTemplateBody;
  /** Grows with each change of the rule: condition, hold or schedule. */
  readonly revision: number;
  readonly createdMs: number;
  readonly changedMs: number;
  /** Variables with larger ids are newer than the template. */
  readonly lastVariableId: number;
}

/** An alarm, as far as its evaluation needs it. */
export interface StoredAlarm {
  readonly id: number;
  readonly accountId: number;
  readonly templateId: number;
  readonly variableId: number | null;
  readonly triggerId: number | null;
  readonly state: AlarmState;
  readonly sinceMs: number | null;
  /** Of the template that the memory belongs to. */
  readonly templateRevision: number;
  /** Date of the newest point that is known to be evaluated; null: none. */
  readonly watermarkMs: number | null;
  readonly memory: Memory;
  readonly createdMs: number;
  readonly revision: number;
  /** Null: it is evaluated. */
  readonly pause: StoredPause | null;
}

export function templateOf(row: Row): StoredTemplate {
  return {
    id: Number(row["id"]),
    accountId: Number(row["account_id"]),
    body: alarmTemplateBody.parse(JSON.parse(String(row["body"]))),
    revision: Number(row["revision"]),
    createdMs: Number(row["created_ms"]),
    changedMs: Number(row["changed_ms"]),
    lastVariableId: Number(row["last_variable_id"]),
  };
}

export function pauseOf(row: Row): StoredPause | null {
  const cause = text(row["pause_cause"]);
  if (cause === null) return null;
  return { cause: cause as AlarmPause, words: String(row["pause_words"]), atMs: Number(row["paused_ms"]) };
}

export function storedAlarmOf(row: Row): StoredAlarm {
  return {
    id: Number(row["id"]),
    accountId: Number(row["account_id"]),
    templateId: Number(row["template_id"]),
    variableId: number(row["variable_id"]),
    triggerId: number(row["trigger_id"]),
    state: text(row["state"]) as AlarmState,
    sinceMs: number(row["since_ms"]),
    templateRevision: Number(row["template_revision"]),
    watermarkMs: number(row["watermark_ms"]),
    memory: JSON.parse(String(row["memory"])),
    createdMs: Number(row["created_ms"]),
    revision: Number(row["revision"]),
    pause: pauseOf(row),
  };
}

export interface StoredPause {
  readonly cause: AlarmPause;
  /** Reason and remedy, for people. */
  readonly words: string;
  readonly atMs: number;
}
