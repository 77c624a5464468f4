/** The parts of the store whose statements are the same in both databases. */

import { createAlarmStores } from "./alarms/stores.ts";
import { createCalculatedStore } from "./calculated/calculated.ts";
import { createCalculationsStore } from "./calculated/calculations.ts";
import { createClaimStore } from "./calculated/claims.ts";
import type { Database } from "./database.ts";
import { createEventDeliveryStore } from "./events/deliveries.ts";
import { createEventStore } from "./events/events.ts";
import { createSubscriptionStore } from "./events/subscriptions.ts";
import { createFileTriggerStore } from "./file-triggers.ts";
import { createFileStore } from "./files.ts";
import { createFormStore } from "./form-store.ts";
import { createGroupStore } from "./groups.ts";
import { createIdentityStore } from "./identity.ts";
import { createMailStores } from "./mail/stores.ts";
import { createMasterDataReports } from "./master-data.ts";
import { createPeopleStore } from "./people/people.ts";
import { createRefreshTokenStore } from "./people/refresh-tokens.ts";
import { createMeasuredStore } from "./quality/variables.ts";
import { createSearchStore } from "./search/search.ts";
import { createSessionStore } from "./sessions/sessions.ts";
import { createExternalIdentityStore } from "./sign-on/external-identities.ts";
import { createSliceStore } from "./slices.ts";
import { createSourceZoneStore } from "./source-zones.ts";
import type { HubStore } from "./store.ts";
import { createOriginStore } from "./stored/origins.ts";
import { createStructureStore } from "./structure.ts";
import { createViewStore } from "./views.ts";

type CommonStores = Pick<
  HubStore,
  | "alarms"
  | "identity"
  | "people"
  | "refreshTokens"
  | "structure"
  | "forms"
  | "slices"
  | "views"
  | "origins"
  | "calculated"
  | "measured"
  | "claims"
  | "calculations"
  | "fileTriggers"
  | "files"
  | "groups"
  | "reports"
  | "zones"
  | "mails"
  | "links"
  | "sessions"
  | "events"
  | "subscriptions"
  | "eventDeliveries"
  | "search"
  | "externalIdentities"
  | "invitations"
>;

/** Reads what a command needs. */
export type ReadStore<Found> = (stores: CommonStores) => Promise<Found>;

/** The parts for the thread that calculates. */
export type CalculationStore = CommonStores & Pick<HubStore, "points" | "close">;

export function commonStores(database: Database): CommonStores {
  return {
    alarms: createAlarmStores(database),
    events: createEventStore(database),
    subscriptions: createSubscriptionStore(database),
    eventDeliveries: createEventDeliveryStore(database),
    search: createSearchStore(database),
    files: createFileStore(database),
    forms: createFormStore(database),
    slices: createSliceStore(database),
    zones: createSourceZoneStore(database),
    groups: createGroupStore(database),
    reports: createMasterDataReports(database),
    ...createMailStores(database),
    identity: createIdentityStore(database),
    people: createPeopleStore(database),
    externalIdentities: createExternalIdentityStore(database),
    refreshTokens: createRefreshTokenStore(database),
    structure: createStructureStore(database),
    sessions: createSessionStore(database),
    views: createViewStore(database),
    origins: createOriginStore(database),
    calculated: createCalculatedStore(database),
    measured: createMeasuredStore(database),
    claims: createClaimStore(database),
    calculations: createCalculationsStore(database),
    fileTriggers: createFileTriggerStore(database),
  };
}
