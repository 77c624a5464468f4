/** Tags created once for all readings that share them, which `emit` takes fastest. */

export type Tags = Readonly<Record<string, string>>;

/** Limit on the cached tags: texts of a file may differ from row to row. */
const KEPT_MAX = 1000;

/** Returns the tags of a key; `make` creates them when they are not cached. Undefined stands for no tags. */
export function tagKeeper(): (key: string, make: () => Tags) => Tags | undefined {
  const kept = new Map<string, Tags | undefined>();
  return (key, make) => {
    if (kept.has(key)) return kept.get(key);
    if (kept.size >= KEPT_MAX) kept.clear();
    const made = make();
    const tags = Object.keys(made).length === 0 ? undefined : Object.freeze(made);
    kept.set(key, tags);
    return tags;
  };
}
