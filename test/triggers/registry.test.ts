import { describe, expect, it } from "vitest";
import { type LintedDrop, lintTriggers } from "#gateway/triggers/lint.ts";
import { type TriggerOptions, triggerOptions, triggersOptions } from "#gateway/triggers/options.ts";
import { createRegistry, laneOf, whyUnclaimed } from "#gateway/triggers/registry.ts";

const CSV = { filterType: "EndsWith", value: ".csv" };
const GUID = "0b6b2ad6-8a0e-4d54-9f2b-6f1f3f0f5a11";
const DROPS = [
  { name: "field", kind: "local" },
  { name: "intake", kind: "http" },
] as const;
const ACME = { filterType: "StartsWith", value: "acme_" };

function trigger(name: string, patterns: unknown[], more: Record<string, unknown> = {}): TriggerOptions {
  return triggerOptions.parse({ name, mapper: "standard", fileNamePatternMatches: patterns, ...more });
}

describe("the registry of triggers", () => {
  it("lets the first matching trigger in configured order claim, and names the others", () => {
    const registry = createRegistry([
      trigger("txt", [{ filterType: "EndsWith", value: ".txt" }]),
      trigger("acme", [ACME, CSV]),
      trigger("any", [CSV]),
    ]);
    const claim = registry.claim("in/2026/acme_01.csv", "SendViaFtp");
    expect(claim.claimed?.name).toBe("acme");
    expect(claim.others).toEqual(["any"]);
    expect(claim.verdicts.map(({ trigger: name, matches }) => [name, matches])).toEqual([
      ["txt", false],
      ["acme", true],
      ["any", true],
    ]);
  });

  it("matches only the base name", () => {
    const registry = createRegistry([trigger("acme", [ACME])]);
    expect(registry.claim("acme_in/other.csv", "SendViaFtp").claimed).toBeNull();
  });

  it("matches a file that was sent under a token by that token, whatever its name", () => {
    const http = { ingestionType: "SendViaHttp" };
    const registry = createRegistry([
      trigger("off", [], { ...http, token: GUID, state: "Inactive" }),
      trigger("other", [CSV], { ...http, token: "9b6b2ad6-8a0e-4d54-9f2b-6f1f3f0f5a11" }),
      trigger("ftp", [CSV], { token: GUID }),
      trigger("mine", [], { ...http, token: GUID }),
    ]);
    const sent = { service: "hub", token: GUID.toUpperCase() };
    expect(registry.claim("1.csv", "SendViaHttp", "intake", sent).claimed?.name).toBe("mine");
    const unknown = { service: "hub", token: "00000000-0000-4000-8000-000000000000" };
    expect(registry.claim("1.csv", "SendViaHttp", "intake", unknown).claimed).toBeNull();
  });

  it("keeps the files of a sender of one service from the triggers of another", () => {
    const upload = { ingestionType: "UploadInStorage" };
    const registry = createRegistry([
      trigger("theirs", [CSV], { ...upload, service: "theirs" }),
      trigger("ours", [CSV], { ...upload, service: "ours" }),
    ]);
    const claim = registry.claim("1.csv", "UploadInStorage", "intake", { service: "ours" });
    expect(claim).toMatchObject({ claimed: { name: "ours" }, others: [] });
    expect(claim.verdicts[0]?.words).toBe("it is for the service theirs, and this sender's data goes to ours");
  });

  it("reports for an unclaimed file why each trigger does not claim it", () => {
    const registry = createRegistry([trigger("acme", [ACME]), trigger("off", [CSV], { state: "Inactive" })]);
    const words = whyUnclaimed(registry.claim("other.csv", "SendViaFtp"));
    expect(words).toBe('acme: StartsWith "acme_": no · off: its state is Inactive, so it does not fire');
    expect(whyUnclaimed(createRegistry([]).claim("a", "SendViaFtp"))).toBe("no trigger is configured");
  });

  it("keeps a trigger to its drops", () => {
    const registry = createRegistry([trigger("here", [CSV], { drops: ["field", "yard"] })]);
    expect(registry.claim("a.csv", "SendViaFtp", "yard").claimed?.name).toBe("here");
    expect(registry.claim("a.csv", "SendViaFtp", "sea").claimed).toBeNull();
    expect(registry.claim("a.csv", "SendViaFtp").claimed?.name).toBe("here");
  });

  it("with walls judges a file by the triggers for its drop alone, and says nothing of others", () => {
    const drops = (...names: string[]) => ({ drops: names });
    const unknown = { name: "triggers of a", unknown: "they are not known yet", blocks: true, ...drops("a") };
    const triggers = [
      unknown,
      trigger("a", [CSV], drops("a")),
      trigger("all", [ACME]),
      trigger("b", [CSV], drops("b")),
    ];
    const judging = (drop: string, { walled }: { readonly walled: boolean }) => {
      const { claimed, undecided, verdicts } = createRegistry(triggers, { walled }).claim("1.csv", "SendViaFtp", drop);
      return { claimed: claimed?.name, undecided, judges: verdicts.map((verdict) => verdict.trigger) };
    };
    expect(judging("b", { walled: true })).toEqual({ claimed: "b", undecided: false, judges: ["all", "b"] });
    expect(judging("c", { walled: true })).toEqual({ claimed: undefined, undecided: false, judges: ["all"] });
    expect(judging("a", { walled: true }).undecided).toBe(true);
    expect(judging("b", { walled: false }).judges).toEqual(["triggers of a", "a", "all", "b"]);
  });

  it("with walls reads the patterns of no other drop's triggers, however many there are", () => {
    let read = 0;
    const other = {
      ...trigger("other", [], { drops: ["a"] }),
      get fileNamePatternMatches() {
        read += 1;
        return [];
      },
    };
    const own = trigger("own", [CSV], { drops: ["b"] });
    const registry = createRegistry([...Array.from({ length: 1_000 }, () => other), own], { walled: true });
    expect(registry.claim("1.csv", "SendViaFtp", "b").claimed?.name).toBe("own");
    expect(read).toBe(0);
  });

  it("names 20 triggers in the reason of an unclaimed file, and counts the others", () => {
    const many = Array.from({ length: 1_000 }, (_, at) => trigger(`t${at}`, [ACME]));
    const words = whyUnclaimed(createRegistry(many).claim("other.csv", "SendViaFtp"));
    expect(words).toMatch(/t19: StartsWith "acme_": no · and 980 more$/);
  });

  it("uses the new triggers once they are replaced", () => {
    const registry = createRegistry([trigger("old", [ACME])]);
    registry.replace([trigger("new", [CSV])]);
    expect(registry.claim("acme_1.csv", "SendViaFtp").claimed?.name).toBe("new");
    expect(registry.list().map(({ name }) => name)).toEqual(["new"]);
  });
});

describe("lanes", () => {
  it("are one drop and one trigger unless a trigger names one, and never cross services", () => {
    const plain = trigger("a", [CSV]);
    const named = (name: string) => trigger(name, [CSV], { lane: "plant" });
    expect(laneOf(plain, "field", "s")).not.toBe(laneOf(plain, "yard", "s"));
    expect(laneOf(plain, "field", "s")).not.toBe(laneOf(trigger("b", [CSV]), "field", "s"));
    expect(laneOf(named("a"), "field", "s")).toBe(laneOf(named("b"), "yard", "s"));
    expect(laneOf(named("a"), "field", "s")).not.toBe(laneOf(named("a"), "field", "t"));
  });
});

describe("the options of a trigger", () => {
  it("are strict by default, and refuse keys they do not know", () => {
    expect(trigger("a", [CSV])).toMatchObject({
      rows: "strict",
      fileTriggerCombination: "And",
      ingestionType: "SendViaFtp",
      state: "Active",
      metadata: {},
    });
    expect(() => trigger("a", [CSV], { filetype: "CustomFormat" })).toThrow(/filetype/);
    expect(() => trigger("a", [{ filterType: "Matches", value: "x" }])).toThrow();
    expect(triggersOptions.parse(undefined)).toEqual([]);
  });
});

describe("the lint of triggers", () => {
  const findings = (...triggers: TriggerOptions[]) =>
    lintTriggers(triggers, DROPS).map(({ level, trigger: name }) => `${level} ${name}`);

  it("requires a token of triggers for SendViaHttp, and no patterns", () => {
    expect(findings(trigger("a", [], { ingestionType: "SendViaHttp" }))).toEqual(["failed a"]);
    expect(findings(trigger("a", [], { ingestionType: "SendViaHttp", token: GUID }))).toEqual([]);
  });

  it("refuses an empty list of patterns and a name used twice", () => {
    expect(findings(trigger("a", []))).toEqual(["failed a"]);
    expect(findings(trigger("a", [CSV]), trigger("a", [ACME]))).toEqual(["failed a"]);
  });

  it("warns of a trigger that an earlier one always comes before", () => {
    expect(findings(trigger("a", [CSV]), trigger("b", [CSV]))).toEqual(["warning b"]);
    expect(findings(trigger("wide", [CSV]), trigger("narrow", [ACME, CSV]))).toEqual(["warning narrow"]);
    expect(findings(trigger("narrow", [ACME, CSV]), trigger("wide", [CSV]))).toEqual([]);
    const or = { fileTriggerCombination: "Or" };
    expect(findings(trigger("any", [ACME, CSV], or), trigger("both", [ACME, CSV]))).toEqual(["warning both"]);
    expect(findings(trigger("both", [ACME, CSV]), trigger("any", [ACME, CSV], or))).toEqual([]);
  });

  it("does not warn where the earlier one is for other drops, other ingestion types, or does not fire", () => {
    const later = trigger("b", [CSV]);
    expect(findings(trigger("a", [CSV], { drops: ["field"] }), later)).toEqual([]);
    expect(findings(trigger("a", [CSV], { ingestionType: "UploadInStorage" }), later)).toEqual([]);
    expect(findings(trigger("a", [CSV], { state: "Inactive" }), later)).toEqual(["warning a"]);
    expect(findings(trigger("a", [CSV], { drops: ["field"] }), trigger("b", [CSV], { drops: ["field"] }))).toEqual([
      "warning b",
    ]);
  });

  it("warns of a trigger whose state never fires", () => {
    expect(findings(trigger("a", [CSV], { state: "Deleted" }))).toEqual(["warning a"]);
    expect(findings(trigger("a", [CSV], { state: "Updated" }))).toEqual([]);
  });

  it("warns of an ingestion type that no drop of the trigger offers", () => {
    const told = (drops: readonly LintedDrop[], more: Record<string, unknown>) =>
      lintTriggers([trigger("a", [CSV], more)], drops).map(({ level }) => level);
    expect(told([DROPS[1]], {})).toEqual(["warning"]);
    expect(told([DROPS[0]], { ingestionType: "UploadInStorage" })).toEqual(["warning"]);
    expect(told([DROPS[0]], { ingestionType: "SendViaHttp", token: GUID })).toEqual(["warning"]);
    expect(told(DROPS, { ingestionType: "UploadInStorage", drops: ["field"] })).toEqual(["warning"]);
    expect(told(DROPS, { drops: ["field"] })).toEqual([]);
    expect(told(DROPS, { ingestionType: "UploadInStorage" })).toEqual([]);
  });

  it("warns of a pattern with a slash, which no name has", () => {
    const folder = { filterType: "StartsWith", value: "in/acme_" };
    expect(findings(trigger("never", [CSV, folder]))).toEqual(["warning never"]);
    const registry = createRegistry([trigger("never", [folder])]);
    expect(registry.claim("in/acme_1.csv", "SendViaFtp").claimed).toBeNull();
  });

  it("warns of conditions that exclude each other", () => {
    const not = { filterType: "NotEndsWith", value: ".csv" };
    expect(findings(trigger("never", [CSV, not]))).toEqual(["warning never"]);
    expect(findings(trigger("always", [CSV, not], { fileTriggerCombination: "Or" }))).toEqual([]);
  });
});
