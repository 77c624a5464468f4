/** Findings of `check` on triggers that are each valid alone. */

import type { FileNamePattern, FilterType } from "#wire/trigger.ts";
import { constantWords, fires } from "#wire/trigger-match.ts";
import type { DropKind } from "../model.ts";
import type { Trigger } from "./registry.ts";

export interface TriggerFinding {
  /** `failed` makes `check` exit 1. */
  readonly level: "warning" | "failed";
  readonly trigger: string;
  readonly what: string;
  readonly hint: string;
}

/** The part of a drop that the lint reads. */
export interface LintedDrop {
  readonly name: string;
  readonly kind: DropKind;
}

export function lintTriggers(triggers: readonly Trigger[], drops: readonly LintedDrop[]): readonly TriggerFinding[] {
  return triggers.flatMap((trigger, index) => [
    ...sameName(trigger, triggers.slice(0, index)),
    // A service's triggers may be for other gateways, and for the service itself.
    ...(trigger.origin === undefined ? [...atRest(trigger), ...noSource(trigger, drops)] : []),
    ...noPatterns(trigger),
    ...contradiction(trigger),
    ...withSlash(trigger),
    ...shadowed(trigger, triggers.slice(0, index)),
  ]);
}

function sameName(trigger: Trigger, earlier: readonly Trigger[]): readonly TriggerFinding[] {
  if (!earlier.some((other) => other.name === trigger.name)) return [];
  return [
    {
      level: "failed",
      trigger: trigger.name,
      what: `two triggers are named ${trigger.name}`,
      hint: "Give each a name of its own.",
    },
  ];
}

function atRest(trigger: Trigger): readonly TriggerFinding[] {
  if (fires(trigger)) return [];
  return [
    {
      level: "warning",
      trigger: trigger.name,
      what: `its state is ${trigger.state}, so that it never claims a file`,
      hint: "Set its `state` to Active, or remove the trigger.",
    },
  ];
}

/** True when no drop that the trigger may claim from yields files of its ingestion type. */
function noSource(trigger: Trigger, drops: readonly LintedDrop[]): readonly TriggerFinding[] {
  const own = drops.filter((drop) => trigger.drops?.includes(drop.name) !== false);
  const byHttp = trigger.ingestionType !== "SendViaFtp";
  if (own.some((drop) => drop.kind === "hub" || (drop.kind === "http") === byHttp)) return [];
  const where = trigger.drops === undefined ? "no configured drop" : `none of ${trigger.drops.join(", ")}`;
  return [
    {
      level: "warning",
      trigger: trigger.name,
      what:
        `it can never claim a file: it is for files that come by ${trigger.ingestionType}, and ${where} ` +
        "yields such files",
      hint: byHttp
        ? "Such files come by a drop of kind http; files at local, sftp and ftp drops come by SendViaFtp."
        : "Such files come by drops of kind local, sftp and ftp; those of an http drop come by " +
          "SendViaHttp or UploadInStorage.",
    },
  ];
}

function noPatterns(trigger: Trigger): readonly TriggerFinding[] {
  if (trigger.ingestionType === "SendViaHttp") return noToken(trigger);
  if (trigger.fileNamePatternMatches.length > 0) return [];
  return [
    {
      level: "failed",
      trigger: trigger.name,
      what: "fileNamePatternMatches is empty, and an empty list matches nothing",
      hint: 'Add a pattern, such as { filterType: EndsWith, value: ".csv" }.',
    },
  ];
}

function noToken(trigger: Trigger): readonly TriggerFinding[] {
  if (trigger.token !== undefined) return [];
  return [
    {
      level: "failed",
      trigger: trigger.name,
      what: "it is for SendViaHttp and has no token, so no file can be sent to it",
      hint: "Give it a `token`: the guid that senders put behind /api/generic/.",
    },
  ];
}

const OPPOSITE: Readonly<Partial<Record<FilterType, FilterType>>> = {
  Contains: "NotContains",
  StartsWith: "NotStartsWith",
  EndsWith: "NotEndsWith",
  Equals: "NotEquals",
};

function contradiction(trigger: Trigger): readonly TriggerFinding[] {
  if (trigger.fileTriggerCombination !== "And") return [];
  const all = new Set(trigger.fileNamePatternMatches.map(patternKey));
  const clash = trigger.fileNamePatternMatches.find(({ filterType, value }) => {
    const opposite = OPPOSITE[filterType];
    return opposite !== undefined && all.has(patternKey({ filterType: opposite, value }));
  });
  if (clash === undefined) return [];
  return [
    {
      level: "warning",
      trigger: trigger.name,
      what:
        `it can never match: ${clash.filterType} and ${OPPOSITE[clash.filterType]} of ` +
        `${JSON.stringify(clash.value)} are both asked for`,
      hint: "Remove one of the two, or combine them with Or.",
    },
  ];
}

function withSlash(trigger: Trigger): readonly TriggerFinding[] {
  const own = " `drops` keeps the trigger to drops, and `include` of a drop keeps that one to folders.";
  const hint = `Give the name without its folders.${trigger.origin === undefined ? own : ""}`;
  const found = trigger.fileNamePatternMatches.map(constantWords).filter((words) => words !== null);
  return found.slice(0, 1).map((what) => ({ level: "warning", trigger: trigger.name, what, hint }));
}

function shadowed(trigger: Trigger, earlier: readonly Trigger[]): readonly TriggerFinding[] {
  if (!fires(trigger) || trigger.ingestionType === "SendViaHttp") return [];
  if (trigger.fileNamePatternMatches.length === 0) return [];
  const by = earlier.find((other) => covers(other, trigger));
  if (by === undefined) return [];
  return [
    {
      level: "warning",
      trigger: trigger.name,
      what: `it can never claim a file: the earlier trigger ${by.name} claims every file that it matches`,
      hint: "Put it before the other, or narrow the other's patterns.",
    },
  ];
}

/** Whether the earlier trigger certainly matches every name that the later one matches. */
function covers(earlier: Trigger, later: Trigger): boolean {
  if (!fires(earlier) || earlier.ingestionType !== later.ingestionType) return false;
  const places = later.drops;
  if (earlier.drops !== undefined && places?.every((drop) => earlier.drops?.includes(drop)) !== true) return false;
  const wide = patternSet(earlier);
  const narrow = patternSet(later);
  if (wide.size === 0) return false;
  // All patterns of `later` hold: enough when `earlier` requires some of them. Any pattern of `later` holds: each must
  // be enough for `earlier`.
  const wideAll = earlier.fileTriggerCombination === "And";
  const narrowAll = later.fileTriggerCombination === "And";
  if (narrowAll) return wideAll ? wide.isSubsetOf(narrow) : !wide.isDisjointFrom(narrow);
  return wideAll && wide.size > 1 ? false : narrow.isSubsetOf(wide);
}

function patternSet(trigger: Trigger): ReadonlySet<string> {
  return new Set(trigger.fileNamePatternMatches.map(patternKey));
}

function patternKey({ filterType, value }: FileNamePattern): string {
  return `${filterType} ${value}`;
}
