/** What a person orders of a migration. The same order is the same migration: it is taken up where it stood. */
import { createHash } from "node:crypto";
import { join, resolve } from "node:path";

export interface MigrationRequest {
  /** As they were given: local globs, absolute, or URLs of files on a configured server. */
  readonly patterns: readonly string[];
  /** Null: the triggers of the configuration choose. */
  readonly mapper: string | null;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly rows: "strict" | "lenient";
  readonly rejectShare: number;
  /** Null: the one of the triggers, or the only one. */
  readonly service: string | null;
  /** Goes with every reading that the mapper gives no version; null: none. */
  readonly versionTag: string | null;
}

/** Ten hexadecimal digits, of the order alone; patterns in any order. */
export function migrationId(order: MigrationRequest): string {
  const { patterns, mapper, settings, rows, rejectShare, service, versionTag } = order;
  const facts = [[...patterns].sort(), mapper, settings, rows, rejectShare, service, versionTag];
  return createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 10);
}

/** Where a migration keeps its ledger, its spool and its report. */
export function migrationFolder(spool: string, id: string): string {
  return join(resolve(spool), "migrations", id);
}

/** Its ledger, by that folder; there is none before the first file was taken, and after an undo. */
export function migrationLedger(folder: string): { readonly kind: "sqlite"; readonly path: string } {
  return { kind: "sqlite", path: join(folder, "ledger.sqlite") };
}

export function isUrl(pattern: string): boolean {
  return /^(sftp|ftps?):\/\//i.test(pattern);
}

/** Local patterns are made absolute, so that the folder that somebody stands in does not matter. */
export function absolutePattern(pattern: string, from: string): string {
  return isUrl(pattern) ? pattern : resolve(from, pattern);
}
