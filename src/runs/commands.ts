/**
 * The commands of operators to a gateway, as the command line sends them to the daemon, and their results.
 */
import { z } from "zod";
import type { Forgotten } from "../ledger/ledger.ts";
import type { Pause, RunState } from "../model.ts";

/** The operator and the reason, for the ledger. */
const author = { by: z.string().min(1).max(200), why: z.string().max(500) };

export const operatorCommand = z.discriminatedUnion("order", [
  z.strictObject({ order: z.literal("cancel"), run: z.string(), ...author }),
  z.strictObject({
    order: z.literal("pause"),
    kind: z.enum(["drop", "trigger"]),
    name: z.string(),
    ...author,
  }),
  z.strictObject({
    order: z.literal("resume"),
    kind: z.enum(["drop", "trigger"]),
    name: z.string(),
    ...author,
  }),
  z.strictObject({
    order: z.literal("replay"),
    run: z.string(),
    trigger: z.string().optional(),
    mapper: z.string().optional(),
    settings: z.record(z.string(), z.unknown()).optional(),
    rejectedOnly: z.boolean(),
    overwrite: z.boolean(),
    ...author,
  }),
  z.strictObject({
    order: z.literal("release"),
    run: z.string(),
    overwrite: z.boolean(),
    /** Whether readings of targets that do not exist are pushed too: the service discards them. */
    discard: z.boolean().default(false),
    ...author,
  }),
  z.strictObject({ order: z.literal("recheck"), runs: z.array(z.string()).optional(), ...author }),
  z.strictObject({ order: z.literal("forget"), drop: z.string(), path: z.string(), ...author }),
]);
export type OperatorCommand = z.output<typeof operatorCommand>;

export interface CommandResults {
  readonly cancel: CancelledRun;
  readonly pause: Pause;
  readonly resume: { readonly wasPaused: boolean };
  readonly forget: ForgottenFile;
  readonly replay: ReplayedRun;
  readonly release: ReleasedRun;
  readonly recheck: RecheckedRuns;
}

export interface ReleasedRun {
  readonly run: string;
  readonly file: string;
  /** Why it was held. */
  readonly was: string;
  /** Readings of targets that did not exist at the last check. */
  readonly discards: number;
}

export interface RecheckedRuns {
  /** Held and unconfirmed runs that are checked now. */
  readonly runs: readonly string[];
}

export interface CancelledRun {
  readonly run: string;
  readonly file: string;
  readonly was: RunState;
  /** Points that the service has. */
  readonly acceptedPoints: number;
  /** Operations that were sent and whose outcome is not known. */
  readonly unknown: readonly string[];
}

export interface ReplayedRun {
  /** The new run. */
  readonly run: string;
  readonly of: string;
  readonly drop: string;
  readonly file: string;
}

export interface ForgottenFile extends Forgotten {
  readonly drop: string;
  readonly path: string;
}
