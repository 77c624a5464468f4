/** The observers of the events of a ledger. */

import type { Clock } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { LedgerEvent } from "../../model.ts";
import type { FleetWatch } from "../fleet.ts";

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

/** The parts with which a ledger is opened. */
export interface LedgerMeans {
  readonly clock: Clock;
  readonly log?: Logger;
  /** For commands that only read, beside a running gateway: needs no lock, and every change is refused. */
  readonly readOnly?: boolean;
  /** Called with each event after it was committed. */
  readonly onEvent?: OnEvent;
  /** For a gateway, which is a node where several share the ledger. */
  readonly watch?: FleetWatch;
}
