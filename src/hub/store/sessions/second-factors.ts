/**
 * Second factors of users, and the codes with which a user signs in who has lost the device. The functions are for use
 * inside a write; each change is recorded by its caller.
 */
import { change, row, type Steps } from "../database.ts";

/** Replaces one that was not confirmed. False when a confirmed one is there. */
export function* offerSecondFactor(userId: number, secret: string): Steps<boolean> {
  const sql = "UPDATE hub_user SET totp_secret = ?, totp_used_step = NULL WHERE id = ? AND totp_confirmed_ms IS NULL";
  return (yield* change(sql, secret, userId)) > 0;
}

/** It takes effect. False when this one was not offered, or is confirmed already. */
export function* confirmSecondFactor(
  userId: number,
  facts: { readonly secret: string; readonly nowMs: number; readonly step: number },
): Steps<boolean> {
  const { secret, nowMs, step } = facts;
  const sql = `UPDATE hub_user SET totp_confirmed_ms = ?, totp_used_step = ?
    WHERE id = ? AND totp_secret = ? AND totp_confirmed_ms IS NULL`;
  return (yield* change(sql, nowMs, step, userId, secret)) > 0;
}

/** Uses up the codes to this step. False when this or a later one was used. */
export function* useStep(userId: number, secret: string, step: number): Steps<boolean> {
  const sql = `UPDATE hub_user SET totp_used_step = ?
    WHERE id = ? AND totp_secret = ? AND (totp_used_step IS NULL OR totp_used_step < ?)`;
  return (yield* change(sql, step, userId, secret, step)) > 0;
}

/** False when there is no such code. */
export function* useRecoveryCode(userId: number, codeHash: string): Steps<boolean> {
  return (yield* change("DELETE FROM recovery_code WHERE user_id = ? AND code_hash = ?", userId, codeHash)) > 0;
}

/** All former ones end. */
export function* replaceRecoveryCodes(userId: number, codeHashes: readonly string[]): Steps<void> {
  yield* change("DELETE FROM recovery_code WHERE user_id = ?", userId);
  for (const hash of codeHashes)
    yield* change("INSERT INTO recovery_code (user_id, code_hash) VALUES (?, ?)", userId, hash);
}

export function* countRecoveryCodes(userId: number): Steps<number> {
  const found = yield* row("SELECT COUNT(*) AS codes FROM recovery_code WHERE user_id = ?", userId);
  return Number(found?.["codes"]);
}

/** With its codes. False when there was none. */
export function* removeSecondFactor(userId: number): Steps<boolean> {
  yield* change("DELETE FROM recovery_code WHERE user_id = ?", userId);
  const sql = `UPDATE hub_user SET totp_secret = NULL, totp_confirmed_ms = NULL, totp_used_step = NULL
    WHERE id = ? AND totp_secret IS NOT NULL`;
  return (yield* change(sql, userId)) > 0;
}
