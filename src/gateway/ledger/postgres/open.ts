/** The ledger in a schema of a PostgreSQL database, which many nodes share. */
import { hostname } from "node:os";
import { join } from "node:path";
import type { Client, Pool } from "pg";
import type { Clock } from "#core/clock.ts";
import { ConfigError, HeadgateError, TransientError } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { assertNothingDue } from "#core/sql/migrations.ts";
import { durabilityRisks } from "#core/sql/postgres/durability.ts";
import { migrate, type PostgresSchema, stateOf } from "#core/sql/postgres/migrate.ts";
import { cells, change, execute, row, rows, type Steps } from "#core/sql/statements.ts";
import type { IsoInstant, Run } from "../../model.ts";
import { CLOSING_STATES, OPEN_STATES, runStatesThat } from "../../states.ts";
import { type Fleet, type NodeState, waitForTurn } from "../fleet.ts";
import type { Ledger } from "../ledger.ts";
import type { PostgresLedgerOptions } from "../options.ts";
import { appendEvent } from "../records/events.ts";
import { ledgerMethods } from "../records/methods.ts";
import { harmless, type LedgerMeans } from "../records/observers.ts";
import { RUN_CELLS, RUN_COLUMNS, type RunCells, toRun } from "../records/rows.ts";
import { literals, SCHEMA_VALUES } from "../records/run-indexes.ts";
import { foreignLedger, otherVersion } from "../schema-faults.ts";
import { Connections } from "./connection.ts";
import { faultOf, leaseLost, openFault } from "./faults.ts";
import { NodeSession, RENEWALS } from "./sessions.ts";
import { sharedBytes } from "./shared.ts";
import { PostgresStore } from "./store.ts";

const DEAD = "(SELECT 1 FROM sessions WHERE sessions.id = %s AND sessions.ended_at IS NULL)";
const dead = (column: string) => `NOT EXISTS ${DEAD.replace("%s", column)}`;

/** This session, unless it has ended or lapsed. */
const LIVING = `WITH sessions AS (
  SELECT id FROM sessions WHERE id = ? AND ended_at IS NULL AND until >= clock_timestamp())
  SELECT 1 AS held FROM sessions`;

/** Nodes that left are shown for a day. */
const SHOWN = "interval '1 day'";

/** The owner follows the cells of the run. */
const SELECT_HELD = `SELECT ${RUN_COLUMNS}, runs.owner FROM runs JOIN bindings ON bindings.id = runs.binding_id`;

const INSTANT = `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`;
const TRY = "SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS mine";

/** `HGLD`; together with the name of the schema, the lock of its migrations. */
const LOCK_CLASS = 0x48474c44;

/** Their runs wait for a person or for the structure: any node may take them then. */
const NOBODYS_STATES = runStatesThat(({ isOpen, isAccepted, isAwaited, isClosing, end }) =>
  isAwaited ? !isClosing : !isOpen && !isAccepted && end !== "delivered",
);

const LEDGER_SCHEMA: PostgresSchema = {
  folder: join(import.meta.dirname, "migrations"),
  table: "ledger_schema",
  values: { ...SCHEMA_VALUES, nobodys_states: literals(NOBODYS_STATES) },
  lock: (client, name) => client.query("SELECT pg_advisory_xact_lock($1, hashtext($2))", [LOCK_CLASS, name]),
  foreign: (place) =>
    foreignLedger(
      place,
      `${place} contains tables of something else, and no ledger`,
      "Give the ledger a schema of its own: `ledger.schema`.",
    ),
  otherVersion,
};

/** Longest time that a sleeping process may block others by an open transaction. */
const IDLE_TRANSACTION_MS = 5_000;

/**
 * `ConfigError` when the server refuses user, database or schema (`HG-LEDG-002`) or the schema is of another
 * version (`-003`).
 */
export async function openPostgresLedger(options: PostgresLedgerOptions, means: LedgerMeans): Promise<Ledger> {
  const { schema, lease } = options;
  const connections = new Connections({
    url: options.url,
    schema,
    application: `headgate ${options.node ?? hostname()}`,
    idleTransactionMs: Math.max(1, Math.min(IDLE_TRANSACTION_MS, Math.floor(lease / 2))),
    log: means.log,
  });
  try {
    if (means.readOnly === true) await assertCurrent(connections.readers, schema, connections.place);
    else await bringUp(connections, schema, means.log);
  } catch (thrown) {
    await connections.close();
    throw openingFault(connections.place, thrown);
  }
  const session = await joinFleet(connections, options, means);
  const store = new PostgresStore(connections, {
    clock: means.clock,
    readOnly: means.readOnly === true,
    onEvent: harmless(means),
    log: means.log,
    session: () => session,
  });
  return {
    fleet: postgresFleet(
      store,
      session === null ? null : lease / RENEWALS,
      aloneByLock(connections, schema, means.clock),
    ),
    shared: sharedBytes({
      connections,
      clock: means.clock,
      readOnly: means.readOnly === true,
      session: () => session?.id ?? null,
    }),
    ...ledgerMethods(store),
    close: async () => {
      await store.flush();
      await session?.close();
      await connections.close();
    },
  };
}

async function joinFleet(
  connections: Connections,
  { node, lease }: PostgresLedgerOptions,
  { clock, log, watch }: LedgerMeans,
): Promise<NodeSession | null> {
  if (watch === undefined) return null;
  try {
    return await NodeSession.open({
      pool: connections.readers,
      node: node ?? hostname(),
      ...{ lease, clock, log, watch },
    });
  } catch (thrown) {
    await connections.close();
    throw openingFault(connections.place, thrown);
  }
}

async function bringUp(connections: Connections, schema: string, log: Logger | undefined): Promise<void> {
  const applied = await migrate(await connections.writer(), LEDGER_SCHEMA, schema, connections.place);
  if (applied.length > 0)
    log?.info({ ledger: connections.place, migrations: applied }, "the ledger's schema was brought up");
  for (const risk of await durabilityRisks(connections.readers)) log?.warn({ ledger: connections.place }, risk);
}

/** A server that cannot be reached may return; any other fault needs an administrator. */
function openingFault(place: string, thrown: unknown): unknown {
  const fault = faultOf("open ledger", place, thrown);
  if (fault instanceof TransientError || fault instanceof HeadgateError) return fault;
  return openFault(place, thrown);
}

// The schema of a ledger in a PostgreSQL database.

/** For a reader, which does not migrate. */
async function assertCurrent(pool: Pool, name: string, place: string): Promise<void> {
  const state = await stateOf(pool, LEDGER_SCHEMA, name, place);
  if (state.version > 0) return assertNothingDue(LEDGER_SCHEMA, state, place);
  throw new ConfigError("HG-CLI-003", {
    operation: "open ledger",
    subject: place,
    message: `there is no ledger in ${place} yet`,
    hint: "Start the gateway once, or check `ledger.url` and `ledger.schema`.",
  });
}

/**
 * Work that only one process with the ledger may do at a time: guarded by an advisory lock, which the server
 * releases with the connection.
 */
function aloneByLock(connections: Connections, schema: string, clock: Clock): Fleet["alone"] {
  return async (key, work, signal) => {
    const fault = (thrown: unknown) => faultOf("wait for a turn", connections.place, thrown);
    const client = await connections.own().catch((thrown: unknown) => {
      throw fault(thrown);
    });
    const lost = new AbortController();
    client.on("end", () => lost.abort(turnLost(connections.place, key)));
    try {
      // The key includes the schema, since ledgers in the same database share the locks.
      const mine = () =>
        tryLock(client, `headgate ${schema} ${key}`).catch((thrown: unknown) => Promise.reject(fault(thrown)));
      await waitForTurn(mine, key, clock, signal);
      return await work(AbortSignal.any([signal, lost.signal]));
    } finally {
      await client.end().catch(() => undefined); // The server releases the lock with the connection, however it ends.
    }
  };
}

/** Null while another process has the lock. */
async function tryLock(client: Client, name: string): Promise<true | null> {
  const { rows } = await client.query<{ mine: boolean }>(TRY, [name]);
  return rows[0]?.mine === true ? true : null;
}

function turnLost(place: string, key: string): TransientError {
  return new TransientError("HG-LEDG-008", {
    operation: key,
    subject: place,
    message: `the connection to the ledger ${place} was lost, and with it the right to do this alone`,
  });
}

/** The drops and runs of each node, by the sessions. */
function postgresFleet(store: PostgresStore, recheckMs: number | null, alone: Fleet["alone"]): Fleet {
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
