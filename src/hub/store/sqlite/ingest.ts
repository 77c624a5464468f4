/** The writer of points: its own thread, its own connections; one transaction per group of operations. */
import type { DatabaseSync } from "node:sqlite";
import type { Clock } from "#core/clock.ts";
import { syncFault } from "#core/sql/sqlite/faults.ts";
import { LogSync } from "#core/sql/sqlite/log-sync.ts";
import { Packing } from "../blocks/pack.ts";
import type { GroupLimits, IngestStore, IngestTransaction, QueuedOperation } from "../ingest.ts";
import { IngestEffects, outputOf } from "../ingest-effects.ts";
import { noticesText, QUEUED, queuedOf } from "../operation-rows.ts";
import type { Outcome } from "../operations.ts";
import type { Retention, VariableFacts } from "../records.ts";
import { FACT_COLUMNS, factsOf, VARIABLE_FACTS } from "../structure-rows.ts";
import { SOURCE_COLUMNS, TargetCache, type TargetQuery } from "../targets.ts";
import { openDatabase, type Statements, statements, write } from "./database.ts";
import { SQLITE } from "./dialect.ts";
import { drive, sqliteDatabase } from "./driver.ts";
import { intakePath } from "./index.ts";
import { intakeId } from "./operations.ts";
import { createPointWriter } from "./writer.ts";

const WRITER_TIMEOUT_MS = 30_000;
const QUEUE_LOG_BYTES = 16 * 1024 * 1024;

/** Requires files that are up to date: call `openSqliteStore` first. */
export function openSqliteIngest(path: string, retention: Retention, clock: Clock): IngestStore {
  const common = { migrations: null, timeoutMs: WRITER_TIMEOUT_MS };
  // Live meters write to the last page of each variable repeatedly: the cache holds the pages of tens of
  // thousands, and the log overwrites them many times before one checkpoint.
  const main = openDatabase({ ...common, path, cacheMegabytes: 128, checkpointPages: 32_768 });
  const intake = openDatabase({ ...common, path: intakePath(path) });
  const queueId = intakeId(intake);
  const tools = statements(main);
  const queue = statements(intake);
  const queueLog = new LogSync(intake, intakePath(path));
  const effects = new IngestEffects(SQLITE, clock);
  const packing = new Packing(sqliteDatabase(tools, (work) => write(main, work)));
  const attempts = createAttempts({ main, tools, effects, packing }, retention, clock);
  const isApplied = ({ seq }: QueuedOperation): boolean =>
    tools.get("SELECT 1 FROM outcome WHERE intake_id = ? AND seq = ?", queueId, seq) !== undefined;
  const turns: AccountTurns = { taken: new Map(), group: [], next: 0 };
  let bytes = 0;
  /** The log of the queue is checkpointed here, so that no response to a push waits for it. */
  const tidyQueue = (operations: readonly QueuedOperation[]) => {
    bytes += operations.reduce((sum, { body }) => sum + body.byteLength, 0);
    if (bytes < QUEUE_LOG_BYTES) return;
    bytes = 0;
    intake.exec("PRAGMA wal_checkpoint(PASSIVE)");
  };
  return {
    pollMs: null,
    async next(afterSeq, limits) {
      if (afterSeq === 0) turns.taken.clear();
      if (afterSeq === turns.group.at(-1)?.seq)
        for (const { accountId, seq } of turns.group) turns.taken.set(accountId, seq);
      const group = nextGroup(queue, turns, limits);
      turns.group = group;
      // A commit is seen before it is synced: after a power cut, an outcome must not be left of an operation that is
      // gone. Its sender sends it again, and it would be stored twice.
      const fault = group.length === 0 ? null : await queueLog.run();
      if (fault !== null) throw syncFault(fault);
      return group;
    },
    async apply(operations, work, state = "done") {
      tidyQueue(operations);
      const due = operations.filter((operation) => !isApplied(operation));
      if (due.length === 0) return { due: [], damaged: [] };
      const record = (outcomes: readonly Outcome[], firstOrigin: number) => {
        for (const [index, operation] of due.entries()) {
          recordOutcome(tools, { queueId, seq: operation.seq, state }, outcomes[index]);
          if ((outcomes[index]?.stored ?? 0) > 0) recordOrigin(tools, firstOrigin + index, operation);
        }
        drive(tools, effects.applied(due, outcomes, state));
      };
      // Targets are resolved before the writer's lock is taken, so that other writers can proceed; when one
      // of them wrote meanwhile, they are resolved once more under the lock.
      if (!(await attempts.run("lazy", (transaction) => work(transaction, due), record)))
        await attempts.run("eager", (transaction) => work(transaction, due), record);
      return effects.report();
    },
    pack: () => packing.next(),
    async close() {
      queueLog.close();
      intake.close();
      main.close();
    },
  };
}

interface AccountTurns {
  /** By account: its last operation that was taken and applied; it is recorded as done later. */
  readonly taken: Map<number, number>;
  /** The last one, which counts as taken when the next one after it is asked for. */
  group: readonly QueuedOperation[];
  /** The account with which the next group begins, or the first one after it. */
  next: number;
}

/** Finds each account by one step of the index, however many operations wait. */
const WAITING_ACCOUNTS = `WITH RECURSIVE waiting (id) AS (
    SELECT min(account_id) FROM operation WHERE state = 'accepted'
    UNION ALL SELECT (SELECT min(account_id) FROM operation WHERE state = 'accepted' AND account_id > waiting.id)
    FROM waiting WHERE id IS NOT NULL
  ) SELECT id FROM waiting WHERE id IS NOT NULL ORDER BY id < ?, id`;
const NEXT_OF_ACCOUNT = `SELECT operation.seq, ${QUEUED}, bytes FROM operation JOIN body USING (seq)
  WHERE state = 'accepted' AND account_id = ? AND operation.seq > ? ORDER BY operation.seq LIMIT 1`;

/** Operations of an account in their order, and of the accounts by turns. */
function nextGroup({ get, all }: Statements, turns: AccountTurns, limits: GroupLimits): QueuedOperation[] {
  const group: QueuedOperation[] = [];
  const accounts = all(WAITING_ACCOUNTS, turns.next).map(({ id }) => ({
    id: Number(id),
    after: turns.taken.get(Number(id)) ?? 0,
  }));
  let readings = 0;
  let bytes = 0;
  // An account without a further operation leaves; the others go to the back.
  for (let account = accounts.shift(); account !== undefined; account = accounts.shift()) {
    const row = get(NEXT_OF_ACCOUNT, account.id, account.after);
    if (row === undefined) continue;
    const operation = queuedOf(row, account.id);
    readings += operation.received;
    bytes += operation.body.byteLength;
    if (group.length > 0 && (readings > limits.readings || bytes > limits.bytes)) {
      turns.next = account.id;
      return group;
    }
    group.push(operation);
    accounts.push({ id: account.id, after: operation.seq });
  }
  return group;
}

function recordOutcome(
  { run }: Statements,
  { queueId, seq, state }: { readonly queueId: string; readonly seq: number; readonly state: "done" | "failed" },
  outcome: Outcome | undefined,
): void {
  if (outcome === undefined) throw new RangeError("an operation of the group has no outcome");
  run(
    `INSERT INTO outcome
      (intake_id, seq, received, stored, replaced, discarded, notices, started_ms, finished_ms, failed)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    queueId,
    seq,
    outcome.received,
    outcome.stored,
    outcome.replaced,
    JSON.stringify(outcome.discarded),
    noticesText(outcome),
    Temporal.Instant.from(outcome.started).epochMilliseconds,
    Temporal.Instant.from(outcome.finished).epochMilliseconds,
    state === "failed" ? 1 : 0,
  );
}

function recordOrigin({ run }: Statements, id: number, operation: QueuedOperation): void {
  const { accountId, operationId, userId, acceptedMs, calculationId, traceLink } = operation;
  run(
    `INSERT INTO origin (id, account_id, operation_id, user_id, received_ms, calculation_id, trace_link)
      VALUES (?, ?, ?, ?, ?, ?, ?)`,
    ...[id, accountId, operationId, userId, acceptedMs, calculationId, traceLink],
  );
}

/** Thrown through `work` to its attempt: the resolved targets may be outdated. */
class StructureChanged extends Error {}

interface AttemptParts {
  readonly main: DatabaseSync;
  readonly tools: Statements;
  readonly effects: IngestEffects;
  readonly packing: Packing;
}

/**
 * Runs `work` and records its result, in one transaction. `eager` takes the writer's lock at once, `lazy`
 * only with the first write; a lazy attempt returns false, and nothing was changed, when another writer
 * changed the structure between its beginning and that moment.
 */
function createAttempts({ main, tools, effects, packing }: AttemptParts, retention: Retention, clock: Clock) {
  const targets = new TargetCache();
  const stamps = versionStamps(tools, clock);
  const points = createPointWriter(main, retention, packing);
  const structure = createStructureWatch(tools);
  const refresh = () => {
    if (!structure.hasChanged()) return;
    structure.learn();
    targets.clear();
    effects.forget();
    points.forget();
  };
  const begin = () => {
    if (main.isTransaction) return;
    main.exec("BEGIN IMMEDIATE");
    if (structure.hasChanged()) throw new StructureChanged();
    stamps.load();
  };
  const transaction: IngestTransaction = {
    findVariable: async (accountId, target) => {
      const remembered = targets.get(accountId, target);
      if (remembered !== undefined) return remembered;
      const found = findVariable(tools, accountId, target);
      targets.set(accountId, target, found);
      return found;
    },
    written: (accountId) => targets.bytesOf(accountId),
    write: async (readings) => {
      begin();
      const numbers = { firstUs: stamps.reserve(readings.length), firstOrigin: stamps.firstOrigin() };
      const written = points.write(readings, numbers);
      effects.written(readings, written);
      return written;
    },
    outputOf: async (accountId, calculationId) => drive(tools, outputOf(accountId, calculationId)),
  };
  return {
    async run(
      mode: "lazy" | "eager",
      work: (transaction: IngestTransaction) => Promise<readonly Outcome[]>,
      record: (outcomes: readonly Outcome[], firstOrigin: number) => void,
    ): Promise<boolean> {
      try {
        effects.begin();
        if (mode === "eager") main.exec("BEGIN IMMEDIATE");
        refresh();
        if (mode === "eager") stamps.load();
        const outcomes = await work(transaction);
        begin();
        record(outcomes, stamps.firstOrigin());
        stamps.save();
        main.exec("COMMIT");
        return true;
      } catch (thrown) {
        if (main.isTransaction) main.exec("ROLLBACK");
        points.forget();
        if (thrown instanceof StructureChanged && mode === "lazy") return false;
        throw thrown;
      }
    },
  };
}

/** Whether other writers have changed the structure of any account. */
function createStructureWatch({ get }: Statements) {
  /** The same as long as no other connection has committed; most commits change no structure. */
  const versionNow = () => get("PRAGMA data_version")?.["data_version"];
  const changesNow = () => get("SELECT count(*) || ' ' || sum(changes) AS changes FROM structure_change")?.["changes"];
  let version: unknown = null;
  let changes: unknown = null;
  return {
    /** Since `learn`. */
    hasChanged(): boolean {
      const newest = versionNow();
      if (newest === version) return false;
      if (changesNow() !== changes) return true;
      version = newest;
      return false;
    },
    learn(): void {
      version = versionNow();
      changes = changesNow();
    },
  };
}

/**
 * VersionTimestamps: the clock in microseconds, but strictly increasing through restarts and clocks that are
 * set back. The operations of a group have the numbers of origins from `firstOrigin` on.
 */
function versionStamps({ get, run }: Statements, clock: Clock) {
  let last = 0;
  let firstOrigin = 0;
  return {
    firstOrigin: () => firstOrigin,
    load: () => {
      const given = get("SELECT seq FROM sqlite_sequence WHERE name = 'origin'")?.["seq"];
      firstOrigin = Number(given ?? 0) + 1;
      const known = Number(get("SELECT value FROM counter WHERE name = 'version_us'")?.["value"] ?? 0);
      last = Math.max(known, Number(clock.now().epochNanoseconds / 1_000n));
    },
    /** The first of `count` consecutive stamps. */
    reserve: (count: number): number => {
      last += count;
      return last - count + 1;
    },
    save: () =>
      run(
        `INSERT INTO counter (name, value) VALUES ('version_us', ?)
          ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
        last,
      ),
  };
}

/**
 * The source first, by its index: CROSS JOIN and the plus signs keep SQLite from reading all variables of the
 * account in order of id.
 */
const FACTS_BY_SOURCE = `${FACT_COLUMNS}
  FROM source CROSS JOIN variable ON variable.source_id = source.id JOIN site ON site.id = source.site_id`;

function findVariable({ get }: Statements, accountId: number, target: TargetQuery): VariableFacts | null {
  if (target.by === "variableId") {
    const sql = `SELECT ${VARIABLE_FACTS} WHERE variable.account_id = ? AND variable.id = ?`;
    const row = get(sql, accountId, target.value);
    return row === undefined ? null : factsOf(row);
  }
  const config = target.mappingConfig === undefined ? "" : "AND variable.mapping_config = ?";
  const type = target.variableTypeId === undefined ? "" : "AND +variable.variable_type_id = ?";
  const row = get(
    `SELECT ${FACTS_BY_SOURCE} WHERE source.account_id = ? AND ${SOURCE_COLUMNS[target.by]} = ?
      AND +variable.account_id = ? ${config} ${type} ORDER BY +source.id, +variable.id LIMIT 1`,
    accountId,
    target.value,
    accountId,
    ...(target.mappingConfig === undefined ? [] : [target.mappingConfig]),
    ...(target.variableTypeId === undefined ? [] : [target.variableTypeId]),
  );
  return row === undefined ? null : factsOf(row);
}
