/**
 * The writer of points, of which every node has one. Operations of one account are applied by one node at a
 * time, in their order: its writer locks the row of the account in `lane` from the moment it takes a group
 * until the group is stored. Writers of other nodes proceed to other accounts meanwhile; the lock of a node
 * that ended is released with its connection.
 */
import type pg from "pg";
import type { Clock } from "#core/clock.ts";
import { Packing } from "../blocks/pack.ts";
import type { GroupLimits, IngestReport, IngestStore, IngestTransaction, QueuedOperation } from "../ingest.ts";
import { IngestEffects, outputOf } from "../ingest-effects.ts";
import { noticesText, QUEUED, queuedOf } from "../operation-rows.ts";
import type { Outcome } from "../operations.ts";
import type { Retention, VariableFacts } from "../records.ts";
import { FACT_COLUMNS, factsOf, VARIABLE_FACTS } from "../structure-rows.ts";
import { SOURCE_COLUMNS, TargetBytes, TargetCache, type TargetQuery } from "../targets.ts";
import { type CopySql, copySqlOn } from "./copy.ts";
import { abandon, createPool, type PostgresOptions, type Sql } from "./database.ts";
import { POSTGRES } from "./dialect.ts";
import { drive, postgresDatabase } from "./driver.ts";
import { createPartitions, isPartitionMissing } from "./partitions.ts";
import { createPointWriter, type PointWriter } from "./writer.ts";

/** Number of accounts with cached targets. */
const ACCOUNTS = 50;

/** Sources of one statement, which costs little more than that for one. */
const NEAR = 200;

/** The second connection creates partitions. */
const CONNECTIONS = 2;
/**
 * Few rows are joined with large tables, always by index; the planner cannot know that for tables that grow
 * between its statistics.
 */
const SETTINGS = { enable_hashjoin: "off", enable_mergejoin: "off", enable_seqscan: "off", jit: "off" };

/** Other nodes fill the queue too, and leave unfinished operations when they end. */
const POLL_MS = 500;

/** The lane that a writer locks while it applies a group. */
interface Claim {
  readonly client: pg.PoolClient;
  readonly sql: CopySql;
  readonly accountId: number;
  /** The last VersionTimestamp of the account. */
  lastUs: number;
  /** Number of the origin of the first operation of the group. */
  readonly firstOrigin: number;
}

/** Requires an up-to-date schema: call `openPostgresStore` first. */
export function openPostgresIngest(options: PostgresOptions, retention: Retention, clock: Clock): IngestStore {
  const pool = createPool(options, { max: CONNECTIONS, settings: SETTINGS });
  const partitions = createPartitions(pool);
  const packing = new Packing(postgresDatabase(pool));
  const writer = createPointWriter(partitions, retention, packing);
  const effects = new IngestEffects(POSTGRES, clock);
  const targets = createTargets(effects);
  let held: Claim | null = null;
  let last = 0;
  const releaseAll = async () => {
    const claim = held;
    held = null;
    if (claim !== null) await abandon(claim.client);
  };
  const applyHeld: IngestStore["apply"] = async (operations, work, state = "done"): Promise<IngestReport> => {
    effects.begin();
    const [first] = operations;
    if (first === undefined) return effects.report();
    // After a failure the group is retried in parts, and the lane is no longer locked.
    held ??= await claimLane(pool, LANE_OF, [first.accountId]);
    const claim = held;
    if (claim === null) throw new Error(`account ${first.accountId} has no lane`);
    await orElse(releaseAll, async () => {
      const due = await waiting(claim, operations);
      if (due.length > 0) {
        await targets.refresh(claim);
        const outcomes = await work(transactionOn(claim, { targets, writer, effects }, clock), due);
        await recordOutcomes(claim, due, outcomes, state);
        await drive(claim.sql, effects.applied(due, outcomes, state));
      }
      await claim.client.query("COMMIT");
    });
    held = null;
    claim.client.release();
    return effects.report();
  };
  return {
    pollMs: POLL_MS,
    async next(_afterSeq, limits) {
      for (;;) {
        await releaseAll();
        const claim = await claimLane(pool, NEXT_LANE, [last]);
        if (claim === null) return [];
        held = claim;
        last = claim.accountId;
        const group = await orElse(releaseAll, () => nextGroup(claim, limits));
        // Operations that another writer applied while the lane was being locked become visible only now.
        if (group.length > 0) return group;
      }
    },
    async apply(operations, work, state = "done") {
      try {
        return await applyHeld(operations, work, state);
      } catch (thrown) {
        if (!isPartitionMissing(thrown)) throw thrown;
        // An administrator dropped or detached the partition since it was created: it is created again.
        partitions.forget();
        return await applyHeld(operations, work, state);
      }
    },
    async pack() {
      await releaseAll();
      return await packing.next();
    },
    async close() {
      await releaseAll();
      await pool.end();
    },
  };
}

/**
 * The first account after that of the group before which has a waiting operation, among those that no other writer has
 * locked: accounts take turns.
 */
const NEXT_LANE = `SELECT lane.account_id, lane.version_us, lane.origin_id FROM lane CROSS JOIN LATERAL (
    SELECT seq FROM operation WHERE operation.account_id = lane.account_id AND state = 'accepted' LIMIT 1
  ) AS first ORDER BY lane.account_id <= ?, lane.account_id LIMIT 1 FOR UPDATE OF lane SKIP LOCKED`;
const LANE_OF = "SELECT account_id, version_us, origin_id FROM lane WHERE account_id = ? FOR UPDATE";

/** Null when there is no such lane, or it is locked. */
async function claimLane(pool: pg.Pool, lane: string, values: readonly number[]): Promise<Claim | null> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const sql = copySqlOn(client);
    const row = await sql.get(lane, ...values);
    if (row !== undefined) {
      const [accountId, lastUs] = [Number(row["account_id"]), Number(row["version_us"])];
      return { client, sql, accountId, lastUs, firstOrigin: Number(row["origin_id"]) + 1 };
    }
    await client.query("ROLLBACK");
    client.release();
    return null;
  } catch (thrown) {
    await abandon(client);
    throw thrown;
  }
}

async function orElse<T>(undo: () => Promise<void>, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    await undo();
    throw thrown;
  }
}

/** Number of operations that are considered for one group. */
const GROUP_OPERATIONS = 1_000;

async function nextGroup({ sql, accountId }: Claim, limits: GroupLimits): Promise<QueuedOperation[]> {
  const rows = await sql.all(
    `SELECT operation.seq, ${QUEUED}, bytes FROM (
      SELECT seq, row_number() OVER earlier AS place, sum(received) OVER earlier AS readings,
        sum(size) OVER earlier AS bytes_sum FROM (
        SELECT seq, received, octet_length(bytes) AS size FROM operation JOIN body USING (seq)
        WHERE account_id = ? AND state = 'accepted' ORDER BY seq LIMIT ?
      ) AS head WINDOW earlier AS (ORDER BY seq)
    ) AS summed JOIN operation USING (seq) JOIN body USING (seq)
    WHERE place = 1 OR (readings <= ? AND bytes_sum <= ?) ORDER BY seq`,
    accountId,
    GROUP_OPERATIONS,
    limits.readings,
    limits.bytes,
  );
  return rows.map((row) => queuedOf(row, accountId));
}

/** The operations that no other node has applied meanwhile. */
async function waiting({ sql }: Claim, operations: readonly QueuedOperation[]): Promise<readonly QueuedOperation[]> {
  const rows = await sql.all(
    "SELECT seq FROM operation WHERE seq = ANY (?) AND state = 'accepted'",
    operations.map(({ seq }) => seq),
  );
  const due = new Set(rows.map((row) => Number(row["seq"])));
  return operations.filter(({ seq }) => due.has(seq));
}

interface TransactionParts {
  readonly targets: Targets;
  readonly writer: PointWriter;
  readonly effects: IngestEffects;
}

function transactionOn(claim: Claim, { targets, writer, effects }: TransactionParts, clock: Clock): IngestTransaction {
  return {
    findVariable: (accountId, target) => targets.find({ sql: claim.sql, accountId }, target),
    written: (accountId) => targets.written(accountId),
    write: async (readings) => {
      // The clock in microseconds, but strictly increasing, on every node and with every clock.
      const firstUs = Math.max(claim.lastUs, Number(clock.now().epochNanoseconds / 1_000n)) + 1;
      claim.lastUs = firstUs + readings.length - 1;
      const written = await writer.write(claim.sql, readings, { firstUs, firstOrigin: claim.firstOrigin });
      effects.written(readings, written);
      return written;
    },
    outputOf: (accountId, calculationId) => drive(claim.sql, outputOf(accountId, calculationId)),
  };
}

// Records what became of a group of operations, in the transaction that wrote its points.

interface Numbered {
  readonly sql: CopySql;
  readonly accountId: number;
  /** The last VersionTimestamp of the account. */
  readonly lastUs: number;
  /** Number of the origin of the first operation. */
  readonly firstOrigin: number;
}

/** The outcomes of a group, its operations as origins of points, and the last numbers of its account. */
async function recordOutcomes(
  { sql, accountId, lastUs, firstOrigin }: Numbered,
  operations: readonly QueuedOperation[],
  outcomes: readonly Outcome[],
  state: "done" | "failed",
): Promise<void> {
  if (outcomes.length !== operations.length) throw new RangeError("an operation of the group has no outcome");
  const seqs = operations.map(({ seq }) => seq);
  const msOf = (text: string) => Temporal.Instant.from(text).epochMilliseconds;
  await sql.run(
    `INSERT INTO outcome (seq, stored, replaced, discarded, notices, started_ms, finished_ms)
      SELECT * FROM unnest(CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS JSON[]),
        CAST(? AS TEXT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[]))`,
    seqs,
    outcomes.map(({ stored }) => stored),
    outcomes.map(({ replaced }) => replaced),
    outcomes.map(({ discarded }) => JSON.stringify(discarded)),
    outcomes.map(noticesText),
    outcomes.map(({ started }) => msOf(started)),
    outcomes.map(({ finished }) => msOf(finished)),
  );
  await sql.run(
    `UPDATE operation SET state = ?, webhook_state = CASE webhook_state WHEN 'waiting' THEN 'due' ELSE webhook_state END
      WHERE seq = ANY (?)`,
    state,
    seqs,
  );
  await recordOrigins(
    sql,
    operations.flatMap((operation, index) =>
      (outcomes[index]?.stored ?? 0) > 0 ? [{ id: firstOrigin + index, ...operation }] : [],
    ),
  );
  const lastOrigin = firstOrigin + operations.length - 1;
  await sql.run("UPDATE lane SET version_us = ?, origin_id = ? WHERE account_id = ?", lastUs, lastOrigin, accountId);
}

async function recordOrigins(
  { run }: CopySql,
  origins: readonly (QueuedOperation & { readonly id: number })[],
): Promise<void> {
  if (origins.length === 0) return;
  await run(
    `INSERT INTO origin (account_id, id, operation_id, user_id, received_ms, calculation_id, trace_link)
      SELECT * FROM unnest(CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS TEXT[]), CAST(? AS BIGINT[]),
        CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS TEXT[]))`,
    origins.map(({ accountId }) => accountId),
    origins.map(({ id }) => id),
    origins.map(({ operationId }) => operationId),
    origins.map(({ userId }) => userId),
    origins.map(({ acceptedMs }) => acceptedMs),
    origins.map(({ calculationId }) => calculationId),
    origins.map(({ traceLink }) => traceLink),
  );
}

// Finds the variables that elements name, and remembers them until the structure of the account changes.

interface Targets {
  /** Discards the cached targets of the account after a change of its structure. */
  refresh(account: Account): Promise<void>;
  find(account: Account, target: TargetQuery): Promise<VariableFacts | null>;
  written(accountId: number): TargetBytes;
}

/** On a connection that has locked the lane of the account. */
interface Account {
  readonly sql: Sql;
  readonly accountId: number;
}

function createTargets(effects: IngestEffects): Targets {
  const accounts = new Map<number, { readonly changes: number; readonly cache: TargetCache }>();
  return {
    async refresh({ sql, accountId }) {
      const row = await sql.get("SELECT changes FROM structure_change WHERE account_id = ?", accountId);
      const changes = Number(row?.["changes"]);
      const known = accounts.get(accountId);
      if (known?.changes !== changes) effects.forget(accountId);
      accounts.delete(accountId);
      accounts.set(accountId, known?.changes === changes ? known : { changes, cache: new TargetCache() });
      const [oldest] = accounts.keys();
      if (accounts.size <= ACCOUNTS || oldest === undefined) return;
      accounts.delete(oldest);
      effects.forget(oldest);
    },
    written: (accountId) => accounts.get(accountId)?.cache.bytesOf(accountId) ?? new TargetBytes(),
    async find(account, target) {
      const cache = accounts.get(account.accountId)?.cache;
      const remembered = cache?.get(account.accountId, target);
      if (remembered !== undefined) return remembered;
      for (const [value, variable] of await nearVariables(account, target))
        cache?.set(account.accountId, { ...target, value }, variable);
      const learned = cache?.get(account.accountId, target);
      if (learned !== undefined) return learned;
      const found = await findVariable(account, target);
      cache?.set(account.accountId, target, found);
      return found;
    },
  };
}

/**
 * The variables of the target and of those that follow it in the order of the index, by their texts: what is pushed
 * first names its meters in about that order, and a statement for each would cost more than their points. Empty for
 * ids, and for a text that very many sources share.
 */
async function nearVariables(
  { sql, accountId }: Account,
  { by, value, mappingConfig, variableTypeId }: TargetQuery,
): Promise<ReadonlyMap<string, VariableFacts | null>> {
  const near = new Map<string, VariableFacts | null>();
  if (by === "variableId" || by === "sourceId" || typeof value !== "string") return near;
  const column = SOURCE_COLUMNS[by];
  const [config, configs] =
    mappingConfig === undefined ? ["", []] : ["AND variable.mapping_config = ?", [mappingConfig]];
  const [type, types] =
    variableTypeId === undefined ? ["", []] : ["AND variable.variable_type_id = ?", [variableTypeId]];
  const values = [accountId, value, NEAR, accountId, ...configs, ...types];
  if (!values.every(isStorable)) return near;
  const rows = await sql.all(
    `WITH near AS MATERIALIZED (SELECT source.id, ${column} AS text FROM source
        WHERE source.account_id = ? AND ${column} >= ? ORDER BY ${column} LIMIT ?)
      SELECT DISTINCT ON (near.text) near.text, (SELECT count(*) FROM near) AS total, ${FACT_COLUMNS}
      FROM near JOIN source ON source.id = near.id JOIN site ON site.id = source.site_id
      LEFT JOIN variable ON variable.source_id = source.id AND variable.account_id = ? ${config} ${type}
      ORDER BY near.text, variable.id IS NULL, source.id, variable.id`,
    ...values,
  );
  for (const row of rows) near.set(String(row["text"]), row["id"] === null ? null : factsOf(row));
  // Further sources may share the last text.
  const last = rows.at(-1);
  if (Number(last?.["total"] ?? 0) === NEAR) near.delete(String(last?.["text"]));
  return near;
}

async function findVariable(
  { sql, accountId }: Account,
  { by, value, mappingConfig, variableTypeId }: TargetQuery,
): Promise<VariableFacts | null> {
  const conditions = ["variable.account_id = ?", `${by === "variableId" ? "variable.id" : SOURCE_COLUMNS[by]} = ?`];
  const values: (string | number)[] = [accountId, value];
  const add = (condition: string, wanted: string | number) => {
    conditions.push(condition);
    values.push(wanted);
  };
  if (by !== "variableId") {
    add("source.account_id = ?", accountId);
    if (mappingConfig !== undefined) add("variable.mapping_config = ?", mappingConfig);
    if (variableTypeId !== undefined) add("variable.variable_type_id = ?", variableTypeId);
  }
  if (!values.every(isStorable)) return null;
  const row = await sql.get(
    `SELECT ${VARIABLE_FACTS} WHERE ${conditions.join(" AND ")} ORDER BY source.id, variable.id LIMIT 1`,
    ...values,
  );
  return row === undefined ? null : factsOf(row);
}

/** A text of PostgreSQL contains no NUL, and an id is a whole number: no record has any other value. */
function isStorable(value: string | number): boolean {
  return typeof value === "string" ? !value.includes("\0") : Number.isSafeInteger(value);
}
