/** Paths into records, and the records at their ends. */
import { type JsonItem, RowError } from "headgate/mapper";

/** Names and indexes as text; null for any. */
export type Path = readonly (string | null)[];

const SEGMENT = /\.?\*|\[\*\]|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|\['([^']*)'\]|\.?([^.[\]*"'\s][^.[\]*"']*)/y;

/** The segments of a path, or its fault. Begins at the root `$`, or inside a record. */
export function parsePath(path: string): Path | string {
  const segments: (string | null)[] = [];
  let at = path.startsWith("$") ? 1 : 0;
  while (at < path.length) {
    SEGMENT.lastIndex = at;
    const match = SEGMENT.exec(path);
    if (match === null) return `"${path}" is no path such as $.data[*], readings[*], meter.id, values[0] or ["a.b"]`;
    const [, index, quoted, single, name] = match;
    const text = quoted === undefined ? undefined : (JSON.parse(`"${quoted}"`) as string);
    segments.push(name ?? index ?? single ?? text ?? null);
    at = SEGMENT.lastIndex;
  }
  return segments;
}

/** For paths that the settings' schema has checked. */
function pathOf(path: string): Path {
  const parsed = parsePath(path);
  return typeof parsed === "string" ? [path] : parsed;
}

/** A value with its enclosing values: `up` goes from the items of an array to the holder of the array. */
export interface RecordAt {
  readonly value: unknown;
  /** Its name or index in the enclosing value. */
  readonly key: string;
  /** Its position inside the item of the file, such as `.readings[3]`. */
  readonly where: string;
  readonly up: RecordAt | undefined;
  /** Position in arrays that are read item by item, and their length. */
  readonly along?: { readonly index: number; readonly length: number } | undefined;
}

interface Expansion {
  readonly records?: string | undefined;
  readonly each?: string | undefined;
  readonly zip?: string | undefined;
}

/** The records of an item of the file. Throws a `RowError` for an item without the named paths. */
export function expand(item: JsonItem, { records, each, zip }: Expansion): readonly RecordAt[] {
  const top = itemRecord(item, records);
  if (each !== undefined) return inside(top, pathOf(each), each);
  return zip === undefined ? [top] : zipped(top, zip);
}

/** An item with the keys of its enclosing values, whose content is not known. */
function itemRecord(item: JsonItem, records: string | undefined): RecordAt {
  const concrete = pathOf(item.path);
  const keys = pathOf(records ?? "$").flatMap((segment, at) => (segment === null ? [concrete[at] ?? ""] : []));
  let up: RecordAt | undefined;
  for (const key of keys.slice(0, -1)) up = { value: undefined, key, where: "", up };
  return { value: item.value, key: keys.at(-1) ?? "", where: "", up };
}

function inside(top: RecordAt, path: Path, text: string): readonly RecordAt[] {
  let level: RecordAt[] = [{ ...top }];
  let isFresh = true;
  for (const segment of path) {
    level = level.flatMap((record) => {
      // Between wildcards the path goes down, and the enclosing value stays the same.
      const holder = isFresh ? record : record.up;
      if (segment === null) return items(record, holder);
      const value = fieldOf(record.value, segment);
      if (value === undefined)
        throw new RowError(`the record has nothing at ${text}`, {
          column: `${record.where}${segmentText(segment)}`,
        });
      return [{ value, key: segment, where: record.where + segmentText(segment), up: holder }];
    });
    isFresh = segment === null;
  }
  return level;
}

function items(record: RecordAt, up: RecordAt | undefined): RecordAt[] {
  const { value, where } = record;
  if (Array.isArray(value))
    return value.map((one: unknown, at) => ({ value: one, key: String(at), where: `${where}[${at}]`, up }));
  if (typeof value === "object" && value !== null)
    return Object.entries(value).map(([key, one]) => ({
      value: one,
      key,
      where: where + segmentText(key),
      up,
    }));
  throw new RowError("there is no array or object to take items from", { column: where });
}

function zipped(top: RecordAt, zip: string): readonly RecordAt[] {
  const array = valueAt(top.value, pathOf(zip));
  if (!Array.isArray(array)) throw new RowError(`${zip} is no array`, { column: zip });
  const { length } = array;
  return array.map((_, index) => ({
    ...top,
    where: `[${index}]`,
    along: { index, length },
    key: String(index),
  }));
}

function segmentText(segment: string): string {
  return /^\d+$/.test(segment)
    ? `[${segment}]`
    : /^[^.[\]*"'\s]+$/.test(segment)
      ? `.${segment}`
      : `[${JSON.stringify(segment)}]`;
}

export function valueAt(value: unknown, path: Path): unknown {
  let found = value;
  for (const segment of path) found = fieldOf(found, segment ?? "");
  return found;
}

function fieldOf(value: unknown, segment: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  return Object.hasOwn(value, segment) ? (value as Readonly<Record<string, unknown>>)[segment] : undefined;
}
