/** The observers of the events of a ledger. */

import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { LedgerEvent } from "../../model.ts";

/** Called with each event after it was committed, with its file. */
export type OnEvent = (event: LedgerEvent & { readonly drop: string; readonly path: string }) => void;

/** Guards against errors of an observer, which must not end the process: the event is committed by then. */
export function harmless({
  onEvent,
  log,
}: {
  readonly onEvent?: OnEvent | undefined;
  readonly log?: Logger | undefined;
}): OnEvent | undefined {
  if (onEvent === undefined) return undefined;
  return (event) => {
    try {
      onEvent(event);
    } catch (thrown) {
      log?.warn({ event: event.what, reason: wordsOf(thrown) }, "an observer of the ledger failed");
    }
  };
}
