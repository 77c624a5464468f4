/** Definitions as answers show them: with the sources and sites where their inputs are now. */
import { type Calculated, FORM_ENTITIES } from "#wire/index.ts";
import type { InputPlaces } from "../../store/calculated/calculated.ts";
import type { StoredVariable } from "../../store/records.ts";
import type { HubStore } from "../../store/store.ts";

/** A plain variable has no `calculated`: clients that copy sites send it back as they got it, and stop at a null. */
type ShownVariable = Omit<StoredVariable, "calculated"> & { readonly calculated?: Calculated };

/** Variables as answers show them. One query, and none where no variable is calculated. */
export async function shownVariables(
  { calculated }: HubStore,
  accountId: number,
  variables: readonly StoredVariable[],
): Promise<readonly ShownVariable[]> {
  const formulas = variables.flatMap((one) => one.calculated?.calculatedVariableFormulas ?? []);
  const inputIds = formulas.flatMap((formula) => (formula.variables ?? []).map(({ variableId }) => variableId));
  const sourceIds = formulas.flatMap((formula) => (formula.entities ?? []).flatMap(({ sourceId }) => sourceId ?? []));
  const isPlain = inputIds.length + sourceIds.length === 0;
  const places = isPlain ? NO_PLACES : await calculated.places(accountId, inputIds, sourceIds);
  return variables.map(({ calculated: definition, ...variable }) =>
    definition ? { ...variable, calculated: placed(definition, places) } : variable,
  );
}

const NO_PLACES: InputPlaces = { variables: new Map(), sources: new Map() };

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
