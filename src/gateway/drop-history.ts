/** Facts of a drop's history in the ledger, for the check of the drop. */

import { archiveFolders } from "../drops/archive-cleanup.ts";
import type { ProbeFinding } from "../drops/drop.ts";
import type { DropOptions } from "../drops/options.ts";
import type { Ledger } from "../ledger/ledger.ts";

/** A wait of this many times the longest pause covers it. */
const COVERING = 1.5;

export async function dropHistory(ledger: Ledger, options: DropOptions): Promise<readonly ProbeFinding[]> {
  if (options.kind === "http") return [];
  return [...(await settleFinding(ledger, options)), ...(await archiveFinding(ledger, options))];
}

async function settleFinding(
  { finishedFiles }: Ledger,
  { name, settle }: DropOptions,
): Promise<readonly ProbeFinding[]> {
  const longest = await finishedFiles.growthPause(name);
  if (longest === null || settle.doneFile !== undefined) return [];
  const waitMs = (settle.observations - 1) * settle.interval;
  const about = "settle";
  const what =
    `its files paused up to ${seconds(longest.pauseMs)} while they were written (${longest.path}, ` +
    `${longest.at}); a file is taken after ${seconds(waitMs)}`;
  if (waitMs >= longest.pauseMs * COVERING) return [{ level: "ok", about, what }];
  const observations = Math.max(2, settle.observations);
  const interval = Math.ceil((2 * longest.pauseMs) / 1000 / (observations - 1));
  const hint =
    `Set \`settle: { observations: ${observations}, interval: ${interval}s }\`, or have the sender rename its ` +
    "files when they are complete.";
  return [{ level: "warning", about, what, hint }];
}

async function archiveFinding(
  { finishedFiles }: Ledger,
  { name, finish }: DropOptions,
): Promise<readonly ProbeFinding[]> {
  const now = archiveFolders(finish);
  const former = (await finishedFiles.archives(name)).filter((folder) => !now.includes(folder));
  if (former.length === 0) return [];
  const what =
    `files in ${former.join(", ")} are not taken: ` +
    `${former.length === 1 ? "it was an archive" : "they were archives"} of this drop before`;
  return [{ level: "ok", about: "archive", what }];
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}
