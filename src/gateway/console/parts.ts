/** The parts of a gateway that answer the endpoints of the console. */
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import type { OpenMapping } from "#mapping/workers/open.ts";
import type { Closer } from "../closers.ts";
import type { DropRegistry } from "../drops.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { LiveConfig } from "../live-config.ts";
import type { IsoInstant } from "../model.ts";
import type { Observers } from "../observers.ts";
import type { Concern } from "../operations/attention.ts";
import type { LateFiles } from "../operations/late-files.ts";
import type { Notifier } from "../operations/notifier.ts";
import type { WaitingLanes } from "../operations/waiting-lanes.ts";
import type { ConfigurationState } from "../reload.ts";
import type { FinishFaults } from "../runs/finish-faults.ts";
import type { LookupStore } from "../runs/lookups.ts";
import type { Pauses } from "../runs/pauses.ts";
import type { Scheduler } from "../runs/scheduler.ts";
import type { RunSteps } from "../runs/steps/steps.ts";
import type { ServiceRegistry } from "../services.ts";
import type { SpoolQuota } from "../spool/quota.ts";
import type { Spool } from "../spool/spool.ts";
import type { TriggersInForce } from "../triggers-in-force.ts";
import type { MigrationControl } from "./migrations.ts";

export interface QueryParts {
  readonly ledger: Ledger;
  readonly spool: Spool;
  readonly quota: SpoolQuota;
  readonly pauses: Pauses;
  readonly lookups: LookupStore;
  readonly versions: Pick<OpenMapping["versions"], "refused">;
  readonly drops: DropRegistry;
  readonly services: ServiceRegistry;
  readonly scheduler: Scheduler;
  readonly triggers: Pick<TriggersInForce, "listed" | "registry">;
  readonly late: LateFiles;
  readonly lanes: WaitingLanes;
  readonly notifier: Pick<Notifier, "failing">;
  /** Everything that needs attention beside the runs of files. */
  readonly concerns: () => Promise<readonly Concern[]>;
  readonly steps: Pick<RunSteps, "isRemoved">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly startedAt: IsoInstant;
  readonly live: Pick<LiveConfig, "file">;
  readonly finishFaults: FinishFaults;
  readonly migrations?: MigrationControl | undefined;
  /** Path of the configuration. */
  readonly configFile?: string | undefined;
  readonly observers: Pick<Observers, "services" | "rates" | "live">;
  /** Receives what ends the parts that the handlers open. */
  readonly closers: Closer[];
  /** State of the configuration's file, where it is watched for changes. */
  readonly configuration?: Pick<ConfigurationState, "health" | "reloads"> | undefined;
}
