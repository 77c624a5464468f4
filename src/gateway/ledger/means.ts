/** The parts with which a ledger is opened. */
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import type { FleetWatch } from "./fleet.ts";
import type { OnEvent } from "./records/observers.ts";
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
