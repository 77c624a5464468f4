/** The numbered SQL files that bring a schema up to date, and the checks of the version of a schema. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ConfigError } from "../support/errors.ts";

export interface Migration {
  readonly version: number;
  /** Name of the file. */
  readonly file: string;
}

/** A schema: where its files are, and how its owner refuses a database that does not fit. */
export interface Schema {
  readonly folder: string;
  /** Error for a database that contains something else; null: other content is permitted. */
  readonly foreign: ((subject: string) => ConfigError) | null;
  /** Error for a database of a version that does not fit, in words that continue `the store …`. */
  readonly otherVersion: (subject: string, words: string) => ConfigError;
}

/** The migrations of a folder in the order of their numbers. */
function migrationsIn(folder: string): readonly Migration[] {
  return readdirSync(folder)
    .filter((file) => /^\d{3}-.*\.sql$/.test(file))
    .sort()
    .map((file) => ({ version: Number(file.slice(0, 3)), file }));
}

export function textOf({ folder }: Pick<Schema, "folder">, { file }: Migration): string {
  return readFileSync(join(folder, file), "utf8");
}

/**
 * The migrations that a database of this version still lacks. `ConfigError` when a newer program wrote it.
 */
export function dueFor(schema: Schema, version: number, subject: string): readonly Migration[] {
  const all = migrationsIn(schema.folder);
  const newest = all.at(-1)?.version ?? 0;
  if (version > newest)
    throw schema.otherVersion(subject, `has schema ${version}, newer than ${newest}, which this Headgate knows`);
  return all.filter((migration) => migration.version > version);
}

/** For a reader, which does not migrate: throws when a migration is missing. */
export function assertNothingDue(schema: Schema, version: number, subject: string): void {
  const newest = dueFor(schema, version, subject).at(-1)?.version;
  if (newest !== undefined)
    throw schema.otherVersion(subject, `has schema ${version}, this Headgate reads ${newest}; start the gateway once`);
}
