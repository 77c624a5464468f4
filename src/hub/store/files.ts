/** Records of stored files. */
import { randomUUID } from "node:crypto";
import { type FileState, storedFile } from "#wire/index.ts";
import { OFFERED_FROM, statesBefore } from "../files/states.ts";
import {
  apartFor,
  change,
  type Database,
  insert,
  listed,
  type Row,
  row,
  rows,
  type Steps,
  type StoreDialect,
} from "./database.ts";
import { addEvents, type NewEvent } from "./events/events.ts";
import { containing, foldedText, type SqlValue } from "./filter-sql.ts";
import { isOwned } from "./owned.ts";
import type {
  FileAdded,
  FileChange,
  FileRecord,
  FileStore,
  FilesFilter,
  FilesRemoved,
  NewFile,
} from "./stored-files.ts";
import { jsonOf } from "./structure-rows.ts";
import { Where } from "./where.ts";

const { shape } = storedFile;
const [viaOf, stateOf] = [oneOf(shape.via), oneOf(shape.state)];
const [scanOf, kindOf] = [oneOf(shape.scan), oneOf(shape.cloudItemTypeId)];
const FAILURES: readonly FileState[] = ["quarantined", "discarded", "partly-discarded", "unclaimed"];
const FILES = { columns: "*", from: "stored_file", order: "id" };
const FIRST_USE = "INSERT INTO stored_bytes (account_id, bytes) VALUES (?, 0) ON CONFLICT DO NOTHING";
const TAKE = `UPDATE stored_bytes SET bytes = bytes + ? WHERE account_id = ?
  AND coalesce(bytes + CAST(? AS BIGINT) <= CAST(? AS BIGINT), TRUE)`;
const KEY_HOLDER = "SELECT * FROM stored_file WHERE account_id = ? AND idempotency_key = ?";
const UNANSWERED = "account_id = ? AND name = ? AND unanswered_until_ms IS NOT NULL";
/** Sending a file again may be the way to have it processed that failed or that no trigger claimed. */
const REPEATABLE = `${UNANSWERED} AND unanswered_until_ms >= ? AND state IN ('received', 'processing', 'stored')`;
const GIVE = "UPDATE stored_bytes SET bytes = bytes - ? WHERE account_id = ?";

export function createFileStore(database: Database): FileStore {
  return { ...writers(database), ...readers(database), ...scans(database) };
}

type Writers = Pick<FileStore, "add" | "answered" | "remove" | "advance" | "process">;

function writers(database: Database): Writers {
  const { dialect } = database;
  const { among } = dialect;
  return {
    add: (accountId, file, bytesMax) => database.write(() => added(dialect, accountId, file, bytesMax)),
    answered: (ids) => database.write(() => answered(dialect, ids)),
    remove: (accountId, ids) =>
      database.write(function* (): Steps<FilesRemoved> {
        const sql = `SELECT id, sha256, bytes FROM stored_file WHERE account_id = ? AND ${among("id")} ORDER BY id`;
        const found = yield* rows(`${sql}${dialect.forUpdate("stored_file")}`, accountId, ids);
        const own = new Set(found.map((one) => Number(one["id"])));
        const missing = ids.filter((id) => !own.has(id));
        if (missing.length > 0) return { kind: "missing", ids: missing };
        yield* change(`DELETE FROM stored_file WHERE account_id = ? AND ${among("id")}`, accountId, ids);
        yield* change(
          GIVE,
          found.reduce((sum, one) => sum + Number(one["bytes"]), 0),
          accountId,
        );
        return { kind: "removed", sha256s: [...new Set(found.map((one) => String(one["sha256"])))] };
      }),
    advance: (accountId, changes) =>
      database.write(function* (): Steps<readonly boolean[]> {
        const advanced: boolean[] = [];
        const events: NewEvent[] = [];
        for (const one of changes) advanced.push(yield* advance(dialect, accountId, one, events));
        yield* addEvents(events);
        return advanced;
      }),
    process: (accountId, id, { atMs, isScanned }) =>
      database.write(function* (): Steps<"offered" | "missing" | FileState> {
        const offered = yield* change(
          // A file of the custom push route was sent to its trigger, and keeps it.
          `UPDATE stored_file SET state = 'received', reason = NULL, run = NULL,
            trigger_id = CASE via WHEN 'generic' THEN trigger_id END, scan = ?, offers = offers + 1, updated_ms = ?
          WHERE id = ? AND account_id = ? AND ${among("state")}`,
          ...[isScanned ? "waiting" : "none", atMs, id, accountId, OFFERED_FROM],
        );
        const found = yield* row("SELECT * FROM stored_file WHERE id = ? AND account_id = ?", id, accountId);
        if (found === undefined) return "missing";
        const file = recordOf(found);
        if (offered === 0) return file.state;
        yield* addEvents(fileStateEvents(accountId, file, { ...file, atMs }));
        return "offered";
      }),
  };
}

type Readers = Pick<
  FileStore,
  "usedBytes" | "hasKey" | "unansweredBytes" | "list" | "one" | "waiting" | "referred" | "folderId"
>;

function readers(database: Database): Readers {
  const { dialect } = database;
  const found = async (sql: string, ...values: SqlValue[]) => {
    const all = await database.ask(() => rows(`SELECT * FROM stored_file WHERE ${sql}`, ...values));
    return all.map(recordOf);
  };
  return {
    usedBytes: (accountId) =>
      database.ask(function* () {
        const used = yield* row("SELECT bytes FROM stored_bytes WHERE account_id = ?", accountId);
        return Number(used?.["bytes"] ?? 0);
      }),
    hasKey: (accountId, key) =>
      database.ask(function* () {
        return (yield* row(KEY_HOLDER, accountId, key)) !== undefined;
      }),
    unansweredBytes: (accountId, fileName, nowMs) =>
      database.ask(function* () {
        const held = yield* row(`SELECT bytes FROM stored_file WHERE ${REPEATABLE}`, accountId, fileName, nowMs);
        return Number(held?.["bytes"] ?? 0);
      }),
    list(accountId, filter, page) {
      const { ids: _, siteIds: __, ...others } = filter;
      const where = whereOf(dialect, accountId, filter);
      return listed(apartFor(database, accountId, Object.values(others)), FILES, where, page, recordOf);
    },
    one: async (accountId, id) => (await found("id = ? AND account_id = ?", id, accountId))[0] ?? null,
    waiting: (accountId, limit) =>
      found("account_id = ? AND state = 'received' AND scan <> 'waiting' ORDER BY id LIMIT ?", accountId, limit),
    referred: (sha256s) =>
      database.ask(function* () {
        const sql = `SELECT DISTINCT sha256 FROM stored_file WHERE ${dialect.among("sha256")}`;
        const named = yield* rows(sql, sha256s);
        return new Set(named.map((one) => String(one["sha256"])));
      }),
    folderId: () =>
      database.write(function* () {
        const sql = "INSERT INTO stored_file_folder (one, id) VALUES (1, ?) ON CONFLICT DO NOTHING";
        yield* change(sql, randomUUID());
        return String((yield* row("SELECT id FROM stored_file_folder"))?.["id"]);
      }),
  };
}

type ScanMethods = Pick<FileStore, "unscannedAccounts" | "unscanned" | "releaseUnscanned" | "scanned">;

function scans(database: Database): ScanMethods {
  return {
    unscannedAccounts: () =>
      database.ask(function* () {
        const sql = "SELECT DISTINCT account_id FROM stored_file WHERE scan = 'waiting' ORDER BY account_id";
        return (yield* rows(sql)).map((found) => Number(found["account_id"]));
      }),
    unscanned: (accountId, afterId) =>
      database.ask(function* () {
        const of = "scan = 'waiting' AND account_id = ? AND id > ?";
        const found = yield* row(`SELECT * FROM stored_file WHERE ${of} ORDER BY id LIMIT 1`, accountId, afterId);
        return found === undefined ? null : recordOf(found);
      }),
    async releaseUnscanned() {
      await database.run("UPDATE stored_file SET scan = 'none' WHERE scan = 'waiting'");
    },
    async scanned(accountId, id, verdict, atMs) {
      const own = "WHERE id = ? AND account_id = ? AND scan = 'waiting'";
      if (verdict.kind === "clean") await database.run(`UPDATE stored_file SET scan = 'clean' ${own}`, id, accountId);
      else
        await database.write(function* () {
          const set = "scan = 'infected', state = 'quarantined', reason = ?, updated_ms = ?";
          const sql = `UPDATE stored_file SET ${set} ${own} RETURNING *`;
          const found = yield* row(sql, verdict.reason, atMs, id, accountId);
          if (found === undefined) return;
          const file = recordOf(found);
          yield* addEvents(fileStateEvents(accountId, file, { ...file, atMs }));
        });
    },
  };
}

/** The row of the account makes uploads at the same time wait for each other. */
function* oneAtATime(dialect: StoreDialect, accountId: number): Steps<void> {
  yield* row(`SELECT bytes FROM stored_bytes WHERE account_id = ?${dialect.forUpdate("stored_bytes")}`, accountId);
}

/** Adds the event of the change, if there is one, to `events`. */
function* advance(dialect: StoreDialect, accountId: number, file: FileChange, events: NewEvent[]): Steps<boolean> {
  const { id, state, reason, atMs, run, triggerId, offers = null } = file;
  const held = `SELECT * FROM stored_file WHERE id = ? AND account_id = ?${dialect.forUpdate("stored_file")}`;
  const before = yield* row(held, id, accountId);
  if (before === undefined) return false;
  const columns: readonly (readonly [string, SqlValue])[] = [
    ["state", state],
    ["reason", reason],
    ...(run === undefined ? [] : [["run", run] as const]),
    ...(triggerId === undefined ? [] : [["trigger_id", triggerId] as const]),
  ];
  const sql = `UPDATE stored_file SET ${columns.map(([name]) => `${name} = ?`).join(", ")},
      updated_ms = CASE state WHEN ? THEN updated_ms ELSE ? END
    WHERE id = ? AND account_id = ? AND offers = coalesce(CAST(? AS BIGINT), offers) AND ${dialect.among("state")}`;
  const values = [...columns.map(([, value]) => value), state, atMs];
  if ((yield* change(sql, ...values, id, accountId, offers, statesBefore(state))) === 0) return false;
  const known = recordOf(before);
  const changed = { state, reason, atMs, run: run ?? known.run, triggerId: triggerId ?? known.triggerId };
  if (known.state !== state) events.push(...fileStateEvents(accountId, known, changed));
  return true;
}

function* added(dialect: StoreDialect, accountId: number, file: NewFile, bytesMax: number | null): Steps<FileAdded> {
  const { size, siteId, createdMs, idempotencyKey = null } = file;
  yield* change(FIRST_USE, accountId);
  if (idempotencyKey !== null) {
    yield* oneAtATime(dialect, accountId);
    const earlier = yield* row(KEY_HOLDER, accountId, idempotencyKey);
    if (earlier !== undefined) return yield* repeated(recordOf(earlier), file);
  }
  if (file.unansweredUntilMs !== undefined) {
    yield* oneAtATime(dialect, accountId);
    yield* answered(dialect, file.answered ?? []);
    const earlier = yield* row(`SELECT * FROM stored_file WHERE ${REPEATABLE}`, accountId, file.fileName, createdMs);
    if (earlier?.["sha256"] === file.sha256) return yield* again(Number(earlier["id"]), createdMs);
    // Its sender continues with another content of this name.
    yield* change(`UPDATE stored_file SET unanswered_until_ms = NULL WHERE ${UNANSWERED}`, accountId, file.fileName);
  }
  if (siteId !== null && !(yield* isOwned(dialect, "site", siteId, accountId))) return { kind: "no-site" };
  if ((yield* change(TAKE, size, accountId, size, bytesMax)) === 0) return { kind: "full" };
  const id = yield* insert("stored_file", columnsOf(accountId, file));
  const { unclaimed: reason = null, triggerId } = file;
  const state = reason === null ? ("received" as const) : ("unclaimed" as const);
  const stated = { state, reason, atMs: createdMs, triggerId, isFailure: false };
  yield* addEvents(fileStateEvents(accountId, { ...file, id }, stated));
  return { kind: "added", id };
}

function* answered({ among }: StoreDialect, ids: readonly number[]): Steps<void> {
  if (ids.length > 0) yield* change(`UPDATE stored_file SET unanswered_until_ms = NULL WHERE ${among("id")}`, ids);
}

/** The name of a pushed file is often made from the time. */
function* repeated(earlier: FileRecord, file: NewFile): Steps<FileAdded> {
  const isSame =
    earlier.sha256 === file.sha256 &&
    earlier.via === file.via &&
    (file.via === "generic" ? earlier.triggerId === file.triggerId : earlier.fileName === file.fileName);
  return isSame ? yield* again(earlier.id, file.createdMs) : { kind: "conflict", id: earlier.id };
}

function* again(id: number, atMs: number): Steps<FileAdded> {
  yield* change("UPDATE stored_file SET repeated_ms = ? WHERE id = ?", atMs, id);
  return { kind: "repeated", id };
}

function whereOf(dialect: StoreDialect, accountId: number, filter: FilesFilter): Where {
  const where = new Where(dialect)
    .equal("account_id", accountId)
    .among("id", filter.ids)
    .among("site_id", filter.siteIds)
    .sharing("tags", filter.tags)
    .among("kind", filter.kinds)
    .among("state", filter.states)
    .amongRows("site_id", "SELECT id FROM site", "type_id", filter.siteTypeIds)
    .amongRows("site_id", "SELECT site_id FROM site_group_member", "group_id", filter.groupIds);
  if (filter.names !== undefined) {
    const names = filter.names.map(foldedText);
    const either = ["name", "base_name"].map((column) => dialect.among(dialect.folded(column)));
    where.condition({ sql: `(${either.join(" OR ")})`, values: [names, names] });
  }
  if (filter.text !== undefined) {
    const inName = containing("name", filter.text, dialect);
    const inTag = containing("held.value", filter.text, dialect);
    const sql = `(${inName.sql} OR EXISTS (SELECT 1 FROM ${dialect.labels("tags")} WHERE ${inTag.sql}))`;
    where.condition({ sql, values: [...inName.values, ...inTag.values] });
  }
  return where;
}

// Events about the states of stored files.

interface StatedFile {
  readonly id: number;
  readonly fileName: string;
  readonly siteId: number | null;
  readonly size: number;
  readonly via: string;
}

interface FileStateChange {
  readonly state: FileState;
  readonly reason: string | null;
  readonly atMs: number;
  readonly run?: string | null | undefined;
  readonly triggerId?: number | null | undefined;
  /** Whether a person should see it, where the state does not say. */
  readonly isFailure?: boolean;
}

/** None of `processing`, in which a file is for a moment. */
function fileStateEvents(accountId: number, file: StatedFile, changed: FileStateChange): readonly NewEvent[] {
  const { state, reason, atMs, run = null, triggerId = null, isFailure = FAILURES.includes(state) } = changed;
  if (state === "processing") return [];
  const { id, fileName, siteId, size, via } = file;
  return [
    {
      ...{
        accountId,
        type: "file.state",
        subject: { kind: "file", id, name: fileName },
        atMs,
        state,
        isFailure,
        siteId,
      },
      facts: { reason, size, via, triggerId, run },
    },
  ];
}

// Converts records of stored files from and to rows of both databases.

function columnsOf(accountId: number, file: NewFile) {
  return {
    account_id: accountId,
    name: file.fileName,
    base_name: file.fileName.slice(file.fileName.lastIndexOf("/") + 1),
    bytes: file.size,
    sha256: file.sha256,
    kind: file.cloudItemTypeId,
    content_type: file.contentType,
    tags: jsonOf(file.tags),
    site_id: file.siteId,
    created_ms: file.createdMs,
    created_by: file.createdBy,
    created_by_id: file.createdById ?? null,
    via: file.via,
    state: file.unclaimed === undefined ? "received" : "unclaimed",
    reason: file.unclaimed ?? null,
    trigger_id: file.triggerId,
    scan: file.isScanned ? "waiting" : "none",
    updated_ms: file.createdMs,
    idempotency_key: file.idempotencyKey ?? null,
    webhook_url: file.webhookUrl ?? null,
    unanswered_until_ms: file.unansweredUntilMs ?? null,
  };
}

/** Many records are read for each file: a schema takes ten times as long. */
function oneOf<Name extends string>({ options }: { readonly options: readonly Name[] }): (value: unknown) => Name {
  const names = new Map<unknown, Name>(options.map((name) => [name, name]));
  return (value) => {
    const name = names.get(value);
    if (name === undefined) throw new RangeError(`a stored file has the unknown value ${String(value)}`);
    return name;
  };
}

function recordOf(one: Row): FileRecord {
  const text = (column: string) => (one[column] === null ? null : String(one[column]));
  const number = (column: string) => (one[column] === null ? null : Number(one[column]));
  return {
    id: Number(one["id"]),
    accountId: Number(one["account_id"]),
    fileName: String(one["name"]),
    size: Number(one["bytes"]),
    sha256: String(one["sha256"]),
    cloudItemTypeId: kindOf(one["kind"]),
    contentType: String(one["content_type"]),
    tags: JSON.parse(String(one["tags"])),
    siteId: number("site_id"),
    createdMs: Number(one["created_ms"]),
    createdBy: String(one["created_by"]),
    createdById: number("created_by_id"),
    via: viaOf(one["via"]),
    state: stateOf(one["state"]),
    reason: text("reason"),
    updatedMs: Number(one["updated_ms"]),
    repeatedMs: number("repeated_ms"),
    webhookUrl: text("webhook_url"),
    offers: Number(one["offers"]),
    triggerId: number("trigger_id"),
    run: text("run"),
    scan: scanOf(one["scan"]),
  };
}
