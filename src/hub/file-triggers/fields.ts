/** From the body of a request to the fields of a trigger, with what the specification leaves open as defaults. */
import { randomUUID } from "node:crypto";
import { HttpProblem } from "../../wire/http-problem.ts";
import type { FileTriggerBody, FileTriggerFields, Mapping, StoredFileTrigger } from "../../wire/index.ts";
import { invalidField } from "../http/problems.ts";
import { requireSettings } from "./mappers.ts";

/** The mapper of the standard data file. */
const STANDARD = "standard";

export function createdFields(body: FileTriggerBody, mappers: readonly Mapping[]): FileTriggerFields {
  if (body.state === "Deleted") throw invalidField("state", "a new trigger is Active or Inactive");
  const fields: FileTriggerFields = {
    name: body.name ?? null,
    fileType: body.fileType ?? "CustomFormat",
    ingestionType: body.ingestionType ?? "SendViaFtp",
    triggerType: body.triggerType ?? "Added",
    fileNamePatternMatches: body.fileNamePatternMatches ?? [],
    fileTriggerCombination: body.fileTriggerCombination ?? "And",
    state: stateOf(body.state) ?? "Active",
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
  const changed: FileTriggerFields = {
    ...current,
    ...Object.fromEntries(given),
    state: stateOf(body.state) ?? current.state,
  };
  const fields = withMapping(changed);
  requirePatterns(fields);
  if (body.metadata !== undefined || fields.mapping !== current.mapping) requireSettings(fields, mappers);
  return fields;
}

/** A trigger of another service that was changed there fires, as one in state Active does. */
function stateOf(state: FileTriggerBody["state"]): FileTriggerFields["state"] | undefined {
  return state === "Updated" ? "Active" : state;
}

function withMapping(fields: FileTriggerFields): FileTriggerFields {
  if (fields.mapping !== null) return fields;
  if (fields.fileType === "OpisenseStandard") return { ...fields, mapping: STANDARD };
  if (fields.fileType !== "CustomFormat") return fields;
  throw invalidField("mapping", "names the mapper of the CustomFormat (GET /fileTrigger/mappings)");
}

function requirePatterns({ fileNamePatternMatches, ingestionType }: FileTriggerFields): void {
  // The token of the request decides there, and not the name.
  if (ingestionType === "SendViaHttp" || fileNamePatternMatches.length > 0) return;
  throw invalidField(
    "fileNamePatternMatches",
    'without a pattern the trigger claims no file; one is { "filterType": "EndsWith", "value": ".csv" }',
  );
}
