/** Writes the report of a migration: at its end, and again at each request. */
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { isoInstant, systemClock } from "#core/clock.ts";
import { writeDurably } from "#core/durable.ts";
import { ConfigError, unlessMissing } from "#core/errors.ts";
import { openLedger } from "../../ledger/open.ts";
import { type MigrationRequest, migrationFolder, migrationLedger } from "../request.ts";
import { StructureRecord } from "../structure/record.ts";
import { pastUndos, runningUndo, type Undone } from "../undo/record.ts";
import { settleUndo } from "../undo/state.ts";
import { reportPage } from "./page.ts";
import type { Reconciliation } from "./reconciliation.ts";
import { type MigrationReport, makeReport, type ReportLedger } from "./report.ts";

export interface KnownMigration {
  readonly id: string;
  readonly order: MigrationRequest;
  readonly folder: string;
  /** The limits of its latest start, as they were given; absent before the first. */
  readonly limits?: MigrationLimits;
}

/** As the options of `migrate` have them. */
export interface MigrationLimits {
  readonly between?: string;
  readonly rate?: string;
  readonly concurrency?: string;
  readonly pauseOnErrors?: string;
  readonly verify?: boolean;
  /** Path of the table or the template of structure that is missing. */
  readonly provision?: string;
}

export interface WrittenReport {
  /** `undone`: earlier deliveries that were undone. */
  readonly report: MigrationReport & { readonly undone: readonly Undone[] };
  readonly page: string;
}

/**
 * Writes `report.html` and `report.json` into the folder of the migration. `reconciliation` null: the former one
 * stays, and so do the patterns without a file (`empty`), which nothing was listed for.
 */
export async function writeReport(
  { id, order, folder }: KnownMigration,
  ledger: ReportLedger,
  reconciliation: Reconciliation | null,
  empty: readonly string[] | null,
): Promise<WrittenReport> {
  const data = join(folder, "report.json");
  const madeAt = isoInstant(systemClock.now());
  const earlier = await earlierFacts(data);
  const compared = {
    ...(reconciliation === null ? earlier : { reconciliation, reconciledAt: madeAt }),
    empty: empty ?? earlier.empty,
  };
  const { patterns, mapper } = order;
  const running = await runningUndo(folder);
  const undone = [...(await pastUndos(folder)), ...(running === null ? [] : [running])];
  const facts = { id, patterns, mapper, madeAt, ...compared };
  const made = await makeReport(facts, ledger, join(folder, "spool"));
  const report = { ...made, undone, ...(await structureOf(folder)) };
  const page = join(folder, "report.html");
  await writeDurably(data, JSON.stringify(report));
  await writeDurably(page, reportPage(report));
  return { report, page };
}

/** Empty when it created nothing. */
async function structureOf(folder: string): Promise<Pick<MigrationReport, "structure">> {
  const structure = (await StructureRecord.open(folder, systemClock)).report();
  return structure.created.length + structure.differences.length === 0 ? {} : { structure };
}

async function earlierFacts(path: string) {
  if (!existsSync(path)) return { reconciliation: null, reconciledAt: null, empty: [] };
  const { reconciliation, reconciledAt, empty } = JSON.parse(await readFile(path, "utf8")) as MigrationReport;
  return { reconciliation, reconciledAt, empty };
}

export async function remakeReport(spool: string, id: string): Promise<WrittenReport> {
  const known = await findMigration(spool, id);
  await settleUndo(known.folder);
  const place = migrationLedger(known.folder);
  const undone = await pastUndos(known.folder);
  const last = undone.at(-1)?.folder ?? null;
  // Nothing was delivered since: the former report is current.
  if (!existsSync(place.path) && last !== null) {
    const report = JSON.parse(await readFile(join(last, "report.json"), "utf8")) as MigrationReport;
    const whole = { ...report, undone, ...(await structureOf(known.folder)) };
    const page = join(last, "report.html");
    await writeDurably(page, reportPage(whole));
    return { report: whole, page };
  }
  const ledger = await openLedger(place, { clock: systemClock, readOnly: true });
  try {
    return await writeReport(known, ledger, null, null);
  } finally {
    await ledger.close();
  }
}

/** By the beginning of its id. */
export async function findMigration(spool: string, id: string): Promise<KnownMigration> {
  const found = (await knownMigrations(spool)).filter((one) => one.id.startsWith(id));
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  throw new ConfigError("HG-MIGR-003", {
    operation: "find migration",
    subject: id,
    message:
      found.length === 0
        ? `there is no migration ${id} in ${migrationFolder(spool, "")}`
        : `${id} is the beginning of ${found.map((one) => one.id).join(" and ")}`,
  });
}

export async function knownMigrations(spool: string): Promise<readonly KnownMigration[]> {
  const names = await unlessMissing(readdir(migrationFolder(spool, "")), []);
  const known: KnownMigration[] = [];
  for (const name of names.sort()) {
    const folder = migrationFolder(spool, name);
    const path = join(folder, "migration.json");
    if (!existsSync(path)) continue;
    const { id, order, limits } = JSON.parse(await readFile(path, "utf8")) as KnownMigration;
    known.push({ id, order, folder, ...(limits === undefined ? {} : { limits }) });
  }
  return known;
}
