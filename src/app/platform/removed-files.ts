/** Ends the work on stored files that were removed. */

import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { Gateway } from "#gateway/gateway.ts";
import { CANCELLABLE_STATES } from "#gateway/states.ts";
import { fileIdOf } from "./hub-drop.ts";

/** A run that is being delivered is left to end. */
const ENDED_STATES = CANCELLABLE_STATES.filter((state) => state !== "delivering");

/** Does not reject: a run that cannot be cancelled here, such as that of another node, ends before its delivery. */
export async function cancelRemoved(
  drop: string,
  ids: readonly number[],
  { ledger, view }: Pick<Gateway, "ledger" | "view">,
  log: Logger,
): Promise<void> {
  const removed = new Set(ids);
  try {
    for (const { id, path } of await ledger.runsIn(ENDED_STATES, { drop })) {
      if (!removed.has(fileIdOf(path))) continue;
      await view
        .cancel(id, "the hub", "the stored file was removed")
        .catch((thrown: unknown) =>
          log.info({ run: id, file: path }, `the run of a removed file is not cancelled yet: ${wordsOf(thrown)}`),
        );
    }
  } catch (thrown) {
    log.warn({ drop, err: thrown }, `runs of removed files are not cancelled yet: ${wordsOf(thrown)}`);
  }
}
