/**
 * Applies a group of operations: resolves targets, checks readings, writes points, counts the results. `received =
 * stored + discarded`, always; each discarded reading has a reason.
 */
import { type Clock, isoInstant } from "#core/clock.ts";
import { type PushElement, type PushReading, readPushParts } from "#wire/index.ts";
import type { Labels, ReadingColumns } from "../store/columns.ts";
import type { IngestTransaction, Outcome, QueuedOperation, VariableFacts } from "../store/store.ts";
import { decompressed, release } from "./body-compression.ts";
import { COLLIDING, CutNotice, findColliding } from "./cut-dates.ts";
import { type Refused, refusedBy } from "./damaged-points.ts";
import { Discards } from "./discards.ts";
import type { Horizon } from "./ingestion.ts";
import { createResolver, ReadingJudge, versionOf, wordsOf } from "./judgement.ts";
import { PlainElements } from "./plain-elements.ts";

export interface ApplyParts {
  readonly discardsMax: number;
  readonly horizon: Horizon;
  readonly clock: Clock;
  /** Collects readings until they are written; cleared first. */
  readonly columns: ReadingColumns;
}

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
