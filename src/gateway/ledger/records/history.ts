/**
 * Counts the runs of a time, for charts and calendars. A run id begins with its time, so that no index of its own is
 * needed.
 */

import { runIdFrom } from "#core/run-id.ts";
import { row, rows, type Steps } from "#core/sql/statements.ts";
import type { Arrival, Binding, MappingFinding } from "../../model.ts";
import { ACCEPTED_STATES, ATTENTION_STATES } from "../../states.ts";
import type { Ledger, MapperRuns, RunTotals, TimeSpan, TriggerFile } from "../ledger.ts";
import { findArrival } from "./arrivals.ts";
import { anyOf } from "./run-indexes.ts";
import { perDialect, type Store } from "./store.ts";

export function historyMethods(
  store: Store,
): Pick<Ledger, "lastArrivalAt" | "runTotals" | "firstFilesOf" | "acceptedFindings" | "mapperRuns"> {
  return {
    lastArrivalAt: (drop) => store.look(() => lastArrivalAt(drop)),
    runTotals: (span) => store.look(() => runTotals(store, span)),
    firstFilesOf: (trigger, spans) => store.look(() => firstFilesOf(store, trigger, spans)),
    acceptedFindings: (trigger, options) => store.look(() => acceptedFindings(store, trigger, options)),
    mapperRuns: () => store.look(() => mapperRuns()),
  };
}

/** There is no index by drop, which each new file would pay for: so many of the newest are read. */
const NEWEST = 20_000;

function* lastArrivalAt(drop: string): Steps<Arrival | null> {
  const found = yield* row<{ id: number }>(
    `SELECT id FROM arrivals WHERE drop_name = ? AND id > (SELECT coalesce(max(id), 0) FROM arrivals) - ${NEWEST}
      ORDER BY id DESC LIMIT 1`,
    drop,
  );
  return found === undefined ? null : yield* findArrival(found.id);
}

const TOTALS = perDialect(
  ({ msBetween }) => `SELECT count(*) FILTER (WHERE replay IS NULL) AS files, coalesce(sum(accepted), 0) AS points,
      count(*) FILTER (WHERE ${anyOf(ATTENTION_STATES)}) AS errors,
      coalesce(sum(delay), 0) AS "delaySumMs", count(delay) AS delayed
    FROM (SELECT replay, accepted, state,
        ${msBetween("created_at", "(SELECT max(accepted_at) FROM batches WHERE run_id = runs.id)")} AS delay
      FROM runs WHERE id >= ? AND id < ? AND state <> 'opened') AS runs`,
);

function* runTotals(store: Store, { fromMs, untilMs }: TimeSpan): Steps<RunTotals> {
  const found = yield* row<RunTotals>(TOTALS(store), runIdFrom(fromMs), runIdFrom(untilMs));
  return found ?? { files: 0, points: 0, errors: 0, delaySumMs: 0, delayed: 0 };
}

const FIRST_FILE = `SELECT id, arrival_id, created_at FROM runs
  WHERE binding_id = ? AND id >= ? AND id < ? AND replay IS NULL ORDER BY id LIMIT 1`;

interface FirstRun {
  readonly id: string;
  readonly arrival_id: number;
  readonly created_at: string;
}

/** A trigger has a binding for each version of its settings, its mapper and its tables, which change seldom. */
function* bindingsOf({ dialect }: Store, trigger: string): Steps<readonly { readonly id: number }[]> {
  return yield* rows<{ id: number }>(
    `SELECT id FROM bindings WHERE ${dialect.jsonField("bindings.json", "trigger")} = ?`,
    trigger,
  );
}

function* firstFilesOf(
  store: Store,
  trigger: string,
  spans: readonly TimeSpan[],
): Steps<readonly (TriggerFile | null)[]> {
  const bindings = yield* bindingsOf(store, trigger);
  const first: (TriggerFile | null)[] = [];
  for (const { fromMs, untilMs } of spans) {
    const found: FirstRun[] = [];
    for (const { id } of bindings)
      found.push(...(yield* rows<FirstRun>(FIRST_FILE, id, runIdFrom(fromMs), runIdFrom(untilMs))));
    const [earliest] = found.sort((a, b) => (a.id < b.id ? -1 : 1));
    first.push(earliest === undefined ? null : { arrivalId: earliest.arrival_id, at: earliest.created_at });
  }
  return first;
}

const ACCEPTED_RUNS = `SELECT id, findings FROM runs
  WHERE binding_id = ? AND id < ? AND replay IS NULL AND ${anyOf(ACCEPTED_STATES)} ORDER BY id DESC LIMIT ?`;
interface FoundIn {
  readonly id: string;
  readonly findings: string | null;
}

/** After every run id. */
const LAST_ID = "~";

function* acceptedFindings(
  store: Store,
  trigger: string,
  { limit, before = LAST_ID }: { readonly limit: number; readonly before?: string | undefined },
): Steps<readonly (readonly MappingFinding[])[]> {
  const found: FoundIn[] = [];
  for (const { id } of yield* bindingsOf(store, trigger))
    found.push(...(yield* rows<FoundIn>(ACCEPTED_RUNS, id, before, limit)));
  const newest = found.sort((a, b) => (a.id > b.id ? -1 : 1)).slice(0, limit);
  return newest.map(({ findings }) => (findings === null ? [] : (JSON.parse(findings) as MappingFinding[])));
}

interface BindingRuns {
  readonly binding_id: number;
  readonly runs: number;
  readonly first: string;
  readonly last: string;
}

function* mapperRuns(): Steps<readonly MapperRuns[]> {
  const counted = yield* rows<BindingRuns>(
    "SELECT binding_id, count(*) AS runs, min(id) AS first, max(id) AS last FROM runs GROUP BY binding_id",
  );
  const quarantined = new Map(
    (yield* rows<{ binding_id: number; runs: number }>(
      "SELECT binding_id, count(*) AS runs FROM runs WHERE state = 'quarantined' GROUP BY binding_id",
    )).map((one) => [one.binding_id, one.runs]),
  );
  const found = new Map<string, MapperRuns>();
  for (const { binding_id: id, ...counts } of counted) {
    const stored = yield* row<{ json: string }>("SELECT json FROM bindings WHERE id = ?", id);
    if (stored === undefined) continue;
    const { mapper, unpack } = JSON.parse(stored.json) as Binding;
    // Containers are opened, whatever their trigger names.
    if (unpack !== undefined) continue;
    const own = { mapper, ...counts, quarantined: quarantined.get(id) ?? 0 };
    const before = found.get(mapper.digest);
    found.set(mapper.digest, before === undefined ? own : sumOf(before, own));
  }
  return [...found.values()].sort((a, b) => (a.last < b.last ? 1 : -1));
}

function sumOf(a: MapperRuns, b: MapperRuns): MapperRuns {
  return {
    mapper: a.mapper,
    runs: a.runs + b.runs,
    quarantined: a.quarantined + b.quarantined,
    first: a.first < b.first ? a.first : b.first,
    last: a.last > b.last ? a.last : b.last,
  };
}
