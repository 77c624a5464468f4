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
  /** Parts of the schema that derive from the code, and so need no migrations. */
  readonly derived?: DerivedParts;
  /** Error for a database of a version that does not fit, in words that continue `the store …`. */
  readonly otherVersion: (subject: string, words: string) => ConfigError;
}

/** Checks, indexes and triggers that name values which the code defines: all are made again when one names others. */
export interface DerivedParts {
  /** The values of each part, by its name. */
  readonly values: Readonly<Record<string, readonly string[]>>;
  /** A query of the `name` and the `sql` of the parts that are there. */
  readonly definitions: string;
  readonly makeAgain: string;
}

/** Stands for them in the list of migrations. */
export const DERIVED = "derived parts";

export interface Definition {
  readonly name: string;
  readonly sql: string;
}

/** Whether a part names other values than the code; `ConfigError` when they are those of a newer program. */
export function areOutdated({ derived, otherVersion }: Schema, parts: readonly Definition[], subject: string): boolean {
  const wanted = Object.entries(derived?.values ?? {});
  const known = new Set(wanted.flatMap(([, values]) => values));
  const named = new Map(parts.map(({ name, sql }) => [name, new Set(sql.match(/(?<=')\w+(?=')/g))]));
  const unknown = wanted.flatMap(([name]) => [...(named.get(name)?.difference(known) ?? [])]);
  if (unknown.length > 0)
    throw otherVersion(
      subject,
      `has ${unknown[0]} in its schema, which this Headgate does not know: a newer one wrote it`,
    );
  return wanted.some(([name, values]) => named.get(name)?.symmetricDifference(new Set(values)).size !== 0);
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
export function assertNothingDue(schema: Schema, version: number, parts: readonly Definition[], subject: string): void {
  const newest = dueFor(schema, version, subject).at(-1)?.version;
  if (newest !== undefined)
    throw schema.otherVersion(subject, `has schema ${version}, this Headgate reads ${newest}; start the gateway once`);
  if (areOutdated(schema, parts, subject))
    throw schema.otherVersion(subject, "is of an earlier Headgate; start the gateway once");
}
