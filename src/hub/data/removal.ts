/**
 * DELETE {base_url}/data (specification, *Data endpoints*): with WhatIf nothing is removed, and the response says what
 * would be.
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { caseless, listOf, queryBoolean, queryInteger } from "#wire/caseless.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { parametersOf } from "../http/parameters.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import type { Holding } from "../store/records.ts";
import { isoOfMs } from "../time.ts";
import { boundMs } from "./query.ts";

const removalQuery = caseless(
  z.object({
    VariableIds: listOf(queryInteger).optional(),
    VariableId: listOf(queryInteger).optional(),
    FromDateUtc: z.string().optional(),
    ToDateUtc: z.string().optional(),
    WhatIf: queryBoolean.optional(),
  }),
);

const OPTIONS = described({
  access: "manage",
  tag: "Data",
  summary: "Removes points of variables; with WhatIf says what would be removed",
  description: "The parameters may also be in a JSON body. A removal cannot be undone.",
  query: removalQuery,
  parametersInBody: true,
  answer: z.looseObject({ whatIf: z.boolean(), points: z.int(), versions: z.int() }),
  example: { query: { VariableIds: [1], WhatIf: true } },
});

export async function removalRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  app.delete("/data", OPTIONS, (request) => removeData(context, request));
}

async function removeData({ store }: HubContext, request: FastifyRequest): Promise<object> {
  const principal = callerOf(request);
  const parameters = parametersOf(request);
  const query = parsed(removalQuery, parameters);
  const ids = [...new Set([...(query.VariableIds ?? []), ...(query.VariableId ?? [])])];
  if (ids.length === 0) throw invalidField("VariableIds", "at least one variable is required");
  const fromMs = boundMs("FromDateUtc", query.FromDateUtc, "UTC");
  const toMs = boundMs("ToDateUtc", query.ToDateUtc, "UTC");
  if (fromMs !== null && toMs !== null && fromMs > toMs) throw invalidField("FromDateUtc", "is after ToDateUtc");
  const variables = await store.points.select(principal.accountId, { ids });
  const known = new Set(variables.map(({ id }) => id));
  const strange = ids.filter((id) => !known.has(id));
  // All or nothing of the named variables: a typing error must not look like an empty variable.
  if (strange.length > 0)
    throw invalidField(
      "VariableIds",
      `no variable ${strange.slice(0, 20).join(", ")} in this account; nothing was removed`,
    );
  const whatIf = query.WhatIf ?? false;
  const { points } = store;
  const rows: ReturnType<typeof shown>[] = [];
  const total = { points: 0, versions: 0 };
  for (const id of known) {
    const held = await (whatIf ? points.holding(id, fromMs, toMs) : points.remove(id, fromMs, toMs));
    total.points += held.points;
    total.versions += held.versions;
    rows.push(shown(id, held));
  }
  const results = rows.map(({ variableId, points: datapointCount }) => ({ variableId, datapointCount }));
  return { whatIf, ...total, variables: rows, results };
}

function shown(variableId: number, { points, versions, firstMs, lastMs }: Holding) {
  return {
    variableId,
    points,
    versions,
    from: firstMs === null ? null : isoOfMs(firstMs),
    to: lastMs === null ? null : isoOfMs(lastMs),
  };
}
