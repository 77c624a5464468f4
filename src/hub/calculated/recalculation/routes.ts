/** Forced updates, and what calculations do and did (extensions but for the event, `docs/hub/calculations.md`). */
import type { FastifyInstance } from "fastify";
import { z } from "zod";
import {
  calculation,
  calculationProgress,
  calculationProgressQuery,
  calculationsQuery,
  forcedUpdate,
  forceUpdateBody,
} from "#wire/index.ts";
import type { HubContext } from "../../context.ts";
import { boundMs } from "../../data/query.ts";
import { callerOf } from "../../http/access.ts";
import { parametersOf } from "../../http/parameters.ts";
import { invalidField, parsed } from "../../http/problems.ts";
import { described } from "../../http/route.ts";
import type { Calculation } from "../../store/calculated/calculation-rows.ts";
import type { Mark } from "../../store/calculated/marks.ts";
import { FAR_MS } from "../../store/point-rows.ts";
import type { VariableFacts } from "../../store/records.ts";
import type { HubStore } from "../../store/store.ts";
import { sendList } from "../../structure/lists.ts";
import { both, rowOfPath, type WithId } from "../../structure/pages.ts";
import { isoOfMs } from "../../time.ts";

const OPTIONS = {
  force: described({
    access: "manage",
    tag: "Calculated variables",
    summary: "Calculates again",
    description:
      "Calculates the named calculated variables again, and those that read a plain variable that is named. Without " +
      "variables and sources: all of the account. Without a period: the whole history. The answer is what is due now.",
    body: forceUpdateBody,
    parametersInBody: true,
    refusesUnknown: "nothing is due, since without an unknown one it could be the whole account",
    answer: forcedUpdate,
    example: { body: { VariableIds: [1], From: "2026-03-01T00:00:00Z", To: "2026-04-01T00:00:00Z" } },
  }),
  list: described({
    access: "read",
    tag: "Calculated variables",
    summary: "Calculations, the newest first",
    query: calculationsQuery,
    answer: z.array(calculation),
    example: { query: { State: ["failed"] } },
  }),
  one: described({ access: "read", tag: "Calculated variables", summary: "One calculation", answer: calculation }),
  progress: described({
    access: "read",
    tag: "Calculated variables",
    summary: "What is due, and what is calculated now, by variable",
    query: calculationProgressQuery,
    answer: z.array(calculationProgress),
  }),
};

export async function calculationRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const { store, recalculation } = context;
  app.post("/events/forceUpdate", OPTIONS.force, async (request) => {
    const { accountId } = callerOf(request);
    const query = parsed(forceUpdateBody, parametersOf(request));
    const fromMs = boundMs("From", query.From, "UTC");
    const toMs = boundMs("To", query.To, "UTC");
    if (fromMs !== null && toMs !== null && fromMs >= toMs) throw invalidField("From", "is not before To");
    const dates = { fromMs: fromMs ?? -FAR_MS, toMs: toMs === null ? FAR_MS : toMs - 1 };
    const named = await namedVariables(store, accountId, query);
    const marks = await marksOf(store, accountId, named?.map(({ id }) => id) ?? null, dates);
    await store.calculated.mark(accountId, marks, context.clock.now().epochMilliseconds);
    recalculation.wake();
    return {
      marked: marks.map(({ variableId, inputId }) => ({ variableId, inputId, ...shownDates(dates) })),
      unaffected: unaffectedOf(query, named ?? [], marks),
    };
  });
  app.get("/calculations", OPTIONS.list, async (request, reply) => {
    const { accountId } = callerOf(request);
    const query = parsed(calculationsQuery, request.query);
    const filter = {
      variableIds: both(query.VariableId, query.VariableIds),
      states: query.State,
      sinceMs: boundMs("Since", query.Since, "UTC") ?? undefined,
    };
    return sendList(request, reply, query, {
      rows: (page) => store.calculations.list(accountId, filter, page),
      shown: (rows) => rows.map(shown),
      keyOf: ({ id }) => id,
    });
  });
  app.get("/calculations/progress", OPTIONS.progress, async (request) => {
    const { accountId } = callerOf(request);
    const query = parsed(calculationProgressQuery, request.query);
    return progressOf(store, accountId, both(query.VariableId, query.VariableIds));
  });
  app.get<WithId>("/calculations/:id", OPTIONS.one, async (request) =>
    shown(await rowOfPath(store.calculations.list, request, "calculation")),
  );
}

type Forced = z.infer<typeof forceUpdateBody>;
const variableIdsOf = ({ VariableId, VariableIds }: Forced) => both(VariableId, VariableIds);
const sourceIdsOf = ({ SourceId, SourceIds }: Forced) => both(SourceId, SourceIds);

/** Null: every calculated variable of the account. Throws a 400 for ids that the account does not have. */
async function namedVariables(
  { points, structure }: HubStore,
  accountId: number,
  query: Forced,
): Promise<readonly VariableFacts[] | null> {
  const ids = variableIdsOf(query);
  const sourceIds = sourceIdsOf(query);
  for (const [name, list] of Object.entries({ VariableIds: ids, SourceIds: sourceIds }))
    if (list?.length === 0) throw invalidField(name, "names nothing: leave it out for all of the account");
  if (ids === undefined && sourceIds === undefined) return null;
  const own = ids === undefined ? [] : await points.select(accountId, { ids });
  requireAll("VariableIds", "variable", ids, new Set(own.map(({ id }) => id)));
  if (sourceIds === undefined) return own;
  const { rows: sources } = await structure.sources(accountId, { ids: sourceIds }, { offset: 0, limit: null });
  requireAll("SourceIds", "source", sourceIds, new Set(sources.map(({ id }) => id)));
  const below = await points.select(accountId, { sourceIds });
  return [...new Map([...own, ...below].map((one) => [one.id, one])).values()];
}

/** Named variables and sources that nothing is calculated from. */
function unaffectedOf(query: Forced, named: readonly VariableFacts[], marks: readonly Mark[]) {
  const marked = new Set(marks.flatMap(({ variableId, inputId }) => [variableId, inputId]));
  const sources = new Set(named.filter(({ id }) => marked.has(id)).map(({ sourceId }) => sourceId));
  return {
    variableIds: [...new Set(variableIdsOf(query))].filter((id) => !marked.has(id)),
    sourceIds: [...new Set(sourceIdsOf(query))].filter((id) => !sources.has(id)),
  };
}

const NAMED_MAX = 20;

/** A typing error must not look like a variable that nothing depends on. */
function requireAll(name: string, what: string, ids: readonly number[] | undefined, known: ReadonlySet<number>): void {
  const strange = (ids ?? []).filter((id) => !known.has(id));
  if (strange.length > 0)
    throw invalidField(name, `no ${what} ${strange.slice(0, NAMED_MAX).join(", ")} in this account; nothing is due`);
}

async function marksOf(
  { calculated }: HubStore,
  accountId: number,
  named: readonly number[] | null,
  dates: { readonly fromMs: number; readonly toMs: number },
): Promise<readonly Mark[]> {
  const known = new Set((await calculated.list(accountId)).map(({ variable }) => variable.id));
  const own = named === null ? [...known] : named.filter((id) => known.has(id));
  const plain = new Set(named?.filter((id) => !known.has(id)));
  const edges = plain.size === 0 ? [] : await calculated.graph(accountId);
  const users = edges
    .filter(({ inputId, calculatedId }) => plain.has(inputId) && !own.includes(calculatedId))
    .map(({ calculatedId, inputId }) => ({ variableId: calculatedId, inputId }));
  return [...own.map((variableId) => ({ variableId, inputId: null })), ...users].map((one) => ({
    ...one,
    ...dates,
    cause: "force",
  }));
}

async function progressOf({ calculations }: HubStore, accountId: number, ids: readonly number[] | undefined) {
  const due = Map.groupBy(await calculations.due(accountId, ids), ({ variableId }) => variableId);
  const open = { variableIds: ids, states: ["running", "waiting", "storing"] } as const;
  const { rows } = await calculations.list(accountId, open, { offset: 0, limit: null });
  const running = new Map(rows.map((one) => [one.variableId, one]));
  const variableIds = [...new Set([...due.keys(), ...running.keys()])].sort((one, other) => one - other);
  return variableIds.map((variableId) => {
    const run = running.get(variableId);
    return {
      variableId,
      due: (due.get(variableId) ?? []).map(({ inputId, cause, markedMs, ...dates }) => ({
        ...shownDates(dates),
        inputId,
        cause,
        since: isoOfMs(markedMs),
      })),
      running: run === undefined ? null : shown(run),
    };
  });
}

function shown(run: Calculation): z.infer<typeof calculation> {
  const { id, variableId, state, defaultVersion, attempts, message } = run;
  const { outputs, stored, replaced, discarded, dropped } = run;
  return {
    id,
    variableId,
    state,
    ...shownDates(run),
    defaultVersion,
    started: isoOfMs(run.startedMs),
    finished: run.finishedMs === null ? null : isoOfMs(run.finishedMs),
    progress: shareOf(run),
    attempts,
    ...{ outputs, stored, replaced, discarded, dropped, message },
    operationIds: Array.from({ length: run.sent }, (_, nth) => `calculation-${id}-${nth + 1}`),
  };
}

function shareOf({ state, beginMs, cursorMs, endMs }: Calculation): number {
  if (state === "done" || state === "storing") return 1;
  if (beginMs === null || cursorMs === null || endMs === null || endMs <= beginMs) return 0;
  return Math.min(1, Math.max(0, (cursorMs - beginMs) / (endMs - beginMs)));
}

/** Open ends are null. */
function shownDates({ fromMs, toMs }: { readonly fromMs: number; readonly toMs: number }) {
  return {
    from: fromMs <= -FAR_MS ? null : isoOfMs(fromMs),
    to: toMs >= FAR_MS ? null : isoOfMs(toMs),
  };
}
