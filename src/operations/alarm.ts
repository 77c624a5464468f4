/** Posts an alarm as JSON, signed as outcomes are. */

import type { Clock } from "../support/clock.ts";
import { TransientError } from "../support/errors.ts";
import { SIGNATURE_HEADER, signWebhook } from "../wire/index.ts";
import type { OperationsOptions } from "./options.ts";

const TIMEOUT_MS = 10_000;

/** Answers how to post; null when no alarm is configured. What it answers rejects with `TransientError` unless the answer is 2xx. */
export function alarmSender(
  options: OperationsOptions["alarm"],
  clock: Clock,
): ((body: string) => Promise<void>) | null {
  if (options === undefined) return null;
  const { url, secret } = options;
  return async (body) => {
    const seconds = Math.floor(clock.now().epochMilliseconds / 1000);
    const signature = secret === undefined ? {} : { [SIGNATURE_HEADER]: signWebhook(body, secret, seconds) };
    const answer = await fetch(url, {
      method: "POST",
      body,
      headers: { "content-type": "application/json", ...signature },
      redirect: "error",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    await answer.body?.cancel();
    if (answer.ok) return;
    throw new TransientError("HG-OPS-001", {
      operation: "send alarm",
      subject: new URL(url).host,
      message: `the receiver of alarms answered ${answer.status}`,
    });
  };
}
