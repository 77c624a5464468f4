/** Prints structure that was or would be created, and structure that differs from the stated one. */

import type { PlannedStructure, StructureResult } from "#gateway/migration/structure/structure.ts";
import { createdWords, creationWords } from "#gateway/provisioning/provisioner.ts";
import type { Difference } from "#gateway/provisioning/wanted.ts";
import { print, styled } from "../output.ts";

const SHOWN = 40;

export function printPlannedStructure(planned: PlannedStructure): void {
  const { wouldCreate, impossible, differences, unaskedBecause } = planned;
  print(styled("bold", "structure (nothing was created)"));
  if (unaskedBecause !== null)
    print(styled("yellow", `  the service could not be asked about all of it: ${unaskedBecause}`));
  lines(wouldCreate, (one) => `  would create ${creationWords(one)}`);
  if (wouldCreate.length > 0 || unaskedBecause === null)
    print(wouldCreate.length === 0 ? "  nothing is missing" : `  in total: ${createdWords(wouldCreate)}`);
  lines(impossible, (words) => `  ${styled("red", "cannot")} ${words}`);
  lines(differences, (one) => `  ${styled("yellow", "!")} ${differenceWords(one)}`);
}

export function printStructure({ created, differences, undo }: StructureResult): void {
  if (created.length > 0)
    print(`created: ${createdWords(created)}; the report has the list, and \`${undo}\` removes it`);
  lines(
    differences.filter(({ isWeighty }) => !isWeighty),
    (one) => `${styled("yellow", "!")} ${differenceWords(one)}`,
  );
}

/** Differences that a person has to check. */
export function weightyWords(structure: StructureResult | null): readonly string[] {
  return (structure?.differences ?? []).filter(({ isWeighty }) => isWeighty).map(differenceWords);
}

function differenceWords({ entity, name, id, field, there, stated, target }: Difference): string {
  return (
    `${entity} ${name} (id ${id}): ${field} is ${there}, and ${stated} is stated for ${target}; it is left ` +
    "unchanged"
  );
}

function lines<Item>(items: readonly Item[], words: (item: Item) => string): void {
  for (const item of items.slice(0, SHOWN)) print(words(item));
  if (items.length > SHOWN) print(`  … and ${items.length - SHOWN} more (--json lists all)`);
}
