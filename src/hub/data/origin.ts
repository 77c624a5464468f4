/** GET {base_url}/data/origin: the versions of one point, and where each came from (an extension). */
import type { FastifyInstance } from "fastify";
import { z } from "zod";
import {
  ianaZone,
  type OriginRow,
  originQuery,
  originRow,
  TARGET_FIELDS,
  type TargetField,
  targetWords,
} from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import { originsOf } from "../push/origin.ts";
import type { StoredSource, StoredVariable, VariableFacts } from "../store/records.ts";
import type { OriginRow as StoredRow } from "../store/stored/origins.ts";
import { notFound, ONE } from "../structure/pages.ts";
import { isoOfMs, isoOfUs, ZoneWriter } from "../time.ts";
import { boundMs, requireOneZone } from "./query.ts";

const OPTIONS = described({
  access: "read",
  tag: "Data",
  summary: "The versions of one point, the latest first, with operation, file, row, user and moment of each",
  description:
    "An extension of Headgate. A link is that of the sender, with the target, the date and the operation in its query.",
  query: originQuery,
  answer: z.array(originRow),
  example: { query: { VariableId: 1, Date: "2026-03-01T00:00:00Z" } },
});

export async function originRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const { store } = context;
  app.get("/data/origin", OPTIONS, async (request): Promise<readonly OriginRow[]> => {
    const query = parsed(originQuery, request.query);
    const { accountId } = callerOf(request);
    const [variable] = await store.points.select(accountId, { ids: [query.VariableId] });
    if (variable === undefined) throw notFound("variable", String(query.VariableId));
    requireOneZone({ ...query, UseReportingTimezone: undefined });
    const atMs = boundMs("Date", query.Date, ianaZone(query.TimeZoneId ?? "UTC") ?? "UTC");
    if (atMs === null) throw invalidField("Date", "is required");
    const stored = await store.origins.versionsAt(variable, atMs);
    return shownRows(context, variable, stored, query.TimeZoneId ?? variable.sourceZoneId);
  });
}

async function shownRows(
  context: HubContext,
  variable: VariableFacts,
  stored: readonly StoredRow[],
  zone: string,
): Promise<readonly OriginRow[]> {
  const { store } = context;
  const { id, accountId, sourceId, unitId } = variable;
  const [variables, sources] = await Promise.all([
    store.structure.variables(accountId, { ids: [id] }, ONE),
    store.structure.sources(accountId, { ids: [sourceId] }, ONE),
  ]);
  const names = namesOf(variables.rows[0], sources.rows[0]);
  const pushes = stored.map(({ origin: { userId, operationId } }) => ({ accountId, userId, operationId }));
  const files = await originsOf(store, pushes);
  const writer = new ZoneWriter(zone);
  return Promise.all(
    stored.map(async (one, at): Promise<OriginRow> => {
      const { atMs, value, version, versionUs, tags, batchTags, origin } = one;
      const file = files[at] ?? null;
      const place = file === null ? null : await placeOf(context, one, names);
      return {
        ...{ variableId: id, unitId, date: writer.write(atMs), value, version },
        versionTimestamp: versionUs === null ? null : isoOfUs(versionUs),
        tags: tags === null && batchTags === null ? null : { ...batchTags, ...tags },
        operationId: origin.operationId,
        receivedAt: isoOfMs(origin.receivedMs),
        user: file?.createdBy ?? origin.username,
        calculationId: origin.calculationId,
        file,
        row: place?.row ?? null,
        sheet: place?.sheet ?? null,
        link: origin.traceLink === null ? null : linkOf(origin.traceLink, one, names),
      };
    }),
  );
}

type Names = Readonly<Record<TargetField, string | number | null>>;

/** Everything by which a push may have named the variable. */
function namesOf(variable: StoredVariable | undefined, source: StoredSource | undefined): Names {
  return {
    variableId: variable?.id ?? null,
    sourceId: source?.id ?? null,
    sourceSerialNumber: source?.serialNumber ?? null,
    sourceEan: source?.ean ?? null,
    sourceName: source?.name ?? null,
    meterNumber: source?.meterNumber ?? null,
    mappingConfig: variable?.mappingConfig ?? null,
    variableTypeId: variable?.variableTypeId ?? null,
  };
}

/** The last row of the file with this value; a file may hold a point several times. */
async function placeOf({ gatewayView, log }: HubContext, { atMs, value, version, origin }: StoredRow, names: Names) {
  const view = gatewayView();
  if (view === null) return null;
  try {
    const placed = await view.placedAt(origin.operationId, atMs);
    return placed.findLast(
      (one) =>
        one.value === value &&
        (one.version ?? null) === version &&
        TARGET_FIELDS.every((name) => one.element[name] === undefined || one.element[name] === names[name]),
    );
  } catch (thrown) {
    // The rest of the origin is worth showing.
    log.warn({ err: thrown, operationId: origin.operationId }, "the row of a point could not be read");
    return null;
  }
}

/** The target holds everything that a file may have named; the operation says which of its readings is meant. */
function linkOf(traceLink: string, { atMs, origin }: StoredRow, names: Names): string {
  const url = new URL(traceLink);
  const target = Object.fromEntries(
    TARGET_FIELDS.map((name) => [name, names[name] === "" ? undefined : (names[name] ?? undefined)]),
  );
  url.searchParams.set("target", targetWords(target));
  url.searchParams.set("date", isoOfMs(atMs));
  url.searchParams.set("operationId", origin.operationId);
  return url.href;
}
