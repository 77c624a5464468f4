import { describe, expect, test } from "vitest";
import { judgeMoment, type MomentFacts, nextMoment } from "#hub/alarms/moments.ts";
import { ruleOf, type Watched } from "#hub/alarms/watched.ts";
import type { StoredAlarm } from "#hub/store/alarms/records.ts";
import { alarmTemplateBody } from "#wire/index.ts";

const at = (text: string) => Date.parse(`2026-01-15T${text}:00Z`);
const FACTS: MomentFacts = { newest: new Map(), around: new Map(), files: new Map(), calculations: new Map() };
const VARIABLE = 5;
const TRIGGER = 6;

function watchedOf(condition: object, stored: Partial<StoredAlarm> = {}, schedule?: object): Watched {
  const body = alarmTemplateBody.parse({ name: "a", selection: {}, condition, schedule });
  const facts = {
    id: VARIABLE,
    accountId: 1,
    sourceId: 1,
    unitId: 8,
    isVersioned: false,
    isCalculated: false,
    versionsMax: null,
  };
  return {
    stored: {
      ...{ id: 1, accountId: 1, templateId: 1, variableId: VARIABLE, triggerId: TRIGGER, state: "NotPresent" },
      ...{ sinceMs: null, templateRevision: 1, watermarkMs: null, memory: {}, createdMs: at("00:00"), revision: 0 },
      ...stored,
    } as StoredAlarm,
    template: {
      ...{ id: 1, accountId: 1, body, revision: 1, createdMs: 0, changedMs: 0, lastVariableId: 0 },
    },
    rule: ruleOf(body),
    compiled: null,
    facts: { ...facts, sourceZoneId: "UTC", siteZoneId: "UTC" },
    zone: "UTC",
    isAhead: false,
    newestMs: null,
    futureMs: null,
  };
}

const newest = (text: string): MomentFacts => ({
  ...FACTS,
  newest: new Map([[VARIABLE, { atMs: at(text), value: 3 }]]),
});
const judged = (watched: Watched, facts: MomentFacts, now: string) =>
  judgeMoment(watched, facts, at(now)).changes.map(({ state, atMs, value }) => [state, atMs, value]);

describe("no data", () => {
  const condition = { kind: "NoData", minutes: 60 };

  test("is present from the newest point and the time after it, and not a moment before", () => {
    const watched = { ...watchedOf(condition), newestMs: at("08:00") };
    expect(nextMoment(watched, at("08:30"))).toBe(at("09:00"));
    expect(judged(watched, newest("08:00"), "08:59")).toEqual([]);
    expect(judged(watched, newest("08:00"), "09:00")).toEqual([["Present", at("09:00"), null]]);
  });

  test("is not present when the store has a newer point, whoever stored it", () => {
    const watched = { ...watchedOf(condition), newestMs: at("08:00") };
    expect(judged(watched, newest("08:45"), "09:00")).toEqual([]);
    expect(nextMoment(watched, at("09:00"))).toBe(at("09:45"));
  });

  test("counts from the creation of the alarm where there is no point", () => {
    expect(judged(watchedOf(condition), FACTS, "01:00")).toEqual([["Present", at("01:00"), null]]);
  });

  test("goes away with a point that is young enough, and waits for nothing else", () => {
    const present = { state: "Present", sinceMs: at("09:00"), watermarkMs: at("08:00") } as const;
    const watched = { ...watchedOf(condition, present), newestMs: at("08:00") };
    expect(nextMoment(watched, at("09:30"))).toBe(null);
    expect(judged(watched, newest("08:10"), "09:30")).toEqual([]);
    expect(judged(watched, newest("09:20"), "09:30")).toEqual([["NotPresent", at("09:20"), 3]]);
    expect(nextMoment({ ...watched, newestMs: at("09:20") }, at("09:30"))).toBe(at("09:30"));
  });

  test("that becomes due outside of the schedule is present from its next beginning", () => {
    const schedule = { from: "10:00", until: "12:00" };
    const watched = { ...watchedOf(condition, {}, schedule), newestMs: at("08:00") };
    expect(nextMoment(watched, at("09:30"))).toBe(at("10:00"));
    expect(judged(watched, newest("08:00"), "09:30")).toEqual([]);
    expect(judged(watched, newest("08:00"), "10:00")).toEqual([["Present", at("10:00"), null]]);
    expect(nextMoment(watched, at("13:00"))).toBe(at("10:00") + 86_400_000);
  });
});

test("a gap is shown for its time, or until it is filled", () => {
  const memory = { gap: { fromMs: at("01:00"), untilMs: at("05:00") } };
  const watched = watchedOf(
    { kind: "Gap", minutes: 90, within: 120 },
    { state: "Present", sinceMs: at("05:00"), memory },
  );
  const around = (...times: string[]): MomentFacts => ({ ...FACTS, around: new Map([[1, times.map(at)]]) });
  expect(nextMoment(watched, at("05:30"))).toBe(at("07:00"));
  expect(judged(watched, around("01:00", "02:00", "05:00"), "05:30")).toEqual([]);
  const filled = around("01:00", "02:00", "03:00", "04:00", "05:00");
  expect(judged(watched, filled, "05:30")).toEqual([["NotPresent", at("05:30"), null]]);
  expect(judged(watched, around("01:00", "05:00"), "07:00")).toEqual([["NotPresent", at("07:00"), null]]);
});

describe("a late file", () => {
  const condition = { kind: "LateFile", by: "06:00" };
  const came = (ms: number): MomentFacts => ({ ...FACTS, files: new Map([[TRIGGER, ms]]) });

  test("is present when none came since the time before, and goes away with one", () => {
    const watched = watchedOf(condition);
    expect(nextMoment(watched, at("01:00"))).toBe(at("06:00"));
    expect(judged(watched, FACTS, "05:59")).toEqual([]);
    expect(judged(watched, came(at("06:00") - 86_400_001), "06:01")).toEqual([["Present", at("06:00"), null]]);
    expect(judged(watched, came(at("05:30")), "06:01")).toEqual([]);
    const present = watchedOf(condition, { state: "Present", sinceMs: at("06:00"), memory: { askedMs: at("06:01") } });
    expect(nextMoment(present, at("06:01"))).toBe(at("06:02"));
    expect(judged(present, came(at("05:00")), "07:00")).toEqual([]);
    expect(judged(present, came(at("06:40")), "07:00")).toEqual([["NotPresent", at("06:40"), null]]);
  });

  test("is judged once for each time", () => {
    const watched = watchedOf(condition, { memory: { askedMs: at("06:01") } });
    expect(judged(watched, FACTS, "09:00")).toEqual([]);
    expect(nextMoment(watched, at("09:00"))).toBe(at("06:00") + 86_400_000);
  });
});

test("a failed calculation is present until one succeeds", () => {
  const ended = (hasFailed: boolean, time: string): MomentFacts => ({
    ...FACTS,
    calculations: new Map([[VARIABLE, { hasFailed, atMs: at(time), message: null }]]),
  });
  const watched = watchedOf({ kind: "CalculationFailed" });
  expect(judged(watched, FACTS, "08:00")).toEqual([]);
  expect(judged(watched, ended(false, "07:00"), "08:00")).toEqual([]);
  expect(judged(watched, ended(true, "07:00"), "08:00")).toEqual([["Present", at("07:00"), null]]);
  const present = watchedOf({ kind: "CalculationFailed" }, { state: "Acknowledged" });
  expect(judged(present, ended(true, "07:00"), "08:00")).toEqual([]);
  expect(judged(present, ended(false, "07:30"), "08:00")).toEqual([["NotPresent", at("07:30"), null]]);
});
