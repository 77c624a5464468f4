/** Settings of a mapper, checked by its own schema, with faults as text. */
import leven from "leven";
import { CONFLICT_RULE_DEFAULT, CONFLICTS_SETTING, type ConflictRule, conflictRule } from "./conflicts.ts";
import { type Mapper, SOURCE_ZONE } from "./mapper.ts";
import { DATES_SETTING, type DateRules, dateRules } from "./plausible.ts";

type Settings = Readonly<Record<string, unknown>>;

/** The setting that `sourceZone` of a mapper is about. */
export const ZONE_SETTING = "timeZone";

/** The settings that every mapper has beside its own. */
export const COMMON_SETTINGS = [CONFLICTS_SETTING, DATES_SETTING] as const;

/** The given settings, or with the zone of the sources where they name none. */
export function withSourceZone({ sourceZone }: Pick<Mapper, "sourceZone">, settings: Settings): Settings {
  const isLeftOut = settings[ZONE_SETTING] === undefined || settings[ZONE_SETTING] === null;
  return sourceZone === true && isLeftOut ? { ...settings, [ZONE_SETTING]: SOURCE_ZONE } : settings;
}

/** The settings for the mapper, with those that every mapper has, or why they do not fit, field by field. */
export function parseSettings(
  mapper: Mapper,
  given: Settings,
):
  | { readonly value: unknown; readonly conflicts: ConflictRule; readonly dates: DateRules }
  | { readonly fault: string } {
  const { [CONFLICTS_SETTING]: wanted, [DATES_SETTING]: wantedDates, ...settings } = given;
  const rule = conflictRule.optional().safeParse(wanted);
  const dates = dateRules.safeParse(wantedDates);
  const own = parseOwn(mapper, settings);
  const faults = "fault" in own ? [own.fault] : [];
  if (!rule.success) faults.push(`${CONFLICTS_SETTING}: it is none of ${conflictRule.options.join(", ")}`);
  if (!dates.success)
    faults.push(...dates.error.issues.map(({ path, message }) => `${[DATES_SETTING, ...path].join(".")}: ${message}`));
  if ("fault" in own || !rule.success || !dates.success) return { fault: faults.join("; ") };
  return { ...own, conflicts: rule.data ?? mapper.conflicts ?? CONFLICT_RULE_DEFAULT, dates: dates.data };
}

function parseOwn(mapper: Mapper, settings: Settings): { readonly value: unknown } | { readonly fault: string } {
  if (mapper.settings === undefined) {
    const given = Object.keys(settings);
    if (given.length === 0) return { value: {} };
    return { fault: `the mapper ${mapper.name} takes no settings, but got ${given.join(", ")}` };
  }
  const parsed = mapper.settings.safeParse(settings);
  if (parsed.success) return { value: parsed.data };
  const faults = parsed.error.issues.map((issue) => {
    if (issue.code === "unrecognized_keys" && issue.path.length === 0)
      return issue.keys.map((key) => unknownKey(key, mapper)).join("; ");
    const field = issue.path.join(".");
    return field === "" ? issue.message : `${field}: ${issue.message}`;
  });
  return { fault: `the settings do not fit the mapper ${mapper.name}: ${faults.join("; ")}` };
}

/** Says that there is no such setting, and suggests a similar one. */
function unknownKey(key: string, { settings }: Mapper): string {
  const names = [...settingNames(settings), ...COMMON_SETTINGS];
  const near = names
    .map((name) => ({ name, distance: leven(key.toLowerCase(), name.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)
    .find(({ distance }) => distance <= Math.max(2, key.length / 3));
  const advice = near === undefined ? `it takes ${names.join(", ")}` : `did you mean "${near.name}"?`;
  return `there is no setting "${key}"; ${advice}`;
}

/** Names of a schema of settings, if it is an object schema. */
export function settingNames(settings: Mapper["settings"]): readonly string[] {
  const shape: unknown = settings !== undefined && "shape" in settings ? settings.shape : undefined;
  return typeof shape === "object" && shape !== null ? Object.keys(shape) : [];
}

export function settingsFault(mapper: Mapper, settings: Settings): string | null {
  const parsed = parseSettings(mapper, settings);
  return "fault" in parsed ? parsed.fault : null;
}
