/** The parts that claims are made of, from the configuration and the stores of the gateway. */

import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import type { Turns } from "#core/turns.ts";
import type { MapperVersions } from "#mapping/contract.ts";
import type { Provenance } from "../drops/drop.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Arrival, BatchLimits, UnpackLimits } from "../model.ts";
import type { FinishFaults } from "./finish-faults.ts";
import type { LookupStore } from "./lookups.ts";
import type { ClaimingTrigger } from "./replay-mapper.ts";
import type { SourceZones } from "./source-zones.ts";
import type { DropEntry, RunSteps } from "./steps/steps.ts";

/** How a drop unpacks containers. */
export interface Unpacking extends UnpackLimits {
  readonly unpack: boolean;
  /** How deep containers may be nested. */
  readonly depthMax: number;
}

export interface TriggerMatch {
  readonly claimed: ClaimingTrigger | null;
  readonly others: readonly string[];
  readonly why: string;
  /** A trigger that is not known yet may claim the file: it stays at its drop. */
  readonly undecided?: boolean;
}

export interface ClaimParts {
  readonly ledger: Ledger;
  readonly versions: Pick<MapperVersions, "current">;
  readonly log: Logger;
  readonly clock: Clock;
  /** Finds the trigger that claims a file, and the names of others that match. */
  match(file: Pick<Arrival, "drop" | "path">, provenance: Provenance | null): TriggerMatch;
  /** The address of a drop; undefined for one whose deliveries have keys of their own. */
  addressOf(drop: string): string | undefined;
  /** Undefined for a drop that is no longer in the configuration. */
  unpacking(drop: string): Unpacking | undefined;
  /** How a file came, when its drop knows. */
  provenance(file: Pick<Arrival, "drop" | "path">): Promise<Provenance | null>;
  /** Why a trigger is paused by an operator; null when it is not. */
  pausedTrigger(name: string): string | null;
  laneOf(trigger: ClaimingTrigger, drop: string, service: string): string;
  /** All lanes of the files of a drop. `service`: the service of triggers that name none. */
  lanesOf(drop: string, service: string): readonly string[];
  dropEntry(name: string): DropEntry | undefined;
  planFinish: RunSteps["planFinish"];
  readonly lookups: Pick<LookupStore, "bind">;
  /** Null for a gateway that is not inside a hub. */
  readonly zones: Pick<SourceZones, "atClaim"> | null;
  /** The service of triggers that name none. */
  readonly defaultService: string;
  readonly limits: BatchLimits;
  /** Whether this gateway applies master data. */
  readonly appliesStructure: boolean;
  readonly finishFaults: Pick<FinishFaults, "note">;
  /** Ids of unmatched files that the log has named. */
  readonly loggedUnmatched: Set<number>;
  /** The order of claims, and of the finish of unmatched files. */
  readonly turns: Turns;
  readonly finishing: Turns;
  /** Called when runs were opened. */
  onRun(): void;
}
