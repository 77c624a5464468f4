/** Converts records of stored files from and to rows of both databases. */
import { storedFile } from "#wire/index.ts";
import type { Row } from "../database.ts";
import type { FileRecord, NewFile } from "../store.ts";
import { jsonOf } from "../structure-rows.ts";

export function columnsOf(accountId: number, file: NewFile) {
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

const { shape } = storedFile;
const [viaOf, stateOf] = [oneOf(shape.via), oneOf(shape.state)];
const [scanOf, kindOf] = [oneOf(shape.scan), oneOf(shape.cloudItemTypeId)];

export function recordOf(one: Row): FileRecord {
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
