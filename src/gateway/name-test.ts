/** Finds the trigger that would claim a file of a name, with a reason for each of the others. */

import { gzipEntryName, isContainerName, isZipName, nameForms } from "#core/file-names.ts";
import type { IngestionType } from "#wire/trigger.ts";
import type { GatewayConfig } from "./config.ts";
import type { Claim, TriggerRegistry } from "./triggers/registry.ts";

export interface NameTest extends Pick<Claim, "others" | "verdicts"> {
  readonly name: string;
  /** The way of a container, whose entries are claimed by their own names; null for another file. */
  readonly container: string | null;
  readonly claimedBy: string | null;
  readonly mapper: string | null;
  /** Both forms of a name that is not in NFC, in words. */
  readonly forms: string | null;
}

/** The `container` of a ZIP. */
export const IN_ZIP = "a ZIP is opened, and each file in it is offered by its own name: test these";
const UNCLAIMED = { forms: null, claimedBy: null, mapper: null, others: [], verdicts: [] } as const;

export interface NameTestParts {
  readonly registry: Pick<TriggerRegistry, "claim">;
  readonly drops: GatewayConfig["drops"];
}

/** `drop`: as a file at this drop. */
export function testName(
  name: string,
  { drop, ingestion }: { readonly drop: string | undefined; readonly ingestion: IngestionType },
  { registry, drops }: NameTestParts,
): NameTest {
  const isContainer = opensContainers(drops, drop) && isContainerName(name);
  if (isContainer && isZipName(name)) return { name, container: IN_ZIP, ...UNCLAIMED };
  const offered = isContainer ? gzipEntryName(name) : name;
  const { claimed, others, verdicts } = registry.claim(offered, ingestion, drop);
  const container = isContainer ? `unpacked to ${offered}` : null;
  const claim = { claimedBy: claimed?.name ?? null, mapper: claimed?.mapper ?? null, others, verdicts };
  return { name, forms: nameForms(name), container, ...claim };
}

/** Whether the drop opens containers; without one, whether all drops do. */
function opensContainers(drops: GatewayConfig["drops"], name: string | undefined): boolean {
  return drops.filter((drop) => name === undefined || drop.name === name).every(({ archives }) => archives.unpack);
}
