/** Compares accepted readings with the data interface, by batch and page, since a count would pass on old data. */

import { type Clock, isoInstant } from "#core/clock.ts";
import { HeadgateError, InvariantError, TransientError, wordsOf } from "#core/errors.ts";
import type { ServiceClient } from "#wire/client/index.ts";
import type { DataQuery, DataRow } from "#wire/data.ts";
import { targetWords } from "#wire/target.ts";
import type { ServiceOperation } from "#wire/webhook.ts";
import type { Batch, DiscardedTarget, Outcome, PushElement, Run } from "../model.ts";
import { parseElements, restoreChildren } from "./children.ts";
import {
  type DeliveryJournal,
  type OpenOtherDeliveries,
  type OtherDeliveries,
  OVERWRITTEN,
  type ReadBackResult,
  type SegmentChanges,
  type StoredPlace,
} from "./delivery.ts";
import { readSlice } from "./slices.ts";
import { type Meaning, type TargetResolver, variableOf } from "./targets.ts";

/** A reading that should be stored. */
interface Expected {
  readonly target: string;
  readonly value: number;
  found: "stored" | typeof OVERWRITTEN | "not stored";
}

const ROWS_PER_PAGE = 10_000;
const VARIABLES_PER_CALL = 500;
/** A refusal that a person has to resolve; transient failures are queried again at the next check. */
const REFUSED_MS = 5 * 60_000;
/** Every call without a response, or with only a transient failure. */
const NOT_REACHABLE = "HG-PUSH-001";
/** Number of operations that are remembered; older ones are read again. */
const COMPLETE_MAX = 20_000;
const UNKNOWN = "unknown variable";

/** `unknown`: the service does not report whether the operation was applied. */
export type Delivered =
  | { readonly status: "awaited" }
  /** Readings that the service does not have. */
  | { readonly status: "applied" | "failed" | "unknown"; readonly missing: number };

export class ReadBack {
  readonly #client: ServiceClient;
  readonly #journal: DeliveryJournal;
  readonly #clock: Clock;
  readonly #targets: TargetResolver;
  readonly #segments: SegmentChanges;
  /** Operations found complete, while others of their run are still missing. */
  readonly #complete = new Map<string, Outcome>();

  constructor(
    client: ServiceClient,
    { journal, segments }: { readonly journal: DeliveryJournal; readonly segments: SegmentChanges },
    clock: Clock,
    targets: TargetResolver,
  ) {
    this.#client = client;
    this.#journal = journal;
    this.#segments = segments;
    this.#clock = clock;
    this.#targets = targets;
  }

  async read(run: Run, segmentPath: string, signal: AbortSignal, open?: OpenOtherDeliveries): Promise<ReadBackResult> {
    const others = new Others(open, (elements) => this.#placesOf(elements, signal));
    try {
      const outcomes: Outcome[] = [];
      const batches = await this.#journal.batches(run.id);
      await restoreChildren(segmentPath, batches, this.#segments);
      for (const batch of batches) {
        if (batch.state !== "accepted" || batch.outcome !== null) continue;
        outcomes.push(
          this.#complete.get(batch.operationId) ?? (await this.#readBatch(batch, segmentPath, others, signal)),
        );
      }
      this.#remember(outcomes);
      const missing = outcomes.reduce((sum, { received, stored }) => sum + received - stored, 0);
      return { status: "read", outcomes, missing, overwritten: others.overwritten, unclear: others.unclear };
    } catch (thrown) {
      if (signal.aborted) return { status: "unknown", reason: "stopped", retryAfterMs: 0, isAway: false };
      if (!(thrown instanceof HeadgateError) || thrown instanceof InvariantError) throw thrown;
      const retryAfterMs = thrown instanceof TransientError ? 0 : REFUSED_MS;
      return {
        status: "unknown",
        reason: wordsOf(thrown),
        retryAfterMs,
        isAway: thrown.code === NOT_REACHABLE,
      };
    } finally {
      await others.close();
    }
  }

  async #placesOf(elements: readonly PushElement[], signal: AbortSignal): Promise<readonly StoredPlace[]> {
    const { groups } = expectations(elements, await this.#targets.resolve(elements, signal));
    return [...groups].flatMap(([version, group]) =>
      [...group.all()].map(({ variableId, atMs }) => ({ variableId, atMs, version })),
    );
  }

  #remember(outcomes: readonly Outcome[]): void {
    const whole = outcomes.filter(({ received, stored }) => received === stored);
    for (const outcome of whole) {
      if (whole.length === outcomes.length) this.#complete.delete(outcome.operationId);
      else this.#complete.set(outcome.operationId, outcome);
    }
    for (const operationId of this.#complete.keys()) {
      if (this.#complete.size <= COMPLETE_MAX) break;
      this.#complete.delete(operationId);
    }
  }

  /**
   * Compares a batch that an earlier operation delivered, as the service says, with what is stored. A reading whose
   * place holds another value was delivered: a later one counts. Throws what the client throws.
   */
  async delivered(by: string, batch: Batch, segmentPath: string, signal: AbortSignal): Promise<Delivered> {
    const operation = by === "" ? null : await this.#operation(by, signal);
    if (operation?.status === "accepted") return { status: "awaited" };
    const { groups, lost } = await this.#found(parseElements(readSlice(segmentPath, batch)), signal);
    let missing = lost.reduce((sum, { points }) => sum + points, 0);
    for (const group of groups.values())
      for (const { expected } of group.all()) if (expected.found === "not stored") missing += expected.count;
    return { status: operation === null ? "unknown" : operation.status === "failed" ? "failed" : "applied", missing };
  }

  /** Null where the service keeps no record of operations, or this user may not read it. */
  async #operation(operationId: string, signal: AbortSignal): Promise<ServiceOperation | null> {
    try {
      return await this.#client.getOperation(operationId, signal);
    } catch (thrown) {
      if (signal.aborted || !(thrown instanceof HeadgateError) || thrown instanceof TransientError) throw thrown;
      return null;
    }
  }

  async #found(elements: readonly PushElement[], signal: AbortSignal): Promise<ReturnType<typeof expectations>> {
    const variables = await this.#targets.resolve(elements, signal, { fresh: true });
    const expected = expectations(elements, variables);
    for (const [version, group] of expected.groups) await this.#compare(version, group, signal);
    return expected;
  }

  async #readBatch(batch: Batch, segmentPath: string, others: Others, signal: AbortSignal): Promise<Outcome> {
    const { groups, lost } = await this.#found(parseElements(readSlice(segmentPath, batch)), signal);
    const tally = new Tally();
    for (const { target, points, reason } of lost) tally.lose(target, reason, points);
    for (const [version, group] of groups) {
      for (const { variableId, atMs, expected } of group.all()) {
        const { target, found, count } = expected;
        const place = { variableId, atMs, version };
        const isStored = found === "stored" || (found === OVERWRITTEN && (await others.brought(place, batch, count)));
        if (isStored) tally.stored += count;
        else tally.lose(target, found, count);
      }
    }
    return {
      operationId: batch.operationId,
      by: "read-back",
      received: batch.points,
      stored: tally.stored,
      discarded: tally.discarded(),
      at: isoInstant(this.#clock.now()),
    };
  }

  /** Marks the readings that are found. Reads pages until all are found or the service has no more. */
  async #compare(version: string | null, group: Group, signal: AbortSignal): Promise<void> {
    for (const ids of group.variableChunks(VARIABLES_PER_CALL)) {
      const { from, to } = group.period(ids);
      let open = group.open(ids);
      let before = "";
      for (let page = 0; open > 0; page += 1) {
        const query: DataQuery = {
          VariableIds: ids,
          From: from,
          To: to,
          IncludeToBoundary: true,
          TimeZoneId: "UTC",
          Granularity: "Raw",
          DisplayLevel: "ValueVariableDateSource",
          "Paging.PageNumber": page,
          "Paging.ItemsPerPage": ROWS_PER_PAGE,
          PagingOrder: "ASC",
          ...(version === null ? {} : { VersionTag: version }),
        };
        const rows = await this.#client.postData(query, signal);
        // The last page, or a service without paging that returns the first page for ever.
        const first = JSON.stringify(rows[0] ?? null);
        if (rows.length === 0 || first === before) break;
        before = first;
        for (const row of rows) open -= group.mark(row);
      }
    }
  }
}

/** Deliveries of other runs to the same places, read only once a stored value differs. */
class Others {
  readonly #open: OpenOtherDeliveries | undefined;
  readonly #placesOf: Parameters<OpenOtherDeliveries>[0];
  #opened: OtherDeliveries | null = null;
  overwritten = 0;
  unclear: string | null = null;

  constructor(open: OpenOtherDeliveries | undefined, placesOf: Parameters<OpenOtherDeliveries>[0]) {
    this.#open = open;
    this.#placesOf = placesOf;
  }

  /** `batch`: the batch of the reading whose place holds another value; `count`: how often that reading is in it. */
  async brought(place: StoredPlace, { acceptedAt }: Batch, count: number): Promise<boolean> {
    if (this.#open === undefined || acceptedAt === null) return false;
    this.#opened ??= await this.#open(this.#placesOf);
    if (this.#opened.has(place, acceptedAt)) {
      this.overwritten += count;
      return true;
    }
    this.unclear ??= this.#opened.unknown;
    return false;
  }

  async close(): Promise<void> {
    await this.#opened?.close();
  }
}

/** The readings of one batch with one version, or with none (then the newest version counts). */
class Group {
  readonly #byVariable = new Map<number, Map<number, Expected & { count: number }>>();

  /** Of two readings of one date the later one stays. */
  expect(variableId: number, epochMs: number, target: string, value: number): void {
    const dates = this.#byVariable.get(variableId) ?? new Map<number, Expected & { count: number }>();
    this.#byVariable.set(variableId, dates);
    const count = (dates.get(epochMs)?.count ?? 0) + 1;
    dates.set(epochMs, { target, value, found: "not stored", count });
  }

  /** 1 when this row settles an open reading, otherwise 0. */
  mark(row: DataRow): 0 | 1 {
    const expected = this.#byVariable.get(row.variableId ?? -1)?.get(epochMsOf(row.date ?? ""));
    if (expected === undefined || row.rawValue === undefined) return 0;
    const wasOpen = expected.found === "not stored";
    expected.found = row.rawValue === expected.value ? "stored" : OVERWRITTEN;
    return wasOpen ? 1 : 0;
  }

  *all(): Iterable<{
    readonly variableId: number;
    readonly atMs: number;
    readonly expected: Expected & { count: number };
  }> {
    for (const [variableId, dates] of this.#byVariable)
      for (const [atMs, expected] of dates) yield { variableId, atMs, expected };
  }

  *variableChunks(size: number): Iterable<number[]> {
    const ids = [...this.#byVariable.keys()];
    for (let at = 0; at < ids.length; at += size) yield ids.slice(at, at + size);
  }

  open(variableIds: readonly number[]): number {
    return variableIds.reduce((sum, id) => sum + (this.#byVariable.get(id)?.size ?? 0), 0);
  }

  /** Whole seconds around the readings, without zone as clients send them; the request reads them in UTC. */
  period(variableIds: readonly number[]): { readonly from: string; readonly to: string } {
    let first = Number.POSITIVE_INFINITY;
    let last = Number.NEGATIVE_INFINITY;
    for (const id of variableIds) {
      for (const epochMs of this.#byVariable.get(id)?.keys() ?? []) {
        first = Math.min(first, epochMs);
        last = Math.max(last, epochMs);
      }
    }
    const seconds = (ms: number) => new Date(ms).toISOString().slice(0, 19);
    return { from: seconds(Math.floor(first / 1000) * 1000), to: seconds(Math.ceil(last / 1000) * 1000) };
  }
}

interface Lost {
  readonly target: string;
  readonly reason: string;
  readonly points: number;
}

function expectations(
  elements: readonly PushElement[],
  variables: ReadonlyMap<string, Meaning>,
): { readonly groups: ReadonlyMap<string | null, Group>; readonly lost: readonly Lost[] } {
  const groups = new Map<string | null, Group>();
  const lost: Lost[] = [];
  for (const element of elements) {
    const target = targetWords(element);
    const variable = variableOf(variables.get(target));
    if (variable === null) {
      lost.push({ target, reason: UNKNOWN, points: element.data.length });
      continue;
    }
    for (const reading of element.data) {
      const epochMs = epochMsOf(reading.date);
      // Without versions a later value replaces an earlier one, whatever its tag.
      const version = variable.isVersioned ? (reading.version ?? element.version ?? null) : null;
      const group = groups.get(version) ?? new Group();
      groups.set(version, group);
      if (Number.isNaN(epochMs)) lost.push({ target, reason: `unreadable date ${reading.date}`, points: 1 });
      else group.expect(variable.id, epochMs, target, reading.value);
    }
  }
  return { groups, lost };
}

/**
 * Milliseconds since 1970; the request asked for UTC, so that a date without designator is in UTC. NaN when it is not a
 * date.
 */
function epochMsOf(date: string): number {
  return Date.parse(/(?:Z|[+-]\d{2}:?\d{2})$/i.test(date) ? date : `${date}Z`);
}

/** Counts lost readings by target and reason. */
class Tally {
  stored = 0;
  readonly #lost = new Map<string, DiscardedTarget>();

  lose(target: string, reason: string, points: number): void {
    if (points === 0) return;
    const key = `${target}\n${reason}`;
    this.#lost.set(key, { target, reason, points: (this.#lost.get(key)?.points ?? 0) + points });
  }

  discarded(): readonly DiscardedTarget[] {
    return [...this.#lost.values()];
  }
}
