/** The mappers that the hub has for an account, and the settings that they take. */
import { z } from "zod";
import type { FileTriggerFields, Mapping } from "../../wire/index.ts";
import { invalidField } from "../http/problems.ts";

/** Called for each request that needs them; the composition of hub and gateway provides it. */
export type MappersOf = (accountId: number) => Promise<readonly Mapping[]>;

/** For a hub without a gateway inside. */
export const NO_MAPPERS: MappersOf = async () => [];

type Mapped = Pick<FileTriggerFields, "mapping" | "metadata">;

export function mapperOf({ mapping }: Pick<Mapped, "mapping">, mappers: readonly Mapping[]): Mapping | undefined {
  return mapping === null ? undefined : mappers.find(({ name }) => name === mapping);
}

/** Throws a 400 that names each setting. Settings of an unknown mapper are taken as they are. */
export function requireSettings(trigger: Mapped, mappers: readonly Mapping[]): void {
  const mapper = mapperOf(trigger, mappers);
  const schema = mapper === undefined ? null : readable(mapper.settingsSchema);
  if (mapper === undefined || schema === null) return;
  const result = schema.safeParse(trigger.metadata);
  if (result.success) return;
  const faults = result.error.issues.map(({ path, message }) => [...path, message].join(path.length > 0 ? ": " : ""));
  throw invalidField(
    "metadata",
    `the settings do not fit the mapper ${mapper.name}: ${faults.slice(0, 20).join("; ")}`,
  );
}

/** Null: nothing can be checked here, and the mapper itself refuses settings when it gets a file. */
function readable(settingsSchema: Mapping["settingsSchema"]): z.ZodType | null {
  if (settingsSchema === null) return null;
  try {
    return z.fromJSONSchema(settingsSchema);
  } catch {
    // Some keywords of JSON Schema, such as `not`, cannot be read.
    return null;
  }
}
