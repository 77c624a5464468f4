/** Links that work once, known by a hash: a reader of the store cannot use them. */
import { change, type Database, insert, row, type Steps } from "../database.ts";
import { number } from "../structure-rows.ts";

type LinkPurpose = "invitation" | "reset";

export interface NewLink {
  readonly purpose: LinkPurpose;
  /** Id of the invitation, or of the user whose password is set. */
  readonly subjectId: number;
  /** Whether it goes to the address of the user alone; absent: the one who asked for it has it. */
  readonly isMailed?: boolean;
  /** The user who has it, where that is not the subject. */
  readonly makerId?: number;
  readonly hash: string;
  readonly createdMs: number;
  readonly expiresMs: number;
}

export interface LinkStore {
  /** The subject of a link that can be used; null when there is none. Does not use it. */
  find(purpose: LinkPurpose, hash: string, nowMs: number): Promise<number | null>;
}

const OPEN = "purpose = ? AND hash = ? AND used_ms IS NULL AND expires_ms > ?";

/** For use inside a write, as the next two. */
export function* addLink({ purpose, subjectId, isMailed = false, makerId, hash, ...times }: NewLink): Steps<void> {
  yield* insert("one_time_link", {
    purpose,
    subject_id: subjectId,
    mailed: isMailed,
    maker_id: makerId,
    hash,
    created_ms: times.createdMs,
    expires_ms: times.expiresMs,
  });
}

export interface ClaimedLink {
  readonly subjectId: number;
  readonly isMailed: boolean;
}

/** Uses the link; null when it was used, has expired or does not exist. */
export function* claimLink(purpose: LinkPurpose, hash: string, nowMs: number): Steps<ClaimedLink | null> {
  const sql = `UPDATE one_time_link SET used_ms = ? WHERE ${OPEN} RETURNING subject_id, mailed`;
  const found = yield* row(sql, nowMs, purpose, hash, nowMs);
  return found === undefined ? null : { subjectId: Number(found["subject_id"]), isMailed: Boolean(found["mailed"]) };
}

/** The open links of the subject can no longer be used. */
export function* endLinks(purpose: LinkPurpose, subjectId: number, nowMs: number): Steps<void> {
  const sql = "UPDATE one_time_link SET used_ms = ? WHERE purpose = ? AND subject_id = ? AND used_ms IS NULL";
  yield* change(sql, nowMs, purpose, subjectId);
}

export function createLinkStore(database: Database): LinkStore {
  return {
    find: (purpose, hash, nowMs) =>
      database.ask(function* () {
        const found = yield* row(`SELECT subject_id FROM one_time_link WHERE ${OPEN}`, purpose, hash, nowMs);
        return number(found?.["subject_id"]);
      }),
  };
}
