/** A template over a past period, without any effect: `POST /alarms/template/test`. */
import type { z } from "zod";
import { breath } from "#core/turns.ts";
import { type AlarmTest, type alarmTestBody, ianaZone } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { boundMs } from "../data/query.ts";
import { invalidField } from "../http/problems.ts";
import type { VariableFacts } from "../store/store.ts";
import { isoOfMs } from "../time.ts";
import type { AlarmPoint } from "./conditions.ts";
import { type Compiled, costOfPoint, expressionOf } from "./expression.ts";
import { shownUntil } from "./moments.ts";
import { progressed, type Rule, type Standing, type StateChange } from "./progress.ts";
import { isOfPoints, ruleOf } from "./rule.ts";
import { nextCounted } from "./schedule.ts";
import { selectedVariables } from "./selection.ts";

/** Limits of one test. */
const VARIABLES_MAX = 1_000;
const POINTS_MAX = 2_000_000;
const CHANGES_MAX = 10_000;
/** Points without an expression that are judged before the event loop serves others. */
const SLICE = 10_000;
const MINUTE_MS = 60_000;

interface Period {
  readonly fromMs: number;
  /** Excluded. */
  readonly toMs: number;
}

export async function tried(
  { store, clock }: HubContext,
  accountId: number,
  { template, from, to }: z.output<typeof alarmTestBody>,
): Promise<AlarmTest> {
  const { condition, selection } = template;
  if (condition.kind === "LateFile" || condition.kind === "CalculationFailed")
    throw invalidField("template.condition.kind", `${condition.kind} cannot be tested: it depends on no points`);
  const nowMs = clock.now().epochMilliseconds;
  const period = { fromMs: boundMs("from", from, "UTC") ?? 0, toMs: boundMs("to", to, "UTC") ?? nowMs };
  if (period.fromMs >= period.toMs) throw invalidField("from", "is not before to");
  const variables = await selectedVariables(store, accountId, selection, nowMs);
  const changes: AlarmTest["changes"] = [];
  const slice = Math.ceil(SLICE / costOfPoint(condition));
  let points = 0;
  let tested = 0;
  for (const variable of variables.slice(0, VARIABLES_MAX)) {
    if (points > POINTS_MAX || changes.length > CHANGES_MAX) break;
    const range = { order: "ASC", page: { offset: 0, limit: null }, view: { kind: "latest" }, labels: false } as const;
    const trial = new Trial(ruleOf(template), variable, period, await expressionOf(condition, variable));
    for await (const chunk of store.points.read(variable, {
      ...range,
      fromMs: period.fromMs,
      lastMs: period.toMs - 1,
    })) {
      for (let at = 0; at < chunk.length; at += slice) {
        trial.take(chunk.slice(at, at + slice));
        await breath();
      }
      points += chunk.length;
      if (points > POINTS_MAX) break;
    }
    for (const { state, atMs, value } of trial.finish())
      changes.push({ variableId: variable.id, state, date: isoOfMs(atMs), value });
    tested += 1;
  }
  const complete = tested === variables.length && points <= POINTS_MAX && changes.length <= CHANGES_MAX;
  return { variables: variables.length, tested, changes: changes.slice(0, CHANGES_MAX), complete };
}

/** One variable over the period. */
class Trial {
  readonly #rule: Rule;
  readonly #zone: string;
  readonly #period: Period;
  readonly #compiled: Compiled | null;
  readonly #changes: StateChange[] = [];
  #standing: Standing = { state: "NotPresent", memory: {} };
  /** NoData: date of the newest point. */
  #newestMs: number;

  constructor(rule: Rule, { siteZoneId }: VariableFacts, period: Period, compiled: Compiled | null) {
    this.#rule = rule;
    this.#zone = ianaZone(siteZoneId) ?? "UTC";
    this.#period = period;
    this.#compiled = compiled;
    this.#newestMs = period.fromMs;
  }

  take(points: readonly AlarmPoint[]): void {
    if (this.#rule.condition.kind === "Gap") {
      for (const point of points) {
        this.#endGap(point.atMs);
        this.#progress([point]);
      }
      return;
    }
    if (isOfPoints(this.#rule.condition)) {
      this.#progress(points);
      return;
    }
    for (const { atMs, value } of points) {
      if (this.#missedUntil(atMs)) this.#changes.push({ state: "NotPresent", atMs, value });
      this.#newestMs = atMs;
    }
  }

  #progress(all: readonly AlarmPoint[]): void {
    const points = all.map(({ atMs, value }) => ({ atMs, value }));
    const { last } = this.#standing.memory;
    const expression = this.#compiled?.([...(last === undefined ? [] : [last]), ...points]) ?? null;
    const next = progressed({ ...this.#rule, expression }, this.#zone, this.#standing, points);
    this.#standing = next;
    for (const change of next.changes) this.#changes.push(change);
  }

  /** A gap that is shown for its time by then ends. */
  #endGap(atMs: number): void {
    const { state, memory } = this.#standing;
    const endMs = shownUntil(this.#rule, memory);
    if (state === "NotPresent" || endMs > atMs) return;
    this.#changes.push({ state: "NotPresent", atMs: endMs, value: null });
    this.#standing = { state: "NotPresent", memory };
  }

  finish(): readonly StateChange[] {
    if (this.#rule.condition.kind === "Gap") this.#endGap(this.#period.toMs - 1);
    if (!isOfPoints(this.#rule.condition)) this.#missedUntil(this.#period.toMs);
    return this.#changes;
  }

  #missedUntil(atMs: number): boolean {
    const dueMs = this.#newestMs + (this.#rule.condition.minutes ?? 0) * MINUTE_MS;
    const since = nextCounted(this.#rule.schedule, this.#zone, dueMs);
    if (since >= atMs) return false;
    this.#changes.push({ state: "Present", atMs: since, value: null });
    return true;
  }
}
