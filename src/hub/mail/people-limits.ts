/** Limits of the mails that managers have sent to people: invitations and temporary passwords. */
import { HttpProblem } from "#wire/http-problem.ts";
import type { HubContext } from "../context.ts";
import type { Steps } from "../store/database.ts";
import { mailsOf } from "../store/mail/mails.ts";

const HOUR_MS = 3_600_000;
const KINDS = ["invitation", "temporary-password"] as const;

/** For use inside a write, before the mail is queued. Throws a 429 with the time until there is room again. */
export function* requireMailRoom(
  { options: { mail } }: Pick<HubContext, "options">,
  accountId: number,
  to: string,
  nowMs: number,
): Steps<void> {
  const sent = yield* mailsOf(accountId, KINDS, nowMs - HOUR_MS);
  const limits = [
    { own: sent, most: mail.toPeopleAnHour, name: "toPeopleAnHour", whom: "this account" },
    { own: sent.filter((one) => one.to === to.toLowerCase()), most: mail.toOneAnHour, name: "toOneAnHour", whom: to },
  ];
  for (const { own, most, name, whom } of limits) {
    const oldest = own.at(-most);
    if (oldest === undefined) continue;
    const why =
      `${most} invitations and temporary passwords in an hour are all for ${whom} (\`mail.${name}\` of the hub): ` +
      "send it later, or give the user a password";
    const waitSec = Math.max(1, Math.ceil((oldest.createdMs + HOUR_MS - nowMs) / 1_000));
    throw new HttpProblem(429, "too-many-requests", why, undefined, waitSec);
  }
}
