/** The writer of points: its own thread, its own connections; one operation a transaction. */
import type { DatabaseSync } from "node:sqlite";
import type { Clock } from "../../../support/clock.ts";
import type { IngestStore, IngestTransaction, TargetQuery, VariableFacts, WriteReading } from "../store.ts";
import { factsOf, VARIABLE_FACTS } from "../structure-rows.ts";
import { openDatabase, type Statements, statements } from "./database.ts";
import { intakePath } from "./index.ts";
import { intakeId } from "./operations.ts";

const WRITER_TIMEOUT_MS = 30_000;

const SOURCE_COLUMNS: Readonly<Record<Exclude<TargetQuery["by"], "variableId">, string>> = {
  sourceId: "source.id",
  sourceSerialNumber: "source.serial_number",
  sourceEan: "source.ean",
  sourceName: "source.name",
  meterNumber: "source.meter_number",
};

/** The files exist and are up to date: `openSqliteStore` came first. */
export function openSqliteIngest(path: string, versionsMax: number, clock: Clock): IngestStore {
  const main = openDatabase({ path, migrations: null, timeoutMs: WRITER_TIMEOUT_MS });
  const intake = openDatabase({
    path: intakePath(path),
    migrations: null,
    timeoutMs: WRITER_TIMEOUT_MS,
    readOnly: true,
  });
  const queueId = intakeId(intake);
  const tools = statements(main);
  const queue = statements(intake);
  const stamps = versionStamps(tools, clock);
  const transaction: IngestTransaction = {
    findVariable: async (accountId, target) => findVariable(tools, accountId, target),
    write: async (variable, readings) =>
      variable.isVersioned
        ? writeVersions(tools, variable, readings, versionsMax, stamps)
        : overwrite(tools, variable, readings),
  };
  return {
    async next(afterSeq) {
      const sql = `SELECT operation.seq, account_id, operation_id, received, bytes FROM operation JOIN body USING (seq)
        WHERE state = 'accepted' AND operation.seq > ? ORDER BY operation.seq LIMIT 1`;
      const row = queue.get(sql, afterSeq);
      if (row === undefined) return null;
      return {
        seq: Number(row["seq"]),
        accountId: Number(row["account_id"]),
        operationId: String(row["operation_id"]),
        received: Number(row["received"]),
        body: row["bytes"] as Uint8Array,
      };
    },
    async apply(seq, work) {
      main.exec("BEGIN IMMEDIATE");
      try {
        if (tools.get("SELECT 1 FROM outcome WHERE intake_id = ? AND seq = ?", queueId, seq) !== undefined) {
          main.exec("ROLLBACK");
          return "already";
        }
        stamps.load();
        const outcome = await work(transaction);
        stamps.save();
        tools.run(
          `INSERT INTO outcome (intake_id, seq, received, stored, replaced, discarded, started_ms, finished_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
          queueId,
          seq,
          outcome.received,
          outcome.stored,
          outcome.replaced,
          JSON.stringify(outcome.discarded),
          Temporal.Instant.from(outcome.started).epochMilliseconds,
          Temporal.Instant.from(outcome.finished).epochMilliseconds,
        );
        main.exec("COMMIT");
        return "applied";
      } catch (thrown) {
        rollBack(main);
        throw thrown;
      }
    },
    async close() {
      intake.close();
      main.close();
    },
  };
}

function rollBack(database: DatabaseSync): void {
  if (database.isTransaction) database.exec("ROLLBACK");
}

/** VersionTimestamps: the clock in microseconds, but strictly increasing through restarts and clocks set back. */
function versionStamps({ get, run }: Statements, clock: Clock) {
  let last = 0;
  return {
    load: () => {
      const known = Number(get("SELECT value FROM counter WHERE name = 'version_us'")?.["value"] ?? 0);
      last = Math.max(known, Number(clock.now().epochNanoseconds / 1_000n));
    },
    next: () => {
      last += 1;
      return last;
    },
    save: () =>
      run(
        "INSERT INTO counter (name, value) VALUES ('version_us', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        last,
      ),
  };
}

function findVariable({ get }: Statements, accountId: number, target: TargetQuery): VariableFacts | null {
  const select = `SELECT ${VARIABLE_FACTS} WHERE variable.account_id = ?`;
  if (target.by === "variableId") {
    const row = get(`${select} AND variable.id = ?`, accountId, target.value);
    return row === undefined ? null : factsOf(row);
  }
  const config = target.mappingConfig === undefined ? "" : "AND variable.mapping_config = ?";
  const type = target.variableTypeId === undefined ? "" : "AND variable.variable_type_id = ?";
  const row = get(
    `${select} AND source.account_id = ? AND ${SOURCE_COLUMNS[target.by]} = ? ${config} ${type} ORDER BY source.id, variable.id LIMIT 1`,
    accountId,
    accountId,
    target.value,
    ...(target.mappingConfig === undefined ? [] : [target.mappingConfig]),
    ...(target.variableTypeId === undefined ? [] : [target.variableTypeId]),
  );
  return row === undefined ? null : factsOf(row);
}

const INSERT_POINT =
  "INSERT OR IGNORE INTO point (value, version, tags, batch_tags, variable_id, at_ms) VALUES (?, ?, ?, ?, ?, ?)";
const UPDATE_POINT =
  "UPDATE point SET value = ?, version = ?, tags = ?, batch_tags = ? WHERE variable_id = ? AND at_ms = ?";

/** Returns 1 when a value was there. */
function putPoint({ run }: Statements, id: number, reading: WriteReading): number {
  const { atMs, value, version, tags, batchTags } = reading;
  if (run(INSERT_POINT, value, version, tags, batchTags, id, atMs).changes === 1) return 0;
  run(UPDATE_POINT, value, version, tags, batchTags, id, atMs);
  return 1;
}

function overwrite(tools: Statements, { id }: VariableFacts, readings: readonly WriteReading[]): number {
  let replaced = 0;
  for (const reading of readings) replaced += putPoint(tools, id, reading);
  return replaced;
}

/** Same tag: that entry is replaced. Otherwise a new version; beyond the limit the oldest of its kind (tagged, untagged) goes. */
function writeVersions(
  tools: Statements,
  { id }: VariableFacts,
  readings: readonly WriteReading[],
  versionsMax: number,
  stamps: ReturnType<typeof versionStamps>,
): number {
  let replaced = 0;
  for (const reading of readings) {
    const { atMs, value, version, tags, batchTags } = reading;
    const known = putPoint(tools, id, reading) === 1;
    if (known && version !== null)
      replaced += tools.run(
        "DELETE FROM point_version WHERE variable_id = ? AND at_ms = ? AND version = ?",
        id,
        atMs,
        version,
      ).changes;
    tools.run(
      "INSERT INTO point_version (variable_id, at_ms, version_us, value, version, tags, batch_tags) VALUES (?, ?, ?, ?, ?, ?, ?)",
      id,
      atMs,
      stamps.next(),
      value,
      version,
      tags,
      batchTags,
    );
    if (known)
      tools.run(
        `DELETE FROM point_version WHERE variable_id = ? AND at_ms = ? AND version_us IN (SELECT version_us FROM point_version
          WHERE variable_id = ? AND at_ms = ? AND (version IS NULL) = ? ORDER BY version_us DESC LIMIT -1 OFFSET ?)`,
        id,
        atMs,
        id,
        atMs,
        version === null ? 1 : 0,
        versionsMax,
      );
  }
  return replaced;
}
