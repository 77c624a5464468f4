/** Shows sites and sources with the values of their time-sliced fields. */
import type { HubContext } from "../context.ts";
import { invalidField } from "../http/problems.ts";
import type { ValuesEntity } from "../store/records.ts";
import type { NamedSlice } from "../store/slices.ts";
import type { HubStore } from "../store/store.ts";
import { PERIOD_RULE, readInstant } from "../time.ts";
import { type Fields, isFields } from "./names.ts";
import { shownSlices, valueAsOf } from "./slices.ts";

/** `atMs`: the values that hold then; `all`: every slice instead. */
export interface ShownValues {
  readonly atMs: number;
  readonly all: boolean;
}

interface ValuesQuery {
  readonly includeTimeSlicedValues?: boolean | undefined;
  readonly AsOf?: string | undefined;
}

/** Without `AsOf`, the moment of the request. */
export function shownValues({ clock }: Pick<HubContext, "clock">, query: ValuesQuery): ShownValues {
  return { atMs: momentOf({ clock }, query), all: query.includeTimeSlicedValues === true };
}

export function momentOf({ clock }: Pick<HubContext, "clock">, { AsOf }: ValuesQuery): number {
  if (AsOf === undefined) return clock.now().epochMilliseconds;
  const read = readInstant(AsOf, "UTC", PERIOD_RULE);
  if (read.kind === "refused") throw invalidField("AsOf", `${read.reason}, such as 2026-03-01T00:00:00Z`);
  return read.ms;
}

interface WithValues {
  readonly id: number;
  readonly clientData: Fields | null;
}

export async function withSlices<Item extends WithValues>(
  store: HubStore,
  accountId: number,
  entity: ValuesEntity,
  items: readonly Item[],
  { atMs, all }: ShownValues,
): Promise<readonly Item[]> {
  if (items.length === 0) return items;
  const ids = items.map(({ id }) => id);
  const slices = Map.groupBy(await store.slices.of(accountId, entity, ids), ({ entityId }) => entityId);
  if (slices.size === 0) return items;
  return items.map((item) => {
    const fields = Map.groupBy(slices.get(item.id) ?? [], ({ fieldId }) => fieldId);
    if (fields.size === 0) return item;
    const data = structuredClone(item.clientData ?? {}) as Record<string, unknown>;
    for (const own of fields.values()) {
      const shown = all ? shownSlices(own) : valueAsOf(own, atMs);
      if (shown !== null) putAt(data, own[0]?.path ?? ["", "", ""], shown);
    }
    return { ...item, clientData: Object.keys(data).length === 0 ? null : data };
  });
}

function putAt(data: Record<string, unknown>, [form, group, field]: NamedSlice["path"], value: unknown): void {
  const groups = isFields(data[form]) ? { ...data[form] } : {};
  const fields = isFields(groups[group]) ? { ...groups[group] } : {};
  data[form] = { ...groups, [group]: { ...fields, [field]: value } };
}
