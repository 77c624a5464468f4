/** The lines of a file's life. Each is written in the transaction of what it tells. */
import type { LedgerEvent } from "../../model.ts";
import type { Ledger } from "../ledger.ts";
import { type EventRow, toEvent } from "./rows.ts";
import { type EventFile, execute, row, rows, type Steps, type Store } from "./store.ts";

/** Inside a write. `file`: what it is about, when that is known already. */
export function* appendEvent(store: Store, event: Omit<LedgerEvent, "at">, file?: EventFile): Steps<void> {
  const at = store.now();
  yield* execute(
    "INSERT INTO events (at, arrival_id, run_id, operation_id, what, detail) VALUES (?, ?, ?, ?, ?, ?)",
    at,
    event.arrivalId,
    event.runId,
    event.operationId,
    event.what,
    event.detail,
  );
  store.announce({ ...event, at }, file);
}

/** Like `appendEvent`, but a repetition of the arrival's last event replaces it: a file that grows for hours is one line. Inside a write. */
export function* appendOrRenewEvent(store: Store, event: Omit<LedgerEvent, "at">): Steps<void> {
  const last = yield* row<{ id: number; what: string }>(
    "SELECT id, what FROM events WHERE arrival_id = ? ORDER BY id DESC LIMIT 1",
    event.arrivalId,
  );
  if (last?.what === event.what)
    yield* execute("UPDATE events SET at = ?, detail = ? WHERE id = ?", store.now(), event.detail, last.id);
  else yield* appendEvent(store, event);
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
