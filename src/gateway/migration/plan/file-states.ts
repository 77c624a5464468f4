/** The files of a migration with their states, and the configuration that excludes some of them. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import type { GatewayConfig } from "../../config.ts";
import { createDrop } from "../../drops/create.ts";
import { fetchFile } from "../../drops/drop.ts";
import { isLedgerMissing, openLedger } from "../../ledger/open.ts";
import type { Arrival } from "../../model.ts";
import { type HistoryFile, listHistory, type Standing, standingOf } from "./history-files.ts";

/** The files, and their states in the ledger of an earlier call. */
export async function listStanding(own: GatewayConfig, stop: AbortSignal): Promise<Standing> {
  const drops = await Promise.all(own.drops.map((options) => createDrop(options, { log: silentLog })));
  const scratch = await mkdtemp(join(tmpdir(), "headgate-compare-"));
  const isSame = async (file: HistoryFile, { sha256 }: Arrival) => {
    const drop = drops.find(({ name }) => name === file.drop);
    return drop !== undefined && sha256 === (await fetchFile(drop, file, join(scratch, "file"), stop)).sha256;
  };
  try {
    const files = await listHistory(drops, stop);
    if (isLedgerMissing(own.ledger)) return await standingOf(files, null, isSame);
    const ledger = await openLedger(own.ledger, { clock: systemClock, readOnly: true });
    try {
      return await standingOf(files, ledger, isSame);
    } finally {
      await ledger.close();
    }
  } finally {
    for (const drop of drops) await drop.close();
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Returns the configuration with patterns that exclude these files. */
export function without(own: GatewayConfig, skipped: readonly HistoryFile[]): GatewayConfig {
  if (skipped.length === 0) return own;
  return {
    ...own,
    drops: own.drops.map((drop) => ({
      ...drop,
      exclude: [
        ...drop.exclude,
        ...skipped.filter((file) => file.drop === drop.name).map(({ path }) => asPattern(path)),
      ],
    })),
  };
}

/** A pattern that matches this path alone. */
function asPattern(path: string): string {
  return path.replace(/[*?[\]{}!()]/g, "[$&]");
}
