/** What other runs delivered to the targets of a migration: those of the gateway, and those of other migrations of the configuration. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import type { Ledger, TargetKey } from "../../ledger/ledger.ts";
import { type LedgerPlace, openLedger } from "../../ledger/open.ts";
import type { Expectation } from "../../migration/expectation.ts";
import type { PushTarget, Run } from "../../model.ts";
import { openSpool } from "../../runs/spool.ts";
import { systemClock } from "../../support/clock.ts";
import { identifierKind, targetWords } from "../../wire/index.ts";
import { type KnownMigration, knownMigrations } from "./reports.ts";

export interface OtherRuns {
  /** In words, by the numbers that their readings have. */
  readonly words: ReadonlyMap<number, string>;
  /** In words: they delivered to the same targets, and at which dates is not known any more. */
  readonly unknown: readonly string[];
}

interface Place {
  readonly whose: string;
  readonly ledger: LedgerPlace;
  readonly spool: string;
}

/** Behind every id of a run. */
const EVER = "~";

/** `sample`: a run of the migration, for the service. Their readings go into `others`. */
export async function collectOthers(
  config: GatewayConfig,
  { id }: KnownMigration,
  targets: readonly PushTarget[],
  sample: Run,
  others: Expectation,
): Promise<OtherRuns> {
  const words = new Map<number, string>();
  const unknown: string[] = [];
  for (const { whose, ledger: place, spool: path } of await placesOf(config, id)) {
    const ledger = await openLedger(place, { clock: systemClock, readOnly: true });
    try {
      const runs = await sharing(targets, sample, ledger);
      const spool = await openSpool({ ...config.spool, path });
      const wordsOf = (run: Run) => `${run.path} (run ${run.id} of ${whose})`;
      const gone = await others.collect(runs, { ledger, spool }, ["accepted", "sending"], (run, nth) =>
        words.set(nth, wordsOf(run)),
      );
      unknown.push(...gone.map(wordsOf));
    } finally {
      await ledger.close();
    }
  }
  return { words, unknown };
}

async function placesOf(config: GatewayConfig, own: string): Promise<readonly Place[]> {
  const places: Place[] = [];
  if (config.ledger.kind === "postgres" || existsSync(config.ledger.path))
    places.push({ whose: "the gateway", ledger: config.ledger, spool: config.spool.path });
  for (const { id, folder } of await knownMigrations(config.spool.path)) {
    const path = join(folder, "ledger.sqlite");
    if (id !== own && existsSync(path))
      places.push({
        whose: `migration ${id}`,
        ledger: { kind: "sqlite", path },
        spool: join(folder, "spool"),
      });
  }
  return places;
}

/** Runs of any time, to the same service. */
function sharing(targets: readonly PushTarget[], sample: Run, ledger: Ledger): Promise<readonly Run[]> {
  const keys: TargetKey[] = targets.map((target) => ({
    kind: identifierKind(target) ?? "",
    target: targetWords(target),
  }));
  return ledger.laterRuns({ ...sample, id: "", arrivalId: -1 }, keys, EVER);
}
