/** `eanNumber`, another name of a source's `ean`, which clients read and write (`docs/hub/interface.md`, *Clients*). */
import { invalidField } from "../http/problems.ts";
import type { Fields } from "./json-patch.ts";

type Entry = readonly [name: string, value: unknown];

const isAlias = ([name]: Entry) => name.toLowerCase() === "eannumber";
const isEan = (entry: Entry) => isAlias(entry) || entry[0].toLowerCase() === "ean";

/**
 * The fields of a body with `ean` alone. Clients that read both names write both back, with one of them changed: that
 * one counts. Throws a 400 where both say something new.
 */
export function withEan(current: Fields, entries: readonly Entry[]): readonly Entry[] {
  if (!Object.hasOwn(current, "ean") || !entries.some(isAlias)) return entries;
  const { ean } = current;
  const [changed = ean, ...more] = new Set(
    entries.filter(isEan).flatMap(([, value]) => (value === ean ? [] : [value])),
  );
  if (more.length > 0) throw invalidField("eanNumber", "must be the same as ean, which is another name of the field");
  return [...entries.filter((entry) => !isEan(entry)), ["ean", changed]];
}

/** The body of a new source. */
export function newWithEan(body: unknown): unknown {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return body;
  const given = Object.entries(body).filter(([, value]) => value !== null);
  return given.some(isAlias) ? Object.fromEntries(withEan({ ean: undefined }, given)) : body;
}

/** As answers show it; other entities than sources are left as they are. */
export function withEanNumber<Row extends object>(row: Row): Row {
  return "ean" in row ? { ...row, eanNumber: row.ean } : row;
}
