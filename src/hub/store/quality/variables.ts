/** Variables with what reports of quality know of them. */
import { type Database, listed } from "../database.ts";
import type { Listing, Page, VariablesFilter } from "../records.ts";
import { number } from "../structure-rows.ts";
import { Where } from "../where.ts";

export interface MeasuredVariable {
  readonly id: number;
  readonly name: string;
  readonly sourceId: number;
  readonly siteId: number;
  readonly unitId: number;
  readonly granularity: number | null;
  readonly granularityTimeBase: number | null;
  readonly quantityType: number | null;
  readonly isVersioned: boolean;
  /** Windows or IANA, as the next one. */
  readonly sourceZoneId: string;
  readonly siteZoneId: string;
}

type MeasuredFilter = Omit<VariablesFilter, "tags"> & { readonly siteIds?: readonly number[] | undefined };

export interface MeasuredStore {
  /** Ordered by id. */
  list(accountId: number, filter: MeasuredFilter, page: Page): Promise<Listing<MeasuredVariable>>;
}

const MEASURED = {
  columns: `variable.id, variable.name, variable.source_id, source.site_id, variable.unit_id, variable.granularity,
    variable.granularity_time_base, variable.quantity_type, variable.is_versioned,
    coalesce(source.time_zone_id, site.time_zone_id) AS source_zone, site.time_zone_id AS site_zone`,
  from: "variable JOIN source ON source.id = variable.source_id JOIN site ON site.id = source.site_id",
  order: "variable.id",
};

export function createMeasuredStore(database: Database): MeasuredStore {
  return {
    list(accountId, filter, page) {
      const where = new Where(database.dialect)
        .equal("variable.account_id", accountId)
        .among("variable.id", filter.ids)
        .among("variable.source_id", filter.sourceIds)
        .among("source.site_id", filter.siteIds)
        .among("variable.variable_type_id", filter.variableTypeIds);
      return listed(database, MEASURED, where, page, (row) => ({
        id: Number(row["id"]),
        name: String(row["name"]),
        sourceId: Number(row["source_id"]),
        siteId: Number(row["site_id"]),
        unitId: Number(row["unit_id"]),
        granularity: number(row["granularity"]),
        granularityTimeBase: number(row["granularity_time_base"]),
        quantityType: number(row["quantity_type"]),
        isVersioned: row["is_versioned"] === true || row["is_versioned"] === 1,
        sourceZoneId: String(row["source_zone"]),
        siteZoneId: String(row["site_zone"]),
      }));
    },
  };
}
