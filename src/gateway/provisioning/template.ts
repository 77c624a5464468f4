/** Fills a template for one target. */

import { RejectedError } from "#core/errors.ts";
import { REGISTER } from "#core/register.ts";
import { spacingOf } from "#wire/referentials/step-length.ts";
import { QUANTITY_TYPES } from "#wire/referentials.ts";
import type { SourceBody, VariableBody } from "#wire/structure.ts";
import { type IdentifierKind, identifierKind, targetWords } from "#wire/target.ts";
import { type ListedUnit, namesUnit } from "#wire/units.ts";
import type { TargetFacts } from "../model.ts";
import type { ProvisionTemplate } from "./options.ts";
import type { SourceWanted, Wanted } from "./wanted.ts";

/** Variables for texts of a template, beside the facts of the target. */
export type ProvisionContext = Readonly<Record<string, string>>;

const SOURCE_FIELDS: Readonly<Partial<Record<IdentifierKind, keyof SourceBody>>> = {
  sourceSerialNumber: "serialNumber",
  sourceEan: "ean",
  meterNumber: "meterNumber",
};

/** The structure that these targets need, by the template. */
export function wantedByTemplate(
  template: ProvisionTemplate,
  targets: readonly TargetFacts[],
  context: ProvisionContext,
): readonly Wanted[] {
  return targets.map((facts) => ({
    target: facts.target,
    words: targetWords(facts.target),
    meant: [targetWords(facts.target)],
    site: () => ({ ...template.site, name: filled(template.site.name, facts, context) }),
    source: () => sourceOf(template, facts, context),
    variable: (units) => variableOfTarget(template, facts, context, units),
    stated: null,
  }));
}

/** Throws `RejectedError` when a text names an unknown variable. */
export function filled(text: string, facts: TargetFacts, context: ProvisionContext): string {
  const { target, unit } = facts;
  const kind = identifierKind(target);
  const own: Record<string, string | number | undefined> = {
    ...target,
    source: kind === null ? undefined : target[kind],
    unit,
  };
  return text.replace(/\{([^{}]+)\}/g, (_, name: string) => {
    const known = [own, context].find((names) => Object.hasOwn(names, name) && names[name] !== undefined);
    const value = known?.[name];
    if (value === undefined)
      throw impossible(targetWords(facts.target), `the template names {${name}}, which is not known of this target`);
    return String(value);
  });
}

/** The source without the fields that the service assigns: ids of site and source type. */
function sourceOf({ source, site }: ProvisionTemplate, facts: TargetFacts, context: ProvisionContext): SourceWanted {
  const kind = identifierKind(facts.target);
  if (kind === null || kind === "variableId" || kind === "sourceId")
    throw impossible(targetWords(facts.target), `${kind ?? "it"} is an id, which only the service gives`);
  const identifier = String(facts.target[kind]);
  const field = SOURCE_FIELDS[kind];
  return {
    name: kind === "sourceName" ? identifier : filled(source.name, facts, context),
    timeZoneId: source.timeZoneId ?? site.timeZoneId,
    ...(field === undefined ? {} : { [field]: identifier }),
    ...(source.sourceTypeId === undefined ? {} : { sourceTypeId: source.sourceTypeId }),
    ...(source.energyTypeId === undefined ? {} : { energyTypeId: source.energyTypeId }),
  };
}

export function variableOfTarget(
  { variable }: ProvisionTemplate,
  facts: TargetFacts,
  context: ProvisionContext,
  units: readonly ListedUnit[],
): Omit<VariableBody, "sourceId"> {
  const { target } = facts;
  if (target.variableId !== undefined)
    throw impossible(targetWords(facts.target), "variableId is an id, which only the service gives");
  const wanted = facts.unit ?? variable.unit;
  if (wanted === undefined)
    throw impossible(
      targetWords(facts.target),
      "its unit is not known: the mapper declares none, and the template has none",
    );
  const unit = units.find((one) => namesUnit(wanted, one));
  if (unit === undefined) throw impossible(targetWords(facts.target), `the service has no unit ${wanted}`);
  const variableTypeId = target.variableTypeId ?? variable.variableTypeId;
  const names = { mappingConfig: `type ${variableTypeId}`, ...context };
  return {
    name: filled(variable.name, facts, names),
    variableTypeId,
    unitId: unit.id,
    ...spacing(variable.granularity),
    ...(variable.quantityType === undefined ? {} : { quantityType: keyOf(QUANTITY_TYPES, variable.quantityType) }),
    ...(target.mappingConfig === undefined ? {} : { mappingConfig: target.mappingConfig }),
    ...(variable.isVersioned === undefined ? {} : { isVersioned: variable.isVersioned }),
  };
}

/** `15 minutes` as count and id of the time period, whose numbers differ from `Granularity` of GET /data. */
function spacing(words: string | undefined): Pick<VariableBody, "granularity" | "granularityTimeBase"> {
  return words === undefined ? {} : (spacingOf(words) ?? {});
}

function keyOf(list: Readonly<Record<string, string>>, name: string): number {
  const found = Object.entries(list).find(([, label]) => label.toLowerCase() === name.toLowerCase());
  return Number(found?.[0]);
}

/** `words`: the target that needs it. */
export function impossible(words: string, why: string): RejectedError {
  return new RejectedError("HG-GUARD-008", {
    operation: "provision",
    subject: words,
    message: `${words} cannot be created: ${why}`,
    hint: REGISTER["HG-GUARD-008"].hint,
  });
}
