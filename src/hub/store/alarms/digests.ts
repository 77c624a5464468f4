/**
 * Mails about alarms, so many of an account in an hour. Further ones wait until an hour after the first of them, and
 * each recipient gets one mail that names them. Written with the change, so that nothing is lost.
 */
import { change, type Database, insert, row, rows, type Steps } from "../database.ts";
import { type MailContent, type NewMail, queueMail } from "../mail/mails.ts";

const HOUR_MS = 3_600_000;
/** Recipients whose digests one transaction writes. */
const RECIPIENTS = 100;

export interface AlarmMail extends NewMail {
  /** When and what, for the mail that names many changes. */
  readonly line: string;
}

/** The mails that one recipient was not sent by themselves. */
export interface AlarmDigest {
  readonly accountId: number;
  readonly accountName: string;
  readonly to: string;
  readonly count: number;
  /** Of the first `linesMax` of them, oldest first. */
  readonly mails: readonly Pick<AlarmMail, "line">[];
}

export interface AlarmDigestStore {
  /** When the next digest is due; null when none waits. */
  nextMs(): Promise<number | null>;
  /** Queues the mails of digests that are due. Returns how many. */
  queueDue(
    nowMs: number,
    digest: { readonly linesMax: number; readonly validMs: number; mailOf(digest: AlarmDigest): MailContent },
  ): Promise<number>;
}

/** For use inside a write. `anHour`: mails of one account in an hour. */
export function* queueAlarmMails(mails: readonly AlarmMail[], anHour: number): Steps<void> {
  for (const [accountId, own] of Map.groupBy(mails, (mail) => mail.accountId)) {
    const recent = "SELECT count(*) AS total FROM mail WHERE kind = 'alarm' AND created_ms > ? AND account_id = ?";
    const found = yield* row(recent, (own[0]?.createdMs ?? 0) - HOUR_MS, accountId);
    const left = Math.max(0, anHour - Number(found?.["total"]));
    for (const mail of own.slice(0, left)) yield* queueMail(mail);
    for (const { to, line, createdMs } of own.slice(left))
      yield* insert("alarm_digest", { account_id: accountId, recipient: to, subject: line, recorded_ms: createdMs });
  }
}

export function createAlarmDigestStore(database: Database): AlarmDigestStore {
  return {
    nextMs: () =>
      database.ask(function* () {
        // They are in the order of recording: the oldest is found without a search through those that wait.
        const first = yield* row("SELECT recorded_ms FROM alarm_digest ORDER BY id LIMIT 1");
        return first === undefined ? null : Number(first["recorded_ms"]) + HOUR_MS;
      }),
    queueDue: (nowMs, { linesMax, validMs, mailOf }) =>
      database.write(function* (): Steps<number> {
        const due = yield* rows(
          `SELECT account_id, recipient, account.name FROM alarm_digest JOIN account ON account.id = account_id
            GROUP BY account_id, recipient, account.name HAVING min(recorded_ms) <= ? LIMIT ${RECIPIENTS}`,
          nowMs - HOUR_MS,
        );
        let queued = 0;
        for (const one of due) {
          const [accountId, to] = [Number(one["account_id"]), String(one["recipient"])];
          const digest = yield* takeDigest({ accountId, accountName: String(one["name"]), to }, linesMax);
          // Another hub has just sent it.
          if (digest.count === 0) continue;
          const times = { createdMs: nowMs, expiresMs: nowMs + validMs };
          yield* queueMail({ accountId, kind: "alarm-digest", to, ...mailOf(digest), ...times });
          queued += 1;
        }
        return queued;
      }),
  };
}

/** For use inside a write: its rows are removed. */
function* takeDigest(
  recipient: Pick<AlarmDigest, "accountId" | "accountName" | "to">,
  linesMax: number,
): Steps<AlarmDigest> {
  const where = "WHERE account_id = ? AND recipient = ?";
  const of = [recipient.accountId, recipient.to] as const;
  const last = Number((yield* row(`SELECT max(id) AS last FROM alarm_digest ${where}`, ...of))?.["last"] ?? 0);
  const first = yield* rows(
    `SELECT subject FROM alarm_digest ${where} AND id <= ? ORDER BY id LIMIT ?`,
    ...of,
    last,
    linesMax,
  );
  const count = yield* change(`DELETE FROM alarm_digest ${where} AND id <= ?`, ...of, last);
  const mails = first.map((one) => ({ line: String(one["subject"]) }));
  return { ...recipient, count, mails };
}
