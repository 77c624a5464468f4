/** Tries a drop as a person would have it: connection, listing, rights, and what the triggers make of its files. */
import { basename } from "node:path/posix";
import { systemClock } from "#core/clock.ts";
import { HeadgateError, wordsOf } from "#core/errors.ts";
import { isContainerName } from "#core/file-names.ts";
import { silentLog } from "#core/log.ts";
import { runIdFrom } from "#core/run-id.ts";
import { counted } from "#core/text.ts";
import type { GatewayConfig } from "./config.ts";
import { createDrop } from "./drops/create.ts";
import { archivedRun, type Drop, type ProbeFinding, type Provenance } from "./drops/drop.ts";
import { InitialForecast } from "./drops/initial.ts";
import type { DropOptions } from "./drops/options.ts";
import { archiveFolders } from "./drops/paths.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { dropNotices, noticeWords } from "./operations/attention.ts";
import type { TriggerRegistry } from "./triggers/registry.ts";

export interface DropCheckParts {
  readonly config: GatewayConfig;
  /** Null where there is none yet. */
  readonly ledger: Ledger | null;
  readonly registry: TriggerRegistry;
}

const DAY_MS = 86_400_000;
/** Archived files that are searched. */
const ARCHIVED_MAX = 100_000;

/** A wait of this many times the longest pause covers it. */
const COVERING = 1.5;

/** With connections of its own, so that a gateway that polls the drop is not disturbed. Faults are findings. */
export async function checkDrop(
  { config, ledger, registry }: DropCheckParts,
  options: DropOptions,
  stop: AbortSignal,
): Promise<readonly ProbeFinding[]> {
  const intake = {
    spool: config.spool.path,
    shared: ledger?.shared?.intake ?? null,
    defaultService: config.services[0]?.name ?? "",
    accountOf: () => undefined,
    refusalOf: () => null,
  };
  const drop = await createDrop(options, { log: silentLog, intake });
  const findings: ProbeFinding[] = [];
  try {
    const claims = new Claims(registry, options);
    const forecast = new InitialForecast(options.initial, drop);
    const found = await drop.probe(stop, (entry, provenance) => {
      claims.add(entry.path, provenance ?? null);
      forecast.add(entry);
    });
    findings.push(...found);
    if (!found.some(({ about, level }) => about === "listing" && level !== "failed")) return findings;
    findings.push({ level: "ok", about: "triggers", what: claims.words() });
    if (ledger !== null) findings.push(...(await dropHistory(ledger, options, drop, stop)));
    if (options.initial !== "process") findings.push({ level: "ok", about: "initial", what: forecast.words() });
  } catch (thrown) {
    const hint = thrown instanceof HeadgateError ? { hint: thrown.advice } : {};
    findings.push({ level: "failed", about: "drop", what: wordsOf(thrown), ...hint });
  } finally {
    await drop.close();
  }
  return findings;
}

/** Counts files by the effect of their names. */
class Claims {
  readonly #registry: TriggerRegistry;
  readonly #options: DropOptions;
  readonly #counts = new Map<string, number>();

  constructor(registry: TriggerRegistry, options: DropOptions) {
    this.#registry = registry;
    this.#options = options;
  }

  add(path: string, provenance: Provenance | null): void {
    const words = this.#wordsFor(path, provenance);
    this.#counts.set(words, (this.#counts.get(words) ?? 0) + 1);
  }

  words(): string {
    if (this.#counts.size === 0) return "it holds no files now";
    return [...this.#counts].map(([words, count]) => `${count} ${words}`).join(", ");
  }

  #wordsFor(path: string, provenance: Provenance | null): string {
    const { name, archives } = this.#options;
    if (provenance?.standardBody !== undefined) return "in the standard format, which needs no trigger";
    if (archives.unpack && isContainerName(basename(path))) return "would be opened, entry by entry";
    const ingestionType = provenance?.ingestionType ?? "SendViaFtp";
    const { claimed } = this.#registry.claim(path, ingestionType, name, provenance ?? undefined);
    return claimed === null ? "no trigger claims" : `would match trigger ${claimed.name}`;
  }
}

/** Facts of a drop's history in the ledger, for the check of the drop. */
async function dropHistory(
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
