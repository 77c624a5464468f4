/** Sites, sources and variables. */

import { definitionFacts, putDefinition } from "./calculated/definitions.ts";
import { nowMs } from "./calculated/marks.ts";
import { apartFor, type Database, insert, listed, type Steps } from "./database.ts";
import { aboutVariable, addStructureEvent } from "./events/structure-events.ts";
import type { FilterNode } from "./filter.ts";
import { heldForms, putValues, type ValuePlan, zoneOfSource } from "./form-values.ts";
import { isOwned, requireRoom } from "./owned.ts";
import type { StoredSource, StructureStore } from "./store.ts";
import { ownedSource, structureChanges } from "./structure-changes.ts";
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

const SITES = { columns: "*", from: "site", order: "id" };
const VARIABLES = { columns: "*", from: "variable", order: "id" };

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
