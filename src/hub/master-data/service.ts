/**
 * Applies stored files of master data, for the gateway inside the hub and for dry runs of people. The one who sent the
 * file needs the right to change structure, since a user who may only send files can give one any name.
 */
import type { Piscina } from "piscina";
import type { Clock } from "#core/clock.ts";
import { RejectedError, TransientError } from "#core/errors.ts";
import { besideModule } from "#core/threads/beside.ts";
import { createWorkerPool, isOutOfMemory } from "#core/threads/worker-pool.ts";
import { FairQueue } from "#core/turns.ts";
import { type MasterDataSettings, masterDataSettings, type ReportedRow } from "#wire/index.ts";
import { limitOf } from "../account-limits.ts";
import type { HubOptions } from "../options.ts";
import type { ReportHeader } from "../store/master-data.ts";
import type { HubStore } from "../store/store.ts";
import type { FileRecord } from "../store/stored-files.ts";
import { hasRight, RIGHT_WORDS } from "../token/rights.ts";
import type { Sender } from "./judge-users.ts";
import type { MasterDataJob } from "./process.ts";

export interface MasterDataThread {
  readonly store: HubOptions["store"];
}

export interface ProcessedReport {
  readonly header: ReportHeader;
  readonly firstRefused: ReportedRow | undefined;
  /** Rows of a dry run, as the store keeps those of a run: `REPORT_PART_ROWS` as a JSON array. */
  readonly parts: readonly string[];
}

export type Processed =
  | { readonly kind: "reported"; readonly report: ProcessedReport }
  /** The database is at fault, or others change the structure all the time, and the same may succeed later. */
  | { readonly kind: "trouble"; readonly words: string };

/** A file whose bytes are at `path`, of the stored file or in the container that it is. */
interface MasterDataFile {
  readonly accountId: number;
  readonly fileId: number;
  readonly fileName: string;
  readonly path: string;
  /** The run that applies it: what it applied before is not applied again. */
  readonly run: string;
  /** `metadata` of its trigger. */
  readonly settings: unknown;
}

type Applied =
  | { readonly kind: "applied"; readonly words: string }
  | {
      readonly kind: "refused";
      readonly words: string;
      readonly place: { readonly sheet?: string; readonly row?: number; readonly column?: string };
    };

export interface MasterData {
  /** Throws `TransientError` when the store is not available, `RejectedError` for a file beyond all bounds. */
  apply(file: MasterDataFile, signal: AbortSignal): Promise<Applied>;
  dryRun(
    file: FileRecord,
    path: string,
    settings: Pick<MasterDataSettings, "delimiter" | "encoding">,
    by: { readonly sender: Sender; readonly signal: AbortSignal },
  ): Promise<ProcessedReport>;
  close(): Promise<void>;
}

/** A thread without work ends. */
const IDLE_MS = 10_000;
const MEMORY_MEGABYTES = 1_024;
/** So that a large file of one account holds no other account back. */
const THREADS = 2;

export function createMasterData(
  options: Pick<HubOptions, "store" | "accounts" | "customerLimits">,
  store: Pick<HubStore, "files" | "people">,
  clock: Clock,
): MasterData {
  let pool: Piscina<MasterDataJob, Processed> | null = null;
  const turns = new FairQueue<number>(THREADS, { ofOne: 1 });
  const perform = async (job: Omit<MasterDataJob, "atMs" | "limits">, signal: AbortSignal) => {
    pool ??= startPool(options);
    const threads = pool;
    const { accountId } = job;
    const limits = {
      site: limitOf(options, accountId, "site"),
      source: limitOf(options, accountId, "source"),
      variable: limitOf(options, accountId, "variable"),
      membership: limitOf(options, accountId, "membership"),
    };
    const atMs = clock.now().epochMilliseconds;
    const processed = await threads.run({ ...job, limits, atMs }, { signal }).catch((thrown: unknown) => {
      throw isOutOfMemory(thrown) ? tooLarge(job.fileName) : thrown;
    });
    if (processed.kind === "reported") return processed.report;
    const facts = { operation: "apply master data", subject: job.fileName, message: processed.words };
    throw new TransientError("HG-HUB-007", facts);
  };
  return {
    apply: (file, signal) =>
      turns.run(file.accountId, async () => {
        // The sender may have lost rights while the file waited for its turn.
        const sender = await senderOf(file, store);
        if (typeof sender === "string") return { kind: "refused", words: sender, place: {} };
        const settings = masterDataSettings.safeParse(file.settings);
        if (!settings.success) return { kind: "refused", words: settingsWords(settings.error.issues), place: {} };
        return appliedOf(file, await perform({ ...file, sender, settings: settings.data }, signal));
      }),
    dryRun: (file, path, settings, { sender: { id, username, memberships }, signal }) => {
      const { accountId, id: fileId } = file;
      const sender = { id, username, memberships };
      const fileName = file.fileName.slice(file.fileName.lastIndexOf("/") + 1);
      const job = { accountId, fileId, fileName, path, run: null, sender };
      return turns.run(accountId, () => perform({ ...job, settings: { ...settings, dryRun: true } }, signal));
    },
    close: async () => await pool?.destroy(),
  };
}

function tooLarge(subject: string): RejectedError {
  const message = `${subject} needs more than ${MEMORY_MEGABYTES} MB of memory: send it in parts`;
  return new RejectedError("HG-HUB-008", { operation: "apply master data", subject, message });
}

function startPool({ store }: Pick<HubOptions, "store">): Piscina<MasterDataJob, Processed> {
  const module = besideModule(import.meta.url, "worker");
  const data: MasterDataThread = { store };
  const facts = { module, threads: THREADS, idleMs: IDLE_MS, megabytes: MEMORY_MEGABYTES, data };
  return createWorkerPool<MasterDataJob, Processed>(facts);
}

/** The sender of a file, or why the sender may not change structure. */
async function senderOf(
  { accountId, fileId }: MasterDataFile,
  { files, people }: Pick<HubStore, "files" | "people">,
): Promise<Sender | string> {
  const record = await files.one(accountId, fileId);
  if (record === null) return "the file was removed";
  // Another user may have the name by now.
  if (record.createdById === null) return "it is not known which user sent it: send it again";
  const user = await people.entrant(record.createdById);
  if (user !== null && hasRight(user, accountId, "structure")) {
    const { id, username, memberships } = user;
    return { id, username, memberships };
  }
  const needed = RIGHT_WORDS.structure;
  return `${record.createdBy} sent it and may not change structure: master data needs the role ${needed}`;
}

function settingsWords(issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[]): string {
  const each = issues.map(({ path, message }) => [...path, message].join(": "));
  return `the metadata of its trigger are not settings of master data: ${each.join("; ")}`;
}

function appliedOf({ fileId }: MasterDataFile, { header, firstRefused }: ProcessedReport): Applied {
  const { dryRun, rows } = header;
  const { created, changed, unchanged, refused } = rows;
  const where = `GET /storage/${fileId}/report`;
  if (refused > 0) {
    const all = created + changed + unchanged + refused;
    const [reason] = firstRefused?.reasons ?? [];
    const why = reason?.message ?? "a row is refused";
    const words = `${why}; ${refused} of ${all} rows are refused, so nothing was changed (${where})`;
    return { kind: "refused", words, place: placeOf(firstRefused, reason?.column ?? null) };
  }
  const counts = `rows: ${created} created, ${changed} changed, ${unchanged} unchanged`;
  return { kind: "applied", words: `${dryRun ? "dry run, nothing was changed; " : ""}${counts} (${where})` };
}

function placeOf(row: ReportedRow | undefined, column: string | null) {
  if (row === undefined) return {};
  const sheet = row.sheet === null ? {} : { sheet: row.sheet };
  return { ...sheet, row: row.row, ...(column === null ? {} : { column }) };
}
