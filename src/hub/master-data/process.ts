/** Reads a file of master data, judges it, applies it or not, and reports on its rows. */

import { customKey, type Fields, findColumn } from "#mapping/readers/master-data/columns.ts";
import { readRows, type StatedRow, type TableRules } from "#mapping/readers/master-data/rows.ts";
import type { MasterDataSettings, ReportedEntity, ReportedRow, RowResult } from "#wire/index.ts";
import type { Judgement, KeptReport, MasterDataStore, ReportKey, StructureKeys } from "../store/master-data.ts";
import type { CreatedIds } from "../store/structure-plan.ts";
import { idOf, judge, type MasterDataLimits, type Verdict } from "./judge.ts";
import type { Sender } from "./judge-users.ts";
import { type Wanted, type WantedStructure, wantedOf } from "./wanted.ts";

const RULES: TableRules = {
  findColumn,
  columnsAre: "the files with the tag MasterDataTemplate name all columns",
  sheets: "all",
  ids: "listed",
};

export interface MasterDataJob extends ReportKey {
  readonly accountId: number;
  /** Local file with the bytes. */
  readonly path: string;
  readonly settings: MasterDataSettings;
  readonly atMs: number;
  readonly sender: Sender;
  readonly limits: MasterDataLimits;
}

export async function processMasterData(
  { accountId, path, settings, atMs, sender, limits, ...key }: MasterDataJob,
  store: MasterDataStore,
  signal: AbortSignal,
): Promise<KeptReport> {
  const rows = await readRows({ path, fileName: key.fileName, settings, rules: RULES }, signal);
  const wanted = wantedOf(rows);
  // Judging may be repeated, and adds to what is known of rows until here.
  const before = rows.map(({ reasons, notes }) => ({ reasons: reasons.length, notes: notes.length }));
  return await store.apply(
    accountId,
    key,
    keysOf(wanted),
    (found): Judgement => {
      for (const [at, { reasons, notes }] of rows.entries()) {
        reasons.length = before[at]?.reasons ?? 0;
        notes.length = before[at]?.notes ?? 0;
      }
      const { plan, people, of } = judge(wanted, found, { accountId, atMs, sender, limits });
      const isGood = rows.every(({ reasons }) => reasons.length === 0);
      return {
        plan: isGood && !settings.dryRun ? plan : null,
        people,
        dryRun: settings.dryRun,
        report: (created) => reportOf(rows, wanted, of, created),
      };
    },
    atMs,
  );
}

function keysOf({ sites, sources, variables, users }: WantedStructure): StructureKeys {
  const texts = (all: readonly Wanted[], by: string) =>
    all.filter(({ key }) => key.by === by).map(({ key }) => String(key.value));
  const said = (all: readonly Wanted[], field: string) =>
    all.flatMap(({ fields }) => (fields[field] === undefined ? [] : [String(fields[field])]));
  const ids = (all: readonly Wanted[]) => texts(all, "id").map(Number);
  return {
    siteIds: ids(sites),
    siteNames: texts(sites, "name"),
    sourceIds: ids(sources),
    serialNumbers: texts(sources, "serialNumber"),
    eans: texts(sources, "ean"),
    meterNumbers: texts(sources, "meterNumber"),
    sourceNames: texts(sources, "name"),
    variableIds: ids(variables),
    users: {
      usernames: said(users, "username"),
      emails: said(users, "email"),
      businessIds: said(users, "businessId"),
    },
    customIds: [...sites, ...sources].flatMap(({ fields }) => customIdsOf(fields)),
  };
}

function customIdsOf(fields: Fields): number[] {
  const texts = Object.entries(fields).flatMap(([field, value]) =>
    customKey(field) === null ? [] : String(value).split("|"),
  );
  return texts
    .map((text) => text.trim())
    .filter((text) => /^\d{1,15}$/.test(text))
    .map(Number);
}

/** The greatest of those of its entities is that of a row. */
const WEIGHT: Readonly<Record<RowResult, number>> = { refused: 3, created: 2, changed: 1, unchanged: 0 };

function reportOf(
  rows: readonly StatedRow[],
  wanted: WantedStructure,
  of: ReadonlyMap<Wanted, Verdict>,
  created: CreatedIds | null,
): readonly ReportedRow[] {
  const entities = new Map<StatedRow, ReportedEntity[]>();
  for (const [list, all] of Object.entries(wanted))
    for (const one of all as readonly Wanted[]) {
      const verdict = of.get(one);
      const row = one.owner ?? one.rows[0];
      if (verdict === undefined || row === undefined) continue;
      const id = idOf(verdict.ref, created?.[list as keyof CreatedIds]);
      const { result, fields } = verdict;
      const shown = { entity: one.entity, key: String(one.key.value), id, result, fields: [...fields] };
      entities.set(row, [...(entities.get(row) ?? []), shown]);
    }
  return rows.map((row) => {
    const own = entities.get(row) ?? [];
    const results = own.map(({ result }) => result).toSorted((one, other) => WEIGHT[other] - WEIGHT[one]);
    const { sheet, row: number, reasons, notes } = row;
    const result = reasons.length > 0 ? "refused" : (results[0] ?? "unchanged");
    return { sheet, row: number, result, entities: own, reasons, notes };
  });
}
