/**
 * The register of error codes: one place, generated into `docs/errors.md`. A code never changes its meaning; titles
 * and hints may be reworded. Each stage has its own section.
 */
import { BUG_ERRORS } from "./register/bugs.ts";
import { COMMAND_ERRORS } from "./register/cli.ts";
import { CONFIG_ERRORS } from "./register/config.ts";
import { DELIVERY_ERRORS } from "./register/delivery.ts";
import { DROP_ERRORS } from "./register/drops.ts";
import type { RegisterEntry } from "./register/entry.ts";
import { GUARD_ERRORS } from "./register/guard.ts";
import { HUB_ERRORS } from "./register/hub.ts";
import { LEDGER_ERRORS } from "./register/ledger.ts";
import { MAPPING_ERRORS } from "./register/mapper.ts";
import { MIGRATION_ERRORS } from "./register/migration.ts";
import { OPERATIONS_ERRORS } from "./register/operations.ts";
import { RUN_ERRORS } from "./register/runs.ts";
import { TRIGGER_ERRORS } from "./register/triggers.ts";

const entries = {
  ...CONFIG_ERRORS,
  ...COMMAND_ERRORS,
  ...DROP_ERRORS,
  ...TRIGGER_ERRORS,
  ...MAPPING_ERRORS,
  ...RUN_ERRORS,
  ...DELIVERY_ERRORS,
  ...GUARD_ERRORS,
  ...LEDGER_ERRORS,
  ...MIGRATION_ERRORS,
  ...OPERATIONS_ERRORS,
  ...HUB_ERRORS,
  ...BUG_ERRORS,
} as const satisfies Record<string, RegisterEntry>;

export type ErrorCode = keyof typeof entries;

export const REGISTER: Readonly<Record<ErrorCode, RegisterEntry>> = entries;
