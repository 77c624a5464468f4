/** The columns of an exported table, and their words. */
import { AGGREGATE_FACTS, type Aggregated, aggregateUnit, UNITS } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import type { VariableFacts } from "../store/store.ts";
import { conversionOf } from "./conversion.ts";
import type { DataRequest } from "./query.ts";
import { shownColumns } from "./table.ts";

/** A column of the table. */
export interface NamedColumn {
  readonly variableId: number;
  readonly variable: string;
  readonly source: string;
  readonly site: string;
  readonly serialNumber: string;
  /** The symbol of the column's unit: a count has none. */
  readonly unit: string;
  /** Null: values as stored. */
  readonly aggregate: Aggregated | null;
}

export async function namedColumns(
  { store }: HubContext,
  request: DataRequest,
  variables: readonly VariableFacts[],
): Promise<readonly NamedColumn[]> {
  const whole = { offset: 0, limit: null };
  const { accountId } = request;
  const ids = variables.map(({ id }) => id);
  const sourceIds = [...new Set(variables.map(({ sourceId }) => sourceId))];
  const [named, sources] = await Promise.all([
    store.structure.variables(accountId, { ids }, whole),
    store.structure.sources(accountId, { ids: sourceIds }, whole),
  ]);
  const names = new Map(named.rows.map(({ id, name }) => [id, name]));
  const places = new Map(sources.rows.map((source) => [source.id, source]));
  return variables.flatMap((variable) => {
    const { unitId } = conversionOf(variable, request.targetUnits);
    const source = places.get(variable.sourceId);
    const facts = {
      variableId: variable.id,
      variable: names.get(variable.id) ?? "",
      source: source?.name ?? "",
      site: source?.siteName ?? "",
      serialNumber: source?.serialNumber ?? "",
    };
    const symbol = UNITS.find(({ id }) => id === unitId)?.symbol ?? "";
    return shownColumns(request).map((aggregate) => ({ ...facts, aggregate, unit: aggregateUnit(aggregate, symbol) }));
  });
}

/** `Site › Meter › Energy [kWh] sum` */
export function headOf({ site, source, variable, unit, aggregate }: NamedColumn): string {
  const path = [site, source, variable].filter((text) => text !== "").join(" › ");
  const words = aggregate === null ? "" : AGGREGATE_FACTS[aggregate].words;
  return [path, unit === "" ? "" : `[${unit}]`, words].filter((text) => text !== "").join(" ");
}
