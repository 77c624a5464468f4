/** The request for a migration. The same request is the same migration: it resumes. */
import { createHash } from "node:crypto";
import { join, resolve } from "node:path";

export interface MigrationRequest {
  /** As the user wrote them: local globs, absolute, or URLs of files on a configured server. */
  readonly patterns: readonly string[];
  /** Null: the triggers of the configuration choose. */
  readonly mapper: string | null;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly rows: "strict" | "lenient";
  readonly rejectShare: number;
  /** Null: the service of the triggers, or the only one. */
  readonly service: string | null;
  /** The version of readings for which the mapper gives none; null: none. */
  readonly versionTag: string | null;
}

/** Ten hexadecimal digits, derived from the request alone; the order of patterns does not matter. */
export function migrationId(order: MigrationRequest): string {
  const { patterns, mapper, settings, rows, rejectShare, service, versionTag } = order;
  const facts = [[...patterns].sort(), mapper, settings, rows, rejectShare, service, versionTag];
  return createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 10);
}

/** The folder of a migration's ledger, spool and report. */
export function migrationFolder(spool: string, id: string): string {
  return join(resolve(spool), "migrations", id);
}

/** The ledger in that folder; it does not exist before the first file was taken, nor after an undo. */
export function migrationLedger(folder: string): { readonly kind: "sqlite"; readonly path: string } {
  return { kind: "sqlite", path: join(folder, "ledger.sqlite") };
}

export function isUrl(pattern: string): boolean {
  return /^(sftp|ftps?):\/\//i.test(pattern);
}

/** Local patterns are made absolute, so that the current folder does not matter. */
export function absolutePattern(pattern: string, from: string): string {
  return isUrl(pattern) ? pattern : resolve(from, pattern);
}
