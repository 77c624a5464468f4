/**
 * The writer of points, of which every node has one. Operations of one account are applied by one node at a
 * time, in their order: its writer locks the row of the account in `lane` from the moment it takes a group
 * until the group is stored. Writers of other nodes proceed to other accounts meanwhile; the lock of a node
 * that ended is released with its connection.
 */
import type pg from "pg";
import type { Clock } from "#core/clock.ts";
import { Packing } from "../blocks/pack.ts";
import { IngestEffects, outputOf } from "../ingest-effects.ts";
import { QUEUED, queuedOf } from "../operation-rows.ts";
import type { GroupLimits, IngestReport, IngestStore, IngestTransaction, QueuedOperation } from "../store.ts";
import type { Retention } from "../version-plan.ts";
import { type CopySql, copySqlOn } from "./copy.ts";
import { abandon, createPool, type PostgresOptions } from "./database.ts";
import { POSTGRES } from "./dialect.ts";
import { drive, postgresDatabase } from "./driver.ts";
import { recordOutcomes } from "./outcomes.ts";
import { createPartitions, isPartitionMissing } from "./partitions.ts";
import { createTargets, type Targets } from "./targets.ts";
import { createPointWriter, type PointWriter } from "./writer.ts";

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
