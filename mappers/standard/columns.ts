/** Columns of the standard data file, found by name without regard to case and underscores, and the target of a row. */
import { type CellValue, FileError, RowError, type Target } from "headgate/mapper";
import { isText, textOf } from "../_formats/cells.ts";

/** Identifiers in order of preference when a row fills several: the narrowest first. */
const IDENTIFIERS = [
  ["variableid", "variableId"],
  ["sourceid", "sourceId"],
  ["sourceserialnumber", "sourceSerialNumber"],
  ["sourceean", "sourceEan"],
  ["meternumber", "meterNumber"],
  ["sourcemeternumber", "meterNumber"],
  ["sourcename", "sourceName"],
] as const;

export interface Columns {
  /** Names as the file writes them. */
  readonly names: readonly string[];
  readonly width: number;
  /** Positions from 0. */
  readonly date: number;
  readonly value: number;
  readonly identifiers: readonly { readonly at: number; readonly field: string }[];
  readonly mappingConfig: number | undefined;
  readonly variableTypeId: number | undefined;
  readonly version: number | undefined;
  readonly tags: number | undefined;
}

/** Throws a `FileError` that names missing and repeated columns. */
export function findColumns(header: readonly string[]): Columns {
  const names = header.map((name) => name.trim());
  const places = new Map<string, number>();
  names.forEach((name, at) => {
    const key = name.toLowerCase().replaceAll("_", "");
    if (places.has(key) && KNOWN.has(key))
      throw new FileError(`the header names the column ${name} twice`, { column: name });
    places.set(key, at);
  });
  const identifiers = IDENTIFIERS.flatMap(([key, field]) => {
    const at = places.get(key);
    return at === undefined ? [] : [{ at, field }];
  });
  const date = places.get("date");
  const value = places.get("value");
  const missing = [
    date === undefined ? "date" : [],
    value === undefined ? "value" : [],
    identifiers.length === 0 ? "an identifier (variable_id, or a source_* column with mapping_config)" : [],
    needsSelector(identifiers) && !places.has("mappingconfig") && !places.has("variabletypeid") ? "mapping_config" : [],
  ].flat();
  if (date === undefined || value === undefined || missing.length > 0) throw missingColumns(missing, names);
  return {
    names,
    width: names.length,
    date,
    value,
    identifiers,
    mappingConfig: places.get("mappingconfig"),
    variableTypeId: places.get("variabletypeid"),
    version: places.get("version"),
    tags: places.get("tags"),
  };
}

/** Columns on which a reading depends, beside date and value. */
export function columnsBeside({ identifiers, mappingConfig, variableTypeId, version, tags }: Columns): number[] {
  return [...identifiers.map(({ at }) => at), mappingConfig, variableTypeId, version, tags].filter(
    (at) => at !== undefined,
  );
}

/** A source has several variables, so its name alone is not enough. */
function needsSelector(identifiers: Columns["identifiers"]): boolean {
  return identifiers.length > 0 && identifiers.every(({ field }) => field !== "variableId");
}

const KNOWN: ReadonlySet<string> = new Set([
  "date",
  "value",
  "mappingconfig",
  "variabletypeid",
  "version",
  "tags",
  ...IDENTIFIERS.map(([key]) => key),
]);

function missingColumns(missing: readonly string[], names: readonly string[]): FileError {
  const only = names.length === 1 ? (names[0] ?? "") : "";
  const delimiter = [";", "\t", "|", ","].find((candidate) => only.includes(candidate));
  return new FileError(`the header lacks ${missing.join(" and ")}`, {
    text: names.join(","),
    hint:
      delimiter === undefined
        ? `The columns found are: ${names.join(", ")}.`
        : "The whole header is one column: add to the trigger's metadata the delimiter of the file: " +
          `\`delimiter: ${JSON.stringify(delimiter)}\``,
  });
}

export interface RowTarget {
  readonly target: Target;
  /** Equal for rows of one target. */
  readonly series: string;
}

/** Limit on the cached targets, so that a file with a target a row does not use more memory. */
const TARGETS_KEPT = 20_000;

/** Reads the target of a row. Targets are created once and frozen, so that rows of one target share them. */
export function targetReader(columns: Columns): (cells: readonly CellValue[]) => RowTarget {
  const parts = [columns.mappingConfig, columns.variableTypeId, ...columns.identifiers.map(({ at }) => at)].filter(
    (at) => at !== undefined,
  );
  const [selector, name] = parts.length === 2 ? parts : [undefined, parts[0]];
  const isPlain = name !== undefined && parts.length <= 2;
  /**
   * By selector and name: two lookups cost less than joining the texts. Other rows by all texts, under one selector.
   */
  const known = new Map<string, Map<string, RowTarget>>();
  let count = 0;

  function keep(first: string, second: string, cells: readonly CellValue[], series: string): RowTarget {
    const found = { target: Object.freeze(makeTarget(cells, columns)), series };
    if (count >= TARGETS_KEPT) known.clear();
    count = known.size === 0 ? 1 : count + 1;
    const names = known.get(first) ?? new Map<string, RowTarget>();
    known.set(first, names.set(second, found));
    return found;
  }

  function joined(cells: readonly CellValue[]): string {
    let series = "";
    for (const at of parts) {
      const text = String(cells[at] ?? "");
      // With its length, and marked when it will be refused, so that different cells never give equal keys.
      series += `${text.length}${isText(cells[at]) ? "" : "?"}:${text}`;
    }
    return series;
  }

  let latestFirst = "";
  let latestSecond = "";
  let latest: RowTarget | undefined;

  return (cells) => {
    const first = selector === undefined ? "" : cells[selector];
    const second = isPlain ? cells[name] : undefined;
    if (typeof first === "string" && typeof second === "string") {
      // Consecutive rows mostly share a target, and comparing a text costs less than a lookup.
      if (latest === undefined || second !== latestSecond || first !== latestFirst) {
        latest = known.get(first)?.get(second) ?? keep(first, second, cells, joined(cells));
        latestFirst = first;
        latestSecond = second;
      }
      return latest;
    }
    const series = joined(cells);
    return known.get("\n")?.get(series) ?? keep("\n", series, cells, series);
  };
}

function makeTarget(cells: readonly CellValue[], columns: Columns): Target {
  const textAt = (at: number | undefined) =>
    at === undefined ? "" : textOf(cells[at], columns.names[at] ?? "").trim();
  const nameAt = (at: number | undefined) => (at === undefined ? undefined : columns.names[at]);
  const identifier = columns.identifiers.find(({ at }) => String(cells[at] ?? "").trim() !== "");
  if (identifier === undefined) {
    const [first] = columns.identifiers;
    throw new RowError("the row names no variable: its identifier columns are empty", {
      column: nameAt(first?.at) ?? "variable_id",
    });
  }
  const { at, field } = identifier;
  const text = textAt(at);
  const target: Record<string, string | number> = {};
  target[field] = field === "variableId" || field === "sourceId" ? integer(text, columns.names[at]) : text;
  if (field === "variableId") return target as unknown as Target;
  const config = textAt(columns.mappingConfig);
  const type = textAt(columns.variableTypeId);
  if (config !== "") target["mappingConfig"] = config;
  else if (type !== "") target["variableTypeId"] = integer(type, nameAt(columns.variableTypeId));
  else
    throw new RowError(`the row names a source by ${columns.names[at]}, but no mapping_config`, {
      column: nameAt(columns.mappingConfig) ?? "mapping_config",
      hint: "A source has several variables: mapping_config (or variable_type_id) says which one is meant.",
    });
  return target as unknown as Target;
}

function integer(text: string, column: string | undefined): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value)) return value;
  throw new RowError(`"${text}" is not a whole number`, {
    text,
    ...(column === undefined ? {} : { column }),
  });
}

let latestText = "";
let latestTags: Readonly<Record<string, string>> = {};

/** `key:value|key:value`; a value may hold further colons. */
export function parseTags(text: string): Readonly<Record<string, string>> {
  if (text === latestText) return latestTags;
  const tags: Record<string, string> = {};
  for (const label of text.split("|")) {
    if (label.trim() === "") continue;
    const colon = label.indexOf(":");
    const name = label.slice(0, Math.max(0, colon)).trim();
    if (name === "")
      throw new RowError(`the tag "${label.trim()}" is not of the form key:value`, { column: "tags", text });
    if (Object.hasOwn(tags, name)) throw new RowError(`the tag "${name}" is there twice`, { column: "tags", text });
    tags[name] = label.slice(colon + 1).trim();
  }
  latestText = text;
  latestTags = tags;
  return tags;
}
