/**
 * The configuration of the gateway that carries out a migration: the user's own, with the history as its drops and a
 * separate ledger and spool.
 */
import { join } from "node:path";
import { type GatewayConfig, gatewayTrigger } from "../config.ts";
import { historyDrops } from "./plan/sources.ts";
import { type MigrationRequest, migrationLedger } from "./request.ts";

/** Inputs and batches are kept until the migration is deleted: its report and its reconciliation need them. */
const KEPT = { age: Number.MAX_SAFE_INTEGER, size: Number.MAX_SAFE_INTEGER };

export interface Throttle {
  /** Push calls at the same time; the configuration's when absent. */
  readonly concurrency?: number | undefined;
}

export function gatewayOf(
  config: GatewayConfig,
  request: MigrationRequest,
  folder: string,
  throttle: Throttle,
): GatewayConfig {
  return {
    ...config,
    ledger: { ...migrationLedger(folder), keep: Number.MAX_SAFE_INTEGER },
    spool: { ...config.spool, path: join(folder, "spool"), keepInputs: KEPT },
    drops: [...historyDrops(request.patterns, config.drops)],
    triggers: (request.mapper === null
      ? config.triggers.filter((trigger) => isFor(request, trigger)).map(ofHistory)
      : [triggerOf(request, request.mapper)]
    ).map((trigger) => stamped(trigger, request.versionTag)),
    // History is claimed by the triggers of the file, or by the mapper of the command.
    serviceTriggers: [],
    push: {
      ...config.push,
      ...(throttle.concurrency === undefined ? {} : { concurrency: throttle.concurrency }),
      // The reconciliation reports what is stored, for all files together.
      confirm: { ...config.push.confirm, by: "none" },
    },
    operations: { ...config.operations, listen: "127.0.0.1:0", webhook: {} },
    notifications: { ...config.notifications, receivers: [] },
  };
}

type TriggerOptions = GatewayConfig["triggers"][number];

/** One migration is for one service. A trigger names none where there is only one. */
function isFor({ service }: MigrationRequest, trigger: TriggerOptions): boolean {
  return service === null || trigger.service === undefined || trigger.service === service;
}

/** The settings that the daemon would use, without its conditions on folders, and without waiting for more. */
function ofHistory(trigger: TriggerOptions): TriggerOptions {
  const { drops: _drops, expect: _expect, finishAfter: _finishAfter, ...rest } = trigger;
  return { ...rest, ingestionType: "SendViaFtp", lane: LANE };
}

function triggerOf(request: MigrationRequest, mapper: string): TriggerOptions {
  return gatewayTrigger.parse({
    name: "migration",
    mapper,
    rows: request.rows,
    rejectShare: request.rejectShare,
    lane: LANE,
    metadata: request.settings,
    ...(request.service === null ? {} : { service: request.service }),
    // Any file that the patterns found: any name has a dot, or has none.
    fileTriggerCombination: "Or",
    fileNamePatternMatches: [
      { filterType: "Contains", value: "." },
      { filterType: "NotContains", value: "." },
    ],
  });
}

/** Readings without a version of their own carry the tag. */
function stamped(trigger: TriggerOptions, tag: string | null): TriggerOptions {
  return tag === null ? trigger : { ...trigger, version: { tag } };
}

/** One lane for all: files of one series deliver in their order, whichever folder holds them. */
const LANE = "migration";
