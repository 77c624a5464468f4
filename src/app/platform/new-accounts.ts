/** Takes up accounts that came after the start: another hub of the store has them in its configuration. */
import type { Clock } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";

const LOOK_MS = 3_000;

interface Parts {
  readonly known: readonly number[];
  accountIds(): Promise<readonly number[]>;
  /** Has the gateway work for all of these accounts. Tried again when it throws. */
  takeUp(all: readonly number[]): Promise<unknown>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Returns the end of it. */
export function watchAccounts({ known, accountIds, takeUp, clock, log }: Parts): () => Promise<void> {
  const closing = new AbortController();
  const taken = new Set(known);
  let isFailing = false;
  const look = async () => {
    const all = await accountIds();
    const added = all.filter((id) => !taken.has(id));
    if (added.length === 0) return;
    await takeUp(all);
    for (const id of added) taken.add(id);
    log.info({ accounts: added }, "files of new accounts are processed");
  };
  const watching = (async () => {
    while (await clock.sleep(LOOK_MS, closing.signal)) {
      try {
        await look();
        isFailing = false;
      } catch (thrown) {
        if (!isFailing) log.warn({ err: thrown }, `new accounts are not taken up yet: ${wordsOf(thrown)}`);
        isFailing = true;
      }
    }
  })();
  return async () => {
    closing.abort();
    await watching;
  };
}
