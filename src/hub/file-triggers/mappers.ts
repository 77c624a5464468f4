/** The mappers that the hub has for an account, and the settings that they take. */
import { z } from "zod";
import { type FileTriggerFields, MASTER_DATA, type Mapping, masterDataSettings } from "#wire/index.ts";
import { invalidField } from "../http/problems.ts";

/** Called for each request that needs them; the composition of hub and gateway provides it. */
export type MappersOf = (accountId: number) => Promise<readonly Mapping[]>;

/** For a hub without a gateway inside. */
export const NO_MAPPERS: MappersOf = async () => [];

type Mapped = Pick<FileTriggerFields, "fileType" | "mapping" | "metadata">;

/** Whether the hub has the mapper of a trigger; files of master data need none, since the hub applies them itself. */
export function isKnown(trigger: Pick<Mapped, "fileType" | "mapping">, mappers: readonly Mapping[]): boolean {
  return trigger.fileType === MASTER_DATA || mapperOf(trigger, mappers) !== undefined;
}

function mapperOf({ mapping }: Pick<Mapped, "mapping">, mappers: readonly Mapping[]): Mapping | undefined {
  return mapping === null ? undefined : mappers.find(({ name }) => name === mapping);
}

/** Throws a 400 that names each setting. Settings of an unknown mapper are taken as they are. */
export function requireSettings(trigger: Mapped, mappers: readonly Mapping[]): void {
  if (trigger.fileType === MASTER_DATA) {
    requireFit(masterDataSettings, trigger.metadata, MASTER_DATA);
    return;
  }
  const mapper = mapperOf(trigger, mappers);
  const schema = mapper === undefined ? null : readable(mapper.settingsSchema);
  if (mapper !== undefined && schema !== null) requireFit(schema, trigger.metadata, `the mapper ${mapper.name}`);
}

function requireFit(schema: z.ZodType, metadata: FileTriggerFields["metadata"], of: string): void {
  const result = schema.safeParse(metadata);
  if (result.success) return;
  const faults = result.error.issues.map(({ path, message }) => [...path, message].join(path.length > 0 ? ": " : ""));
  throw invalidField("metadata", `the settings do not fit ${of}: ${faults.slice(0, 20).join("; ")}`);
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
