/**
 * The receipts of bodies that the intake received: their senders, their routes, and the responses. A receipt
 * is committed before its body gets its final name, and the body is durable before the response: so a body
 * that is still under its temporary name is completed at the next start, and a repeated request gets the same
 * response.
 */
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { createPrivateFile } from "#core/private-files.ts";

type IntakeRoute = "data" | "generic" | "storage";

/** In the intake's folder of the spool. */
export const RECEIPTS_FILE = "receipts.sqlite";

export interface Receipt {
  /**
   * Microseconds since 1970 when it was received, strictly increasing; the id that `POST /storage` returns.
   */
  readonly id: number;
  /** Relative to the folder of the bodies. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  readonly mtime: string;
  /** Lower-case hexadecimal SHA-256 of the body. */
  readonly sha256: string;
  readonly route: IntakeRoute;
  readonly username: string;
  readonly service: string;
  readonly operationId: string | null;
  readonly idempotencyKey: string | null;
  /** The guid of the route `/api/generic/{guid}`. */
  readonly token: string | null;
  /** JSON text: content type, and the Tag and SiteId of an upload. */
  readonly details: string;
  /** JSON text of the response to the sender. */
  readonly answer: string;
}

export interface RepeatQuestion {
  readonly username: string;
  readonly route: IntakeRoute;
  readonly sha256: string;
  readonly operationId: string | null;
  readonly idempotencyKey: string | null;
}

export type Repeat = { readonly kind: "repeat"; readonly receipt: Receipt } | { readonly kind: "conflict" };

const SCHEMA = `
CREATE TABLE IF NOT EXISTS receipt (
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL UNIQUE,
  size INTEGER NOT NULL,
  mtime TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  route TEXT NOT NULL,
  username TEXT NOT NULL,
  service TEXT NOT NULL,
  operation_id TEXT,
  idempotency_key TEXT,
  token TEXT,
  details TEXT NOT NULL,
  answer TEXT NOT NULL,
  lying INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX IF NOT EXISTS receipt_lying ON receipt (id) WHERE lying = 1;
CREATE INDEX IF NOT EXISTS receipt_operation ON receipt (username, operation_id) WHERE operation_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS receipt_key ON receipt (username, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE TABLE IF NOT EXISTS secret (name TEXT PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
`;
const PAGE = 500;
const BUSY_TIMEOUT_MS = 5_000;

export class Receipts {
  readonly #db: DatabaseSync;
  #lastId: number;
  #waitingBytes: number;
  /** Receipts whose bodies are not renamed yet. */
  readonly #promised = new Set<number>();

  constructor(path: string, readOnly = false) {
    if (!readOnly) createPrivateFile(path);
    this.#db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, readOnly });
    if (!readOnly) this.#db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; ${SCHEMA}`);
    this.#lastId = Number(this.#one("SELECT max(id) AS id FROM receipt")?.["id"] ?? 0);
    this.#waitingBytes = Number(this.#one("SELECT sum(size) AS bytes FROM receipt WHERE lying = 1")?.["bytes"] ?? 0);
  }

  /** For a process beside the owner of the receipts. */
  static toRead(path: string): Receipts {
    return new Receipts(path, true);
  }

  /** Bytes of bodies that are not finished yet. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  nextId(nowMs: number): number {
    this.#lastId = Math.max(this.#lastId + 1, Math.trunc(nowMs) * 1_000);
    return this.#lastId;
  }

  /** An earlier body of the same sender that this one repeats, or null. */
  repeatOf(asked: RepeatQuestion): Repeat | null {
    const { username, route, sha256 } = asked;
    if (asked.idempotencyKey !== null) {
      const sql = "SELECT * FROM receipt WHERE username = ? AND idempotency_key = ? ORDER BY id LIMIT 1";
      const row = this.#one(sql, username, asked.idempotencyKey);
      if (row !== undefined)
        return row["sha256"] === sha256 && row["route"] === route
          ? { kind: "repeat", receipt: receiptOf(row) }
          : { kind: "conflict" };
    }
    if (asked.operationId === null) return null;
    const sql =
      "SELECT * FROM receipt WHERE username = ? AND operation_id = ? AND sha256 = ? AND route = ? ORDER BY id LIMIT 1";
    const row = this.#one(sql, username, asked.operationId, sha256, route);
    return row === undefined ? null : { kind: "repeat", receipt: receiptOf(row) };
  }

  /** Not returned by `waiting` until the body is in its place (`placed`). */
  add(receipt: Receipt): void {
    this.#db
      .prepare(
        `INSERT INTO receipt (id, path, size, mtime, sha256, route, username, service, operation_id,
idempotency_key, token, details, answer)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      )
      .run(
        receipt.id,
        receipt.path,
        receipt.size,
        receipt.mtime,
        receipt.sha256,
        receipt.route,
        receipt.username,
        receipt.service,
        receipt.operationId,
        receipt.idempotencyKey,
        receipt.token,
        receipt.details,
        receipt.answer,
      );
    this.#promised.add(receipt.id);
    this.#waitingBytes += receipt.size;
  }

  placed(receipt: Receipt): void {
    this.#promised.delete(receipt.id);
  }

  /** The rename of the body failed: the body was not acknowledged. */
  withdraw(receipt: Receipt): void {
    this.#db.prepare("DELETE FROM receipt WHERE id = ?").run(receipt.id);
    this.#promised.delete(receipt.id);
    this.#waitingBytes -= receipt.size;
  }

  byId(id: number): Receipt | null {
    const row = this.#one("SELECT * FROM receipt WHERE id = ?", id);
    return row === undefined ? null : receiptOf(row);
  }

  byPath(path: string): Receipt | null {
    const row = this.#one("SELECT * FROM receipt WHERE path = ?", path);
    return row === undefined ? null : receiptOf(row);
  }

  /** Bodies that are not finished, in the order in which they were received. */
  *waiting(): Generator<Receipt> {
    const page = this.#db.prepare("SELECT * FROM receipt WHERE lying = 1 AND id > ? ORDER BY id LIMIT ?");
    for (let after = 0, more = true; more; ) {
      const rows = page.all(after, PAGE).map(receiptOf);
      yield* rows.filter(({ id }) => !this.#promised.has(id));
      more = rows.length === PAGE;
      after = rows.at(-1)?.id ?? after;
    }
  }

  /** The body has left its path. */
  left(path: string): void {
    const row = this.#one("UPDATE receipt SET lying = 0 WHERE path = ? AND lying = 1 RETURNING size", path);
    this.#waitingBytes -= Number(row?.["size"] ?? 0);
  }

  /** Forgets finished bodies that were received before then. */
  forget(beforeMs: number): void {
    this.#db.prepare("DELETE FROM receipt WHERE lying = 0 AND id < ?").run(Math.max(0, Math.trunc(beforeMs) * 1_000));
  }

  /** Bytes kept under a name, created on the first call. */
  secret(name: string, make: () => Buffer): Buffer {
    const known = this.#one("SELECT bytes FROM secret WHERE name = ?", name)?.["bytes"];
    if (known instanceof Uint8Array) return Buffer.from(known);
    const made = make();
    this.#db.prepare("INSERT INTO secret (name, bytes) VALUES (?, ?)").run(name, made);
    return made;
  }

  close(): void {
    this.#db.close();
  }

  #one(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#db.prepare(sql).get(...values);
  }
}

type Row = Readonly<Record<string, unknown>>;

function receiptOf(row: Row): Receipt {
  const textOrNull = (value: unknown) => (typeof value === "string" ? value : null);
  return {
    id: Number(row["id"]),
    path: String(row["path"]),
    size: Number(row["size"]),
    mtime: String(row["mtime"]),
    sha256: String(row["sha256"]),
    route: row["route"] as IntakeRoute,
    username: String(row["username"]),
    service: String(row["service"]),
    operationId: textOrNull(row["operation_id"]),
    idempotencyKey: textOrNull(row["idempotency_key"]),
    token: textOrNull(row["token"]),
    details: String(row["details"]),
    answer: String(row["answer"]),
  };
}
