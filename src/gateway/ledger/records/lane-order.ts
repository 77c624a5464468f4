/**
 * The transitions at which the order of a lane is decided (invariant 7). Each queries the runs in the way
 * once more, in the transaction that changes the state: they may have changed while the guard queried the
 * service.
 */

import { continuationRunId } from "#core/run-id.ts";
import type { Reason, Run } from "../../model.ts";
import type { BegunDelivery, HeldReplacement, Ledger, Replaced } from "../ledger.ts";
import { batchesOf } from "./batches.ts";
import { blockedBy, inTheWayOf } from "./lanes.ts";
import { openRun } from "./new-run.ts";
import { laterDeliverers } from "./operator.ts";
import { advance, missingRun, moveRun, mustFindRun } from "./runs.ts";
import type { Steps, Store } from "./store.ts";

export function orderMethods(store: Store): Pick<Ledger, "beginDelivery" | "resumeHeld" | "replaceHeld"> {
  return {
    beginDelivery: (id, detail) => store.write("run.delivering", () => beginDelivery(store, id, detail)),
    resumeHeld: (id, to, seen, detail) => store.write(`run.${to}`, () => resumeHeld(store, id, to, seen, detail)),
    replaceHeld: (id, reason, next) =>
      store.write(["run.cancelled", "run.claimed"], () => replaceHeld(store, id, reason, next)),
  };
}

function* beginDelivery(store: Store, id: string, detail: string): Steps<BegunDelivery> {
  const found = yield* inTheWayOf(store, id);
  if (found === null) throw missingRun(id);
  if (found.before !== null) return { run: null, blockedBy: found.before };
  yield* store.assertRun(id);
  const run = yield* advance(store, found.run, "mapped", "delivering", { detail });
  return { run, blockedBy: null, batches: yield* batchesOf(id) };
}

function* resumeHeld(
  store: Store,
  id: string,
  to: "mapped" | "delivering",
  seen: readonly string[] | null,
  detail: string,
): Steps<Run | null> {
  const run = yield* mustFindRun(id);
  // A run that resumes as `mapped` is checked again before its delivery.
  if (to === "delivering" && (yield* blockedBy(store, run)) !== null) return null;
  const [delivering] = yield* laterDeliverers(store, run, 1, ["delivering"]);
  if (delivering !== undefined) return null;
  if (seen !== null) {
    const later = yield* laterDeliverers(store, run, seen.length + 1);
    if (later.some(({ id: other }) => !seen.includes(other))) return null;
  }
  return yield* moveRun(store, id, "held", to, { reason: null, detail });
}

function* replaceHeld(store: Store, id: string, reason: Reason, next: HeldReplacement): Steps<Replaced> {
  const after = next.replay.continues === undefined ? yield* store.nextRunId() : continuationRunId(id);
  const message = `${reason.message}; its file is run ${after} now`;
  const held = yield* moveRun(store, id, "held", "cancelled", { reason: { ...reason, message }, detail: message });
  return { held, run: yield* openRun(store, { arrivalId: held.arrivalId, ...next }, after) };
}
