/** The drops and runs of each node, by the sessions. */
import type { IsoInstant, Run } from "../../model.ts";
import { CLOSING_STATES, OPEN_STATES } from "../../states.ts";
import type { Fleet, NodeState } from "../fleet.ts";
import { appendEvent } from "../records/events.ts";
import { RUN_CELLS, RUN_COLUMNS, type RunCells, toRun } from "../records/rows.ts";
import { literals } from "../records/run-indexes.ts";
import { cells, change, execute, row, rows, type Steps } from "../records/store.ts";
import { leaseLost } from "./faults.ts";
import type { PostgresStore } from "./store.ts";

const DEAD = "(SELECT 1 FROM sessions WHERE sessions.id = %s AND sessions.ended_at IS NULL)";
const dead = (column: string) => `NOT EXISTS ${DEAD.replace("%s", column)}`;

/** This session, unless it has ended or lapsed. */
const LIVING = `WITH sessions AS (
  SELECT id FROM sessions WHERE id = ? AND ended_at IS NULL AND until >= clock_timestamp())
  SELECT 1 AS held FROM sessions`;

/** Nodes that left are shown for a day. */
const SHOWN = "interval '1 day'";

export function postgresFleet(store: PostgresStore, recheckMs: number | null, alone: Fleet["alone"]): Fleet {
  return {
    recheckMs: recheckMs,
    alone,
    async holdDrop(drop) {
      if (store.session === null) return null;
      const found = await store.look(() => holderOf(drop));
      if (found?.session === store.session) return null;
      if (found !== undefined && found.node !== null) return found.node;
      return store.write("drop.held", () => takeDrop(store, drop));
    },
    async releaseDrop(drop) {
      if (store.session !== null) await store.write("drop.released", () => releaseDrop(store, drop));
    },
    async assertDrop(drop) {
      const held = await store.look(() =>
        row(`${LIVING} JOIN drop_holders ON session = sessions.id AND drop_name = ?`, store.session, drop),
      );
      if (store.session !== null && held === undefined)
        throw leaseLost(drop, `this node no longer polls the drop ${drop}`);
    },
    async holdRun(run) {
      if (store.session === null) return run;
      const [found] = await store.look(() => cells<RunCells>(`${SELECT_HELD} WHERE runs.id = ?`, run.id));
      if (found === undefined) return null;
      return found[RUN_CELLS] === store.session ? toRun(found) : store.write("run.held", () => takeRun(store, run.id));
    },
    async releaseRun(id) {
      if (store.session === null) return false;
      return store.write("run.released", () => releaseRun(store, id));
    },
    async assertRun(id) {
      const held = await store.look(() =>
        row(`${LIVING} JOIN runs ON owner = sessions.id AND runs.id = ?`, store.session, id),
      );
      if (store.session !== null && held === undefined) throw leaseLost(id, `this node no longer works on run ${id}`);
    },
    nodes: () => store.read(nodes),
  };
}

/** The owner follows the cells of the run. */
const SELECT_HELD = `SELECT ${RUN_COLUMNS}, runs.owner FROM runs JOIN bindings ON bindings.id = runs.binding_id`;

interface Holder {
  readonly session: number;
  /** Null when that session has ended. */
  readonly node: string | null;
}

function holderOf(drop: string): Steps<Holder | undefined> {
  return row<Holder>(
    `SELECT session, (SELECT node FROM sessions WHERE sessions.id = session AND ended_at IS NULL) AS node
      FROM drop_holders WHERE drop_name = ?`,
    drop,
  );
}

function* takeDrop(store: PostgresStore, drop: string): Steps<string | null> {
  yield* execute(
    `INSERT INTO drop_holders (drop_name, session) VALUES (?, ?)
      ON CONFLICT (drop_name) DO UPDATE SET session = excluded.session WHERE ${dead("drop_holders.session")}`,
    drop,
    store.session,
  );
  const holder = yield* holderOf(drop);
  return holder?.session === store.session ? null : (holder?.node ?? "unknown");
}

/** Fetched files are in the spool of this node, which therefore keeps their runs. */
function* releaseDrop({ session }: PostgresStore, drop: string): Steps<void> {
  yield* execute("DELETE FROM drop_holders WHERE drop_name = ? AND session = ?", drop, session);
  yield* execute("UPDATE runs SET owner = NULL WHERE owner = ? AND drop_name = ? AND state = 'claimed'", session, drop);
}

function* releaseRun({ session }: PostgresStore, id: string): Steps<boolean> {
  return (yield* change("UPDATE runs SET owner = NULL WHERE id = ? AND owner = ?", id, session)) > 0;
}

/** The first node to take it has it; no node waits for the lock of another. */
function* takeRun(store: PostgresStore, id: string): Steps<Run | null> {
  const { session, node } = store;
  const [found] = yield* cells<RunCells>(
    `${SELECT_HELD} WHERE runs.id = ? AND (runs.owner IS NULL OR runs.owner = ? OR ${dead("runs.owner")})
      FOR UPDATE OF runs SKIP LOCKED`,
    id,
    session,
  );
  if (found === undefined) return null;
  const before = toRun(found);
  const owner = found[RUN_CELLS] as number | null;
  yield* execute("UPDATE runs SET owner = ?, node = ? WHERE id = ?", session, node, id);
  if (owner !== null && owner !== session)
    yield* appendEvent(store, {
      arrivalId: before.arrivalId,
      runId: id,
      operationId: null,
      what: "run.taken",
      detail:
        before.node === node
          ? `the node ${node} was restarted and resumes the run`
          : `the node ${node} resumes the run after ${before.node ?? "another"} lost its lease`,
    });
  return { ...before, node };
}

interface NodeRow {
  readonly node: string;
  readonly since: IsoInstant;
  readonly heard_of: IsoInstant;
  readonly alive: number;
  readonly drops: string | null;
  readonly runs: number;
}

const INSTANT = `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`;

function* nodes(): Steps<readonly NodeState[]> {
  const found = yield* rows<NodeRow>(`SELECT DISTINCT ON (node) node,
      to_char(started_at AT TIME ZONE 'UTC', ${INSTANT}) AS since,
      to_char(renewed_at AT TIME ZONE 'UTC', ${INSTANT}) AS heard_of,
      CASE WHEN ended_at IS NULL AND until >= clock_timestamp() THEN 1 ELSE 0 END AS alive,
      (SELECT json_agg(drop_name ORDER BY drop_name)::text FROM drop_holders WHERE session = sessions.id) AS drops,
      (SELECT count(*) FROM runs WHERE owner = sessions.id
        AND (state IN (${literals(OPEN_STATES)}) OR (state IN (${literals(CLOSING_STATES)}) AND settled = 0))) AS runs
    FROM sessions WHERE ended_at IS NULL OR ended_at > clock_timestamp() - ${SHOWN} ORDER BY node, id DESC`);
  return found.map(({ node, since, heard_of, alive, drops, runs }) => ({
    node,
    since,
    lastSeenAt: heard_of,
    alive: alive === 1,
    drops: alive === 1 ? (JSON.parse(drops ?? "[]") as string[]) : [],
    runs: alive === 1 ? runs : 0,
  }));
}
