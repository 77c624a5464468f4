/** The mappers that every account of the hub may name in its triggers. */
import type { MapperCatalogue } from "../mapping/contract.ts";
import type { Clock } from "../support/clock.ts";
import { type Mapping, mapping } from "../wire/index.ts";

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
  return entries.map(({ identity: { name, version }, summary, settingsSchema }) =>
    mapping.parse({ name, version, summary, settingsSchema }),
  );
}
