/** Caches the variable of each target: a live meter names the same one each quarter-hour. */
import type { TargetQuery, VariableFacts } from "./store.ts";

/** The column of the source by which an element names its variable. */
export const SOURCE_COLUMNS: Readonly<Record<Exclude<TargetQuery["by"], "variableId">, string>> = {
  sourceId: "source.id",
  sourceSerialNumber: "source.serial_number",
  sourceEan: "source.ean",
  sourceName: "source.name",
  meterNumber: "source.meter_number",
};

const ENTRIES_MAX = 200_000;

export class TargetCache {
  private readonly kinds = new Map<string, Map<string | number, VariableFacts | null>>();
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
    values.set(target.value, variable);
    this.entries += 1;
  }

  /** Must be called when any structure changed. */
  clear(): void {
    this.kinds.clear();
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
