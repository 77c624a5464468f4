/** Runs that the guard holds before their first push: in health, with the reason. */
import type { Ledger } from "../ledger/ledger.ts";
import type { HealthPart } from "./state-of-work.ts";

const RUNS_MAX = 1_000;
/** Above this number, the bytes of held runs are reported as at least so many. */
const IDS_MAX = 20_000;

type HeldLedger = Pick<Ledger, "restingIn">;

/** None when no run is held. A held run resumes without the gateway's help, so the gateway is ready all the same. */
export async function heldHealth(ledger: HeldLedger): Promise<readonly HealthPart[]> {
  const held = await ledger.restingIn(["held"], RUNS_MAX);
  const last = held[0]?.run;
  if (last === undefined) return [];
  const count = held.length === RUNS_MAX ? `${RUNS_MAX} or more` : held.length;
  const reason = `${count} held; the last: ${last.path} at ${last.drop}: ${last.reason?.message ?? ""}`;
  return [{ part: "held runs", ready: true, reason }];
}

/** Ids of all held runs: their share of the spool is looked up by them. */
export async function heldRuns(ledger: Pick<Ledger, "runsIn">): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  for (let after = "", more = true; more && ids.size < IDS_MAX; ) {
    const some = await ledger.runsIn(["held"], { after, limit: RUNS_MAX });
    for (const { id } of some) ids.add(id);
    after = some.at(-1)?.id ?? after;
    more = some.length === RUNS_MAX;
  }
  return ids;
}
