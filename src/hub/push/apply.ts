/**
 * Applies a group of operations: resolves targets, checks readings, writes points, counts the results. `received =
 * stored + discarded`, always; each discarded reading has a reason.
 */
import { type Clock, isoInstant } from "#core/clock.ts";
import {
  type IdentifierKind,
  ianaZone,
  identifierKind,
  type PushElement,
  type PushReading,
  readPushParts,
  targetWords,
} from "#wire/index.ts";
import { type Labels, ReadingColumns } from "../store/columns.ts";
import type { IngestTransaction, QueuedOperation } from "../store/ingest.ts";
import type { Outcome } from "../store/operations.ts";
import type { VariableFacts } from "../store/records.ts";
import { plainInstantMs, READING_RULE, readInstant } from "../time.ts";
import { decompressed, release } from "./body-compression.ts";
import { type Horizon, type Refused, refusedBy } from "./ingestion.ts";
import { PlainElements } from "./plain-elements.ts";

export interface ApplyParts {
  readonly discardsMax: number;
  readonly horizon: Horizon;
  readonly clock: Clock;
  /** Collects readings until they are written; cleared first. */
  readonly columns: ReadingColumns;
}

const IS_CALCULATED = "the variable is calculated: its points come from its formulas alone";
const SUPERSEDED = "the calculation was superseded: its definition changed, or the variable is no longer calculated";
const BEYOND_HORIZON = "the date is beyond the future horizon of the account";
const COLLIDING = "the date, cut to the millisecond, is that of another reading of this operation with another value";

/** A text with more than three decimals, which may be a date finer than a millisecond. */
const MAYBE_FINER = /[.,]\d{4}/;

const EXAMPLE_CHARACTERS = 60;

/** Outcomes in the order of the operations. */
export async function applyOperations(
  transaction: IngestTransaction,
  operations: readonly QueuedOperation[],
  { discardsMax, horizon, clock, columns }: ApplyParts,
): Promise<readonly Outcome[]> {
  columns.clear();
  const replaced = operations.map(() => 0);
  const refused = operations.map((): Refused[] => []);
  // Of a group, what is written is of all of its operations, and counts for none of their timeouts.
  const writing = { ms: 0 };
  const write = async (): Promise<void> => {
    const beganMs = clock.monotonicMs();
    const written = await transaction.write(columns);
    for (const [index, count] of written.replaced.entries()) replaced[index] = (replaced[index] ?? 0) + count;
    for (const one of refusedBy(written.damaged, columns)) refused[one.operation]?.push(one);
    columns.clear();
    if (operations.length > 1) writing.ms += clock.monotonicMs() - beganMs;
  };
  const tallies: Tally[] = [];
  let check = () => {};
  for (const [index, operation] of operations.entries()) {
    const now = clock.now();
    const { accountId } = operation;
    check = timeoutCheck(clock, operation, writing);
    tallies.push(
      await collectOperation(transaction, operation, {
        index,
        columns,
        write,
        check,
        discardsMax,
        lastMs: now.epochMilliseconds + (horizon.byAccount.get(accountId) ?? horizon.byDefault),
        started: isoInstant(now),
      }),
    );
    check();
  }
  if (columns.length > 0) await write();
  if (operations.length === 1) check();
  const finished = isoInstant(clock.now());
  return tallies.map(({ received, stored, discards, notices, started }, index) => {
    let left = stored;
    for (const { target, reason, count } of refused[index] ?? []) {
      discards.add(target, reason, count);
      left -= count;
    }
    return {
      received,
      stored: left,
      replaced: replaced[index] ?? 0,
      discarded: discards.list(),
      ...(notices.length === 0 ? {} : { notices }),
      started,
      finished,
    };
  });
}

/** Thrown out of the transaction, so that nothing of the operation is stored. */
export class OperationTimeout extends Error {
  readonly seq: number;

  constructor({ seq, timeoutSec }: QueuedOperation) {
    super(`applying the operation took longer than its operationTimeoutSec of ${timeoutSec} s`);
    this.name = "OperationTimeout";
    this.seq = seq;
  }
}

/** Time in the queue does not count, nor does that of `writing`. */
function timeoutCheck(clock: Clock, operation: QueuedOperation, writing: { readonly ms: number }): () => void {
  const lastMs = clock.monotonicMs() - writing.ms + operation.timeoutSec * 1_000;
  return () => {
    if (clock.monotonicMs() - writing.ms > lastMs) throw new OperationTimeout(operation);
  };
}

/**
 * The smaller groups, in order, by which the rest of a group is applied after a fault in it: each operation alone where
 * any may be at fault, but only the one whose time was over, so that a small timeout costs the others no more.
 */
export function afterFault(
  group: readonly QueuedOperation[],
  thrown: unknown,
): readonly (readonly QueuedOperation[])[] {
  const at = thrown instanceof OperationTimeout ? group.findIndex(({ seq }) => seq === thrown.seq) : -1;
  if (at < 0) return group.map((operation) => [operation]);
  const parts = [group.slice(0, at), group.slice(at, at + 1), group.slice(at + 1)];
  return parts.filter(({ length }) => length > 0);
}

interface Tally {
  readonly received: number;
  readonly stored: number;
  readonly discards: Discards;
  readonly notices: string[];
  readonly started: string;
}

interface CollectParts {
  /** Index of the operation in its group. */
  readonly index: number;
  readonly columns: ReadingColumns;
  readonly discardsMax: number;
  readonly started: string;
  /** The latest date that a reading may have. */
  readonly lastMs: number;
  /** Writes and clears the columns. */
  write(): Promise<void>;
  /** Throws an `OperationTimeout` when the time of the operation is over. */
  check(): void;
}

/**
 * Most operations are collected in one pass; an operation with finer dates, or larger than the columns, is collected
 * when its colliding dates are known.
 */
async function collectOperation(
  transaction: IngestTransaction,
  operation: QueuedOperation,
  parts: CollectParts,
): Promise<Tally> {
  const { columns, lastMs, check } = parts;
  const begin = columns.length;
  const tally = await collect(transaction, operation, parts, null);
  if (tally !== null) return tally;
  columns.truncate(begin);
  const colliding = await findColliding(transaction, operation, lastMs);
  check();
  const known = await collect(transaction, operation, parts, colliding);
  if (known === null) throw new RangeError("an operation whose collisions are known was not collected");
  return known;
}

/**
 * `colliding`: indexes of readings to discard, among those that can be stored; null: not known. The result is null when
 * the indexes are needed.
 */
async function collect(
  transaction: IngestTransaction,
  operation: QueuedOperation,
  parts: CollectParts,
  colliding: ReadonlySet<number> | null,
): Promise<Tally | null> {
  const discards = new Discards(parts.discardsMax);
  const cut = new CutNotice();
  const { resolve, resolveHead, admits, settle } = createResolver(transaction, operation);
  const collecting = { ...parts, discards, cut, colliding, storable: 0 };
  const body = decompressed(operation.body);
  // Where collisions are known, and in calculations, each reading counts.
  const isPlain = colliding === null && operation.calculationId === null;
  const plain = isPlain
    ? new PlainElements(body, { ...parts, admits, settle, targets: transaction.written(operation.accountId) })
    : null;
  let received = 0;
  let stored = 0;
  for (const element of plain?.others() ?? readPushParts(body)) {
    received += element.data.length;
    const variable = await (plain?.isHead === true ? resolveHead : resolve)(element);
    if (plain?.isHead === true) {
      if (typeof variable !== "string") plain.learn(variable);
      continue;
    }
    if (typeof variable === "string") {
      discards.add(wordsOf(element), variable, element.data.length);
      continue;
    }
    const count = await take(element, variable, collecting);
    if (count === null) return null;
    stored += count;
  }
  received += plain?.taken ?? 0;
  stored += plain?.taken ?? 0;
  if (body !== operation.body) release(body);
  const notice = cut.words();
  return { received, stored, discards, notices: notice === null ? [] : [notice], started: parts.started };
}

interface Collecting extends CollectParts {
  readonly discards: Discards;
  readonly cut: CutNotice;
  readonly colliding: ReadonlySet<number> | null;
  /** Number of storable readings so far. */
  storable: number;
}

/** Adds the storable readings of an element and returns their number. Null: as `collect`. */
async function take(element: PushElement, variable: VariableFacts, collecting: Collecting): Promise<number | null> {
  const { index, columns, discards, cut, colliding, write, check, lastMs } = collecting;
  const batchTags = element.tags === undefined ? null : JSON.stringify(element.tags);
  const isBare = batchTags === null && element.version === undefined;
  const judge = new ReadingJudge(element, variable, lastMs);
  let position = columns.positionOf(variable);
  let stored = 0;
  for (const reading of element.data) {
    const fault = judge.faultOf(reading);
    if (fault !== null) {
      discards.add(wordsOf(element), fault.reason, 1, fault.example);
      continue;
    }
    if (colliding === null && (judge.beyond !== "" || columns.isFull)) return null;
    collecting.storable += 1;
    if (colliding?.has(collecting.storable - 1) === true) {
      discards.add(wordsOf(element), COLLIDING, 1, reading.date);
      continue;
    }
    if (columns.isFull) {
      await write();
      check();
      position = columns.positionOf(variable);
    }
    if (judge.beyond !== "") cut.add(reading.date);
    const labels =
      isBare && reading.version === undefined && reading.tags === undefined
        ? null
        : labelsOf(element, reading, batchTags);
    columns.add(index, position, judge.atMs, reading.value, labels);
    stored += 1;
  }
  return stored;
}

function labelsOf(element: PushElement, reading: PushReading, batchTags: string | null): Labels {
  // A tag with half a surrogate pair would be stored as another text than the compared one.
  const version = versionOf(element, reading)?.toWellFormed() || null;
  // "A VersionTag … is copied into the data point's tags" (Data versioning, 1).
  const tags = version === null ? reading.tags : { ...reading.tags, version };
  return { version, tags: tags === undefined ? null : JSON.stringify(tags), batchTags };
}

type Discarded = Outcome["discarded"][number];

/**
 * Counts by target and reason. Beyond the limit of entries, targets are summed up by reason, so that no count is lost.
 */
class Discards {
  private readonly entries = new Map<string, Discarded>();
  private readonly entriesMax: number;

  constructor(entriesMax: number) {
    this.entriesMax = entriesMax;
  }

  /** `example`: the offending text; only the first one is reported. */
  add(target: string, reason: string, count: number, example?: string): void {
    if (count === 0) return;
    if (this.entries.size < this.entriesMax || this.entries.has(keyOf(target, reason)))
      this.sum(target, reason, count, example);
    else this.sum("(further targets)", reason, count, example);
  }

  list(): Discarded[] {
    return [...this.entries.values()];
  }

  private sum(target: string, reason: string, count: number, example: string | undefined): void {
    const key = keyOf(target, reason);
    const known = this.entries.get(key);
    if (known !== undefined) known.count += count;
    else
      this.entries.set(key, {
        target,
        reason: example === undefined ? reason : `${reason}: ${JSON.stringify(example.slice(0, EXAMPLE_CHARACTERS))}`,
        count,
      });
  }
}

function keyOf(target: string, reason: string): string {
  return `${target}\n${reason}`;
}

// Dates are stored to the millisecond; finer ones are cut to it. Two different dates that become equal by the cut, with
// different values, would overwrite each other by chance: such readings of one operation are all discarded.

/** Notice in the outcome, given once. Null: no date was cut. */
class CutNotice {
  #count = 0;
  #first = "";

  add(date: string): void {
    if (this.#count === 0) this.#first = date.slice(0, EXAMPLE_CHARACTERS);
    this.#count += 1;
  }

  words(): string | null {
    if (this.#count === 0) return null;
    const dates =
      this.#count === 1 ? "1 date finer than a millisecond was" : `${this.#count} dates finer than a millisecond were`;
    return `${dates} cut to it, the first: ${JSON.stringify(this.#first)}`;
  }
}

/** The indexes of colliding readings among the storable ones. Reads the operation twice at most. */
async function findColliding(
  transaction: IngestTransaction,
  operation: QueuedOperation,
  lastMs: number,
): Promise<ReadonlySet<number>> {
  const body = decompressed(operation.body);
  const { count, hasFiner } = survey(body);
  if (!hasFiner) return new Set();
  const columns = new ReadingColumns(count);
  const beyond: string[] = [];
  const { resolve } = createResolver(transaction, operation);
  for (const element of readPushParts(body)) {
    const variable = await resolve(element);
    if (typeof variable === "string") continue;
    const judge = new ReadingJudge(element, variable, lastMs);
    const position = columns.positionOf(variable);
    for (const reading of element.data) {
      if (judge.faultOf(reading) !== null) continue;
      const version = variable.isVersioned ? versionOf(element, reading) : undefined;
      const labels = version === undefined ? null : { version, tags: null, batchTags: null };
      columns.add(0, position, judge.atMs, reading.value, labels);
      beyond.push(judge.beyond);
    }
  }
  return collidingIn(columns, beyond);
}

function survey(body: Uint8Array): { readonly count: number; readonly hasFiner: boolean } {
  let count = 0;
  let hasFiner = false;
  for (const { data } of readPushParts(body)) {
    count += data.length;
    hasFiner ||= data.some(({ date }) => date.length >= 24 && MAYBE_FINER.test(date));
  }
  return { count, hasFiner };
}

function collidingIn(columns: ReadingColumns, beyond: readonly string[]): ReadonlySet<number> {
  const colliding = new Set<number>();
  const order = columns.order();
  for (let from = 0; from < order.length; ) {
    const first = order[from] ?? 0;
    let end = from + 1;
    while (end < order.length && isSamePoint(columns, first, order[end] ?? 0)) end += 1;
    const point = order.subarray(from, end);
    from = end;
    if (point.every((index) => beyond[index] === beyond[first])) continue;
    const byVersion = Map.groupBy(point, (index) => columns.labelsOf(index)?.version ?? null);
    for (const indices of byVersion.values())
      if (differ(columns, beyond, indices)) for (const index of indices) colliding.add(index);
  }
  return colliding;
}

function isSamePoint({ variable, atMs }: ReadingColumns, one: number, other: number): boolean {
  return variable[one] === variable[other] && atMs[one] === atMs[other];
}

/** Of one exact date the last value counts, as always; values of different dates must be equal. */
function differ({ value }: ReadingColumns, beyond: readonly string[], indices: readonly number[]): boolean {
  const last = new Map(indices.map((index) => [beyond[index], value[index]]));
  return new Set(last.values()).size > 1;
}

// Decides which parts of an operation can be stored: the variable of each element, and the readings with a valid date
// and value.

/**
 * The variable that an element names, or why it names none. Called in the order of the elements of one operation: the
 * first settles the kind.
 */
interface Resolver {
  resolve(element: PushElement): Promise<VariableFacts | string>;
  /** The same for the beginning of an element, which settles nothing: other names may follow. */
  resolveHead(element: PushElement): Promise<VariableFacts | string>;
  /** Whether an element may name its variable in this way, by the rule of one kind a call. */
  admits(kind: IdentifierKind): boolean;
  /** An element named its variable in this way. */
  settle(kind: IdentifierKind): void;
}

function createResolver(
  transaction: IngestTransaction,
  { accountId, calculationId }: Pick<QueuedOperation, "accountId" | "calculationId">,
): Resolver {
  let kindOfCall: IdentifierKind | null = null;
  let output: number | null | undefined;
  const resolveBy = async (
    counting: IdentifierKind | null,
    kind: IdentifierKind | null,
    element: PushElement,
  ): Promise<VariableFacts | string> => {
    if (kind === null) return incomplete(element);
    const value = kind === counting ? element[kind] : undefined;
    // "One kind of source identifier a call": the first kind counts (platform facts, *Push*).
    if (value === undefined) return `one kind of identifier a call: this call began with ${counting}`;
    if (typeof value === "number" && value < 1) return `${kind} ${value} is below 1, where ids begin`;
    const { mappingConfig, variableTypeId } = element;
    const variable = await transaction.findVariable(accountId, {
      by: kind,
      value,
      mappingConfig,
      variableTypeId,
    });
    if (variable === null) return "no such variable in this account";
    if (calculationId === null) return variable.isCalculated ? IS_CALCULATED : variable;
    if (output === undefined) output = await transaction.outputOf(accountId, calculationId);
    return output === variable.id ? variable : SUPERSEDED;
  };
  return {
    resolve(element) {
      const kind = identifierKind(element);
      kindOfCall ??= kind;
      return resolveBy(kindOfCall, kind, element);
    },
    resolveHead(element) {
      const kind = identifierKind(element);
      return resolveBy(kindOfCall ?? kind, kind, element);
    },
    admits: (kind) => kind === (kindOfCall ?? kind),
    settle(kind) {
      kindOfCall ??= kind;
    },
  };
}

function wordsOf(element: PushElement): string {
  return targetWords(element) || "(no target)";
}

function incomplete(element: PushElement): string {
  return element.mappingConfig === undefined && element.variableTypeId === undefined
    ? "names neither a variableId, nor a mappingConfig or variableTypeId beside a source"
    : "names no source";
}

/** Why a reading cannot be stored, and the text to quote. */
interface ReadingFault {
  readonly reason: string;
  readonly example?: string;
}

/** Checks the readings of one element; the result for the latest is in its fields, to save an object a reading. */
class ReadingJudge {
  /** Milliseconds since 1970 in UTC. */
  atMs = Number.NaN;
  /** Decimals of the date beyond the millisecond, which were cut; mostly none. */
  beyond = "";
  readonly #element: PushElement;
  readonly #zone: string;
  readonly #lastMs: number;

  /** `lastMs`: the latest date that a reading may have. */
  constructor(element: PushElement, variable: VariableFacts, lastMs: number) {
    this.#element = element;
    this.#zone = ianaZone(variable.sourceZoneId) ?? "UTC";
    this.#lastMs = lastMs;
  }

  faultOf(reading: PushReading): ReadingFault | null {
    this.beyond = "";
    this.atMs = plainInstantMs(reading.date);
    if (Number.isNaN(this.atMs)) {
      const read = readInstant(reading.date, this.#zone, READING_RULE);
      if (read.kind === "refused") return { reason: read.reason, example: reading.date };
      this.atMs = read.ms;
      this.beyond = read.beyond;
    }
    if (!Number.isFinite(reading.value)) return { reason: "the value is beyond the range of a number" };
    if (versionOf(this.#element, reading)?.includes("\0") === true)
      return { reason: "the version holds a NUL character, which cannot be stored" };
    if (this.atMs > this.#lastMs) return { reason: BEYOND_HORIZON, example: reading.date };
    return null;
  }
}

function versionOf(element: PushElement, reading: PushReading): string | undefined {
  return reading.version || element.version;
}
