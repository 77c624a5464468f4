/**
 * The identifiers of a variable in a push, separate from the schema in `push.ts`: a mapping process needs
 * these names alone, and building the schemas would take a tenth of its start.
 */

/** The fields that identify a variable, by kind: exactly one source identifier, with one selector. */
export const SOURCE_IDENTIFIERS = ["sourceId", "sourceSerialNumber", "sourceEan", "sourceName", "meterNumber"] as const;

/** The fields in the order of the contract. */
export const TARGET_FIELDS = ["variableId", ...SOURCE_IDENTIFIERS, "mappingConfig", "variableTypeId"] as const;

export type SourceIdentifier = (typeof SOURCE_IDENTIFIERS)[number];

/** A push call holds one kind: the service does not support mixed kinds and drops elements silently. */
export type IdentifierKind = "variableId" | SourceIdentifier;

export type TargetField = (typeof TARGET_FIELDS)[number];

export type TargetTexts = Readonly<Partial<Record<TargetField, string | number | undefined>>>;

/** The kind of identifier by which a target names its variable, or null when it names none completely. */
export function identifierKind(target: TargetTexts): IdentifierKind | null {
  if (target.variableId !== undefined) return "variableId";
  if (target.mappingConfig === undefined && target.variableTypeId === undefined) return null;
  return SOURCE_IDENTIFIERS.find((identifier) => target[identifier] !== undefined) ?? null;
}

/** A target as text, such as `sourceSerialNumber=M-1 mappingConfig=kWh`; equal targets have equal texts. */
export function targetWords(target: TargetTexts): string {
  return TARGET_FIELDS.filter((field) => target[field] !== undefined)
    .map((field) => `${field}=${target[field]}`)
    .join(" ");
}
