/**
 * Finds the readings of a migration that are still stored and may be removed. `DELETE /data` takes variables and a
 * period, and removes every version of every date in it. So the stored dates are compared with the delivered ones:
 * dates of the migration with no other date between them go in one call, and a date that is not of this migration, or
 * not of it alone, is never in the period of a call.
 */

import type { DataQuery, DataRow, Removal, RemovalQuery } from "#wire/data.ts";
import { mayBeStored } from "../../delivery/delivery.ts";
import type { Batch } from "../../model.ts";
import type { Expectation, HeldReading } from "../report/expectation.ts";
import { resolveVariables, type TargetReader } from "../resolved-variables.ts";
import type { RemovalRanges } from "./removal-ranges.ts";

/** Calls to the service; errors are those of its client. */
export interface StoreRemover extends TargetReader {
  postData(query: DataQuery, signal: AbortSignal): Promise<readonly DataRow[]>;
  deleteData(query: RemovalQuery, signal: AbortSignal): Promise<Removal>;
}

/** The dates of one variable that would be removed, and those that would stay. */
export interface UndoneVariable {
  readonly variableId: number;
  /** The target in the words of the migration. */
  readonly target: string;
  /** First and last date that are removed; null when there is none. */
  readonly from: string | null;
  readonly to: string | null;
  /** Dates, and versions of them. */
  readonly points: number;
  readonly versions: number;
  /** The number of calls, one for each period. */
  readonly calls: number;
  /**
   * Dates that stay: other runs delivered them too; another value is stored; the service would have removed more with
   * them.
   */
  readonly stay: { readonly others: number; readonly changed: number; readonly unsure: number };
  /** Numbers of the other runs, the first of them. */
  readonly otherRuns: readonly number[];
}

export interface UndoSurvey {
  readonly variables: readonly UndoneVariable[];
  /** Targets without a variable, in words: nothing of them is stored. */
  readonly missing: readonly string[];
  /** Dates of the migration that are not stored. */
  readonly absent: number;
}

export interface SurveyParts {
  readonly own: Expectation;
  /** Readings of other runs. */
  readonly others: Expectation;
  readonly ranges: RemovalRanges;
  /** Dates that others have delivered too, or that hold another value, are removed as well. */
  readonly withOthers: boolean;
  readonly store: StoreRemover;
  tick(variables: number, of: number): void;
}

/** A batch without a clear response may be stored. A batch that was begun and never sent is not. */
export function mayBeDelivered(batch: Batch): boolean {
  return batch.state === "accepted" || (batch.state === "sending" && mayBeStored(batch));
}

const ROWS_PER_PAGE = 10_000;
const OWN_PER_READ = 5_000;
const RUNS_NAMED = 3;
/** Values may have passed through a decimal column of the service. */
const TOLERANCE = 1e-9;

export async function surveyUndo(parts: SurveyParts, signal: AbortSignal): Promise<UndoSurvey> {
  const { own, others, store } = parts;
  const missing: string[] = [];
  const ours = await resolveVariables(own, store, signal, ({ target }) => missing.push(target));
  const theirs = await resolveVariables(others, store, signal, () => undefined);
  const variables: UndoneVariable[] = [];
  let absent = 0;
  for (const [variableId, { id, target }] of ours) {
    const survey = new VariableSurvey({ variableId, target, own: id, others: theirs.get(variableId)?.id }, parts);
    await survey.run(signal);
    variables.push(survey.result());
    absent += survey.absent;
    parts.tick(variables.length, ours.size);
  }
  return { variables, missing, absent };
}

interface Subject {
  readonly variableId: number;
  readonly target: string;
  /** Ids of its readings in the two sets. */
  readonly own: number;
  readonly others: number | undefined;
}

class VariableSurvey {
  readonly #subject: Subject;
  readonly #parts: SurveyParts;
  readonly #stay = { others: 0, changed: 0, unsure: 0 };
  readonly #otherRuns = new Set<number>();
  #open: { readonly fromMs: number; toMs: number; points: number } | null = null;
  #edge: { readonly fromMs: number; toMs: number } | null = null;
  #sum = { points: 0, versions: 0, calls: 0 };
  absent = 0;

  constructor(subject: Subject, parts: SurveyParts) {
    this.#subject = subject;
    this.#parts = parts;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { own, store } = this.#parts;
    const cursor = new Cursor(own, this.#subject.own);
    const [first, last] = own.edges(this.#subject.own);
    for await (const { at, value } of storedReadings(this.#subject.variableId, first, last, store, signal)) {
      const mine = cursor.at(at);
      if (mine !== null && this.#goes(mine, value)) this.#extend(at);
      else await this.#close(signal);
    }
    await this.#close(signal);
    cursor.end();
    this.absent = cursor.passed;
  }

  result(): UndoneVariable {
    const { variableId, target } = this.#subject;
    return {
      ...{ variableId, target, ...this.#sum, stay: this.#stay },
      from: this.#edge === null ? null : iso(this.#edge.fromMs),
      to: this.#edge === null ? null : iso(this.#edge.toMs),
      otherRuns: [...this.#otherRuns].slice(0, RUNS_NAMED),
    };
  }

  /** Whether a stored date of this migration may be removed. */
  #goes(mine: HeldReading, stored: number): boolean {
    const { others, withOthers } = this.#parts;
    const id = this.#subject.others;
    const [theirs] = id === undefined ? [] : others.some(id, mine.at, mine.at + 1, 1);
    if (theirs !== undefined) {
      this.#otherRuns.add(theirs.run);
      this.#stay.others += 1;
    } else if (!isSame(mine.value, stored)) this.#stay.changed += 1;
    else return true;
    return withOthers;
  }

  #extend(at: number): void {
    this.#open ??= { fromMs: at, toMs: at, points: 0 };
    this.#open.toMs = at;
    this.#open.points += 1;
  }

  /** Asks the service for the effect, and removes the period only when it equals what was found there. */
  async #close(signal: AbortSignal): Promise<void> {
    const range = this.#open;
    this.#open = null;
    if (range === null) return;
    const { store, ranges } = this.#parts;
    const { variableId } = this.#subject;
    const { fromMs, toMs } = range;
    const would = await store.deleteData({ ...periodOf(variableId, range), WhatIf: true }, signal);
    if (would.points > range.points) {
      this.#stay.unsure += range.points;
      return;
    }
    ranges.add({ variableId, fromMs, toMs, points: would.points, versions: would.versions });
    this.#edge = { fromMs: this.#edge?.fromMs ?? fromMs, toMs };
    this.#sum.points += would.points;
    this.#sum.versions += would.versions;
    this.#sum.calls += 1;
  }
}

/** The end is exclusive: a millisecond after the last date. */
export function periodOf(
  variableId: number,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): RemovalQuery {
  return { VariableIds: [variableId], FromDateUtc: iso(fromMs), ToDateUtc: iso(toMs + 1) };
}

/** Readings of one target in the order of time, read in pages. */
class Cursor {
  readonly #readings: Expectation;
  readonly #target: number;
  #page: readonly HeldReading[] = [];
  #next = 0;
  #fromMs = Number.MIN_SAFE_INTEGER;
  /** Readings whose dates were skipped. */
  passed = 0;

  constructor(readings: Expectation, target: number) {
    this.#readings = readings;
    this.#target = target;
  }

  /** The reading of this date. Dates are requested in the order of time. */
  at(ms: number): HeldReading | null {
    for (let reading = this.#peek(); reading !== undefined; reading = this.#peek()) {
      if (reading.at > ms) return null;
      this.#next += 1;
      if (reading.at === ms) return reading;
      this.passed += 1;
    }
    return null;
  }

  end(): void {
    this.at(Number.MAX_SAFE_INTEGER);
  }

  #peek(): HeldReading | undefined {
    if (this.#next === this.#page.length) {
      this.#page = this.#readings.some(this.#target, this.#fromMs, Number.MAX_SAFE_INTEGER, OWN_PER_READ);
      this.#next = 0;
      const last = this.#page.at(-1);
      if (last !== undefined) this.#fromMs = last.at + 1;
    }
    return this.#page[this.#next];
  }
}

/** In the order of time, the bounds included. */
async function* storedReadings(
  variableId: number,
  firstMs: number,
  lastMs: number,
  store: StoreRemover,
  signal: AbortSignal,
): AsyncGenerator<{ readonly at: number; readonly value: number }> {
  for (let fromMs = firstMs; fromMs <= lastMs; ) {
    const rows = await store.postData(
      {
        VariableIds: [variableId],
        From: iso(fromMs),
        To: iso(lastMs + 1),
        DisplayLevel: "ValueVariableDate",
        TimeZoneId: "UTC",
        PagingOrder: "ASC",
        "Paging.PageNumber": 0,
        "Paging.ItemsPerPage": ROWS_PER_PAGE,
      },
      signal,
    );
    for (const { date, rawValue } of rows) yield { at: Date.parse(date ?? ""), value: rawValue ?? Number.NaN };
    const last = rows.at(-1)?.date;
    if (last === undefined || rows.length < ROWS_PER_PAGE) return;
    fromMs = Date.parse(last) + 1;
  }
}

function isSame(own: number, stored: number): boolean {
  return Math.abs(own - stored) <= TOLERANCE * Math.max(Math.abs(own), Math.abs(stored));
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
