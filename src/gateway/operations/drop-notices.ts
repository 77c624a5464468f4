/** Files of a drop that others touched within the last day: another gateway, a ledger that was lost, a writer. */

import { type Clock, isoInstant } from "#core/clock.ts";
import { counted } from "#core/grouped-number.ts";
import type { DropNotice, Ledger } from "../ledger/ledger.ts";
import type { Concern } from "./attention.ts";
import type { HealthPart } from "./state-of-work.ts";

const DAY = { hours: 24 };

export function dropNotices(ledger: Pick<Ledger, "noticesSince">, clock: Clock): Promise<readonly DropNotice[]> {
  return ledger.noticesSince(isoInstant(clock.now().subtract(DAY)));
}

export function noticeConcerns(notices: readonly DropNotice[]): readonly Concern[] {
  return notices.map((notice) => {
    const { kind, drop, files, example, latestAt } = notice;
    const facts = { drop, files, [kind === "repeated" ? "operation" : "file"]: example, latestAt };
    return { key: `${kind} ${drop}`, kind: "drop", text: `drop ${drop}: ${noticeWords(notice)}`, facts };
  });
}

export function noticeHealth(notices: readonly DropNotice[]): readonly HealthPart[] {
  return notices.map((notice) => ({ part: `drop ${notice.drop}`, ready: true, reason: noticeWords(notice) }));
}

export function noticeWords({ kind, files, example, latestAt }: DropNotice): string {
  const count = `${counted(files, "file")} of the last day`;
  if (kind === "replaced")
    return (
      `${count} ${files === 1 ? "was" : "were"} replaced by other content after the gateway had claimed it, at last ` +
      `at ${latestAt} (${example}): what was fetched is delivered, and the other content is an arrival of its own. ` +
      "Let the writer give each file a name of its own"
    );
  const by = example === "" ? "" : ` (${example})`;
  return (
    `${count} had already been delivered by operations that this ledger does not have${by}: it was lost or restored, ` +
    "or another gateway takes the files of this drop"
  );
}
