/** Values of a new site, source or variable where its body says nothing (`docs/hub/structure.md`, *Structure*). */
import { type Named, SITE_TYPES, SOURCE_TYPES, VARIABLE_TYPES } from "#wire/index.ts";
import type { StructureEntity } from "../store/records.ts";

type Given = ReadonlyMap<string, unknown>;

const DEFAULTS: Readonly<Record<StructureEntity, (given: Given) => Readonly<Record<string, unknown>>>> = {
  site: () => ({ typeId: idOf(SITE_TYPES, "Other") }),
  source: (given) => ({
    name: firstText(given, "serialNumber", "ean", "eanNumber", "meterNumber"),
    sourceTypeId: idOf(SOURCE_TYPES, "Pushed Data"),
  }),
  variable: (given) => ({
    name: typeName(given) ?? firstText(given, "mappingConfig"),
    variableTypeId: idOf(VARIABLE_TYPES, "Generic"),
  }),
};

/** The body of a new entity with the fields that it lacks, as far as there is something sensible. */
export function withDefaults(entity: StructureEntity, body: unknown): unknown {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return body;
  const values = Object.entries(body).filter(([, value]) => value !== null);
  const given = new Map(values.map(([name, value]) => [name.toLowerCase(), value]));
  const lacking = Object.entries(DEFAULTS[entity](given)).filter(
    ([name, value]) => value !== undefined && !given.has(name.toLowerCase()),
  );
  return { ...Object.fromEntries(values), ...Object.fromEntries(lacking) };
}

function idOf(list: readonly Named[], wanted: string): number | undefined {
  return list.find(({ name }) => name === wanted)?.id;
}

function firstText(given: Given, ...names: readonly string[]): unknown {
  const texts = names.map((name) => given.get(name.toLowerCase()));
  return texts.find((text) => typeof text === "string" && text !== "");
}

function typeName(given: Given): string | undefined {
  const type = given.get("variabletypeid");
  return VARIABLE_TYPES.find(({ id }) => id === type)?.name;
}
