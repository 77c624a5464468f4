/**
 * Applies a group of operations: resolves targets, judges readings, writes points, counts what became of each.
 * `received = stored + discarded`, always; what is discarded has a reason.
 */
import { type Clock, isoInstant } from "../../support/clock.ts";
import {
  type IdentifierKind,
  ianaZone,
  identifierKind,
  type PushElement,
  type PushReading,
  readPushParts,
  targetWords,
} from "../../wire/index.ts";
import type { Labels, ReadingColumns } from "../store/columns.ts";
import type { IngestTransaction, Outcome, QueuedOperation, VariableFacts } from "../store/store.ts";
import { plainInstantMs, READING_RULE, readInstant } from "../time.ts";
import { Discards } from "./discards.ts";
import type { Horizon } from "./ingestion.ts";
import { unpacked } from "./packing.ts";

export interface ApplyParts {
  readonly discardsMax: number;
  readonly horizon: Horizon;
  readonly clock: Clock;
  /** Where readings are gathered until they are written; cleared first. */
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
  const write = async (): Promise<void> => {
    for (const [index, count] of (await transaction.write(columns)).entries())
      replaced[index] = (replaced[index] ?? 0) + count;
    columns.clear();
  };
  const tallies: Tally[] = [];
  let check = () => {};
  for (const [index, operation] of operations.entries()) {
    const now = clock.now();
    const { accountId, timeoutSec } = operation;
    check = timeoutCheck(clock, timeoutSec);
    tallies.push(
      await gather(transaction, operation, {
        index,
        columns,
        write,
        check,
        discards: new Discards(discardsMax),
        lastMs: now.epochMilliseconds + (horizon.byAccount.get(accountId) ?? horizon.byDefault),
        started: isoInstant(now),
      }),
    );
    check();
  }
  if (columns.length > 0) await write();
  if (operations.length === 1) check();
  const finished = isoInstant(clock.now());
  return tallies.map(({ received, stored, discards, started }, index) => ({
    received,
    stored,
    replaced: replaced[index] ?? 0,
    discarded: discards.list(),
    started,
    finished,
  }));
}

/** Thrown out of the transaction, so that nothing of the operation is stored. */
export class OperationTimeout extends Error {
  constructor(timeoutSec: number) {
    super(`applying the operation took longer than its operationTimeoutSec of ${timeoutSec} s`);
    this.name = "OperationTimeout";
  }
}

/** The time that an operation waits for its turn does not count. */
function timeoutCheck(clock: Clock, timeoutSec: number): () => void {
  const lastMs = clock.monotonicMs() + timeoutSec * 1_000;
  return () => {
    if (clock.monotonicMs() > lastMs) throw new OperationTimeout(timeoutSec);
  };
}

interface Tally {
  readonly received: number;
  readonly stored: number;
  readonly discards: Discards;
  readonly started: string;
}

interface Gathering {
  /** Of the operation in its group. */
  readonly index: number;
  readonly columns: ReadingColumns;
  readonly discards: Discards;
  readonly started: string;
  /** The latest date that a reading may have. */
  readonly lastMs: number;
  /** Writes and clears the columns. */
  write(): Promise<void>;
  /** Throws an `OperationTimeout` when the time of the operation is over. */
  check(): void;
}

async function gather(
  transaction: IngestTransaction,
  { accountId, body }: QueuedOperation,
  gathering: Gathering,
): Promise<Tally> {
  const { discards, started } = gathering;
  let kindOfCall: IdentifierKind | null = null;
  let received = 0;
  let stored = 0;
  for (const element of readPushParts(unpacked(body))) {
    received += element.data.length;
    const kind = identifierKind(element);
    kindOfCall ??= kind;
    const value = kind === null || kind !== kindOfCall ? undefined : element[kind];
    if (kind === null || value === undefined) {
      discards.add(
        wordsOf(element),
        kind === null ? incomplete(element) : mixed(kindOfCall),
        element.data.length,
      );
      continue;
    }
    const { mappingConfig, variableTypeId } = element;
    const target = { by: kind, value, mappingConfig, variableTypeId };
    const variable = await transaction.findVariable(accountId, target);
    if (variable === null)
      discards.add(wordsOf(element), "no such variable in this account", element.data.length);
    else stored += await judge(element, variable, gathering);
  }
  return { received, stored, discards, started };
}

function wordsOf(element: PushElement): string {
  return targetWords(element) || "(no target)";
}

function incomplete(element: PushElement): string {
  return element.mappingConfig === undefined && element.variableTypeId === undefined
    ? "names neither a variableId, nor a mappingConfig or variableTypeId beside a source"
    : "names no source";
}

/** "One kind of source identifier a call": the kind met first is used (platform facts, *Push*). */
function mixed(kind: IdentifierKind | null): string {
  return `one kind of identifier a call: this call began with ${kind}`;
}

const BEYOND_HORIZON = "the date lies beyond the future horizon of the account";

/** Adds the readings of an element that can be stored; returns how many. */
async function judge(
  element: PushElement,
  variable: VariableFacts,
  { index, columns, discards, write, check, lastMs }: Gathering,
): Promise<number> {
  const zone = ianaZone(variable.sourceZoneId) ?? "UTC";
  const batchTags = element.tags === undefined ? null : JSON.stringify(element.tags);
  const isBare = batchTags === null && element.version === undefined;
  let position = columns.positionOf(variable);
  let stored = 0;
  for (const reading of element.data) {
    const at = instantOf(reading.date, zone);
    if (typeof at === "string") {
      discards.add(wordsOf(element), at, 1, reading.date);
      continue;
    }
    if (!Number.isFinite(reading.value)) {
      discards.add(wordsOf(element), "the value is beyond the range of a number", 1);
      continue;
    }
    if ((reading.version || element.version)?.includes("\0") === true) {
      discards.add(wordsOf(element), "the version holds a NUL character, which cannot be stored", 1);
      continue;
    }
    if (at > lastMs) {
      discards.add(wordsOf(element), BEYOND_HORIZON, 1, reading.date);
      continue;
    }
    if (columns.isFull) {
      await write();
      check();
      position = columns.positionOf(variable);
    }
    const labels =
      isBare && reading.version === undefined && reading.tags === undefined
        ? null
        : labelsOf(element, reading, batchTags);
    columns.add(index, position, at, reading.value, labels);
    stored += 1;
  }
  return stored;
}

/** Milliseconds, or why it is none. */
function instantOf(date: string, zone: string): number | string {
  const plain = plainInstantMs(date);
  if (!Number.isNaN(plain)) return plain;
  const at = readInstant(date, zone, READING_RULE);
  return at.kind === "refused" ? at.reason : at.ms;
}

function labelsOf(element: PushElement, reading: PushReading, batchTags: string | null): Labels {
  // A tag with half a surrogate pair would be stored as another than the one that is compared.
  const version = (reading.version || element.version)?.toWellFormed() || null;
  // "A VersionTag … is copied into the data point's tags" (Data versioning, 1).
  const tags = version === null ? reading.tags : { ...reading.tags, version };
  return { version, tags: tags === undefined ? null : JSON.stringify(tags), batchTags };
}
