/**
 * Feedback: an alarm that pushes its state into a variable from which the watched one follows, directly, through other
 * alarms, or through calculated variables. It would overwrite readings, and never end.
 */
import type { AlarmTemplateBody } from "#wire/index.ts";
import { invalidField } from "../http/problems.ts";
import type { MappedVariable } from "../store/alarms/pauses.ts";
import type { StoredTemplate } from "../store/alarms/records.ts";
import type { CalculatedEdge } from "../store/calculated/calculated.ts";
import type { VariableFacts } from "../store/records.ts";
import type { HubStore } from "../store/store.ts";

/** The state of an alarm, from the variable that it watches to the one that it is pushed to. */
export interface StateWrite {
  /** Null: there is none yet. */
  readonly alarmId: number | null;
  /** Id null: of a template that is not stored yet. */
  readonly template: { readonly id: number | null; readonly name: string };
  readonly field: "variableId" | "mappingConfig";
  readonly watchedId: number;
  readonly targetId: number;
}

type Watching = Pick<VariableFacts, "id" | "sourceId"> & { readonly alarmId: number | null };

/** A step from one variable to the next, and the words for it. */
interface Step {
  readonly to: number;
  readonly words: string;
}

export function writesInto({ notifications = {} }: Pick<AlarmTemplateBody, "notifications">): boolean {
  return notifications.variableId !== undefined || notifications.mappingConfig !== undefined;
}

/** `mapped`: variables that have the `mappingConfig` of the template, among others. */
export function stateWrites(
  { id: templateId, body }: Pick<StoredTemplate, "body"> & { readonly id: number | null },
  watching: readonly Watching[],
  mapped: ReadonlyMap<string, readonly MappedVariable[]>,
): readonly StateWrite[] {
  const { variableId, mappingConfig } = body.notifications ?? {};
  return watching.flatMap(({ id: watchedId, sourceId, alarmId }) => {
    const write = { alarmId, template: { id: templateId, name: body.name }, watchedId };
    const found = mappingConfig === undefined ? [] : (mapped.get(placeOf(sourceId, mappingConfig)) ?? []);
    return [
      ...(variableId === undefined ? [] : [{ ...write, field: "variableId" as const, targetId: variableId }]),
      ...found.map(({ id: targetId }) => ({ ...write, field: "mappingConfig" as const, targetId })),
    ];
  });
}

/** By source and `mappingConfig`, for `stateWrites`. */
export async function mappedOf(
  { alarms }: HubStore,
  accountId: number,
  bodies: readonly AlarmTemplateBody[],
): Promise<ReadonlyMap<string, readonly MappedVariable[]>> {
  const wanted = [...new Set(bodies.flatMap(({ notifications }) => notifications?.mappingConfig ?? []))];
  const found = wanted.length === 0 ? [] : await alarms.pauses.mapped(accountId, wanted);
  return Map.groupBy(found, ({ sourceId, mappingConfig }) => placeOf(sourceId, mappingConfig));
}

function placeOf(sourceId: number, mappingConfig: string): string {
  return `${sourceId} ${mappingConfig}`;
}

/** Throws a 400 with the way from the target back to the watched variable. `id` null: a new template. */
export async function requireNoFeedback(
  store: HubStore,
  accountId: number,
  { id, body }: { readonly id: number | null; readonly body: AlarmTemplateBody },
  selected: readonly VariableFacts[],
): Promise<void> {
  if (body.enabled === false || !writesInto(body)) return;
  const stored = (await store.alarms.evaluation.templates(accountId)).filter((one) => one.id !== id);
  const mapped = await mappedOf(store, accountId, [body, ...stored.map((one) => one.body)]);
  const own = stateWrites(
    { id, body },
    selected.map((one) => ({ ...one, alarmId: null })),
    mapped,
  );
  const others = await storedWrites(store, accountId, stored, mapped);
  const ways = feedbackOf([...own, ...others], await store.calculated.graph(accountId));
  for (const write of own) {
    const way = ways.get(write);
    if (way !== undefined)
      throw invalidField(
        `notifications.${write.field}`,
        `the state would be pushed into what this template watches: ${way}. Choose a variable that no alarm watches, ` +
          "or take the watched one out of the selection",
      );
  }
}

/** By the alarms that there are: templates may select others since. */
async function storedWrites(
  { alarms, points }: HubStore,
  accountId: number,
  templates: readonly StoredTemplate[],
  mapped: ReadonlyMap<string, readonly MappedVariable[]>,
): Promise<readonly StateWrite[]> {
  const writing = templates.filter(({ body }) => writesInto(body));
  if (writing.length === 0) return [];
  const rows = await alarms.pauses.watching(
    accountId,
    writing.map(({ id }) => id),
  );
  const ids = [...new Set(rows.map(({ variableId }) => variableId))];
  const facts = new Map((await points.select(accountId, { ids })).map((one) => [one.id, one]));
  const byTemplate = Map.groupBy(rows, ({ templateId }) => templateId);
  return writing.flatMap(({ id, body }) => {
    const own = (byTemplate.get(id) ?? []).flatMap(({ alarmId, variableId }) => {
      const variable = facts.get(variableId);
      return variable === undefined ? [] : [{ id: variableId, sourceId: variable.sourceId, alarmId }];
    });
    return stateWrites({ id, body }, own, mapped);
  });
}

/** Ways that are shown step by step; further writes are found, and say so in short. */
const SHOWN = 5;

/**
 * The writes into a variable that their own template watches, or from which their watched variable follows; with the
 * way back in words.
 */
export function feedbackOf(
  writes: readonly StateWrite[],
  edges: readonly CalculatedEdge[],
): ReadonlyMap<StateWrite, string> {
  const steps = new Map<number, Step[]>();
  const add = (from: number, step: Step) => {
    const own = steps.get(from);
    if (own === undefined) steps.set(from, [step]);
    else own.push(step);
  };
  for (const { watchedId, targetId, template } of writes)
    add(watchedId, { to: targetId, words: `the alarm “${template.name}” writes into` });
  for (const { inputId, calculatedId } of edges) add(inputId, { to: calculatedId, words: "an input of" });
  const circles = circlesOf(steps);
  const watched = new Map<number | null, Set<number>>();
  for (const { template, watchedId } of writes) {
    const own = watched.get(template.id);
    if (own === undefined) watched.set(template.id, new Set([watchedId]));
    else own.add(watchedId);
  }
  const found = new Map<StateWrite, string>();
  for (const write of writes) {
    const { watchedId, targetId, template } = write;
    if (watched.get(template.id)?.has(targetId)) found.set(write, `it watches the variable ${targetId}`);
    else if (circles.get(watchedId) === circles.get(targetId))
      found.set(
        write,
        found.size < SHOWN ? wayBack(write, steps) : `from the variable ${targetId} follows ${watchedId}`,
      );
  }
  return found;
}

/** The shortest way: `12, an input of 15, which the alarm “A” watches`. */
function wayBack({ watchedId, targetId }: StateWrite, steps: ReadonlyMap<number, readonly Step[]>): string {
  const before = new Map<number, { readonly from: number; readonly words: string }>();
  const waiting = [targetId];
  for (const at of waiting) {
    if (before.has(watchedId)) break;
    for (const { to, words } of steps.get(at) ?? []) {
      if (before.has(to)) continue;
      before.set(to, { from: at, words });
      waiting.push(to);
    }
  }
  let way = `${watchedId}, which it watches`;
  for (let at: number | undefined = watchedId; at !== undefined && at !== targetId; ) {
    const step = before.get(at);
    at = step?.from;
    if (step !== undefined) way = `${step.from}${isInput(step.words) ? ", " : ": "}${step.words} ${way}`;
  }
  return `the variable ${way}`;
}

const isInput = (words: string) => words.startsWith("an input");

/**
 * The number of each variable's circle: two have the same one where each follows from the other (strongly connected
 * components, by Tarjan, without recursion).
 */
function circlesOf(steps: ReadonlyMap<number, readonly Step[]>): ReadonlyMap<number, number> {
  const circles = new Map<number, number>();
  const order = new Map<number, number>();
  const lowest = new Map<number, number>();
  const open: number[] = [];
  const path: { readonly id: number; next: number }[] = [];
  const enter = (id: number) => {
    order.set(id, order.size);
    lowest.set(id, order.size - 1);
    open.push(id);
    path.push({ id, next: 0 });
  };
  const lower = (id: number, by: number | undefined) =>
    lowest.set(id, Math.min(lowest.get(id) ?? 0, by ?? Number.POSITIVE_INFINITY));
  for (const start of steps.keys()) {
    if (!order.has(start)) enter(start);
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const step = steps.get(top.id)?.[top.next];
      top.next += 1;
      if (step !== undefined) {
        if (!order.has(step.to)) enter(step.to);
        else if (!circles.has(step.to)) lower(top.id, order.get(step.to));
        continue;
      }
      path.pop();
      const above = path.at(-1);
      if (above !== undefined) lower(above.id, lowest.get(top.id));
      if (lowest.get(top.id) !== order.get(top.id)) continue;
      for (let id = open.pop(); id !== undefined; id = open.pop()) {
        circles.set(id, top.id);
        if (id === top.id) break;
      }
    }
  }
  return circles;
}
