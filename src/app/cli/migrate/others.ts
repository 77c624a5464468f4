/**
 * Collects deliveries of other runs to the targets of a migration: those of the gateway, and those of other
 * migrations of the configuration.
 */
import type { GatewayConfig } from "#gateway/config.ts";
import type { Ledger, TargetKey } from "#gateway/ledger/ledger.ts";
import type { Expectation } from "#gateway/migration/report/expectation.ts";
import type { KnownMigration } from "#gateway/migration/report/reports.ts";
import type { Batch, PushTarget, Run } from "#gateway/model.ts";
import { openSpool } from "#gateway/spool/spool.ts";
import { BATCH_STATES } from "#gateway/states.ts";
import { identifierKind, targetWords } from "#wire/target.ts";
import { searchLedgers } from "../ledger/ledger-view.ts";

export interface OtherRuns {
  /** In words, by the numbers of their readings. */
  readonly words: ReadonlyMap<number, string>;
  /** Runs, in words, that delivered to the same targets at dates that are no longer known. */
  readonly unknown: readonly string[];
}

/** Greater than every id of a run. */
const EVER = "~";

/** `sample`: a run of the migration, for the service. The readings of the runs go into `others`. */
export async function collectOthers(
  config: GatewayConfig,
  { id }: KnownMigration,
  targets: readonly PushTarget[],
  sample: Run,
  others: Expectation,
): Promise<OtherRuns> {
  const words = new Map<number, string>();
  const unknown: string[] = [];
  await searchLedgers(
    config,
    async ({ owner, ledger, spool: path }) => {
      const runs = await sharing(targets, sample, ledger);
      const spool = await openSpool({ ...config.spool, path });
      const wordsOf = (run: Run) => `${run.path} (run ${run.id} of ${owner})`;
      const gone = await others.collect(runs, { ledger, spool }, wasBegun, (run, nth) => words.set(nth, wordsOf(run)));
      unknown.push(...gone.map(wordsOf));
    },
    id,
  );
  return { words, unknown };
}

/** Runs of any time, to the same service. */
function sharing(targets: readonly PushTarget[], sample: Run, ledger: Ledger): Promise<readonly Run[]> {
  const keys: TargetKey[] = targets.map((target) => ({
    kind: identifierKind(target) ?? "",
    target: targetWords(target),
  }));
  return ledger.laterRuns({ ...sample, id: "", arrivalId: -1 }, keys, EVER);
}

/** A batch that waits to be sent again may be sent at any moment. */
function wasBegun({ state }: Batch): boolean {
  return BATCH_STATES[state].mayBeStored;
}
