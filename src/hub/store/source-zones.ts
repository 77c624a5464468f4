/** The time zones of the sources of an account, for files whose dates have none. */
import { ianaZone } from "#wire/index.ts";
import { change, type Database, type Row, row, rows, type Steps } from "./database.ts";
import { text } from "./structure-rows.ts";

export interface SourceZone {
  readonly id: number;
  readonly name: string;
  readonly serialNumber: string | null;
  readonly ean: string | null;
  readonly meterNumber: string | null;
  /** IANA name. */
  readonly zone: string;
}

export interface SourceZoneStore {
  /** Another number after each change of the account's structure. */
  version(accountId: number): Promise<number>;
  /** The first ones whose ids are larger, in the order of the ids. */
  sources(accountId: number, afterId: number, limit: number): Promise<readonly SourceZone[]>;
  /** The same of variables, with the ids of their sources. */
  variables(
    accountId: number,
    afterId: number,
    limit: number,
  ): Promise<readonly { readonly id: number; readonly sourceId: number }[]>;
}

export function createSourceZoneStore({ ask }: Database): SourceZoneStore {
  return {
    version: (accountId) =>
      ask(function* () {
        const found = yield* row("SELECT changes FROM structure_change WHERE account_id = ?", accountId);
        return Number(found?.["changes"] ?? 0);
      }),
    sources: (accountId, afterId, limit) =>
      ask(function* () {
        const found = yield* rows(
          `SELECT source.id, source.name, source.serial_number, source.ean, source.meter_number,
            coalesce(source.time_zone_id, site.time_zone_id) AS zone
            FROM source JOIN site ON site.id = source.site_id
            WHERE source.account_id = ? AND source.id > ? ORDER BY source.id LIMIT ?`,
          accountId,
          afterId,
          limit,
        );
        return found.map(zoneOf);
      }),
    variables: (accountId, afterId, limit) =>
      ask(function* () {
        const found = yield* rows(
          "SELECT id, source_id FROM variable WHERE account_id = ? AND id > ? ORDER BY id LIMIT ?",
          accountId,
          afterId,
          limit,
        );
        return found.map((one) => ({ id: Number(one["id"]), sourceId: Number(one["source_id"]) }));
      }),
  };
}

/** For use inside a write that changes the structure of the account. */
export function* noteChange(accountId: number): Steps<void> {
  yield* change("UPDATE structure_change SET changes = changes + 1 WHERE account_id = ?", accountId);
}

function zoneOf(one: Row): SourceZone {
  return {
    id: Number(one["id"]),
    name: String(one["name"]),
    serialNumber: text(one["serial_number"]),
    ean: text(one["ean"]),
    meterNumber: text(one["meter_number"]),
    // As for dates that are pushed.
    zone: ianaZone(String(one["zone"])) ?? "UTC",
  };
}
