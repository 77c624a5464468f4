/** The single settings of a configuration, by their paths: entries of lists by their names where they have one. */
import { isDeepStrictEqual } from "node:util";
import { quantityText } from "../quantities.ts";
import { belowOf, type Marked, variants } from "./secrets.ts";

export interface Leaf {
  /** Such as `drops[field].settle.interval`. */
  readonly path: string;
  /** A text, number, boolean or null, or an empty list or section. */
  readonly value: unknown;
  /** A schema marks it, or what it stands in, as a secret. */
  readonly isSecret: boolean;
  /** Of a duration or a size, as a file would have it: `10m`; null for other values. */
  readonly quantity: string | null;
}

/** `schema`: where the marks of secrets are. */
export function leavesOf(data: unknown, schema: Marked = {}): readonly Leaf[] {
  const leaves: Leaf[] = [];
  const visit = (value: unknown, path: string, places: readonly Marked[], isMarked: boolean): void => {
    const here = places.flatMap(variants);
    const isSecret = isMarked || here.some(({ secret }) => secret === true);
    const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
    if (entries.length === 0) {
      leaves.push({ path, value, isSecret, quantity: quantityOf(value, here) });
      return;
    }
    for (const [key, inner] of entries) {
      const step = Array.isArray(value) ? `[${nameOf(inner) ?? key}]` : `${path === "" ? "" : "."}${key}`;
      visit(inner, `${path}${step}`, here.flatMap(belowOf(value as object, key)), isSecret);
    }
  };
  visit(data, "", [schema], false);
  return leaves;
}

function quantityOf(value: unknown, places: readonly Marked[]): string | null {
  if (typeof value !== "number") return null;
  const texts = places.flatMap(({ pattern }) => (pattern === undefined ? [] : (quantityText(value, pattern) ?? [])));
  return texts[0] ?? null;
}

function nameOf(entry: unknown): string | null {
  if (typeof entry !== "object" || entry === null || !("name" in entry)) return null;
  return typeof entry.name === "string" ? entry.name : null;
}

/** Paths of the settings that differ, in the order of the second; removed ones come last. */
export function changedPaths(before: unknown, next: unknown): readonly string[] {
  const former = new Map(leavesOf(before).map(({ path, value }) => [path, value]));
  const changed = leavesOf(next)
    .filter(({ path, value }) => !former.has(path) || !isDeepStrictEqual(former.get(path), value))
    .map(({ path }) => path);
  const present = new Set(leavesOf(next).map(({ path }) => path));
  return [...changed, ...[...former.keys()].filter((path) => !present.has(path))];
}
