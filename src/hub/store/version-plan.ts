/**
 * Plans the versions of one point for new submissions (specification, *Data versioning*): one with the tag of
 * an earlier version replaces that entry, any other is a new version, and beyond the limit the oldest of its
 * kind (tagged, untagged) is removed.
 */
import type { VariableFacts } from "./store.ts";

/** Number of versions that are kept of each point, tagged and untagged counted separately. */
export interface Retention {
  readonly byDefault: number;
  /** By the id of the account. */
  readonly byAccount: ReadonlyMap<number, number>;
}

/** The variable's own number overrides that of its account. */
export function versionsKept({ versionsMax, accountId }: VariableFacts, retention: Retention): number {
  return versionsMax ?? retention.byAccount.get(accountId) ?? retention.byDefault;
}

export interface VersionEntry {
  readonly versionUs: number;
  /** The VersionTag. */
  readonly version: string | null;
}

export interface VersionPlan<Submitted> {
  /** The known versions that are removed. */
  readonly removed: readonly VersionEntry[];
  /** The submissions that are kept. */
  readonly added: readonly Submitted[];
  /** For each submission, whether it replaced an entry. */
  readonly replaced: readonly boolean[];
}

/** Both lists oldest first, every submission newer than every known version. */
export function planVersions<Submitted extends VersionEntry>(
  known: readonly VersionEntry[],
  submitted: readonly Submitted[],
  versionsMax: number,
): VersionPlan<Submitted> {
  let entries: VersionEntry[] = [...known];
  const replaced: boolean[] = [];
  for (const one of submitted) {
    const before = entries.length;
    if (one.version !== null) entries = entries.filter(({ version }) => version !== one.version);
    replaced.push(entries.length < before);
    entries.push(one);
    const kind = entries.filter(({ version }) => (version === null) === (one.version === null));
    const surplus = new Set(kind.slice(0, Math.max(0, kind.length - versionsMax)));
    if (surplus.size > 0) entries = entries.filter((entry) => !surplus.has(entry));
  }
  const kept = new Set(entries);
  return {
    removed: known.filter((entry) => !kept.has(entry)),
    added: submitted.filter((entry) => kept.has(entry)),
    replaced,
  };
}
