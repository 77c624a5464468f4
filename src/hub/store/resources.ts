/** The parts of the store whose statements are the same in both databases. */
import { createAlarmStores } from "./alarms/stores.ts";
import { createCalculatedStore } from "./calculated/calculated.ts";
import { createCalculationsStore } from "./calculated/calculations.ts";
import { createClaimStore } from "./calculated/claims.ts";
import { definitionFacts, putDefinition } from "./calculated/definitions.ts";
import { nowMs } from "./calculated/marks.ts";
import { readersOfFields } from "./calculated/readers.ts";
import { apartFor, type Database, insert, listed, type Steps } from "./database.ts";
import { createEventDeliveryStore } from "./events/deliveries.ts";
import { createEventStore } from "./events/events.ts";
import { aboutVariable, addStructureEvent } from "./events/structure-events.ts";
import { createSubscriptionStore } from "./events/subscriptions.ts";
import { createFileTriggerStore } from "./file-triggers.ts";
import { createFileStore } from "./files.ts";
import type { FilterNode } from "./filter.ts";
import { foldedText } from "./filter-sql.ts";
import { changeForm, continueForms, type Ended, type Planned } from "./form-slices.ts";
import { heldForms, putValues, type ValuePlan, zoneOfSource } from "./form-values.ts";
import {
  type FieldsInUse,
  type FormFit,
  type FormStore,
  fieldIdsOf,
  type NewForm,
  namedForm,
  ownedForm,
  type StoredForm,
  withGroups,
} from "./forms.ts";
import { createGroupStore } from "./groups.ts";
import { createIdentityStore } from "./identity.ts";
import { createInvitationStore } from "./mail/invitations.ts";
import { createLinkStore } from "./mail/links.ts";
import { createMailStore } from "./mail/mails.ts";
import { createMasterDataReports } from "./master-data.ts";
import { isOwned, requireFew, requireRoom } from "./owned.ts";
import { createPeopleStore } from "./people/people.ts";
import { createRefreshTokenStore } from "./people/refresh-tokens.ts";
import { createMeasuredStore } from "./quality/variables.ts";
import type { Listing, StoredSource } from "./records.ts";
import { createSearchStore } from "./search/search.ts";
import { createSessionStore } from "./sessions/sessions.ts";
import { createExternalIdentityStore } from "./sign-on/external-identities.ts";
import { createSliceStore } from "./slices.ts";
import { createSourceZoneStore } from "./source-zones.ts";
import { createViewStore, type HubStore, type MailStores } from "./store.ts";
import { createOriginStore } from "./stored/origins.ts";
import { ownedSource, type StructureStore, structureChanges } from "./structure-changes.ts";
import { writeStructure } from "./structure-hold.ts";
import {
  SOURCES,
  siteColumns,
  siteOf,
  sourceColumns,
  sourceOf,
  variableColumns,
  variableOf,
} from "./structure-rows.ts";
import { Where } from "./where.ts";

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

const SITES = { columns: "*", from: "site", order: "id" };
const VARIABLES = { columns: "*", from: "variable", order: "id" };
const FORMS = { columns: "*", from: "form", order: "display_order, id" };

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

/** Lists, creates, changes and removes the forms of an account. */
function createFormStore(database: Database): FormStore {
  const { dialect } = database;
  const running = new Set<number>();
  const changing = async <Refused>(accountId: number, fit: FormFit, plan: () => Steps<Planned<Refused>>) => {
    running.add(accountId);
    try {
      return await changeForm(database, accountId, plan, fit);
    } finally {
      running.delete(accountId);
    }
  };
  return {
    async create(accountId, form, fit, most) {
      const ended = await changing(accountId, fit, function* (): Steps<Planned<"taken">> {
        yield* requireFew(accountId, "form", most);
        const isTaken = (yield* namedForm(dialect, accountId, form)) !== undefined;
        return isTaken ? { refused: "taken" } : { before: null, after: form };
      });
      return made(ended);
    },
    list: (accountId, { ids, names, entityTypes }, page) =>
      database.ask(function* (): Steps<Listing<StoredForm>> {
        const where = new Where(dialect)
          .equal("account_id", accountId)
          .among("id", ids)
          .among("name_key", names?.map(foldedText))
          .among("entity_type", entityTypes);
        const listed = yield* dialect.page(FORMS, where, page);
        return { rows: yield* withGroups(dialect, listed.rows), total: listed.total };
      }),
    async change(accountId, id, edit) {
      const ended = await changing(accountId, edit, function* (): Steps<Planned<"missing" | "taken" | FieldsInUse>> {
        const before = yield* ownedForm(dialect, accountId, id);
        if (before === undefined) return { refused: "missing" };
        const after = edit.change(before);
        const other = yield* namedForm(dialect, accountId, after);
        if (other !== undefined && other.id !== id) return { refused: "taken" };
        const users = yield* readersOfFields(dialect, accountId, withoutKept(before, after));
        return users.length > 0 ? { refused: { users } } : { before, after };
      });
      return made(ended);
    },
    async remove(accountId, id, fit) {
      const ended = await changing(accountId, fit, function* (): Steps<Planned<false | FieldsInUse>> {
        const before = yield* ownedForm(dialect, accountId, id);
        if (before === undefined) return { refused: false };
        const users = yield* readersOfFields(dialect, accountId, fieldIdsOf(before));
        return users.length > 0 ? { refused: { users } } : { before, after: null };
      });
      return ended !== null && "refused" in ended ? ended.refused : true;
    },
    resume: (fit, signal) => continueForms(database, fit, { signal, isOurs: (accountId) => running.has(accountId) }),
  };
}

function made<Refused>(ended: Ended<Refused>): StoredForm | Refused {
  if (ended === null) throw new Error("a form that was saved is gone");
  return "refused" in ended ? ended.refused : ended;
}

/** Ids of the fields that the next definition no longer has. */
function withoutKept(before: StoredForm, next: NewForm): readonly number[] {
  const kept = new Set(fieldIdsOf(next));
  return fieldIdsOf(before).filter((id) => !kept.has(id));
}

/** Sites, sources and variables. */
export function createStructureStore(database: Database): StructureStore {
  return { ...creators(database), ...structureChanges(database), ...lists(database) };
}

function lists(database: Database): Pick<StructureStore, "sites" | "sources" | "variables"> {
  const { dialect } = database;
  const within = (accountId: number, where: readonly FilterNode[] = [], ...filters: readonly unknown[]) =>
    apartFor(database, accountId, [...where, ...filters]);
  return {
    sites(accountId, filter, page) {
      const where = new Where(dialect)
        .equal("account_id", accountId)
        .among("id", filter.ids)
        .holding("site", filter.where);
      return listed(within(accountId, filter.where), SITES, where, page, siteOf);
    },
    sources(accountId, filter, page) {
      const where = new Where(dialect)
        .equal("source.account_id", accountId)
        .among("source.id", filter.ids)
        .among("source.site_id", filter.siteIds)
        .among("source.state", filter.states)
        .among("source.ean", filter.eans)
        .among("source.serial_number", filter.serialNumbers)
        .among("source.meter_number", filter.meterNumbers)
        .among("source.name", filter.names)
        .sharing("source.tags", filter.tags)
        .holding("source", filter.where);
      const { tags, states } = filter;
      return listed(within(accountId, filter.where, tags, states), SOURCES, where, page, sourceOf);
    },
    variables(accountId, filter, page) {
      const where = new Where(dialect)
        .equal("account_id", accountId)
        .among("id", filter.ids)
        .among("source_id", filter.sourceIds)
        .among("variable_type_id", filter.variableTypeIds)
        .sharing("tags", filter.tags)
        .amongRows("id", "SELECT calculated_id FROM calculated_input", "variable_id", filter.inputIds);
      return listed(apartFor(database, accountId, [filter.tags]), VARIABLES, where, page, variableOf);
    },
  };
}

function creators(database: Database): Pick<StructureStore, "createSite" | "createSource" | "createVariable"> {
  const { dialect } = database;
  const writing = <T>(accountId: number, lane: boolean, work: () => Steps<T>) =>
    writeStructure(database, accountId, work, lane);
  return {
    createSite: (accountId, body, judge, most) =>
      writing(accountId, judge !== undefined, function* (): Steps<number> {
        yield* requireRoom(dialect, accountId, "site", most);
        const values = judge?.(yield* heldForms(dialect, accountId, "site", null, body.timeZoneId)) ?? null;
        const id = yield* insert("site", { account_id: accountId, ...siteColumns({ ...body, ...plainOf(values) }) });
        yield* putValues(dialect, accountId, "site", id, values);
        yield* addStructureEvent(accountId, "created", { kind: "site", id, name: body.name, siteId: id });
        return id;
      }),
    createSource: (accountId, body, judge, most) =>
      writing(accountId, judge !== undefined, function* (): Steps<StoredSource | null> {
        if (!(yield* isOwned(dialect, "site", body.siteId, accountId))) return null;
        yield* requireRoom(dialect, accountId, "source", most);
        const zone = yield* zoneOfSource(body.siteId, body.timeZoneId);
        const values = judge?.(yield* heldForms(dialect, accountId, "source", null, zone)) ?? null;
        const columns = sourceColumns({ ...body, ...plainOf(values) });
        const id = yield* insert("source", { account_id: accountId, ...columns });
        yield* putValues(dialect, accountId, "source", id, values);
        const added = yield* ownedSource(dialect, id, accountId);
        const { name, siteId } = body;
        yield* addStructureEvent(accountId, "created", { kind: "source", id, name, siteId, sourceId: id });
        return added === undefined ? null : sourceOf(added);
      }),
    createVariable: (accountId, body, judge, most) =>
      writing(accountId, body.calculated !== undefined, function* (): Steps<number | null> {
        const { calculated, sourceId } = body;
        if (!(yield* isOwned(dialect, "source", sourceId, accountId))) return null;
        yield* requireRoom(dialect, accountId, "variable", most);
        const id = yield* insert("variable", { account_id: accountId, ...variableColumns(body) });
        if (calculated !== undefined && judge !== undefined) {
          const facts = yield* definitionFacts(dialect, { accountId, variableId: null, sourceId }, calculated);
          yield* putDefinition(dialect, accountId, id, judge(facts, calculated), nowMs());
        }
        yield* addStructureEvent(accountId, "created", aboutVariable({ id, name: body.name, sourceId }));
        return id;
      }),
  };
}

/** The values of a body that are stored with its row. */
function plainOf(values: ValuePlan | null): Pick<ValuePlan, "clientData"> | null {
  return values === null ? null : { clientData: values.clientData };
}

function createMailStores(database: Database): MailStores {
  return {
    mails: createMailStore(database),
    links: createLinkStore(database),
    invitations: createInvitationStore(database),
  };
}
