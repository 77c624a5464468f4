/**
 * The batches of a run and their events for people: of many that went alike the first, the last and the number are
 * enough, and those that failed or differ stand beside them.
 */

import { commonText } from "#core/text.ts";
import type { Batch, LedgerEvent } from "../model.ts";

/** A run of up to so many batches is shown in full. */
export const SHOWN_IN_FULL = 20;
/** Batches that failed or differ, and are shown one by one. */
const ODD_SHOWN = 20;

export interface BatchStory {
  /** In their order: all of a few; of many the first, the last, and those that failed or differ. */
  readonly shown: readonly Batch[];
  /** Batches that are not shown; those that failed or differ among them. */
  readonly folded: { readonly batches: number; readonly points: number; readonly odd: number };
}

export function batchStory(batches: readonly Batch[]): BatchStory {
  if (batches.length <= SHOWN_IN_FULL) return { shown: batches, folded: { batches: 0, points: 0, odd: 0 } };
  const odd = oddOf(batches);
  const named = new Set([batches[0], ...odd.slice(0, ODD_SHOWN), batches.at(-1)]);
  const others = batches.filter((batch) => !named.has(batch));
  const points = others.reduce((sum, one) => sum + one.points, 0);
  const hidden = odd.filter((batch) => !named.has(batch)).length;
  const folded = { batches: others.length, points, odd: hidden };
  return { shown: batches.filter((batch) => named.has(batch)), folded };
}

/** Sent more than once, not stored as a whole, in another state or with another answer than most. */
function oddOf(batches: readonly Batch[]): readonly Batch[] {
  const usual = mostFrequent(batches.map(formOf));
  return batches.filter((batch) => {
    const { attempts, outcome } = batch;
    const isStored = outcome === null || (outcome.stored >= outcome.received && outcome.discarded.length === 0);
    return attempts > 1 || !isStored || formOf(batch) !== usual;
  });
}

function formOf({ state, answer }: Batch): string {
  return `${state} ${commonText(answer ?? "")}`;
}

function mostFrequent(texts: readonly string[]): string | null {
  const groups = [...Map.groupBy(texts, (text) => text)].toSorted(([, one], [, other]) => other.length - one.length);
  return groups[0]?.[0] ?? null;
}

/** An event, or the first of several of the same kind about batches that went alike. */
export type StoryEvent = LedgerEvent & {
  readonly folded?: { readonly count: number; readonly lastAt: string; readonly lastOperationId: string };
};

/** Events of batches are folded, except of a few batches and of those that failed or differ. */
export function eventStory(
  events: readonly LedgerEvent[],
  runs: readonly { readonly batches: readonly Batch[] }[],
): readonly StoryEvent[] {
  const folds = new Set(runs.flatMap(({ batches }) => foldedOf(batches)));
  const keyOf = ({ what, runId, operationId, detail }: LedgerEvent) =>
    operationId === null || !folds.has(operationId) ? null : JSON.stringify([what, runId, commonText(detail)]);
  const groups = Map.groupBy(events, keyOf);
  return events.flatMap((event) => {
    const key = keyOf(event);
    const alike = key === null ? [event] : (groups.get(key) ?? [event]);
    if (alike.length === 1) return [event];
    const last = alike.at(-1);
    if (alike[0] !== event || last === undefined) return [];
    const folded = { count: alike.length, lastAt: last.at, lastOperationId: last.operationId ?? "" };
    return [{ ...event, folded }];
  });
}

/** Of many batches: all that are alike, and of the odd ones those that are too many to be shown. */
function foldedOf(batches: readonly Batch[]): readonly string[] {
  if (batches.length <= SHOWN_IN_FULL) return [];
  const named = new Set(oddOf(batches).slice(0, ODD_SHOWN));
  return batches.flatMap((batch) => (named.has(batch) ? [] : [batch.operationId]));
}
