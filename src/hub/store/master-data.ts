/**
 * Applies a file of master data, all of it or nothing. It is compared with a snapshot; what it changes is written with
 * the report of its rows in one transaction, or in slices where it is much. What others changed meanwhile has it
 * compared again.
 */
import { isDeepStrictEqual } from "node:util";
import type { MasterDataReport, ReportedRow } from "#wire/index.ts";
import { change, type Database, type Row, row, rows, type Steps, type StoreDialect } from "./database.ts";
import { addStructureEvent } from "./events/structure-events.ts";
import { type FoundForms, findForms } from "./form-values.ts";
import { countOf } from "./owned.ts";
import { changeMembers, type FoundUsers, findUsers, type MemberPlan, type UserKeys } from "./people/member-plan.ts";
import type { StoredSite, StoredSource, StoredVariable, StructureEntity } from "./records.ts";
import { applyInSlices, changesOf, isMuch, undoPlans, whileChanging, writeStructure } from "./structure-hold.ts";
import {
  CREATED_LISTS,
  type CreatedIds,
  type CreatedStructure,
  changeExisting,
  createAll,
  NOTHING_CREATED,
  type StructurePlan,
} from "./structure-plan.ts";
import { jsonOf, SOURCES, siteOf, sourceOf, variableOf } from "./structure-rows.ts";

/** Names and ids that a file uses, which the account may have. */
export interface StructureKeys {
  readonly siteIds: readonly number[];
  readonly siteNames: readonly string[];
  readonly sourceIds: readonly number[];
  readonly serialNumbers: readonly string[];
  readonly eans: readonly string[];
  readonly meterNumbers: readonly string[];
  readonly sourceNames: readonly string[];
  readonly variableIds: readonly number[];
  readonly users: UserKeys;
  /** Ids in custom columns, which may refer to sites or sources. */
  readonly customIds: readonly number[];
}

export interface FoundStructure {
  readonly sites: readonly StoredSite[];
  readonly sources: readonly StoredSource[];
  /** All variables of these sources, and those with one of the ids. */
  readonly variables: readonly StoredVariable[];
  /** Variables of `variables` that have points. */
  readonly withPoints: ReadonlySet<number>;
  readonly forms: FoundForms;
  readonly users: FoundUsers;
  /** Of the whole account. */
  readonly counts: Readonly<Record<StructureEntity, number>>;
}

/** The file, and the run that applies it: a run that is repeated finds its report. */
export interface ReportKey {
  readonly fileId: number;
  readonly fileName: string;
  /** Null for a dry run of a person, whose report is not kept. */
  readonly run: string | null;
}

type ReportFacts = Omit<MasterDataReport, "fileId" | "fileName" | "date" | "items">;

export interface Judgement {
  /** Null: nothing is changed. */
  readonly plan: StructurePlan | null;
  /** Of the users; applied with the plan. */
  readonly people: MemberPlan;
  readonly dryRun: boolean;
  /** The rows of the report, once the ids of created entities are known. */
  report(created: CreatedIds | null): readonly ReportedRow[];
}

export interface ReportHeader extends ReportFacts {
  readonly fileName: string;
  readonly createdMs: number;
}

export interface KeptReport extends ReportHeader {
  readonly items: readonly ReportedRow[];
}

export interface MasterDataStore {
  /** `judge` may be called again from the start. Throws `StructureHeld`. */
  apply(
    accountId: number,
    key: ReportKey,
    keys: StructureKeys,
    judge: (found: FoundStructure) => Judgement,
    atMs: number,
  ): Promise<KeptReport>;
}

/** With a connection of its own. */
export interface OpenMasterData extends MasterDataStore {
  close(): Promise<void>;
}

export interface MasterDataReports {
  /** Undoes what files have created and changed that are not finished. `isAll`: also what threads may still work on. */
  undoPlans(isAll: boolean): Promise<void>;
  /** Names of the files of a stored file that have a report: one, or those in a container. */
  files(accountId: number, fileId: number): Promise<readonly string[]>;
  /** The newest report of the file; null without one. */
  newest(accountId: number, fileId: number, fileName: string): Promise<(ReportHeader & { readonly id: number }) | null>;
  /** `REPORT_PART_ROWS` rows of a report as a JSON array; null behind the last ones. */
  part(reportId: number, part: number): Promise<string | null>;
}

/** Rows of a report that are stored together. */
export const REPORT_PART_ROWS = 1_000;

export function createMasterDataStore(database: Database): MasterDataStore {
  // A snapshot locks nothing, and what it found is compared again before it is changed.
  const reading = { ...database.dialect, forUpdate: () => "" };
  return {
    apply: (accountId, key, keys, judge, atMs) =>
      whileChanging(async () => {
        const compared = await database.snapshot(function* (): Steps<KeptReport | Compared> {
          const before = yield* reportOfRun(accountId, key);
          if (before !== null) return before;
          return { changes: yield* changesOf(accountId), found: yield* findStructure(reading, accountId, keys) };
        });
        if ("items" in compared) return compared;
        const judgement = judge(compared.found);
        if (key.run === null) return reportFrom(judgement, key, atMs, null);
        return await write(database, { accountId, key, keys, atMs }, compared, judgement);
      }),
  };
}

/** The structure, and how often it had changed then. */
interface Compared {
  readonly changes: number;
  readonly found: FoundStructure;
}

interface Applying {
  readonly accountId: number;
  readonly key: ReportKey;
  readonly keys: StructureKeys;
  readonly atMs: number;
}

/** Null: others have changed what was compared, and nothing was written. */
function write(
  database: Database,
  { accountId, key, keys, atMs }: Applying,
  compared: Compared,
  judgement: Judgement,
): Promise<KeptReport | null> {
  const { dialect } = database;
  const { plan, people } = judgement;
  const kept = (created: CreatedIds | null): Kept => {
    const report = reportFrom(judgement, key, atMs, created);
    return { report, parts: partsOfRows(report.items) };
  };
  const written = function* ({ report, parts }: Kept): Steps<KeptReport> {
    yield* keepReport(accountId, key, report, parts);
    yield* reportEvent(accountId, key, report);
    return report;
  };
  if (plan === null) {
    const early = kept(null);
    return database.write(function* () {
      return (yield* reportOfRun(accountId, key)) ?? (yield* written(early));
    });
  }
  // A long report is made before the write that ends all, unless new users get their ids in that.
  const finish = (created: CreatedStructure) => {
    const early = people.users.length === 0 ? kept({ ...created, users: [] }) : null;
    return function* (): Steps<KeptReport> {
      const users = yield* changeMembers(accountId, people);
      return yield* written(early ?? kept({ ...created, users }));
    };
  };
  const isFit = () => isCurrent(dialect, accountId, keys, compared, plan);
  const begin = function* () {
    return (yield* changesOf(accountId)) === compared.changes + 1 && (yield* isFit());
  };
  if (isMuch(plan))
    return applyInSlices(database, accountId, plan, {
      begin,
      finish(created) {
        const last = finish(created);
        return function* () {
          return (yield* isFit()) ? yield* last() : null;
        };
      },
    });
  const early = CREATED_LISTS.some((list) => plan[list].length > 0) ? null : finish(NOTHING_CREATED);
  return writeStructure(database, accountId, function* () {
    if (!(yield* begin())) return null;
    const created = yield* createAll(accountId, plan);
    yield* changeExisting(dialect, accountId, plan, created);
    return yield* (early ?? finish(created))();
  });
}

interface Kept {
  readonly report: KeptReport;
  readonly parts: readonly string[];
}

/** For use inside the write. Users and points change without a change of the structure. */
function* isCurrent(
  dialect: StoreDialect,
  accountId: number,
  keys: StructureKeys,
  { found }: Pick<Compared, "found">,
  { changedVariables }: StructurePlan,
): Steps<boolean> {
  if (!isDeepStrictEqual(yield* findUsers(dialect, accountId, keys.users), found.users)) return false;
  const ids = changedVariables.map(({ id }) => id);
  const holding = yield* withPoints(dialect, ids);
  return ids.every((id) => holding.has(id) === found.withPoints.has(id));
}

function reportFrom(judgement: Judgement, { fileName }: ReportKey, createdMs: number, created: CreatedIds | null) {
  const items = judgement.report(created);
  return { ...factsOf(judgement, items), fileName, createdMs, items };
}

/** One event for the whole file, where it changed something. */
function* reportEvent(accountId: number, { fileId, fileName }: ReportKey, report: KeptReport): Steps<void> {
  const { created, changed } = report.rows;
  if (!report.applied || created + changed === 0) return;
  const facts = { created, changed };
  const about = { kind: "masterData", id: fileId, name: fileName, facts, atMs: report.createdMs } as const;
  yield* addStructureEvent(accountId, "changed", about);
}

function factsOf({ plan, dryRun }: Judgement, items: readonly ReportedRow[]): ReportFacts {
  const counts = { created: 0, changed: 0, unchanged: 0, refused: 0 };
  for (const { result } of items) counts[result] += 1;
  return { dryRun, applied: plan !== null, rows: counts };
}

function* findStructure(dialect: StoreDialect, accountId: number, keys: StructureKeys): Steps<FoundStructure> {
  const { among } = dialect;
  const either = (columns: readonly string[]) => columns.map((column) => among(column)).join(" OR ");
  const sites = yield* rows(
    `SELECT * FROM site WHERE account_id = ? AND (${either(["id", "name"])}) ORDER BY id`,
    ...[accountId, keys.siteIds, keys.siteNames],
  );
  const found = new Map<number, StoredSource>();
  const sought = {
    id: keys.sourceIds,
    serial_number: keys.serialNumbers,
    ean: keys.eans,
    meter_number: keys.meterNumbers,
    name: keys.sourceNames,
  };
  for (const [column, values] of Object.entries(sought)) {
    if (values.length === 0) continue;
    const where = `source.account_id = ? AND ${among(`source.${column}`)}`;
    const listed = yield* rows(`SELECT ${SOURCES.columns} FROM ${SOURCES.from} WHERE ${where}`, accountId, values);
    for (const source of listed.map(sourceOf)) found.set(source.id, source);
  }
  const sources = [...found.values()].toSorted((one, other) => one.id - other.id);
  const variables = yield* rows(
    `SELECT * FROM variable WHERE account_id = ? AND (${either(["source_id", "id"])}) ORDER BY id`,
    ...[accountId, sources.map(({ id }) => id), keys.variableIds],
  );
  const siteIds = sites.map((one) => Number(one["id"]));
  const forms = yield* findForms(dialect, accountId, keys.customIds, {
    site: siteIds,
    source: sources.map(({ id }) => id),
  });
  return {
    sites: sites.map(siteOf),
    sources,
    variables: variables.map(variableOf),
    withPoints: yield* withPoints(
      dialect,
      variables.map((one) => Number(one["id"])),
    ),
    forms,
    users: yield* findUsers(dialect, accountId, keys.users),
    counts: {
      site: yield* countOf(accountId, "site"),
      source: yield* countOf(accountId, "source"),
      variable: yield* countOf(accountId, "variable"),
    },
  };
}

/** Variables among these that have points. */
function* withPoints({ among }: StoreDialect, ids: readonly number[]): Steps<ReadonlySet<number>> {
  const found = yield* rows(
    `SELECT id FROM variable WHERE ${among("id")} AND (EXISTS (SELECT 1 FROM point WHERE variable_id = variable.id)
      OR EXISTS (SELECT 1 FROM point_block WHERE variable_id = variable.id))`,
    ids,
  );
  return new Set(found.map((one) => Number(one["id"])));
}

function* keepReport(
  accountId: number,
  { fileId, fileName, run }: ReportKey,
  report: KeptReport,
  parts: readonly string[],
): Steps<void> {
  const { created, changed, unchanged, refused } = report.rows;
  // A file that was removed meanwhile has no report.
  const added = yield* row(
    `INSERT INTO master_data_report
      (account_id, file_id, file_name, run, created_ms, dry_run, applied, created, changed, unchanged, refused)
      SELECT account_id, id, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BOOLEAN),
        CAST(? AS BOOLEAN), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT)
      FROM stored_file WHERE id = ? AND account_id = ? RETURNING id`,
    ...[fileName, run, report.createdMs, report.dryRun, report.applied],
    ...[created, changed, unchanged, refused, fileId, accountId],
  );
  if (added === undefined) return;
  for (const [part, items] of parts.entries()) {
    const sql = "INSERT INTO master_data_report_part (report_id, part, items) VALUES (?, ?, ?)";
    yield* change(sql, Number(added["id"]), part, items);
  }
}

/** Each as a JSON array. */
export function partsOfRows(items: readonly ReportedRow[]): readonly string[] {
  const parts: string[] = [];
  for (let at = 0; at < items.length; at += REPORT_PART_ROWS)
    parts.push(jsonOf(items.slice(at, at + REPORT_PART_ROWS)));
  return parts;
}

function* reportOfRun(accountId: number, { fileId, fileName, run }: ReportKey): Steps<KeptReport | null> {
  if (run === null) return null;
  const sql = "SELECT * FROM master_data_report WHERE account_id = ? AND file_id = ? AND file_name = ? AND run = ?";
  const found = yield* row(sql, accountId, fileId, fileName, run);
  return found === undefined ? null : { ...reportOf(found), items: yield* itemsOf(Number(found["id"])) };
}

function* itemsOf(reportId: number): Steps<readonly ReportedRow[]> {
  const parts = yield* rows("SELECT items FROM master_data_report_part WHERE report_id = ? ORDER BY part", reportId);
  return parts.flatMap((one) => JSON.parse(String(one["items"])) as ReportedRow[]);
}

function reportOf(one: Row): ReportHeader {
  const count = (column: string) => Number(one[column]);
  return {
    fileName: String(one["file_name"]),
    createdMs: count("created_ms"),
    dryRun: Boolean(one["dry_run"]),
    applied: Boolean(one["applied"]),
    rows: {
      created: count("created"),
      changed: count("changed"),
      unchanged: count("unchanged"),
      refused: count("refused"),
    },
  };
}

export function createMasterDataReports(database: Database): MasterDataReports {
  return {
    undoPlans: (isAll) => undoPlans(database, isAll),
    files: (accountId, fileId) =>
      database.ask(function* () {
        const sql = "SELECT DISTINCT file_name FROM master_data_report WHERE account_id = ? AND file_id = ?";
        return (yield* rows(sql, accountId, fileId)).map((one) => String(one["file_name"])).toSorted();
      }),
    newest: (accountId, fileId, fileName) =>
      database.ask(function* () {
        const where = "account_id = ? AND file_id = ? AND file_name = ?";
        const sql = `SELECT * FROM master_data_report WHERE ${where} ORDER BY id DESC LIMIT 1`;
        const found = yield* row(sql, accountId, fileId, fileName);
        return found === undefined ? null : { id: Number(found["id"]), ...reportOf(found) };
      }),
    part: (reportId, part) =>
      database.ask(function* () {
        const sql = "SELECT items FROM master_data_report_part WHERE report_id = ? AND part = ?";
        const found = yield* row(sql, reportId, part);
        return found === undefined ? null : String(found["items"]);
      }),
  };
}
