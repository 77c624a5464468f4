import type { Database } from "../database.ts";
import { type AlarmStore, createAlarmStore } from "./alarms.ts";
import { type AlarmDigestStore, createAlarmDigestStore } from "./digests.ts";
import { type AlarmDispatchStore, createAlarmDispatchStore } from "./dispatches.ts";
import { type AlarmEvaluationStore, createAlarmEvaluationStore } from "./evaluation.ts";
import { type AlarmPauseStore, createAlarmPauseStore } from "./pauses.ts";
import { type AlarmTemplateStore, createAlarmTemplateStore } from "./templates.ts";
import { type AlarmViewStore, createAlarmViewStore } from "./views.ts";

export interface AlarmStores {
  readonly templates: AlarmTemplateStore;
  readonly alarms: AlarmStore;
  readonly views: AlarmViewStore;
  readonly evaluation: AlarmEvaluationStore;
  readonly dispatches: AlarmDispatchStore;
  readonly pauses: AlarmPauseStore;
  readonly digests: AlarmDigestStore;
}

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
