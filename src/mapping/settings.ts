/** Settings of a mapper, checked by its own schema, with faults in words. */
import type { Mapper } from "./mapper.ts";

type Settings = Readonly<Record<string, unknown>>;

/** The settings as the mapper gets them, or why they do not fit, field by field. */
export function parseSettings(mapper: Mapper, settings: Settings): { value: unknown } | { fault: string } {
  if (mapper.settings === undefined) {
    const given = Object.keys(settings);
    if (given.length === 0) return { value: {} };
    return { fault: `the mapper ${mapper.name} takes no settings, but got ${given.join(", ")}` };
  }
  const parsed = mapper.settings.safeParse(settings);
  if (parsed.success) return { value: parsed.data };
  const faults = parsed.error.issues.map((issue) => {
    const field = issue.path.join(".");
    return field === "" ? issue.message : `${field}: ${issue.message}`;
  });
  return { fault: `the settings do not fit the mapper ${mapper.name}: ${faults.join("; ")}` };
}

export function settingsFault(mapper: Mapper, settings: Settings): string | null {
  const parsed = parseSettings(mapper, settings);
  return "fault" in parsed ? parsed.fault : null;
}
