/**
 * The lookup tool of the mapper contract: a table by its name, read once a file, and cached by its digest from file to
 * file.
 */
import type { ConfigError } from "#core/errors.ts";
import type { LookupFile } from "./contract.ts";
import { lookupFault, readLookup } from "./lookup-table.ts";
import type { Lookup } from "./mapper.ts";

/** Limit on the tables that a worker caches for the next file, when their digest is known. */
const KEPT_MAX = 4;
/** A table with more rows is not cached. */
const KEPT_ROWS_MAX = 50_000;

const kept = new Map<string, Lookup>();

export function createLookups(files: readonly LookupFile[], signal: AbortSignal): (name: string) => Promise<Lookup> {
  const opened = new Map<string, Promise<Lookup>>();

  async function open(name: string): Promise<Lookup> {
    const file = files.find((one) => one.name === name);
    if (file === undefined) throw unknown(name, files);
    if (file.fault !== undefined) throw lookupFault(name, file.fault);
    const key = keyOf(file);
    const known = key === undefined ? undefined : kept.get(key);
    if (known !== undefined) return known;
    const table = await readLookup(file, signal);
    if (key !== undefined && table.size <= KEPT_ROWS_MAX) keep(key, table);
    return table;
  }

  return (name) => {
    const table = opened.get(name) ?? open(name);
    opened.set(name, table);
    return table;
  };
}

function keyOf({ path: _path, ...facts }: LookupFile): string | undefined {
  return facts.digest === undefined ? undefined : JSON.stringify(facts);
}

function keep(key: string, table: Lookup): void {
  kept.set(key, table);
  const [oldest] = kept.keys();
  if (kept.size > KEPT_MAX && oldest !== undefined) kept.delete(oldest);
}

function unknown(name: string, files: readonly LookupFile[]): ConfigError {
  const names = files.map((file) => file.name);
  return lookupFault(
    name,
    names.length === 0
      ? "no lookup is configured"
      : `there is none of this name; there ${names.length === 1 ? "is" : "are"} ${names.join(", ")}`,
    "Add it to `lookups` of the configuration, or give it to `headgate map` as --lookup NAME=PATH.",
  );
}
