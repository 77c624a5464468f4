/** The numbered SQL files that make a schema, and the check of the files that a database was made from. */
import { hash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ConfigError } from "../errors.ts";

export interface Migration {
  readonly version: number;
  /** Name of the file. */
  readonly file: string;
  readonly sql: string;
  /** SHA-256 of the statements without comments and line breaks, in lower-case hexadecimal. */
  readonly digest: string;
}

/** A row of the table that records the migrations of a database. */
export interface MigrationRecord {
  readonly version: number;
  /** Null where none was recorded. */
  readonly digest: string | null;
}

/** A schema: where its files are, and how its owner refuses a database that does not fit. */
export interface Schema {
  readonly folder: string;
  /** The table that records the migrations. */
  readonly table: string;
  /** SQL that derives from the code, by the names under which the files insert it: `:name`. */
  readonly values?: Readonly<Record<string, string>>;
  /** Error for a database that contains something else; null: other content is permitted. */
  readonly foreign: ((subject: string) => ConfigError) | null;
  /** Error for a database of a version that does not fit, in words that continue `the store …`. */
  readonly otherVersion: (subject: string, words: string) => ConfigError;
}

/** The last migration of a database, 0 for none; and those that it still lacks. */
export interface SchemaState {
  readonly version: number;
  readonly due: readonly Migration[];
}

/** Statement that makes the table of the records, where there is none. */
export function recordTable({ table }: Schema): string {
  return `CREATE TABLE IF NOT EXISTS ${table} (version integer PRIMARY KEY, file text NOT NULL, digest text NOT NULL)`;
}

/** The migrations of a schema in the order of their numbers. */
export function migrationsOf({ folder, values = {} }: Pick<Schema, "folder" | "values">): readonly Migration[] {
  const inserted = new Map(Object.entries(values));
  const files = readdirSync(folder).filter((file) => /^\d{3}-.*\.sql$/.test(file));
  return files.sort().map((file) => {
    const text = readFileSync(join(folder, file), "utf8");
    const sql = text.replaceAll(/:(\w+)/g, (all, name: string) => inserted.get(name) ?? all);
    const statements = sql.replaceAll(/--.*$/gm, "").replaceAll(/\s+/g, " ").trim();
    return { version: Number(file.slice(0, 3)), file, sql, digest: hash("sha256", statements) };
  });
}

/** `ConfigError` when a newer program made the database, or other files did: files change until the first release. */
export function stateFrom(schema: Schema, records: readonly MigrationRecord[], subject: string): SchemaState {
  const all = migrationsOf(schema);
  const newest = all.at(-1)?.version ?? 0;
  const version = records.at(-1)?.version ?? 0;
  if (version > newest)
    throw schema.otherVersion(subject, `has schema ${version}, newer than ${newest}, which this Headgate knows`);
  const recorded = new Map(records.map((record) => [record.version, record.digest]));
  const other = all.find(
    (migration) => migration.version <= version && recorded.get(migration.version) !== migration.digest,
  );
  if (other !== undefined)
    throw schema.otherVersion(
      subject,
      `was made by another state of the schema than that of this Headgate (${other.file} differs); nothing was ` +
        "released yet, so that the schema changes in place and no data are converted",
    );
  return { version, due: all.filter((migration) => migration.version > version) };
}

/** For a reader, which does not migrate: throws when a migration is missing. */
export function assertNothingDue(schema: Schema, { version, due }: SchemaState, subject: string): void {
  const newest = due.at(-1)?.version;
  if (newest !== undefined)
    throw schema.otherVersion(subject, `has schema ${version}, this Headgate reads ${newest}; start the gateway once`);
}
