/** The mappers that every account of the hub may name in its triggers. */

import type { Clock } from "#core/clock.ts";
import type { CatalogueEntry, MapperCatalogue } from "#mapping/contract.ts";
import { type Mapping, mapping } from "#wire/file-trigger.ts";

/** The folders are read again after so long. */
const KEPT_MS = 5_000;

export function mapperList(catalogue: MapperCatalogue, clock: Clock): () => Promise<readonly Mapping[]> {
  let kept: { readonly list: Promise<readonly Mapping[]>; readonly untilMs: number } | null = null;
  return () => {
    if (kept === null || clock.monotonicMs() >= kept.untilMs)
      kept = { list: read(catalogue), untilMs: clock.monotonicMs() + KEPT_MS };
    return kept.list;
  };
}

async function read(catalogue: MapperCatalogue): Promise<readonly Mapping[]> {
  const entries = await catalogue.list();
  return entries.map(({ identity: { name, version }, summary, ...settings }) =>
    mapping.parse({ name, version, summary, settingsSchema: schemaOf(settings) }),
  );
}

/** The settings of a trigger of the hub, which may leave the zone to the sources. */
function schemaOf({ settingsSchema, sourceZone }: Pick<CatalogueEntry, "settingsSchema" | "sourceZone">): unknown {
  if (!sourceZone) return settingsSchema;
  const { required = [], properties, ...schema } = settingsSchema as ObjectSchema;
  const { [ZONE]: zone, ...others } = properties;
  const described = { ...zone, description: `${zone?.description ?? ""} ${ZONE_DEFAULT}`.trim() };
  return {
    ...schema,
    properties: { ...others, [ZONE]: described },
    required: required.filter((name) => name !== ZONE),
  };
}

interface ObjectSchema {
  readonly required?: readonly string[];
  readonly properties: Readonly<Record<string, { readonly description?: string }>>;
}

const ZONE = "timeZone";
const ZONE_DEFAULT = "When left out here: the zone of the source of each reading.";
