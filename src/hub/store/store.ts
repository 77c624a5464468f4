/**
 * The contract of the hub's store. Every method is atomic; all may run concurrently on the event loop and none blocks
 * it for long. They throw what the database throws (then the request is answered by 500 and logged), and `ConfigError`
 * only when opening. Ids of accounts are parameters everywhere: the store is where accounts are walls.
 */

import type { SiteBody, SourceBody, VariableBody, View, ViewBody } from "../../wire/index.ts";
import type { ReadingColumns } from "./columns.ts";
import type { FilterNode } from "./filter.ts";
import type { OperationStore, Outcome } from "./operations.ts";
import type { HeadAsk, HeadPage } from "./point-selection.ts";

// ───────────────────────────────────────────────────────────── identity

export interface ClientRecord {
  readonly id: string;
  readonly name: string | null;
  /** PHC string. */
  readonly secretHash: string;
  /** Null: every scope. */
  readonly scopes: readonly string[] | null;
}

export interface UserRecord {
  readonly id: number;
  readonly username: string;
  /** PHC string. */
  readonly passwordHash: string;
  readonly roles: readonly string[];
  /** The first is the default until one is touched. */
  readonly accounts: readonly number[];
  readonly lastAccountId: number | null;
}

export interface SigningKey {
  readonly kid: string;
  /** JSON Web Key with its private part, as JSON. */
  readonly privateJwk: string;
  readonly createdMs: number;
}

export interface IdentityStore {
  putAccount(account: { readonly id: number; readonly name: string }): Promise<void>;
  putClient(client: ClientRecord): Promise<void>;
  putUser(user: Omit<UserRecord, "id" | "lastAccountId">): Promise<void>;
  /** Disables clients and users that are not named; their records stay. */
  keepOnly(clientIds: readonly string[], usernames: readonly string[]): Promise<void>;
  account(id: number): Promise<{ readonly id: number; readonly name: string } | null>;
  /** Enabled ones only, as the two below. */
  client(id: string): Promise<ClientRecord | null>;
  userByName(username: string): Promise<UserRecord | null>;
  userById(id: number): Promise<UserRecord | null>;
  /** Makes an account the user's default: the last one touched. */
  touchAccount(userId: number, accountId: number): Promise<void>;
  /** Newest first. */
  signingKeys(): Promise<readonly SigningKey[]>;
  addSigningKey(key: SigningKey): Promise<void>;
  removeSigningKeys(kids: readonly string[]): Promise<void>;
}

// ───────────────────────────────────────────────────────────── structure

export interface StoredSite extends Required<Nullable<SiteBody>> {
  readonly id: number;
}
export interface StoredSource extends Required<Nullable<SourceBody>> {
  readonly id: number;
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
export interface SitesFilter {
  readonly ids?: readonly number[] | undefined;
  /** All of them hold. */
  readonly where?: readonly FilterNode[] | undefined;
}
export interface SourcesFilter {
  readonly ids?: readonly number[] | undefined;
  readonly siteIds?: readonly number[] | undefined;
  readonly states?: readonly string[] | undefined;
  readonly eans?: readonly string[] | undefined;
  readonly serialNumbers?: readonly string[] | undefined;
  readonly meterNumbers?: readonly string[] | undefined;
  readonly names?: readonly string[] | undefined;
  readonly tags?: readonly string[] | undefined;
  /** All of them hold. */
  readonly where?: readonly FilterNode[] | undefined;
}
export interface VariablesFilter {
  readonly ids?: readonly number[] | undefined;
  readonly sourceIds?: readonly number[] | undefined;
  readonly variableTypeIds?: readonly number[] | undefined;
  readonly tags?: readonly string[] | undefined;
}

export interface Page {
  readonly offset: number;
  /** Null: to the end. */
  readonly limit: number | null;
}
export interface Listing<Row> {
  readonly rows: readonly Row[];
  /** Rows without paging. */
  readonly total: number;
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
  /** Nothing was removed. */
  | { readonly kind: "holds-points"; readonly variables: number; readonly points: number };

export interface StructureStore {
  createSite(accountId: number, body: SiteBody): Promise<number>;
  /** Null when the site is not one of the account. */
  createSource(accountId: number, body: SourceBody): Promise<StoredSource | null>;
  /** Null when the source is not one of the account. */
  createVariable(accountId: number, body: VariableBody): Promise<number | null>;
  /**
   * Reads, changes and writes in one transaction; `change` may throw, and then nothing is written. `missing`: no such
   * entity in the account; `no-parent`: the site or source that it was moved to is not one of the account.
   */
  changeSite(
    accountId: number,
    id: number,
    change: (current: StoredSite) => SiteBody,
  ): Promise<StoredSite | "missing">;
  changeSource(
    accountId: number,
    id: number,
    change: (current: StoredSource) => SourceBody,
  ): Promise<StoredSource | "missing" | "no-parent">;
  /** `points` of the variable so far, so that a change can depend on them. */
  changeVariable(
    accountId: number,
    id: number,
    change: (current: StoredVariable, points: number) => VariableBody,
  ): Promise<StoredVariable | "missing" | "no-parent">;
  /** Removes an entity with everything below it. With points below, only when told to. */
  remove(accountId: number, entity: StructureEntity, id: number, withPoints: boolean): Promise<Removal>;
  /** Ordered by id, as the two below. */
  sites(accountId: number, filter: SitesFilter, page: Page): Promise<Listing<StoredSite>>;
  sources(accountId: number, filter: SourcesFilter, page: Page): Promise<Listing<StoredSource>>;
  variables(accountId: number, filter: VariablesFilter, page: Page): Promise<Listing<StoredVariable>>;
}

export interface ViewsFilter {
  readonly ids?: readonly number[] | undefined;
  readonly entityTypes?: readonly View["entityType"][] | undefined;
}

export interface ViewStore {
  create(accountId: number, body: ViewBody): Promise<number>;
  /** Ordered by id. */
  list(accountId: number, filter: ViewsFilter, page: Page): Promise<Listing<View>>;
  /** False when the account has no such view. */
  remove(accountId: number, id: number): Promise<boolean>;
}

// ───────────────────────────────────────────────────────────── points

/**
 * What reading and writing the points of a variable needs to know of it. Zones are ids as configured, Windows or IANA.
 */
export interface VariableFacts {
  readonly id: number;
  readonly accountId: number;
  readonly sourceId: number;
  readonly unitId: number;
  readonly isVersioned: boolean;
  /** Versions kept of each point; null: as the account has it. */
  readonly versionsMax: number | null;
  readonly sourceZoneId: string;
  readonly siteZoneId: string;
}

export type PointView =
  | { readonly kind: "latest" }
  | { readonly kind: "tag"; readonly tag: string }
  | { readonly kind: "asOf"; readonly versionUs: number }
  | { readonly kind: "all" };

export interface PointPage {
  readonly order: "ASC" | "DESC";
  /** Counted in points, also where each has several versions. */
  readonly page: Page;
  readonly view: PointView;
  /** False: dates and values alone are asked for, and the other fields of rows may be null. */
  readonly labels?: boolean;
}

export interface PointRange extends PointPage {
  /** Milliseconds since 1970 in UTC, included; null: open. */
  readonly fromMs: number | null;
  /** Included; null: open. */
  readonly lastMs: number | null;
}

export interface PointRow {
  readonly atMs: number;
  readonly value: number;
  readonly version: string | null;
  /** Microseconds since 1970; null on variables without versions. */
  readonly versionUs: number | null;
  readonly tags: Readonly<Record<string, string>> | null;
  readonly batchTags: Readonly<Record<string, string>> | null;
}

export interface Holding {
  readonly points: number;
  /** Versions of these points, the latest included; 0 on variables without versions. */
  readonly versions: number;
  /** Null without points. */
  readonly firstMs: number | null;
  readonly lastMs: number | null;
}

export interface PointStore {
  /** Variables of the account that a data query selects, by id; null for every account. */
  select(accountId: number | null, filter: VariablesFilter): Promise<readonly VariableFacts[]>;
  /** Chunks in order of date (versions of one point oldest first); memory holds one chunk. */
  read(variable: VariableFacts, range: PointRange): AsyncIterable<readonly PointRow[]>;
  /** The same page of each of these different variables, in their order; memory holds them all. */
  heads(asks: readonly HeadAsk[], page: HeadPage): Promise<readonly (readonly PointRow[])[]>;
  /** Points in the range, paging left aside. */
  count(variable: VariableFacts, range: PointRange): Promise<number>;
  /** What `remove` would remove. */
  holding(variableId: number, fromMs: number | null, toMs: number | null): Promise<Holding>;
  /**
   * Removes points with all their versions, from `fromMs` (included) to `toMs` (excluded), in transactions of bounded
   * size.
   */
  remove(variableId: number, fromMs: number | null, toMs: number | null): Promise<Holding>;
}

// ───────────────────────────────────────────────────────────── operations: `operations.ts`

export type * from "./operations.ts";

/** Of accounts with a quota; days are written `2026-03-01`, in UTC. */
export interface UsageStore {
  /** Adds to the day what stays within the limits (null: none), otherwise nothing; in one step. */
  take(
    accountId: number,
    day: string,
    amount: { readonly points: number; readonly bytes: number },
    most: { readonly points: number | null; readonly bytes: number | null },
  ): Promise<boolean>;
  give(
    accountId: number,
    day: string,
    amount: { readonly points: number; readonly bytes: number },
  ): Promise<void>;
  purge(beforeDay: string): Promise<void>;
}

export interface HubStore {
  readonly identity: IdentityStore;
  readonly structure: StructureStore;
  readonly views: ViewStore;
  readonly points: PointStore;
  readonly operations: OperationStore;
  readonly usage: UsageStore;
  close(): Promise<void>;
}

// ───────────────────────────────────────────────────────────── ingestion (its own thread and connection)

export interface QueuedOperation {
  readonly seq: number;
  readonly accountId: number;
  readonly operationId: string;
  readonly timeoutSec: number;
  readonly received: number;
  /** As it came, or packed (`hub/push/body-compression.ts`). */
  readonly body: Uint8Array;
}

/** How an element names its variable: one column of the source (or the variable itself), and a selector. */
export interface TargetQuery {
  readonly by: "variableId" | "sourceId" | "sourceSerialNumber" | "sourceEan" | "sourceName" | "meterNumber";
  readonly value: string | number;
  readonly mappingConfig: string | undefined;
  readonly variableTypeId: number | undefined;
}

export interface IngestTransaction {
  /**
   * The first in order of source and variable that matches, within the account. Answers are remembered until the
   * structure changes.
   */
  findVariable(accountId: number, target: TargetQuery): Promise<VariableFacts | null>;
  /**
   * Stores readings as though one after another; returns for each operation of the group how many of its readings
   * replaced an earlier value or version. May be called several times; nothing of `readings` is kept.
   */
  write(readings: ReadingColumns): Promise<readonly number[]>;
}

/** What one group of operations may hold, one operation at least. */
export interface GroupLimits {
  readonly readings: number;
  readonly bytes: number;
}

export interface IngestStore {
  /**
   * How often to look without being told that something waits, since other nodes fill the queue too; null: nobody else
   * does.
   */
  readonly pollMs: number | null;
  /** The first waiting operations after `seq`, in order; none: nothing waits. */
  next(afterSeq: number, limits: GroupLimits): Promise<readonly QueuedOperation[]>;
  /**
   * Applies a group and records its outcomes in one transaction: all of it or nothing. Operations that were applied
   * before are left out of what `work` gets. `work` returns their outcomes in that order, and may be called again from
   * the start when the structure changed meanwhile. The same transaction makes them `done`, or `failed`: then their
   * bodies are kept.
   */
  apply(
    operations: readonly QueuedOperation[],
    work: (
      transaction: IngestTransaction,
      operations: readonly QueuedOperation[],
    ) => Promise<readonly Outcome[]>,
    state?: "done" | "failed",
  ): Promise<void>;
  close(): Promise<void>;
}
