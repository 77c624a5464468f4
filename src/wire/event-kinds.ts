/** The facts that events of each type have. A filter that no event can fit is refused: it would wait in silence. */
import { ALARM_SEVERITIES, ALARM_STATES } from "./alarms.ts";
import type { EventFilterBody, EventSubject, EventType } from "./events.ts";
import { FILE_STATE_NAMES } from "./storage.ts";

interface EventKind {
  readonly subjects: readonly EventSubject[];
  readonly states: readonly string[];
  /** States in which a person should see it. */
  readonly failures: readonly string[];
  readonly severities: readonly string[];
  /** Fields of filters that may select such events. */
  readonly places: readonly ("siteIds" | "sourceIds" | "variableIds")[];
}

const EVERYWHERE = ["siteIds", "sourceIds", "variableIds"] as const;
const PUSHES = ["stored", "partly-discarded", "discarded", "failed"];
const FILES = FILE_STATE_NAMES.filter((state) => state !== "processing");
const CALCULATION = { subjects: ["variable"], severities: [], places: EVERYWHERE } as const;

const KINDS: Readonly<Record<EventType, EventKind>> = {
  "push.outcome": { subjects: ["operation"], states: PUSHES, failures: PUSHES.slice(1), severities: [], places: [] },
  "file.state": { subjects: ["file"], states: FILES, failures: FILES, severities: [], places: ["siteIds"] },
  "calculation.recalculated": { ...CALCULATION, states: ["done"], failures: [] },
  "calculation.failed": { ...CALCULATION, states: ["failed"], failures: ["failed"] },
  "alarm.changed": {
    subjects: ["alarm"],
    states: ALARM_STATES,
    failures: ["Present"],
    severities: ALARM_SEVERITIES,
    places: EVERYWHERE,
  },
  "alarm.paused": {
    subjects: ["alarm"],
    states: ["paused", "resumed"],
    failures: ["paused"],
    severities: ALARM_SEVERITIES,
    places: EVERYWHERE,
  },
  "structure.changed": {
    subjects: ["site", "source", "variable", "group", "form", "fileTrigger", "masterData"],
    states: ["created", "changed", "removed"],
    failures: [],
    severities: [],
    places: EVERYWHERE,
  },
};

export const EVENT_STATES: readonly string[] = [...new Set(Object.values(KINDS).flatMap(({ states }) => states))];

export interface Misfit {
  /** Of the filter; null: its fields together. */
  readonly field: string | null;
  readonly message: string;
}

/**
 * Why events of these types cannot fit the filter; null when those of each type can (`of` some: of one type at least).
 * Ids are not looked up.
 */
export function misfitOf(types: readonly EventType[], filter: EventFilterBody, of: "each" | "some"): Misfit | null {
  const unfit = types.filter((type) => !canFit(KINDS[type], filter));
  const others = types.length - unfit.length;
  if (unfit.length === 0 || (of === "some" && others > 0)) return null;
  const named = others > 0 ? unfit.slice(0, 1) : unfit;
  const which = `no event of ${named.join(", ")}`;
  const hint = others > 0 ? `; leave ${named[0]} out of the types, or give it a filter of its own` : "";
  for (const [field, value] of Object.entries(filter))
    if (!named.some((type) => canFit(KINDS[type], { [field]: value })))
      return { field, message: `${which} can fit it${hint}` };
  return { field: null, message: `${which} can fit all of its fields${hint}` };
}

function canFit(kind: EventKind, { subjects, states, severities, onlyFailures, ...ids }: EventFilterBody): boolean {
  const wanted = states ?? kind.states;
  const known = onlyFailures === true ? kind.failures : kind.states;
  return (
    (subjects ?? kind.subjects).some((one) => kind.subjects.includes(one)) &&
    wanted.some((one) => known.includes(one)) &&
    (severities === undefined || severities.some((one) => kind.severities.includes(one))) &&
    EVERYWHERE.every((place) => ids[place] === undefined || kind.places.includes(place))
  );
}
