/** Paths into JSON documents: the subset of JSONPath (RFC 9535) of names, indexes and wildcards. */

export interface Selector {
  readonly path: string;
  /** Names and indexes as text; null for a wildcard. */
  readonly segments: readonly (string | null)[];
}

const SEGMENT = /\.\*|\[\*\]|\.([^.[\]*"'\s]+)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|\['([^']*)'\]/y;

/** Throws a `TypeError` for an invalid path, which is a fault of the mapper, not of the file. */
export function parseSelector(path: string): Selector {
  const segments: (string | null)[] = [];
  let at = 1;
  while (path.startsWith("$") && at < path.length) {
    SEGMENT.lastIndex = at;
    const match = SEGMENT.exec(path);
    if (match === null) break;
    const [, name, index, quoted, single] = match;
    segments.push(name ?? index ?? single ?? (quoted === undefined ? null : (JSON.parse(`"${quoted}"`) as string)));
    at = SEGMENT.lastIndex;
  }
  if (!path.startsWith("$") || at < path.length)
    throw new TypeError(
      `"${path}" is no path of items: paths begin at the root $, ` +
        `as in $.data.* or $.meters[*].readings[*] or $["a.b"].*`,
    );
  return { path, segments };
}

/** Writes a path in the syntax of the selectors. */
export function writePath(keys: readonly (string | number)[]): string {
  let path = "$";
  for (const key of keys)
    path += typeof key === "number" ? `[${key}]` : /^[^.[\]*"'\s]+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
  return path;
}
