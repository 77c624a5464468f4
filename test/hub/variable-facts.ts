import type { VariableFacts } from "#hub/store/records.ts";

/** A variable without versions in a source of its own account. */
export const variableFacts = (id: number): VariableFacts => ({
  id,
  accountId: 1,
  sourceId: 1,
  unitId: 8,
  isVersioned: false,
  isCalculated: false,
  versionsMax: null,
  sourceZoneId: "UTC",
  siteZoneId: "UTC",
});
