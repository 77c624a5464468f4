/** A command of operators: its fields, which go over HTTP to a gateway that runs, and what it does. */
import { z } from "zod";
import { RejectedError } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Run } from "../../model.ts";
import type { Spool } from "../../spool/spool.ts";
import type { Pauses } from "../pauses.ts";
import type { BindingParts } from "../replay-mapper.ts";

export interface CommandParts {
  readonly ledger: Ledger;
  readonly pauses: Pauses;
  readonly log: Logger;
  readonly spool: Pick<Spool, "holdsInput" | "openSegment" | "segmentPath">;
  readonly binding: BindingParts;
  /** Whether the stored file of a run was removed from the hub that the gateway is inside. */
  readonly isRemoved: (run: Run) => Promise<boolean>;
  /** Absent when no gateway runs: the command works on the ledger alone, and the next start resumes from there. */
  readonly live?: LiveGateway;
}

export interface LiveGateway {
  /** See `Scheduler.withRunPaused`. */
  withRunPaused<T>(runId: string, work: () => Promise<T>): Promise<T>;
  /** The drop was paused or resumed, or the ledger forgot a file of it. */
  dropChanged(name: string): void;
  /** A run was opened, or may take its next step now. */
  onRun(runId?: string): void;
  /** The gateway asks its services again for the structure of accounts, and for what they stored. */
  structureChanged(): void;
  /** Unmatched files are offered to the triggers again. */
  triggersChanged(): void;
}

/** The operator and the reason, for the ledger. */
const author = { by: z.string().min(1).max(200), why: z.string().max(500) };

type Asked<Fields extends z.ZodRawShape> = z.output<z.ZodObject<Fields & typeof author, z.core.$strict>>;

/** Throws `RejectedError` when it cannot be executed. */
export function command<Fields extends z.ZodRawShape, Result>(
  fields: Fields,
  perform: (asked: Asked<Fields>, parts: CommandParts) => Promise<Result>,
) {
  return { fields: z.strictObject({ ...fields, ...author }), perform };
}

/** Performs it while no step of the run is in progress. */
export function whilePaused<T>({ live }: CommandParts, runId: string, work: () => Promise<T>): Promise<T> {
  return live === undefined ? work() : live.withRunPaused(runId, work);
}

export async function mustFindRun(id: string, ledger: Pick<Ledger, "run">): Promise<Run> {
  const run = await ledger.run(id);
  if (run !== null) return run;
  throw new RejectedError("HG-CLI-002", {
    operation: "find run",
    subject: id,
    message: `there is no run ${id} in the ledger`,
  });
}
