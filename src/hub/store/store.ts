/**
 * The contract of the hub's store. Every method is atomic; all may run concurrently on the event loop and
 * none blocks it for long. They throw the database's errors (the request is then answered by 500 and logged),
 * and `ConfigError` only when opening. The store separates accounts, whose ids are parameters everywhere.
 */
import type { SiteBody, SourceBody, VariableBody } from "#wire/index.ts";
import type { AlarmStores } from "./alarms/stores.ts";
import type { Piece } from "./blocks/pieces.ts";
import type { CalculatedStore } from "./calculated/calculated.ts";
import type { CalculationsStore } from "./calculated/calculations.ts";
import type { ClaimStore } from "./calculated/claims.ts";
import type { JudgeDefinition } from "./calculated/definitions.ts";
import type { Reader } from "./calculated/readers.ts";
import type { EventDeliveryStore } from "./events/deliveries.ts";
import type { EventStore } from "./events/events.ts";
import type { SubscriptionStore } from "./events/subscriptions.ts";
import type { FileTriggerStore } from "./file-triggers.ts";
import type { FilterNode } from "./filter.ts";
import type { HeldForms, JudgeValues, ValuePlan } from "./form-values.ts";
import type { FormStore } from "./forms.ts";
import type { GroupStore } from "./groups.ts";
import type { IdentityStore } from "./identity.ts";
import type { MailStores } from "./mail/stores.ts";
import type { MasterDataReports } from "./master-data.ts";
import type { OperationStore } from "./operations.ts";
import type { PeopleStore } from "./people/people.ts";
import type { RefreshTokenStore } from "./people/refresh-tokens.ts";
import type { HeadAsk, HeadPage } from "./point-selection.ts";
import type { MeasuredStore } from "./quality/variables.ts";
import type { RollupStore } from "./rollups/rollups.ts";
import type { SearchStore } from "./search/search.ts";
import type { SessionStore } from "./sessions/sessions.ts";
import type { ExternalIdentityStore } from "./sign-on/external-identities.ts";
import type { SliceStore } from "./slices.ts";
import type { SourceZoneStore } from "./source-zones.ts";
import type { OriginStore } from "./stored/origins.ts";
import type { FileStore } from "./stored-files.ts";
import type { UsageStore } from "./usage.ts";
import type { ViewStore } from "./views.ts";

// ───────────────────────────────────────────────────────────── people: `identity.ts`, `people/people.ts`

export type * from "./identity.ts";
export type * from "./people/records.ts";

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
type Nullable<Body> = {
  [Field in keyof Body]: undefined extends Body[Field] ? Body[Field] | null : Body[Field];
};

/** A list of values means any of them; fields combine with AND; absent fields do not filter. */
interface SitesFilter {
  readonly ids?: readonly number[] | undefined;
  /** All conditions must be true. */
  readonly where?: readonly FilterNode[] | undefined;
}
interface SourcesFilter {
  readonly ids?: readonly number[] | undefined;
  readonly siteIds?: readonly number[] | undefined;
  readonly states?: readonly string[] | undefined;
  readonly eans?: readonly string[] | undefined;
  readonly serialNumbers?: readonly string[] | undefined;
  readonly meterNumbers?: readonly string[] | undefined;
  readonly names?: readonly string[] | undefined;
  readonly tags?: readonly string[] | undefined;
  /** All conditions must be true. */
  readonly where?: readonly FilterNode[] | undefined;
}
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

/** A body whose values are as the plan says. */
export interface ChangedValues<Body> {
  readonly body: Body;
  readonly values: ValuePlan | null;
}

export type StructureEntity = "site" | "source" | "variable";

export type Removal =
  | {
      readonly kind: "removed";
      readonly sources: number;
      readonly variables: number;
      readonly points: number;
    }
  | { readonly kind: "missing" }
  /** Nothing was removed: these calculated variables read it, or what is below it. */
  | { readonly kind: "in-use"; readonly users: readonly Reader[] }
  /** Nothing was removed. */
  | { readonly kind: "holds-points"; readonly variables: number; readonly points: number };

export interface StructureStore {
  /**
   * Values of forms are stored as `judge` says, as in the next method. All three throw `AccountFull` where the account
   * has `most`.
   */
  createSite(accountId: number, body: SiteBody, judge?: JudgeValues, most?: number): Promise<number>;
  /** Null when the site is not one of the account. */
  createSource(accountId: number, body: SourceBody, judge?: JudgeValues, most?: number): Promise<StoredSource | null>;
  /** Null when the source is not one of the account. A definition is stored as `judge` says. */
  createVariable(accountId: number, body: VariableBody, judge?: JudgeDefinition, most?: number): Promise<number | null>;
  /**
   * Reads, changes and writes in one transaction; `change` may throw, and then nothing is written. `missing`:
   * no such entity in the account; `no-parent`: the new site or source does not belong to the account.
   */
  changeSite(
    accountId: number,
    id: number,
    change: (current: StoredSite, held: HeldForms) => ChangedValues<SiteBody>,
  ): Promise<StoredSite | "missing">;
  changeSource(
    accountId: number,
    id: number,
    change: (current: StoredSource, held: HeldForms) => ChangedValues<SourceBody>,
  ): Promise<StoredSource | "missing" | "no-parent">;
  /** `points` of the variable so far, so that a change can depend on them. */
  changeVariable(
    accountId: number,
    id: number,
    change: (current: StoredVariable, points: number) => VariableBody,
    judge?: JudgeDefinition,
  ): Promise<StoredVariable | "missing" | "no-parent">;
  /** Removes an entity with everything below it. With points below, only when `withPoints` is set. */
  remove(accountId: number, entity: StructureEntity, id: number, withPoints: boolean): Promise<Removal>;
  /** Removals of much that were begun and not finished. */
  resumeRemovals(signal: AbortSignal): Promise<void>;
  /** Ordered by id, as the next two methods. */
  sites(accountId: number, filter: SitesFilter, page: Page): Promise<Listing<StoredSite>>;
  sources(accountId: number, filter: SourcesFilter, page: Page): Promise<Listing<StoredSource>>;
  variables(accountId: number, filter: VariablesFilter, page: Page): Promise<Listing<StoredVariable>>;
}

export type * from "./file-triggers.ts";
export type * from "./views.ts";

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

export type { Piece, Samples } from "./blocks/pieces.ts";

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

export interface PointStore {
  readonly rollups: RollupStore;
  /** Variables of the account that a data query selects, by id; null for every account. */
  select(accountId: number | null, filter: VariablesFilter): Promise<readonly VariableFacts[]>;
  /** Chunks in order of date (versions of one point oldest first); memory holds one chunk. */
  read(variable: VariableFacts, range: PointRange): AsyncIterable<readonly PointRow[]>;
  /** All points in the range, in its order. */
  pieces(variable: VariableFacts, range: SampleRange): AsyncIterable<Piece>;
  /** The same page of each of these different variables, in their order; memory holds them all. */
  heads(asks: readonly HeadAsk[], page: HeadPage): Promise<readonly (readonly PointRow[])[]>;
  /** Number of points in the range, without paging. */
  count(variable: VariableFacts, range: PointRange): Promise<number>;
  /** The points that `remove` would remove. */
  holding(variableId: number, fromMs: number | null, toMs: number | null): Promise<Holding>;
  /**
   * Removes points with all their versions, from `fromMs` (included) to `toMs` (excluded), in transactions of bounded
   * size.
   */
  remove(variableId: number, fromMs: number | null, toMs: number | null): Promise<Holding>;
}

// ───────────────────────────────────────────────────────────── operations: `operations.ts`

export type * from "./operations.ts";

// ───────────────────────────────────────────────────────────── ingestion (its own thread and connection): `ingest.ts`

export type * from "./ingest.ts";

// ───────────────────────────────────────────────────────────── stored files: `stored-files.ts`

export type * from "./stored-files.ts";

export interface HubStore extends MailStores {
  readonly identity: IdentityStore;
  readonly people: PeopleStore;
  readonly externalIdentities: ExternalIdentityStore;
  readonly refreshTokens: RefreshTokenStore;
  readonly structure: StructureStore;
  readonly views: ViewStore;
  readonly calculated: CalculatedStore;
  readonly claims: ClaimStore;
  readonly calculations: CalculationsStore;
  /** For reports of quality. */
  readonly measured: MeasuredStore;
  readonly fileTriggers: FileTriggerStore;
  readonly points: PointStore;
  readonly origins: OriginStore;
  readonly operations: OperationStore;
  readonly usage: UsageStore;
  readonly files: FileStore;
  readonly forms: FormStore;
  readonly slices: SliceStore;
  readonly groups: GroupStore;
  /** Reports of files of master data. */
  readonly reports: MasterDataReports;
  /** The zones of sources, for dates of files that have none. */
  readonly zones: SourceZoneStore;
  readonly sessions: SessionStore;
  readonly alarms: AlarmStores;
  readonly events: EventStore;
  readonly subscriptions: SubscriptionStore;
  readonly eventDeliveries: EventDeliveryStore;
  readonly search: SearchStore;
  close(): Promise<void>;
}
