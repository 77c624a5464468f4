import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FILTER_TYPES, type FileNamePattern, type FilterType, INGESTION_TYPES, TRIGGER_STATES } from "#wire/index.ts";
import { holds, matchTrigger, type NameRule } from "#wire/trigger-match.ts";

const name = fc.string({ unit: fc.constantFrom("a", "A", "b", "_", "."), maxLength: 6 });
const value = fc.string({ unit: fc.constantFrom("a", "A", "b", "_", "."), minLength: 1, maxLength: 3 });
const pattern = fc.record({ filterType: fc.constantFrom(...FILTER_TYPES), value });

function rule(change: Partial<NameRule>): NameRule {
  return {
    fileNamePatternMatches: [],
    fileTriggerCombination: "And",
    ingestionType: "SendViaFtp",
    state: "Active",
    ...change,
  };
}

function matches(patterns: readonly FileNamePattern[], combination: "And" | "Or", fileName: string): boolean {
  const trigger = rule({ fileNamePatternMatches: [...patterns], fileTriggerCombination: combination });
  return matchTrigger(trigger, fileName, "SendViaFtp").matches;
}

describe("a file name pattern", () => {
  it.each([
    ["Contains", "_kwh_", "acme_kwh_01.csv", "acme_KWH_01.csv"],
    ["StartsWith", "acme_", "acme_01.csv", "an_acme_01.csv"],
    ["EndsWith", ".csv", "a.csv", "a.csv.gz"],
    ["Equals", "a.csv", "a.csv", "A.csv"],
  ] as const)("%s %s is true for %s and not for %s, and its negation the other way round", (type, text, yes, no) => {
    expect(holds({ filterType: type, value: text }, yes)).toBe(true);
    expect(holds({ filterType: type, value: text }, no)).toBe(false);
    expect(holds({ filterType: `Not${type}`, value: text }, yes)).toBe(false);
    expect(holds({ filterType: `Not${type}`, value: text }, no)).toBe(true);
  });

  it("of a Not type always gives the opposite of its positive type", () => {
    const positive = fc.constantFrom<FilterType>("Contains", "StartsWith", "EndsWith", "Equals");
    fc.assert(
      fc.property(positive, value, name, (filterType, text, fileName) => {
        const negative = `Not${filterType}` as FilterType;
        expect(holds({ filterType: negative, value: text }, fileName)).toBe(
          !holds({ filterType, value: text }, fileName),
        );
      }),
    );
  });
});

describe("a combination of patterns", () => {
  it("requires all with And, any with Or, and for one pattern they are the same", () => {
    fc.assert(
      fc.property(fc.array(pattern, { minLength: 1, maxLength: 4 }), name, (patterns, fileName) => {
        const each = patterns.map((one) => holds(one, fileName));
        expect(matches(patterns, "And", fileName)).toBe(!each.includes(false));
        expect(matches(patterns, "Or", fileName)).toBe(each.includes(true));
        const one = patterns.slice(0, 1);
        expect(matches(one, "And", fileName)).toBe(matches(one, "Or", fileName));
      }),
    );
  });

  it("of no patterns matches nothing", () => {
    for (const combination of ["And", "Or"] as const) expect(matches([], combination, "a.csv")).toBe(false);
  });
});

describe("a trigger", () => {
  const fileNamePatternMatches: FileNamePattern[] = [{ filterType: "EndsWith", value: ".csv" }];

  it("fires when it is Active or Updated, and not when it is Inactive or Deleted", () => {
    const firing = TRIGGER_STATES.filter(
      (state) => matchTrigger(rule({ fileNamePatternMatches, state }), "a.csv", "SendViaFtp").matches,
    );
    expect(firing).toEqual(["Active", "Updated"]);
  });

  it("matches only files of its ingestion type", () => {
    for (const ingestionType of INGESTION_TYPES) {
      const trigger = rule({ fileNamePatternMatches, ingestionType });
      for (const came of INGESTION_TYPES)
        expect(matchTrigger(trigger, "a.csv", came).matches).toBe(came === ingestionType);
    }
  });

  it("explains why it does not match", () => {
    const words = (change: Partial<NameRule>) =>
      matchTrigger(rule({ fileNamePatternMatches, ...change }), "a.txt", "SendViaFtp").words;
    expect(words({})).toBe('EndsWith ".csv": no');
    const two = [{ filterType: "StartsWith" as const, value: "a" }, ...fileNamePatternMatches];
    expect(words({ fileNamePatternMatches: two })).toBe('StartsWith "a": yes; EndsWith ".csv": no (all must hold)');
    expect(words({ state: "Deleted" })).toContain("Deleted");
    expect(words({ ingestionType: "SendViaHttp" })).toContain("SendViaHttp");
    expect(words({ fileNamePatternMatches: [] })).toContain("no file name patterns");
  });
});

it("compares names as Unicode composes them, in patterns too", () => {
  const [apart, composed] = ["Za\u0308hler", "Z\u00e4hler"];
  for (const value of [apart, composed])
    for (const fileName of [apart, composed]) {
      expect(holds({ filterType: "StartsWith", value }, `${fileName}.csv`)).toBe(true);
      expect(holds({ filterType: "NotContains", value }, `${fileName}.csv`)).toBe(false);
    }
});
