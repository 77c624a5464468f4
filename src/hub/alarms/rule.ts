/** The parts of a template that evaluation needs. */
import { type AlarmCondition, type AlarmTemplateBody, ianaZone } from "#wire/index.ts";
import { isLevel } from "./conditions.ts";
import type { Rule } from "./progress.ts";

const MINUTE_MS = 60_000;
export const GAP_SHOWN_MS = 86_400_000;

export function ruleOf({ condition, holdMinutes = 0, schedule }: AlarmTemplateBody): Rule {
  return { condition, holdMs: holdMinutes * MINUTE_MS, schedule, expression: null };
}

/** Whether points change the state; of the other kinds a moment does, or something else than points. */
export function isOfPoints({ kind }: AlarmCondition): boolean {
  return kind !== "NoData" && kind !== "LateFile" && kind !== "CalculationFailed";
}

/** Whether the bounds of some values show that they change nothing. */
export function hasBounds({ condition, holdMs, schedule }: Rule): boolean {
  return isLevel(condition) && holdMs === 0 && schedule === undefined;
}

/** A limit in words, as mails and histories show it. */
export function limitWords({ kind, ...limits }: AlarmCondition): string {
  const { set = 0, reset = set, low, high, margin = 0, minutes = 0, per = "Hour", inverted, by, days, zone } = limits;
  const levels = (sign: string, back: string) => `${sign} ${set}${reset === set ? "" : ` (until ${back} ${reset})`}`;
  switch (kind) {
    case "Above":
      return levels("at or above", "at or below");
    case "Below":
      return levels("at or below", "at or above");
    case "Outside":
      return `outside ${low} to ${high}${margin === 0 ? "" : ` (until ${margin} inside)`}`;
    case "Binary":
      return inverted === true ? "is 0" : "is not 0";
    case "ChangeRate":
      return `changes by ${set} or more per ${per.toLowerCase()}`;
    case "FlatLine":
      return `unchanged for ${minutes} minutes`;
    case "Expression":
      return `${limits.expression}`;
    case "NoData":
      return `no data for ${minutes} minutes`;
    case "Gap":
      return `no points for ${minutes} minutes between two points`;
    case "LateFile":
      return `no file by ${by} (${zone ?? "UTC"})${days === undefined ? "" : `, days ${days.join(", ")}`}`;
    case "CalculationFailed":
      return "the calculation failed";
  }
}

/** Of the condition LateFile. */
export function zoneOf({ zone }: AlarmCondition): string {
  return ianaZone(zone ?? "UTC") ?? "UTC";
}
