/** The ledger of a stage whose gateway does not run: copied, lost, or replaced by an older copy. */
import { cp, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";

const FILES = ["ledger.sqlite", "ledger.sqlite-wal"];

/** What becomes of a ledger. */
export type Fate = "kept" | "lost" | "restored";

/** `copy`: the folder of an older copy. */
export async function suffer(fate: Fate, state: string, copy: string): Promise<void> {
  if (fate === "kept") return;
  await removeLedger(state);
  if (fate === "restored") await copyLedger(copy, state);
}

export async function copyLedger(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  for (const name of FILES) await cp(join(from, name), join(to, name)).catch(ifMissing);
}

export async function removeLedger(state: string): Promise<void> {
  for (const name of [...FILES, "ledger.sqlite-shm"]) await rm(join(state, name), { force: true });
}

function ifMissing(thrown: unknown): void {
  if ((thrown as NodeJS.ErrnoException).code !== "ENOENT") throw thrown;
}
