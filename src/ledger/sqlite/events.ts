/** The lines of a file's life. Each is written in the transaction of what it tells. */
import type { LedgerEvent } from "../../model.ts";
import type { Ledger } from "../ledger.ts";
import { type EventRow, toEvent } from "./rows.ts";
import { row, rows, type Store } from "./store.ts";

/** Inside a write. */
export function appendEvent(store: Store, event: Omit<LedgerEvent, "at">): void {
  const at = store.now();
  store
    .sql("INSERT INTO events (at, arrival_id, run_id, operation_id, what, detail) VALUES (?, ?, ?, ?, ?, ?)")
    .run(at, event.arrivalId, event.runId, event.operationId, event.what, event.detail);
  store.announce({ ...event, at });
}

/** Like `appendEvent`, but a repetition of the arrival's last event replaces it: a file that grows for hours is one line. Inside a write. */
export function appendOrRenewEvent(store: Store, event: Omit<LedgerEvent, "at">): void {
  const last = row<{ id: number; what: string }>(
    store.sql("SELECT id, what FROM events WHERE arrival_id = ? ORDER BY id DESC LIMIT 1"),
    event.arrivalId,
  );
  if (last?.what === event.what)
    store.sql("UPDATE events SET at = ?, detail = ? WHERE id = ?").run(store.now(), event.detail, last.id);
  else appendEvent(store, event);
}

export function eventMethods(store: Store): Pick<Ledger, "events" | "addEvent"> {
  return {
    events: async (arrivalId) => eventsOf(store, arrivalId),
    addEvent: (event) => store.write("event.added", () => appendEvent(store, event)),
  };
}

export function eventsOf(store: Store, arrivalId: number): readonly LedgerEvent[] {
  return rows<EventRow>(store.sql("SELECT * FROM events WHERE arrival_id = ? ORDER BY id"), arrivalId).map(
    toEvent,
  );
}
