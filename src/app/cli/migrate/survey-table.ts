/** Shows the readings that an undo would remove. */

import { grouped } from "#core/text.ts";
import type { UndoneVariable, UndoSurvey } from "#gateway/migration/undo/undo.ts";
import { print, printTable, styled } from "../output.ts";
import type { OtherRuns } from "./others.ts";

/** For one service. */
export interface Surveyed extends UndoSurvey {
  readonly service: string;
  readonly others: OtherRuns;
  /** Runs of the migration whose batches are no longer kept. */
  readonly gone: readonly string[];
}

export function asJson({ others, ...rest }: Surveyed) {
  return { ...rest, others: Object.fromEntries(others.words), unknownOthers: others.unknown };
}

const SHOWN = 40;

export function printSurvey(id: string, found: readonly Surveyed[], dryRun: boolean): void {
  print(styled("bold", `undo of migration ${id}${dryRun ? " (nothing is removed)" : ""}`));
  for (const one of found) {
    const { variables, missing, absent, gone } = one;
    const rows = variables.slice(0, SHOWN).map((variable) => rowOf(variable));
    if (rows.length > 0)
      printTable(["  target", "variable", "from", "to", "points", "versions", "calls", "shared or changed"], rows);
    if (variables.length > SHOWN) print(`  … and ${variables.length - SHOWN} more variables (--json lists all)`);
    if (absent > 0) print(`  ${grouped(absent)} dates of the migration are not stored`);
    for (const words of missing.slice(0, SHOWN)) print(`  ${words}: there is no such variable`);
    for (const words of warningsOf(one)) print(`  ${styled("yellow", "!")} ${words}`);
    for (const words of gone.slice(0, SHOWN))
      print(`  ${styled("red", "!")} the batches of ${words} are no longer kept: their readings stay`);
  }
  print(
    "  every version of a date is removed, whichever sender it is from: the service removes by variable and " +
      "period only. Readings stored before the migration are not restored.",
  );
}

function rowOf({ target, variableId, from, to, points, versions, calls, stay }: UndoneVariable): string[] {
  const { others, changed, unsure } = stay;
  return [
    `  ${target}`,
    String(variableId),
    from ?? "-",
    to ?? "-",
    grouped(points),
    grouped(versions),
    grouped(calls),
    grouped(others + changed + unsure),
  ];
}

function warningsOf({ variables, others }: Surveyed): readonly string[] {
  const lines = variables.flatMap(({ target, stay, otherRuns }) => [
    ...(stay.others === 0
      ? []
      : [
          `${target}: ${grouped(stay.others)} dates were also delivered by ` +
            `${otherRuns.map((nth) => others.words.get(nth) ?? "").join(", ")}`,
        ]),
    ...(stay.changed === 0
      ? []
      : [
          `${target}: at ${grouped(stay.changed)} dates another value is stored than the migration delivered: ` +
            "another sender wrote there since, or the service converts",
        ]),
    ...(stay.unsure === 0
      ? []
      : [`${target}: ${grouped(stay.unsure)} dates stay, since the service would have removed more with them`]),
  ]);
  const unknown = others.unknown.map(
    (words) => `${words} delivered to the same targets; the dates are no longer known`,
  );
  const all = [...lines, ...unknown];
  return all.length <= SHOWN ? all : [...all.slice(0, SHOWN), `… and ${all.length - SHOWN} more`];
}

export function sumOf(variables: readonly UndoneVariable[], field: "points" | "versions"): number {
  return variables.reduce((sum, variable) => sum + variable[field], 0);
}
