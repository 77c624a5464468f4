/** Prints a plan for people: counted figures, figures estimated from a sample, and files that were not read. */

import { grouped } from "#core/text.ts";
import type { PlanReport } from "#gateway/migration/plan/dry-run.ts";
import type { Finding } from "#gateway/migration/plan/findings.ts";
import { print, printTable, sizeWords, styled } from "../output.ts";
import { timeWords } from "./progress.ts";

const SHOWN = 30;

export function printPlan(plan: PlanReport): void {
  const { sample } = plan;
  const of = sample.words === null ? "" : " in the files read";
  print(styled("bold", "plan (nothing was sent)"));
  printTable(
    ["  what", "found"],
    [
      ["  files", `${grouped(plan.files)}, ${sizeWords(plan.bytes)}`],
      ["  read", readWords(plan)],
      ["  mappers", mapperWords(plan)],
      ["  points", pointWords(plan)],
      ["  targets", `${grouped(plan.targets)}${of}${unfitWords(plan)}`],
      ["  period", plan.period === null ? `no readings${of}` : `${plan.period.from} to ${plan.period.to}${of}`],
      ["  duration", durationWords(plan)],
    ],
  );
  for (const words of plan.estimate.standsOn) print(`  ${words}`);
  if (sample.words !== null) print(`  ${styled("yellow", sample.words)}`);
  if (plan.unfit === null)
    print(styled("yellow", `  the service could not be asked about the targets: ${plan.unaskedBecause}`));
  printFindings(plan.findings);
}

/** Each cause has one line; those that need a person come first. */
export function printFindings(findings: readonly Finding[]): void {
  for (const { kind, needsPerson, isInformation, words } of findings.slice(0, SHOWN)) {
    const mark = isInformation ? "-" : styled(needsPerson ? "red" : "yellow", "!");
    print(`  ${mark} ${kind}: ${words}`);
  }
  if (findings.length > SHOWN) print(`  … and ${findings.length - SHOWN} more causes (--json lists all)`);
}

function readWords({ sample }: PlanReport): string {
  const { files, bytes, unreadFiles, unreadBytes } = sample;
  const read = `${grouped(files)} files, ${sizeWords(bytes)}`;
  return unreadFiles === 0
    ? `${read}: all`
    : `${read}: a sample by name and size; ${grouped(unreadFiles)} files, ${sizeWords(unreadBytes)}, were not`;
}

function mapperWords({ mappers }: PlanReport): string {
  return Object.entries(mappers)
    .map(([mapper, files]) => `${mapper}: ${files}`)
    .join(", ");
}

function pointWords({ points, rejected, estimate }: PlanReport): string {
  const refused = rejected === 0 ? "" : `, ${grouped(rejected)} rows refused`;
  if (estimate.isCounted) return `${grouped(points)}${refused}`;
  const others = estimate.rejected === 0 ? "" : `, about ${grouped(estimate.rejected)} rows refused`;
  return (
    `about ${grouped(estimate.points)} ± ${grouped(estimate.pointsMargin)}${others} (estimated); ` +
    `${grouped(points)}${refused} in the files read`
  );
}

function unfitWords({ unfit }: PlanReport): string {
  return unfit === null ? "" : `, ${unfit.length} findings of the service`;
}

function durationWords({ estimate }: PlanReport): string {
  const { seconds, mappingSeconds, sendingSeconds } = estimate;
  const sending = sendingSeconds === null ? "sending unknown" : `sending ${timeWords(sendingSeconds)}`;
  const least = sendingSeconds === null ? "at least" : "about";
  return (
    `${least} ${timeWords(seconds)} (estimated): mapping ${timeWords(mappingSeconds)}, ${sending}, both at the ` +
    "same time"
  );
}
