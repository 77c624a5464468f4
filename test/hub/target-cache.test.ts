/** The cache of targets holds what an account pushes, however often it is set again. */
import { expect, test } from "vitest";
import type { VariableFacts } from "#hub/store/records.ts";
import { TargetCache } from "#hub/store/targets.ts";

test("targets that are learned again do not count towards the limit at which all are discarded", () => {
  const cache = new TargetCache();
  const target = (value: string) => ({
    by: "sourceSerialNumber" as const,
    value,
    mappingConfig: undefined,
    variableTypeId: undefined,
  });
  const variable = { id: 1 } as VariableFacts;
  cache.set(1, target("first"), variable);
  for (let time = 0; time < 300_000; time += 1) cache.set(1, target(`M-${time % 10}`), variable);
  expect(cache.get(1, target("first"))).toBe(variable);
});
