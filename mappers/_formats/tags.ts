/** Tags made once for all readings that share them, which `emit` takes fastest. */

export type Tags = Readonly<Record<string, string>>;

/** Texts of a file may differ from row to row, and must not pile up. */
const KEPT_MAX = 1000;

/** Gives the tags of a key, which `make` makes when they are not kept. No tags at all are undefined. */
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
