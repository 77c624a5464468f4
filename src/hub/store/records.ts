/** What the store keeps and answers: sites, sources, variables, points, as the rows of every slice name them. */
import type { SiteBody, SourceBody, VariableBody } from "#wire/index.ts";

// ───────────────────────────────────────────────────────────── structure

export interface StoredSite extends Required<Nullable<SiteBody>> {
  readonly id: number;
  readonly clientData: Record<string, unknown> | null;
}

export interface StoredSource extends Required<Nullable<SourceBody>> {
  readonly id: number;
  readonly clientData: Record<string, unknown> | null;
  readonly siteName: string;
  readonly state: string;
}

export interface StoredVariable extends Required<Nullable<VariableBody>> {
  readonly id: number;
}

export type Nullable<Body> = {
  [Field in keyof Body]: undefined extends Body[Field] ? Body[Field] | null : Body[Field];
};

export interface VariablesFilter {
  readonly ids?: readonly number[] | undefined;
  readonly sourceIds?: readonly number[] | undefined;
  readonly variableTypeIds?: readonly number[] | undefined;
  readonly tags?: readonly string[] | undefined;
  /** Calculated variables that read one of these variables themselves. */
  readonly inputIds?: readonly number[] | undefined;
}

export interface Page {
  readonly offset: number;
  /** Null: no limit. */
  readonly limit: number | null;
  /** Only rows behind this one, in the order of the list, by its id; in lists whose order is that of ids. */
  readonly after?: number;
  /** False: `total` is not asked for, and may be any number. */
  readonly isCounted?: boolean;
}

export interface Listing<Row> {
  readonly rows: readonly Row[];
  /** Number of rows without paging. */
  readonly total: number;
}

export type StructureEntity = "site" | "source" | "variable";

// ───────────────────────────────────────────────────────────── points

/** The facts of a variable for reads and writes of points. Zones are ids as configured, Windows or IANA. */
export interface VariableFacts {
  readonly id: number;
  readonly accountId: number;
  readonly sourceId: number;
  readonly unitId: number;
  readonly isVersioned: boolean;
  /** Its points come from calculations alone. */
  readonly isCalculated: boolean;
  /** Versions kept of each point; null: the setting of the account. */
  readonly versionsMax: number | null;
  readonly sourceZoneId: string;
  readonly siteZoneId: string;
}

export type PointView =
  | { readonly kind: "latest" }
  | { readonly kind: "tag"; readonly tag: string }
  | { readonly kind: "asOf"; readonly versionUs: number }
  /** Points whose latest version is not older. */
  | { readonly kind: "since"; readonly versionUs: number }
  | { readonly kind: "all" };

export interface PointPage {
  readonly order: "ASC" | "DESC";
  /** Counted in points, also where each has several versions. */
  readonly page: Page;
  readonly view: PointView;
  /** False: the query needs only dates and values, and the other fields of rows may be null. */
  readonly labels?: boolean;
}

export interface PointRange extends PointPage {
  /** Milliseconds since 1970 in UTC, included; null: open. */
  readonly fromMs: number | null;
  /** Included; null: open. */
  readonly lastMs: number | null;
}

export type SampleRange = Omit<PointRange, "page" | "labels">;

export interface PointRow {
  readonly atMs: number;
  readonly value: number;
  readonly version: string | null;
  /** Microseconds since 1970; null on variables without versions. */
  readonly versionUs: number | null;
  readonly tags: Readonly<Record<string, string>> | null;
  readonly batchTags: Readonly<Record<string, string>> | null;
  /** Its row in the last answer that showed it alone, for the next one: points at hand are shown many times. */
  shown?: { readonly form: string; readonly text: string };
}

export interface Holding {
  readonly points: number;
  /** Versions of these points, including the latest; 0 on variables without versions. */
  readonly versions: number;
  /** Null without points. */
  readonly firstMs: number | null;
  readonly lastMs: number | null;
}

// Plans the versions of one point for new submissions (specification, *Data versioning*): one with the tag of
// an earlier version replaces that entry, any other is a new version, and beyond the limit the oldest of its
// kind (tagged, untagged) is removed.

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

export type ValuesEntity = "site" | "source";
