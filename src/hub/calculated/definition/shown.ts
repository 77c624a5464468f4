/** Definitions as answers show them: with the sources and sites where their inputs are now. */
import { type Calculated, FORM_ENTITIES } from "../../../wire/index.ts";
import type { InputPlaces } from "../../store/calculated/calculated.ts";
import type { HubStore, StoredVariable } from "../../store/store.ts";

/** One query, and none where no variable is calculated. */
export async function withPlaces(
  { calculated }: HubStore,
  accountId: number,
  variables: readonly StoredVariable[],
): Promise<readonly StoredVariable[]> {
  const formulas = variables.flatMap((one) => one.calculated?.calculatedVariableFormulas ?? []);
  if (formulas.length === 0) return variables;
  const inputIds = formulas.flatMap((formula) => (formula.variables ?? []).map(({ variableId }) => variableId));
  const sourceIds = formulas.flatMap((formula) => (formula.entities ?? []).flatMap(({ sourceId }) => sourceId ?? []));
  const places = await calculated.places(accountId, inputIds, sourceIds);
  return variables.map(({ calculated: definition, ...variable }) => ({
    ...variable,
    calculated: definition ? placed(definition, places) : null,
  }));
}

function placed(definition: Calculated, { variables: inputs, sources }: InputPlaces): Calculated {
  return {
    ...definition,
    calculatedVariableFormulas: definition.calculatedVariableFormulas.map(({ variables, entities, ...formula }) => ({
      ...formula,
      ...(variables === undefined
        ? {}
        : { variables: variables.map((input) => ({ ...input, ...inputs.get(input.variableId) })) }),
      ...(entities === undefined
        ? {}
        : {
            entities: entities.map((entity) => {
              const siteId = entity.entityType === FORM_ENTITIES.Site ? undefined : sources.get(entity.sourceId ?? 0);
              return siteId === undefined ? entity : { ...entity, siteId };
            }),
          }),
    })),
  };
}
