/** File triggers of accounts, and the history of their changes. */
import {
  type FileTriggerChange,
  type FileTriggerFields,
  fileTriggerChange,
  fileTriggerFields,
  type IngestionType,
  type StoredFileTrigger,
  storedFileTrigger,
} from "#wire/index.ts";
import { isoOfMs } from "../time.ts";
import { change, type Database, insert, listed, type Row, row, rows, type Steps, update } from "./database.ts";
import { addChangeEvent, addStructureEvent, type ChangedStructure } from "./events/structure-events.ts";
import { requireRoom } from "./owned.ts";
import type { Listing, Page } from "./records.ts";
import { jsonOf, text } from "./structure-rows.ts";
import { Where } from "./where.ts";

export interface FileTriggersFilter {
  readonly ids?: readonly number[] | undefined;
  readonly states?: readonly FileTriggerFields["state"][] | undefined;
  readonly ingestionTypes?: readonly IngestionType[] | undefined;
  /** In lower case. */
  readonly tokens?: readonly string[] | undefined;
}

/** The author and the time of a change. */
export interface Edit {
  readonly by: string;
  readonly atMs: number;
}

/** Each change adds an entry to the history. A token stays reserved for its trigger for ever, over all accounts. */
export interface FileTriggerStore {
  /** Returns the id; `taken`: another trigger has or had the token. Throws `AccountFull` beyond `most`. */
  create(accountId: number, fields: FileTriggerFields, edit: Edit, most: number): Promise<number | "taken">;
  /** Ordered by id. */
  list(accountId: number, filter: FileTriggersFilter, page: Page): Promise<Listing<StoredFileTrigger>>;
  /** `changed` may throw, and then nothing is written; so it is when it returns the current fields. */
  change(
    accountId: number,
    id: number,
    changed: (current: StoredFileTrigger) => FileTriggerFields,
    edit: Edit,
  ): Promise<StoredFileTrigger | "missing" | "taken">;
  /** Sets the state Deleted. When the account does not have all of them, nothing is written. */
  remove(accountId: number, ids: readonly number[], edit: Edit): Promise<RemovedTriggers>;
  /** Greater after every change of a trigger of the account; 0 before the first. */
  version(accountId: number): Promise<number>;
  /** Newest first. */
  history(accountId: number, id: number, page: Page): Promise<Listing<FileTriggerChange>>;
}

interface RemovedTriggers {
  /** Ids that the account does not have. */
  readonly missing: readonly number[];
  /** How many were not deleted before. */
  readonly removed: number;
}

const TRIGGERS = { columns: "*", from: "file_trigger", order: "id" };
const CHANGES = {
  columns: "file_trigger_change.*",
  from: "file_trigger_change JOIN file_trigger ON file_trigger.id = file_trigger_change.trigger_id",
  order: "file_trigger_change.id DESC",
};

export function createFileTriggerStore(database: Database): FileTriggerStore {
  return { ...readers(database), ...writers(database) };
}

function readers(database: Database): Pick<FileTriggerStore, "list" | "version" | "history"> {
  const { dialect } = database;
  return {
    list(accountId, { ids, states, ingestionTypes, tokens }, page) {
      const where = new Where(dialect)
        .equal("account_id", accountId)
        .among("id", ids)
        .among("state", states)
        .among("ingestion_type", ingestionTypes)
        .among("token", tokens);
      return listed(database, TRIGGERS, where, page, triggerOf);
    },
    version: (accountId) =>
      database.ask(function* () {
        const sql = `SELECT count(*) AS version FROM ${CHANGES.from} WHERE account_id = ?`;
        return Number((yield* row(sql, accountId))?.["version"] ?? 0);
      }),
    history(accountId, id, page) {
      const where = new Where(dialect).equal("file_trigger.account_id", accountId).equal("trigger_id", id);
      return listed(database, CHANGES, where, page, changeOf);
    },
  };
}

function writers(database: Database): Pick<FileTriggerStore, "create" | "change" | "remove"> {
  const { dialect } = database;
  return {
    create: (accountId, fields, edit, most) =>
      unlessTaken(
        database.write(function* () {
          yield* requireRoom(dialect, accountId, "file_trigger", most);
          const { by, atMs } = edit;
          const edits = { creation_ms: atMs, created_by: by, last_edit_ms: atMs, edited_by: by };
          const id = yield* insert("file_trigger", { account_id: accountId, ...columnsOf(fields), ...edits });
          yield* reserve(fields.token, id);
          yield* record(id, null, fields, edit);
          const facts = { by };
          yield* addStructureEvent(accountId, "created", { kind: "fileTrigger", id, name: fields.name, facts, atMs });
          return id;
        }),
      ),
    change: (accountId, id, changed, edit) =>
      unlessTaken(
        database.write(function* (): Steps<StoredFileTrigger | "missing"> {
          const sql = `SELECT * FROM file_trigger WHERE id = ? AND account_id = ?${dialect.forUpdate("file_trigger")}`;
          const found = yield* row(sql, id, accountId);
          if (found === undefined) return "missing";
          const current = triggerOf(found);
          const fields = changed(current);
          if (fields.token !== current.token) yield* reserve(fields.token, id);
          yield* write(current, fields, edit);
          const after = triggerOf((yield* row(sql, id, accountId)) ?? found);
          yield* addChangeEvent(accountId, eventFields(current), eventFields(after), eventOf(after, edit));
          return after;
        }),
      ),
    remove: (accountId, ids, edit) =>
      database.write(function* () {
        const owned = `SELECT * FROM file_trigger WHERE account_id = ? AND ${dialect.among("id")} ORDER BY id`;
        const found = (yield* rows(`${owned}${dialect.forUpdate("file_trigger")}`, accountId, ids)).map(triggerOf);
        const missing = ids.filter((id) => !found.some((trigger) => trigger.id === id));
        if (missing.length > 0) return { missing, removed: 0 };
        const left = found.filter(({ state }) => state !== "Deleted");
        for (const trigger of left) yield* write(trigger, { ...trigger, state: "Deleted" }, edit);
        const [first] = left;
        const more = { others: left.slice(1).map(({ id }) => id) };
        if (first !== undefined) yield* addStructureEvent(accountId, "removed", eventOf(first, edit, more));
        return { missing, removed: left.length };
      }),
  };
}

function eventOf({ id, name }: StoredFileTrigger, { by, atMs }: Edit, more: object = {}): ChangedStructure {
  return { kind: "fileTrigger", id, name, facts: { by, ...more }, atMs };
}

/** The fields that a person changes. */
function eventFields(trigger: StoredFileTrigger): object {
  return fileTriggerFields.parse(trigger);
}

/** Rolls the transaction back. */
class TokenTaken extends Error {}

async function unlessTaken<T>(written: Promise<T>): Promise<T | "taken"> {
  try {
    return await written;
  } catch (thrown) {
    if (thrown instanceof TokenTaken) return "taken";
    throw thrown;
  }
}

/** Throws `TokenTaken`. A transaction that reserves the same token at the same time is waited for. */
function* reserve(token: string, id: number): Steps<void> {
  yield* change("INSERT INTO file_trigger_token (token, trigger_id) VALUES (?, ?) ON CONFLICT DO NOTHING", token, id);
  const held = yield* row("SELECT trigger_id FROM file_trigger_token WHERE token = ?", token);
  if (Number(held?.["trigger_id"]) !== id) throw new TokenTaken();
}

function* write(current: StoredFileTrigger, changed: FileTriggerFields, edit: Edit): Steps<void> {
  const before = fileTriggerFields.parse(current);
  const after = fileTriggerFields.parse(changed);
  if (jsonOf(before) === jsonOf(after)) return;
  yield* update("file_trigger", current.id, { ...columnsOf(after), last_edit_ms: edit.atMs, edited_by: edit.by });
  yield* record(current.id, before, after, edit);
}

function* record(id: number, before: FileTriggerFields | null, after: FileTriggerFields, edit: Edit): Steps<void> {
  yield* insert("file_trigger_change", {
    trigger_id: id,
    at_ms: edit.atMs,
    changed_by: edit.by,
    state: stateOfChange(before, after),
    before: before === null ? null : jsonOf(before),
    after: jsonOf(after),
  });
}

/** The new state when nothing else changed; otherwise Updated, except for a removal. */
function stateOfChange(before: FileTriggerFields | null, after: FileTriggerFields): FileTriggerFields["state"] {
  if (before === null || after.state === "Deleted") return after.state;
  return jsonOf({ ...before, state: after.state }) === jsonOf(after) ? after.state : "Updated";
}

function columnsOf(fields: FileTriggerFields) {
  return {
    name: fields.name,
    file_type: fields.fileType,
    ingestion_type: fields.ingestionType,
    trigger_type: fields.triggerType,
    patterns: jsonOf(fields.fileNamePatternMatches),
    combination: fields.fileTriggerCombination,
    state: fields.state,
    token: fields.token,
    mapping: fields.mapping,
    metadata: jsonOf(fields.metadata),
  };
}

function triggerOf(found: Row): StoredFileTrigger {
  return storedFileTrigger.parse({
    id: Number(found["id"]),
    name: text(found["name"]),
    fileType: found["file_type"],
    ingestionType: found["ingestion_type"],
    triggerType: found["trigger_type"],
    fileNamePatternMatches: JSON.parse(String(found["patterns"])),
    fileTriggerCombination: found["combination"],
    state: found["state"],
    token: found["token"],
    mapping: text(found["mapping"]),
    metadata: JSON.parse(String(found["metadata"])),
    creationDate: isoOfMs(Number(found["creation_ms"])),
    createdBy: found["created_by"],
    lastEditDate: isoOfMs(Number(found["last_edit_ms"])),
    editedBy: found["edited_by"],
  });
}

function changeOf(found: Row): FileTriggerChange {
  const before = text(found["before"]);
  return fileTriggerChange.parse({
    id: Number(found["id"]),
    date: isoOfMs(Number(found["at_ms"])),
    by: found["changed_by"],
    state: found["state"],
    before: before === null ? null : JSON.parse(before),
    after: JSON.parse(String(found["after"])),
  });
}
