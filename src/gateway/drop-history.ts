/** Facts of a drop's history in the ledger, for the check of the drop. */

import { systemClock } from "#core/clock.ts";
import { counted } from "#core/grouped-number.ts";
import { runIdFrom } from "#core/run-id.ts";
import { archiveFolders } from "./drops/archive-cleanup.ts";
import { archivedRun, type Drop, type ProbeFinding } from "./drops/drop.ts";
import type { DropOptions } from "./drops/options.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { dropNotices, noticeWords } from "./operations/drop-notices.ts";

const DAY_MS = 86_400_000;
/** Archived files that are searched. */
const ARCHIVED_MAX = 100_000;

/** A wait of this many times the longest pause covers it. */
const COVERING = 1.5;

export async function dropHistory(
  ledger: Ledger,
  options: DropOptions,
  drop: Pick<Drop, "listArchive">,
  stop: AbortSignal,
): Promise<readonly ProbeFinding[]> {
  if (options.kind === "http") return [];
  return [
    ...(await settleFinding(ledger, options)),
    ...(await archiveFinding(ledger, options)),
    ...(await otherGateways(ledger, options, drop, stop)),
  ];
}

/** Traces of another gateway with a ledger of its own, or of one whose ledger was lost. */
async function otherGateways(
  ledger: Ledger,
  { name, finish }: DropOptions,
  drop: Pick<Drop, "listArchive">,
  stop: AbortSignal,
): Promise<readonly ProbeFinding[]> {
  const about = "other gateways";
  const hint =
    "Give each gateway a drop of its own, or one ledger to both. After a ledger was lost or restored, this passes " +
    "within a day (docs/operations.md, *Restoring a ledger*).";
  const notices = (await dropNotices(ledger, systemClock)).filter(({ drop }) => drop === name);
  const findings: ProbeFinding[] = notices.map((notice) =>
    notice.kind === "repeated"
      ? { level: "warning", about, what: noticeWords(notice), hint }
      : { level: "warning", about: "writers", what: noticeWords(notice) },
  );
  const foreign = await foreignMarks(ledger, archiveFolders(finish), drop, stop);
  if (foreign !== null) findings.push({ level: "warning", about, what: foreign, hint });
  return findings;
}

/** Files that runs of the last day archived which this ledger does not have; null without any. */
async function foreignMarks(
  ledger: Ledger,
  folders: readonly string[],
  drop: Pick<Drop, "listArchive">,
  stop: AbortSignal,
): Promise<string | null> {
  const since = runIdFrom(systemClock.now().epochMilliseconds - DAY_MS);
  let foreign = 0;
  let seen = 0;
  let example = "";
  for (const folder of folders)
    for await (const files of drop.listArchive?.(folder, stop) ?? []) {
      for (const { path } of files) {
        const id = archivedRun(path);
        if (id === null || id < since || (await ledger.run(id)) !== null) continue;
        foreign += 1;
        example = path;
      }
      seen += files.length;
      if (seen > ARCHIVED_MAX) break;
    }
  if (foreign === 0) return null;
  const files = counted(foreign, "file");
  return `${files} of the last day (${example}) were archived by runs that this ledger does not have`;
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
