/** Deliveries to subscriptions: one hub at a time delivers a subscription, which it has taken for a while. */
import { change, type Database, type Row, row, rows, type Steps } from "../database.ts";
import { SUBSCRIPTIONS, type SubscriptionRecord, subscriptionOf } from "./subscriptions.ts";

/** Receivers that have used their share of the deliveries. */
export interface BusyReceivers {
  readonly hosts: readonly { readonly accountId: number; readonly host: string }[];
  readonly accounts: readonly number[];
}

/** A hub's hold of a subscription; what it reports without that has no effect. */
export interface Hold {
  readonly id: number;
  readonly by: string;
}

export interface DeliveryCounts {
  /** Events that active webhooks have not got yet, whether they fit the filters or not. */
  readonly undelivered: number;
  readonly paused: number;
}

export interface EventDeliveryStore {
  /** The subscription that waits longest for a delivery, for this hub alone until `untilMs`; null: none is due. */
  take(by: string, nowMs: number, untilMs: number, busy: BusyReceivers): Promise<SubscriptionRecord | null>;
  /** The receiver accepted all events up to `position` that fit the filter. */
  delivered(hold: Hold, position: number, nowMs: number): Promise<void>;
  /** No event up to `position` fits the filter. */
  passed(hold: Hold, position: number): Promise<void>;
  /** Events up to this one are no longer kept. */
  lost(hold: Hold, lostTo: number): Promise<void>;
  failed(
    hold: Hold,
    attempt: { readonly failure: string; readonly nowMs: number; readonly nextMs: number; readonly isPaused: boolean },
  ): Promise<void>;
  /** Ends every hold of this hub; of all hubs where `by` is null. */
  release(by: string | null): Promise<void>;
  counts(): Promise<DeliveryCounts>;
  /** Active subscriptions of all accounts that are paused, the longest first. */
  paused(): Promise<readonly SubscriptionRecord[]>;
}

const DUE = `SELECT ${SUBSCRIPTIONS.columns} FROM ${SUBSCRIPTIONS.from}
  WHERE event_subscription.channel = 'webhook' AND event_subscription.active AND event_subscription.paused_ms IS NULL
    AND event_subscription.position < event_counter.last AND event_subscription.next_ms <= ?
    AND event_subscription.taken_until_ms <= ?`;
const FREE = "taken_by = NULL, taken_until_ms = 0";
const HELD = "WHERE id = ? AND taken_by = ?";

export function createEventDeliveryStore(database: Database): EventDeliveryStore {
  const { among } = database.dialect;
  const set = async (columns: string, { id, by }: Hold, ...values: (string | number | null)[]) => {
    await database.run(`UPDATE event_subscription SET ${columns}, ${FREE} ${HELD}`, ...values, id, by);
  };
  return {
    async take(by, nowMs, untilMs, { hosts, accounts }) {
      const account = "event_subscription.account_id";
      const sql = `${DUE} AND NOT (${among(account)}) AND NOT (${among(`${account} || ' ' || event_subscription.host`)})
        ORDER BY event_subscription.next_ms, event_subscription.id LIMIT 1`;
      const full = hosts.map(({ accountId, host }) => `${accountId} ${host}`);
      for (;;) {
        const found = await database.ask(() => row(sql, nowMs, nowMs, accounts, full));
        if (found === undefined) return null;
        const taken = await database.write(() => takeRow(found, by, nowMs, untilMs));
        if (taken > 0) return subscriptionOf(found);
      }
    },
    delivered: (hold, position, nowMs) =>
      set(
        "position = ?, delivered_ms = ?, next_ms = ?, attempts = 0, failing_ms = NULL, failure = NULL",
        hold,
        ...[position, nowMs, nowMs],
      ),
    passed: (hold, position) => set("position = ?", hold, position),
    lost: (hold, lostTo) => set("position = ?, lost_to = ?", hold, lostTo, lostTo),
    failed: (hold, { failure, nowMs, nextMs, isPaused }) =>
      set(
        `attempts = attempts + 1, failing_ms = coalesce(failing_ms, ?), failure = ?, next_ms = ?,
          paused_ms = CAST(? AS BIGINT)`,
        hold,
        ...[nowMs, failure, nextMs, isPaused ? nowMs : null],
      ),
    async release(by) {
      if (by === null) await database.run(`UPDATE event_subscription SET ${FREE} WHERE taken_by IS NOT NULL`);
      else await database.run(`UPDATE event_subscription SET ${FREE} WHERE taken_by = ?`, by);
    },
    counts: () =>
      database.ask(function* (): Steps<DeliveryCounts> {
        const sql = `SELECT sum(event_counter.last - position) AS behind, count(paused_ms) AS paused
          FROM ${SUBSCRIPTIONS.from} WHERE channel = 'webhook' AND active`;
        const counted = yield* row(sql);
        return { undelivered: Number(counted?.["behind"] ?? 0), paused: Number(counted?.["paused"] ?? 0) };
      }),
    paused: () =>
      database.ask(function* () {
        const sql = `SELECT ${SUBSCRIPTIONS.columns} FROM ${SUBSCRIPTIONS.from}
          WHERE event_subscription.channel = 'webhook' AND event_subscription.active
            AND event_subscription.paused_ms IS NOT NULL ORDER BY event_subscription.paused_ms, event_subscription.id`;
        return (yield* rows(sql)).map(subscriptionOf);
      }),
  };
}

/** Zero when another hub took it, or a person changed it, since it was found. */
function takeRow(found: Row, by: string, nowMs: number, untilMs: number): Steps<number> {
  const sql = `UPDATE event_subscription SET taken_by = ?, taken_until_ms = ?
    WHERE id = ? AND position = ? AND taken_until_ms <= ? AND active AND paused_ms IS NULL`;
  return change(sql, by, untilMs, Number(found["id"]), Number(found["position"]), nowMs);
}
