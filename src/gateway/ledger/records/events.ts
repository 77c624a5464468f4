/** The events of a file. Each is written in the transaction of the change it describes. */

import { change, execute, executeEach, row, rows, type Steps, type Value } from "#core/sql/statements.ts";
import type { LedgerEvent } from "../../model.ts";
import type { EventPart } from "../file-list.ts";
import type { Ledger } from "../ledger.ts";
import { type EventRow, toEvent } from "./rows.ts";
import type { EventFile, Store } from "./store.ts";

type NewEvent = Omit<LedgerEvent, "at">;

const INSERT = "INSERT INTO events (at, arrival_id, run_id, operation_id, what, detail) VALUES (?, ?, ?, ?, ?, ?)";
const TYPES = ["text", "bigint", "text", "text", "text", "text"] as const;

/** For use inside a write. `file`: the file of the event, when the caller knows it already. */
export function* appendEvent(store: Store, event: NewEvent, file?: EventFile): Steps<void> {
  const at = store.now();
  yield* execute(INSERT, ...valuesOf(event, at));
  store.announce({ ...event, at }, file);
}

/** Appends several events of one file, in their order. For use inside a write. */
export function* appendEvents(store: Store, events: readonly NewEvent[], file: EventFile): Steps<void> {
  const at = store.now();
  const tuples = events.map((event) => valuesOf(event, at));
  yield* executeEach(INSERT, TYPES, tuples);
  for (const event of events) store.announce({ ...event, at }, file);
}

function valuesOf(event: NewEvent, at: string): readonly Value[] {
  return [at, event.arrivalId, event.runId, event.operationId, event.what, event.detail];
}

/**
 * Like `appendEvent`, but a repetition of the arrival's last event replaces it: a file that grows for hours
 * has one event. For use inside a write.
 */
export function* appendOrRenewEvent(store: Store, event: NewEvent): Steps<void> {
  const last = yield* row<{ id: number; what: string }>(
    "SELECT id, what FROM events WHERE arrival_id = ? ORDER BY id DESC LIMIT 1",
    event.arrivalId,
  );
  if (last?.what === event.what)
    yield* execute("UPDATE events SET at = ?, detail = ? WHERE id = ?", store.now(), event.detail, last.id);
  else yield* appendEvent(store, event);
}

/**
 * Marks an arrival as no longer at its drop. One that has gone already stays unchanged. For use inside a
 * write.
 */
export function* leaveDrop(store: Store, arrivalId: number, what: string, detail: string): Steps<void> {
  const left = yield* change(
    "UPDATE arrivals SET gone_at = ? WHERE id = ? AND gone_at IS NULL",
    store.now(),
    arrivalId,
  );
  if (left > 0) yield* appendEvent(store, { arrivalId, runId: null, operationId: null, what, detail });
}

export function eventMethods(store: Store): Pick<Ledger, "events" | "addEvent"> {
  return {
    events: (arrivalId) => store.look(() => eventsOf(arrivalId)),
    addEvent: (event) => store.write("event.added", () => appendEvent(store, event)),
  };
}

export function* eventsOf(arrivalId: number): Steps<readonly LedgerEvent[]> {
  const found = yield* rows<EventRow>("SELECT * FROM events WHERE arrival_id = ? ORDER BY id", arrivalId);
  return found.map(toEvent);
}

type PlacedRow = EventRow & { readonly id: number; readonly drop_name: string; readonly path: string };

/** Of all files, in the order of their numbers. */
export function* eventsAfter(after: number | null, limit: number): Steps<EventPart> {
  if (after === null) {
    const newest = yield* row<{ id: number | null }>("SELECT max(id) AS id FROM events");
    return { events: [], last: newest?.id ?? 0 };
  }
  const found = yield* rows<PlacedRow>(
    "SELECT events.*, arrivals.drop_name, arrivals.path FROM events JOIN arrivals ON arrivals.id = events.arrival_id " +
      "WHERE events.id > ? ORDER BY events.id DESC LIMIT ?",
    after,
    limit,
  );
  const events = found.toReversed().map((cells) => ({ ...toEvent(cells), drop: cells.drop_name, path: cells.path }));
  return { events, last: found[0]?.id ?? after };
}
