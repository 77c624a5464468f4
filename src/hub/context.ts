import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import type { Passwords } from "#core/sign-in/passwords.ts";
import type { SignInThrottle } from "#core/sign-in/throttle.ts";
import type { Alarms } from "./alarms/service.ts";
import type { Recalculation } from "./calculated/recalculation/recalculation.ts";
import type { Deliveries } from "./deliveries/start.ts";
import type { MappersOf } from "./file-triggers/mappers.ts";
import type { StoredFiles } from "./files/service.ts";
import type { FullDisk } from "./full-disk.ts";
import type { HubMail } from "./mail/mail.ts";
import type { MasterData } from "./master-data/service.ts";
import type { HubOptions } from "./options.ts";
import type { Ingestion } from "./push/ingestion.ts";
import type { Sessions } from "./sessions/sessions.ts";
import type { HubStore } from "./store/store.ts";
import type { Guard } from "./token/guard.ts";
import type { KeyRing } from "./token/keys.ts";
import type { TokenRates } from "./token/token-rates.ts";
import type { Tokens } from "./token/tokens.ts";

/** Components that the routes of every resource share. */
export interface HubContext {
  readonly options: HubOptions;
  readonly store: HubStore;
  readonly log: Logger;
  readonly fullDisk: FullDisk;
  readonly clock: Clock;
  readonly passwords: Passwords;
  readonly keys: KeyRing;
  readonly rates: TokenRates;
  readonly tokens: Tokens;
  readonly guard: Guard;
  /** Counts the wrong credentials of all ways to sign in. */
  readonly throttle: SignInThrottle;
  readonly sessions: Sessions;
  readonly ingestion: Ingestion;
  readonly deliveries: Deliveries;
  readonly recalculation: Recalculation;
  readonly mappersOf: MappersOf;
  readonly gatewayView: GatewayViewOf;
  /** Null when there is no folder for them. */
  readonly files: StoredFiles | null;
  readonly masterData: MasterData;
  readonly mail: HubMail;
  readonly alarms: Alarms;
}

export const NO_GATEWAY: GatewayViewOf = () => null;

/** A reading of a file, where the file has it. */
interface PlacedReading {
  /** The fields by which the push named its target, among others. */
  readonly element: Readonly<Record<string, unknown>>;
  readonly value: number;
  readonly version: string | null;
  /** Line or row; null when it is not known. */
  readonly row: number | null;
  readonly sheet: string | null;
}

/** The facts of the gateway beside a hub (`platform.ts`) that the hub shows. */
export interface GatewayView {
  /** In the text format of Prometheus. */
  metrics(): Promise<string>;
  health(): Promise<readonly { readonly part: string; readonly ready: boolean; readonly reason: string }[]>;
  /** Files that need a person. */
  needAttention(): Promise<number>;
  /** The readings of an operation at a date; none where the gateway no longer has the file. */
  placedAt(operationId: string, atMs: number): Promise<readonly PlacedReading[]>;
}

/** Null for a hub without such a gateway, and while that is stopping. */
export type GatewayViewOf = () => GatewayView | null;
