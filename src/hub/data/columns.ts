/** The columns of an exported table, and their words. */
import { UNITS } from "../../wire/index.ts";
import type { HubContext } from "../context.ts";
import type { VariableFacts } from "../store/store.ts";
import { conversionOf } from "./conversion.ts";
import type { DataRequest } from "./query.ts";
import { type ValueColumn, valueColumns } from "./table.ts";

/** A column of the table. */
export interface NamedColumn {
  readonly variableId: number;
  readonly variable: string;
  readonly source: string;
  readonly site: string;
  readonly serialNumber: string;
  readonly unit: string;
  readonly column: ValueColumn;
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
      unit: UNITS.find(({ id }) => id === unitId)?.symbol ?? "",
    };
    return valueColumns(request).map((column) => ({ ...facts, column }));
  });
}

const AGGREGATE_WORDS: Readonly<Record<ValueColumn, string>> = {
  rawValue: "",
  sumValue: "sum",
  minValue: "minimum",
  maxValue: "maximum",
  avgValue: "average",
  countValue: "count",
  varianceValue: "variance",
  stdevValue: "standard deviation",
};

/** `Site › Meter › Energy [kWh] sum` */
export function headOf({ site, source, variable, unit, column }: NamedColumn): string {
  const path = [site, source, variable].filter((text) => text !== "").join(" › ");
  return [path, unit === "" ? "" : `[${unit}]`, AGGREGATE_WORDS[column]].filter((text) => text !== "").join(" ");
}
