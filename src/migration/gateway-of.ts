/** The configuration of the gateway that carries out a migration: the user's own, with the history for its drops and a ledger and spool apart. */
import { join } from "node:path";
import { type GatewayConfig, gatewayTrigger } from "../config/gateway-config.ts";
import { type MigrationRequest, migrationLedger } from "./request.ts";
import { historyDrops } from "./sources.ts";

/** Inputs and batches are kept until the migration is forgotten: its report and its reconciliation are made of them. */
const KEPT = { age: Number.MAX_SAFE_INTEGER, size: Number.MAX_SAFE_INTEGER };

export interface Throttle {
  /** Push calls at the same time; the configuration's when absent. */
  readonly concurrency?: number | undefined;
}

export function gatewayOf(
  config: GatewayConfig,
  order: MigrationRequest,
  folder: string,
  throttle: Throttle,
): GatewayConfig {
  return {
    ...config,
    ledger: { ...migrationLedger(folder), keep: Number.MAX_SAFE_INTEGER },
    spool: { ...config.spool, path: join(folder, "spool"), keepInputs: KEPT },
    drops: [...historyDrops(order.patterns, config.drops)],
    triggers: (order.mapper === null
      ? config.triggers.filter((trigger) => isFor(order, trigger)).map(ofHistory)
      : [triggerOf(order, order.mapper)]
    ).map((trigger) => stamped(trigger, order.versionTag)),
    push: {
      ...config.push,
      ...(throttle.concurrency === undefined ? {} : { concurrency: throttle.concurrency }),
      // What is stored is told by the reconciliation, for all together.
      confirm: { ...config.push.confirm, by: "none" },
    },
    operations: { ...config.operations, listen: "127.0.0.1:0", webhook: {} },
    notifications: { ...config.notifications, receivers: [] },
  };
}

type TriggerOptions = GatewayConfig["triggers"][number];

/** One migration is about one service. A trigger names none where there is only one. */
function isFor({ service }: MigrationRequest, trigger: TriggerOptions): boolean {
  return service === null || trigger.service === undefined || trigger.service === service;
}

/** As the daemon would take the files, wherever they lie, and without waiting for more. */
function ofHistory(trigger: TriggerOptions): TriggerOptions {
  const { drops: _drops, expect: _expect, finishAfter: _finishAfter, ...rest } = trigger;
  return { ...rest, ingestionType: "SendViaFtp", lane: LANE };
}

function triggerOf(order: MigrationRequest, mapper: string): TriggerOptions {
  return gatewayTrigger.parse({
    name: "migration",
    mapper,
    rows: order.rows,
    rejectShare: order.rejectShare,
    lane: LANE,
    metadata: order.settings,
    ...(order.service === null ? {} : { service: order.service }),
    // Whatever the patterns found: any name has a dot, or has none.
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

/** One for all: files of one series deliver in their order, in whichever folder they lie. */
const LANE = "migration";
