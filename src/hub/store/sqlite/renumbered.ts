/**
 * For the migration `referential-ids`: replaces ids of units and types in expressions and settings, which PostgreSQL
 * does itself.
 */
import type { DatabaseSync } from "node:sqlite";

const SWAPPED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  unitid: { 28: "51", 51: "28", 31: "101", 101: "31" },
  sourcetypeid: { 72: "114", 114: "72" },
  variabletypeid: { 18: "25", 25: "18" },
};
const NAMED_ID = /((unitid|sourcetypeid|variabletypeid)"?\s*(?:==|=|<>|!=|:)\s*['"]?)(\d+)(?![0-9.])/gi;

export function installRenumbering(database: DatabaseSync): void {
  database.function("renumbered", { deterministic: true }, (value) =>
    String(value).replace(NAMED_ID, (all, before: string, field: string, id: string) => {
      const swapped = SWAPPED[field.toLowerCase()]?.[id];
      return swapped === undefined ? all : before + swapped;
    }),
  );
}
