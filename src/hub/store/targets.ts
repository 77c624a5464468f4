/** Caches the variable of each target: a live meter names the same one each quarter-hour. */
import type { VariableFacts } from "./records.ts";

/** The column of the source by which an element names its variable. */
export const SOURCE_COLUMNS: Readonly<Record<Exclude<TargetQuery["by"], "variableId">, string>> = {
  sourceId: "source.id",
  sourceSerialNumber: "source.serial_number",
  sourceEan: "source.ean",
  sourceName: "source.name",
  meterNumber: "source.meter_number",
};

const ENTRIES_MAX = 200_000;
const BYTES_MAX = 16 * 1024 * 1024;

export interface KnownTarget {
  readonly kind: TargetQuery["by"];
  readonly variable: VariableFacts;
}

interface Written {
  /** Position in the bytes that are kept. */
  readonly from: number;
  readonly length: number;
  readonly target: KnownTarget;
  /** Seen after it the last time. */
  next: Written | null;
}

/** The variables of one account by the bytes that named them: live meters write the same, mostly in the same order. */
export class TargetBytes {
  #bytes = new Uint8Array(65_536);
  #end = 0;
  #last: Written | null = null;
  readonly #byHash = new Map<number, Written>();

  /** The target whose bytes stand at a place. */
  find(bytes: Buffer, from: number): Written | undefined {
    const next = this.#last?.next ?? null;
    const found = next !== null && this.#isAt(next, bytes, from) ? next : this.#search(bytes, from);
    if (found === undefined) return undefined;
    if (this.#last !== null && this.#last !== found) this.#last.next = found;
    this.#last = found;
    return found;
  }

  add(bytes: Buffer, from: number, to: number, target: KnownTarget): void {
    const length = to - from;
    if (this.#end + length > BYTES_MAX) this.#forget();
    if (this.#end + length > this.#bytes.length) {
      const grown = new Uint8Array(Math.min(BYTES_MAX, 2 * (this.#end + length)));
      grown.set(this.#bytes.subarray(0, this.#end));
      this.#bytes = grown;
    }
    this.#bytes.set(bytes.subarray(from, to), this.#end);
    const written = { from: this.#end, length, target, next: null };
    this.#end += length;
    this.#byHash.set(hashOf(bytes, from, to), written);
    if (this.#last !== null) this.#last.next = written;
    this.#last = written;
  }

  #search(bytes: Buffer, from: number): Written | undefined {
    const to = endOfTarget(bytes, from);
    if (to < 0) return undefined;
    const found = this.#byHash.get(hashOf(bytes, from, to));
    return found !== undefined && found.length === to - from && this.#isAt(found, bytes, from) ? found : undefined;
  }

  #isAt({ from, length }: Written, bytes: Uint8Array, at: number): boolean {
    const known = this.#bytes;
    for (let index = length - 1; index >= 0; index -= 1) if (known[from + index] !== bytes[at + index]) return false;
    return true;
  }

  #forget(): void {
    this.#end = 0;
    this.#last = null;
    this.#byHash.clear();
  }
}

const BEFORE_READINGS = '"data":[';
/** Limit on the names of a variable. */
const NAMES_MAX_BYTES = 1_000;

/** The position of the first reading of an element, behind the names of its variable; below zero: not in this form. */
export function endOfTarget(bytes: Buffer, from: number): number {
  // No text of JSON has such bytes, since its quotes are escaped.
  const data = bytes.subarray(from, from + NAMES_MAX_BYTES).indexOf(BEFORE_READINGS, 0, "latin1");
  return data < 0 ? -1 : from + data + BEFORE_READINGS.length;
}

/** FNV-1a. */
function hashOf(bytes: Uint8Array, from: number, to: number): number {
  let hash = 0x811c9dc5;
  for (let at = from; at < to; at += 1) hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193);
  return hash;
}

export class TargetCache {
  private readonly kinds = new Map<string, Map<string | number, VariableFacts | null>>();
  private readonly written = new Map<number, TargetBytes>();
  private entries = 0;
  /** Calls of one kind follow each other, and building its name costs more than finding the target. */
  private last: { readonly accountId: number; readonly target: TargetQuery; readonly kind: string } | null = null;

  /** Undefined: not cached. Null: known to match no variable. */
  get(accountId: number, target: TargetQuery): VariableFacts | null | undefined {
    return this.kinds.get(this.kindOf(accountId, target))?.get(target.value);
  }

  set(accountId: number, target: TargetQuery, variable: VariableFacts | null): void {
    if (this.entries >= ENTRIES_MAX) this.clear();
    const kind = this.kindOf(accountId, target);
    const values = this.kinds.get(kind) ?? new Map<string | number, VariableFacts | null>();
    this.kinds.set(kind, values);
    if (!values.has(target.value)) this.entries += 1;
    values.set(target.value, variable);
  }

  bytesOf(accountId: number): TargetBytes {
    return this.written.getOrInsertComputed(accountId, () => new TargetBytes());
  }

  /** Must be called when any structure changed. */
  clear(): void {
    this.kinds.clear();
    this.written.clear();
    this.entries = 0;
  }

  private kindOf(accountId: number, target: TargetQuery): string {
    const { last } = this;
    if (
      last?.accountId === accountId &&
      last.target.by === target.by &&
      last.target.mappingConfig === target.mappingConfig &&
      last.target.variableTypeId === target.variableTypeId
    )
      return last.kind;
    const kind = kindOf(accountId, target);
    this.last = { accountId, target, kind };
    return kind;
  }
}

/** All parts except the value; the free text comes last, so that equal texts are equal kinds. */
function kindOf(accountId: number, { by, mappingConfig, variableTypeId }: TargetQuery): string {
  return `${accountId} ${by} ${variableTypeId ?? ""} ${mappingConfig === undefined ? "" : `=${mappingConfig}`}`;
}

/** How an element names its variable: one column of the source (or the variable itself), and a selector. */
export interface TargetQuery {
  readonly by: "variableId" | "sourceId" | "sourceSerialNumber" | "sourceEan" | "sourceName" | "meterNumber";
  readonly value: string | number;
  readonly mappingConfig: string | undefined;
  readonly variableTypeId: number | undefined;
}
