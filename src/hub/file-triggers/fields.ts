/** From the body of a request to the fields of a trigger, with what the specification leaves open as defaults. */
import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { HttpProblem } from "#wire/http-problem.ts";
import {
  type FileTriggerBody,
  type FileTriggerFields,
  fileTriggerFields,
  MASTER_DATA,
  type Mapping,
  type StoredFileTrigger,
} from "#wire/index.ts";
import { constantWords } from "#wire/trigger-match.ts";
import { invalidField } from "../http/problems.ts";
import { requireSettings } from "./mappers.ts";

/** Mappers of file types that have a format of their own. */
const MAPPERS_OF_TYPES: Readonly<Partial<Record<FileTriggerFields["fileType"], string>>> = {
  OpisenseStandard: "standard",
  OpisenseManualLoad: "meter-index",
  IndexIs: "meter-index",
};

export function createdFields(body: FileTriggerBody, mappers: readonly Mapping[]): FileTriggerFields {
  if (body.state === "Deleted") throw invalidField("state", "a new trigger is Active or Inactive");
  const fields: FileTriggerFields = {
    name: body.name ?? null,
    fileType: body.fileType ?? "CustomFormat",
    ingestionType: body.ingestionType ?? "SendViaFtp",
    triggerType: body.triggerType ?? "Added",
    fileNamePatternMatches: body.fileNamePatternMatches ?? [],
    fileTriggerCombination: body.fileTriggerCombination ?? "And",
    state: body.state === "Inactive" ? "Inactive" : "Active",
    token: body.token ?? randomUUID(),
    mapping: body.mapping ?? null,
    metadata: body.metadata ?? {},
  };
  const made = withMapping(fields);
  requirePatterns(made);
  requireSettings(made, mappers);
  return made;
}

/** Fields that the body leaves out stay; only what changes is checked. */
export function changedFields(
  current: StoredFileTrigger,
  body: FileTriggerBody,
  mappers: readonly Mapping[],
): FileTriggerFields {
  if (current.state === "Deleted")
    throw new HttpProblem(
      409,
      "conflict",
      `the file trigger ${current.id} was deleted, which is for good: create another (POST /fileTrigger)`,
    );
  const given = Object.entries(body).filter(([, value]) => value !== undefined);
  const { state } = current;
  const changed = withMapping({ ...current, ...Object.fromEntries(given), state });
  const fields = { ...changed, state: stateAfter(current, changed, body.state ?? state) };
  requirePatterns(fields);
  if (body.metadata !== undefined || fields.mapping !== current.mapping) requireSettings(fields, mappers);
  return fields;
}

/** A trigger that fires and whose other fields change is Updated from then on, and fires as before. */
function stateAfter(
  current: FileTriggerFields,
  changed: FileTriggerFields,
  wanted: FileTriggerFields["state"],
): FileTriggerFields["state"] {
  if (wanted === "Inactive" || wanted === "Deleted") return wanted;
  if (current.state === "Inactive") return "Active";
  return isSame(current, changed) ? current.state : "Updated";
}

function isSame(one: FileTriggerFields, other: FileTriggerFields): boolean {
  return isDeepStrictEqual(fileTriggerFields.parse(one), fileTriggerFields.parse(other));
}

function withMapping(fields: FileTriggerFields): FileTriggerFields {
  const own = MAPPERS_OF_TYPES[fields.fileType];
  if (fields.fileType === MASTER_DATA && fields.mapping !== null)
    throw invalidField("mapping", `is left out for ${MASTER_DATA}, which the hub applies itself`);
  if (fields.mapping !== null) return fields;
  if (own !== undefined) return { ...fields, mapping: own };
  if (fields.fileType !== "CustomFormat") return fields;
  throw invalidField("mapping", "names the mapper of the CustomFormat (GET /fileTrigger/mappings)");
}

function requirePatterns({ fileNamePatternMatches, ingestionType }: FileTriggerFields): void {
  for (const [at, pattern] of fileNamePatternMatches.entries()) {
    const why = constantWords(pattern);
    if (why !== null)
      throw invalidField(`fileNamePatternMatches.${at}.value`, `${why}. Leave the folders out, or the condition.`);
  }
  // The token of the request decides there, and not the name.
  if (ingestionType === "SendViaHttp" || fileNamePatternMatches.length > 0) return;
  throw invalidField(
    "fileNamePatternMatches",
    'without a pattern the trigger claims no file; one is { "filterType": "EndsWith", "value": ".csv" }',
  );
}
