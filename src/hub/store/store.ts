/**
 * The contract of the hub's store. Every method is atomic; all may run concurrently on the event loop and
 * none blocks it for long. They throw the database's errors (the request is then answered by 500 and logged),
 * and `ConfigError` only when opening. The store separates accounts, whose ids are parameters everywhere.
 */
import { type View, type ViewBody, view } from "#wire/index.ts";
import type { AlarmStores } from "./alarms/stores.ts";
import type { Piece } from "./blocks/pieces.ts";
import type { CalculatedStore } from "./calculated/calculated.ts";
import type { CalculationsStore } from "./calculated/calculations.ts";
import type { ClaimStore } from "./calculated/claims.ts";
import { type Database, insert, listed, type Row, type Steps } from "./database.ts";
import type { EventDeliveryStore } from "./events/deliveries.ts";
import type { EventStore } from "./events/events.ts";
import type { SubscriptionStore } from "./events/subscriptions.ts";
import type { FileTriggerStore } from "./file-triggers.ts";
import type { FormStore } from "./forms.ts";
import type { GroupStore } from "./groups.ts";
import type { IdentityStore } from "./identity.ts";
import type { InvitationStore } from "./mail/invitations.ts";
import type { LinkStore } from "./mail/links.ts";
import type { MailStore } from "./mail/mails.ts";
import type { MasterDataReports } from "./master-data.ts";
import type { OperationStore } from "./operations.ts";
import { requireRoom } from "./owned.ts";
import type { PeopleStore } from "./people/people.ts";
import type { RefreshTokenStore } from "./people/refresh-tokens.ts";
import type { HeadAsk, HeadPage } from "./point-selection.ts";
import type { MeasuredStore } from "./quality/variables.ts";
import type {
  Holding,
  Listing,
  Page,
  PointRange,
  PointRow,
  SampleRange,
  VariableFacts,
  VariablesFilter,
} from "./records.ts";
import type { RollupStore } from "./rollups/rollups.ts";
import type { SearchStore } from "./search/search.ts";
import type { SessionStore } from "./sessions/sessions.ts";
import type { ExternalIdentityStore } from "./sign-on/external-identities.ts";
import type { SliceStore } from "./slices.ts";
import type { SourceZoneStore } from "./source-zones.ts";
import type { OriginStore } from "./stored/origins.ts";
import type { FileStore } from "./stored-files.ts";
import type { StructureStore } from "./structure-changes.ts";
import { Where } from "./where.ts";

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

// ───────────────────────────────────────────────────────────── ingestion (its own thread and connection): `ingest.ts`

// ───────────────────────────────────────────────────────────── stored files: `stored-files.ts`

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

const VIEWS = { columns: "*", from: "view", order: "id" };
const within = (column: string) => `coalesce(${column} + CAST(? AS BIGINT) <= CAST(? AS BIGINT), TRUE)`;
const FIRST = "INSERT INTO usage (account_id, day, points, bytes) VALUES (?, ?, 0, 0) ON CONFLICT DO NOTHING";
const TAKE = `UPDATE usage SET points = points + ?, bytes = bytes + ?
  WHERE account_id = ? AND day = ? AND ${within("points")} AND ${within("bytes")}`;
const GIVE = "UPDATE usage SET points = points - ?, bytes = bytes - ? WHERE account_id = ? AND day = ?";

// The pushed amounts of accounts with a quota, by day.

/** For accounts with a quota; days are written `2026-03-01`, in UTC. */
interface UsageStore {
  /** Atomically adds the amount to the day when it stays within the limits (null: none), or nothing. */
  take(
    accountId: number,
    day: string,
    amount: { readonly points: number; readonly bytes: number },
    most: { readonly points: number | null; readonly bytes: number | null },
  ): Promise<boolean>;
  give(accountId: number, day: string, amount: { readonly points: number; readonly bytes: number }): Promise<void>;
  purge(beforeDay: string): Promise<void>;
}

export function createUsageStore(database: Database): UsageStore {
  return {
    async take(accountId, day, { points, bytes }, most) {
      // The row first, so that the check of the limits sees the amounts of concurrent pushes.
      await database.run(FIRST, accountId, day);
      const limits = [points, most.points, bytes, most.bytes] as const;
      return (await database.run(TAKE, points, bytes, accountId, day, ...limits)) > 0;
    },
    async give(accountId, day, { points, bytes }) {
      await database.run(GIVE, points, bytes, accountId, day);
    },
    async purge(beforeDay) {
      await database.run("DELETE FROM usage WHERE day < ?", beforeDay);
    },
  };
}

// Named filters of an account.

interface ViewsFilter {
  readonly ids?: readonly number[] | undefined;
  readonly entityTypes?: readonly View["entityType"][] | undefined;
}

export interface ViewStore {
  /** Throws `AccountFull` where the account has `most`. */
  create(accountId: number, body: ViewBody, most: number): Promise<number>;
  /** Ordered by id. */
  list(accountId: number, filter: ViewsFilter, page: Page): Promise<Listing<View>>;
  /** False when the account has no such view. */
  remove(accountId: number, id: number): Promise<boolean>;
}

export function createViewStore(database: Database): ViewStore {
  const { dialect } = database;
  return {
    create: (accountId, { name, entityType, customFilter }, most) =>
      database.write(function* (): Steps<number> {
        yield* requireRoom(dialect, accountId, "view", most);
        const columns = { account_id: accountId, name, entity_type: entityType, custom_filter: customFilter };
        return yield* insert("view", columns);
      }),
    list(accountId, filter, page) {
      const where = new Where(dialect)
        .equal("account_id", accountId)
        .among("id", filter.ids)
        .among("entity_type", filter.entityTypes);
      return listed(database, VIEWS, where, page, viewOf);
    },
    async remove(accountId, id) {
      const sql = "DELETE FROM view WHERE id = ? AND account_id = ?";
      return (await database.run(sql, id, accountId)) > 0;
    },
  };
}

function viewOf(row: Row): View {
  const { id, name, entity_type: entityType, custom_filter: customFilter } = row;
  return view.parse({ id, name, entityType, customFilter });
}

export interface MailStores {
  readonly mails: MailStore;
  readonly links: LinkStore;
  readonly invitations: InvitationStore;
}
