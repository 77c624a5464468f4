/**
 * The nouns that the stages hand to each other, without behaviour. `docs/architecture.md` has the glossary.
 */
import type { FileTrigger } from "#wire/trigger.ts";
import type { WebhookBody } from "#wire/webhook.ts";

export type * from "#mapping/model.ts";
export * from "./model/arrivals.ts";
export * from "./model/batches.ts";
export * from "./model/drop-state.ts";
export * from "./model/drops.ts";
export * from "./model/ledger.ts";
export * from "./model/outcomes.ts";
export * from "./model/runs.ts";
export * from "./model/shared-intake.ts";
export * from "./model/spool-state.ts";
export * from "./model/time.ts";
export type { ArrivalState, BatchState, End, FileStanding, RunState } from "./states.ts";
export type { FileTrigger, WebhookBody };
