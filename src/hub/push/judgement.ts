/**
 * Decides which parts of an operation can be stored: the variable of each element, and the readings with a valid date
 * and value.
 */
import {
  type IdentifierKind,
  ianaZone,
  identifierKind,
  type PushElement,
  type PushReading,
  targetWords,
} from "#wire/index.ts";
import type { IngestTransaction, QueuedOperation, VariableFacts } from "../store/store.ts";
import { plainInstantMs, READING_RULE, readInstant } from "../time.ts";

/**
 * The variable that an element names, or why it names none. Called in the order of the elements of one operation: the
 * first settles the kind.
 */
export interface Resolver {
  resolve(element: PushElement): Promise<VariableFacts | string>;
  /** The same for the beginning of an element, which settles nothing: other names may follow. */
  resolveHead(element: PushElement): Promise<VariableFacts | string>;
  /** Whether an element may name its variable in this way, by the rule of one kind a call. */
  admits(kind: IdentifierKind): boolean;
  /** An element named its variable in this way. */
  settle(kind: IdentifierKind): void;
}

export function createResolver(
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

const IS_CALCULATED = "the variable is calculated: its points come from its formulas alone";
const SUPERSEDED = "the calculation was superseded: its definition changed, or the variable is no longer calculated";

export function wordsOf(element: PushElement): string {
  return targetWords(element) || "(no target)";
}

function incomplete(element: PushElement): string {
  return element.mappingConfig === undefined && element.variableTypeId === undefined
    ? "names neither a variableId, nor a mappingConfig or variableTypeId beside a source"
    : "names no source";
}

/** Why a reading cannot be stored, and the text to quote. */
export interface ReadingFault {
  readonly reason: string;
  readonly example?: string;
}

const BEYOND_HORIZON = "the date is beyond the future horizon of the account";

/** Checks the readings of one element; the result for the latest is in its fields, to save an object a reading. */
export class ReadingJudge {
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

export function versionOf(element: PushElement, reading: PushReading): string | undefined {
  return reading.version || element.version;
}
