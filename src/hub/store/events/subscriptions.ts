/** Subscriptions of accounts to their events, as people define them. Each change is in the audit trail. */
import type { AuditAction, EventFilterBody, EventType, Subscription } from "#wire/index.ts";
import { change, type Database, insert, type Row, row, type Steps, update } from "../database.ts";
import { type Actor, recordAudit } from "../people/audit.ts";
import type { Listing, Page } from "../records.ts";
import { noteChange } from "../source-zones.ts";
import { jsonOf, number, text } from "../structure-rows.ts";
import { Where } from "../where.ts";

export interface SubscriptionFields {
  readonly name: string;
  readonly types: readonly EventType[];
  readonly filter: EventFilterBody;
  readonly channel: Subscription["channel"];
  /** Of webhooks. */
  readonly url: string | null;
  readonly secret: string | null;
  readonly batch: number;
  readonly active: boolean;
}

export interface SubscriptionRecord extends SubscriptionFields {
  readonly id: number;
  readonly accountId: number;
  /** Of the URL, with its port; empty without one. */
  readonly host: string;
  readonly createdMs: number;
  readonly createdBy: string;
  /** The last event that was delivered, or did not fit the filter. */
  readonly position: number;
  /** The newest event of the account. */
  readonly last: number;
  readonly lostTo: number | null;
  readonly deliveredMs: number | null;
  /** Failed attempts since the last success. */
  readonly attempts: number;
  readonly failingMs: number | null;
  /** In the words that users may read. */
  readonly failure: string | null;
  readonly nextMs: number;
  readonly pausedMs: number | null;
}

export interface SubscriptionEdit {
  readonly actor: Actor;
  readonly atMs: number;
}

export interface SubscriptionStore {
  /** It begins with the next event. `full`: the account has `most` already. */
  create(
    accountId: number,
    fields: SubscriptionFields,
    edit: SubscriptionEdit,
    most: number,
  ): Promise<SubscriptionRecord | "full">;
  /** Ordered by id. */
  list(
    accountId: number,
    filter: { readonly ids?: readonly number[] },
    page: Page,
  ): Promise<Listing<SubscriptionRecord>>;
  /** `changed` may throw, and then nothing is written. One that was inactive begins with the next event. */
  change(
    accountId: number,
    id: number,
    changed: (current: SubscriptionRecord) => SubscriptionFields,
    edit: SubscriptionEdit,
  ): Promise<SubscriptionRecord | "missing">;
  /** A paused one continues where it stopped, a failing one is tried again at once. */
  resume(accountId: number, id: number, edit: SubscriptionEdit): Promise<SubscriptionRecord | "missing">;
  /** False when the account has no such subscription. */
  remove(accountId: number, id: number, edit: SubscriptionEdit): Promise<boolean>;
}

export const SUBSCRIPTIONS = {
  columns: "event_subscription.*, coalesce(event_counter.last, 0) AS last",
  from: "event_subscription LEFT JOIN event_counter ON event_counter.account_id = event_subscription.account_id",
  order: "event_subscription.id",
};

// `noteChange`: writers of points remember whether an account wants events about outcomes.

/** A delivery that runs at this moment is not recorded, and is made again. */
const AFRESH = { attempts: 0, failing_ms: null, failure: null, next_ms: 0, taken_by: null, taken_until_ms: 0 };

export function createSubscriptionStore(database: Database): SubscriptionStore {
  const { forUpdate } = database.dialect;
  const one = (accountId: number, id: number, suffix = ""): Steps<Row | undefined> => {
    const { columns, from } = SUBSCRIPTIONS;
    const sql = `SELECT ${columns} FROM ${from} WHERE event_subscription.id = ? AND event_subscription.account_id = ?`;
    return row(sql + suffix, id, accountId);
  };
  const changing = <T>(
    accountId: number,
    id: number,
    work: (current: SubscriptionRecord) => Steps<T>,
  ): Promise<T | "missing"> =>
    database.write(function* (): Steps<T | "missing"> {
      const found = yield* one(accountId, id, forUpdate("event_subscription"));
      return found === undefined ? "missing" : yield* work(subscriptionOf(found));
    });
  function* written(accountId: number, id: number): Steps<SubscriptionRecord> {
    const found = yield* one(accountId, id);
    if (found === undefined) throw new Error(`the subscription ${id} is gone`);
    return subscriptionOf(found);
  }
  return {
    create: (accountId, fields, edit, most) =>
      database.write(function* (): Steps<SubscriptionRecord | "full"> {
        const counted = yield* row("SELECT count(*) AS held FROM event_subscription WHERE account_id = ?", accountId);
        if (Number(counted?.["held"]) >= most) return "full";
        const id = yield* insert("event_subscription", {
          ...{ account_id: accountId, ...columnsOf(fields), position: yield* newest(accountId) },
          ...{ created_ms: edit.atMs, created_by: edit.actor.name },
        });
        yield* noteChange(accountId);
        yield* recorded(accountId, "subscription.created", { id, ...fields }, edit);
        return yield* written(accountId, id);
      }),
    list: (accountId, { ids }, page) =>
      database.ask(function* (): Steps<Listing<SubscriptionRecord>> {
        const where = new Where(database.dialect)
          .equal("event_subscription.account_id", accountId)
          .among("event_subscription.id", ids);
        const found = yield* database.dialect.page(SUBSCRIPTIONS, where, page);
        return { rows: found.rows.map(subscriptionOf), total: found.total };
      }),
    change: (accountId, id, changed, edit) =>
      changing(accountId, id, function* (current): Steps<SubscriptionRecord> {
        const fields = changed(current);
        const isNew = fields.active && !current.active;
        const begun = isNew ? { position: yield* newest(accountId), paused_ms: null } : {};
        yield* update("event_subscription", id, { ...columnsOf(fields), ...AFRESH, ...begun });
        yield* noteChange(accountId);
        yield* recorded(accountId, "subscription.changed", { id, ...fields }, edit);
        return yield* written(accountId, id);
      }),
    resume: (accountId, id, edit) =>
      changing(accountId, id, function* (current): Steps<SubscriptionRecord> {
        yield* update("event_subscription", id, { ...AFRESH, paused_ms: null });
        yield* recorded(accountId, "subscription.resumed", current, edit);
        return yield* written(accountId, id);
      }),
    async remove(accountId, id, edit) {
      const removed = await changing(accountId, id, function* (current): Steps<true> {
        yield* change("DELETE FROM event_subscription WHERE id = ?", id);
        yield* noteChange(accountId);
        yield* recorded(accountId, "subscription.removed", current, edit);
        return true;
      });
      return removed === true;
    },
  };
}

function* newest(accountId: number): Steps<number> {
  return Number((yield* row("SELECT last FROM event_counter WHERE account_id = ?", accountId))?.["last"] ?? 0);
}

function recorded(
  accountId: number,
  action: AuditAction,
  { id, name, types, channel, url, active }: SubscriptionFields & { readonly id: number },
  { actor, atMs }: SubscriptionEdit,
): Steps<void> {
  // The rest of a URL may hold a secret.
  const host = url === null ? null : (URL.parse(url)?.host ?? null);
  const facts = { types, channel, host, active };
  return recordAudit(accountId, { atMs, actor, action, subject: { kind: "subscription", id, name }, facts });
}

function columnsOf(fields: SubscriptionFields) {
  const { name, types, filter, channel, url, secret, batch, active } = fields;
  return {
    ...{ name, types: jsonOf(types), filter: jsonOf(filter), channel, url, secret, batch, active },
    host: url === null ? null : (URL.parse(url)?.host ?? null),
    push_outcomes: types.includes("push.outcome"),
  };
}

const truth = (value: unknown): boolean => value === true || value === 1;

export function subscriptionOf(found: Row): SubscriptionRecord {
  return {
    id: Number(found["id"]),
    accountId: Number(found["account_id"]),
    name: String(found["name"]),
    types: JSON.parse(String(found["types"])),
    filter: JSON.parse(String(found["filter"])),
    channel: found["channel"] === "feed" ? "feed" : "webhook",
    url: text(found["url"]),
    host: text(found["host"]) ?? "",
    secret: text(found["secret"]),
    batch: Number(found["batch"]),
    active: truth(found["active"]),
    createdMs: Number(found["created_ms"]),
    createdBy: String(found["created_by"]),
    position: Number(found["position"]),
    last: Number(found["last"]),
    lostTo: number(found["lost_to"]),
    deliveredMs: number(found["delivered_ms"]),
    attempts: Number(found["attempts"]),
    failingMs: number(found["failing_ms"]),
    failure: text(found["failure"]),
    nextMs: Number(found["next_ms"]),
    pausedMs: number(found["paused_ms"]),
  };
}
