import { describe, expect, it } from "vitest";
import { bindTriggers, type ServiceRule } from "#gateway/triggers/bound.ts";
import { serviceTriggersOptions } from "#gateway/triggers/options.ts";
import { createRegistry, type RegistryEntry, whyUnclaimed } from "#gateway/triggers/registry.ts";
import { listed } from "../runs/trigger-service.ts";

const GUID = "0b6b2ad6-8a0e-4d54-9f2b-6f1f3f0f5a11";

function rule(more: Readonly<Record<string, unknown>> = {}): ServiceRule {
  const { service: _, every: __, ...options } = serviceTriggersOptions.parse({ from: "service", ...more });
  return { ...options, service: "main" };
}

const one = (item: unknown, more: Readonly<Record<string, unknown>> = {}) => {
  const [bound] = bindTriggers([item], rule(more));
  if (bound === undefined) throw new Error("nothing is bound");
  return bound;
};

/** What the registry makes of them. */
const claim = (name: string, ...items: unknown[]) => {
  const entries = bindTriggers(items, rule()).flatMap(({ name: of, trigger, fault, isOff }): RegistryEntry[] => {
    if (trigger !== null) return [trigger];
    return isOff ? [] : [{ name: of, unknown: fault ?? "", blocks: false }];
  });
  return createRegistry(entries).claim(name, "SendViaFtp");
};

describe("a trigger that a service lists", () => {
  it("is read in any case of its fields, without the unknown ones and those that are null", () => {
    const spelled = { ...listed(7, ".csv"), fileTypes: 1, NAME: "Meters", extension: { a: 1 } };
    expect(one(spelled)).toEqual(one({ ...listed(7, ".csv"), name: "Meters" }));
    const lower = Object.fromEntries(Object.entries(spelled).map(([key, value]) => [key.toLowerCase(), value]));
    expect(one(lower)).toEqual(one(spelled));
    expect(one(spelled)).toMatchObject({
      name: "main:7",
      fault: null,
      trigger: {
        service: "main",
        mapper: "standard",
        rows: "strict",
        state: "Active",
        fileNamePatternMatches: [{ filterType: "EndsWith", value: ".csv" }],
        origin: { mapping: null, title: "Meters" },
      },
    });
  });

  it("is bound by the table, by the name of its mapping, or by its file type", () => {
    const custom = { FileType: "CustomFormat" };
    const mappings = { mappings: { "ACME v2": "acme-hourly", IndexIs: "index" } };
    const mapper = (more: object, table: object = mappings) =>
      one(listed(1, ".csv", { ...more }), { ...table }).trigger;
    expect(mapper({ ...custom, Mapping: "ACME v2", Metadata: { a: 1 } })).toMatchObject({
      mapper: "acme-hourly",
      metadata: { a: 1 },
    });
    expect(mapper({ ...custom, mapping: "acme-daily" })?.mapper).toBe("acme-daily");
    expect(mapper({ FileType: "IndexIs" })?.mapper).toBe("index");
    expect(mapper({ FileType: "IndexIs" }, {})?.mapper).toBe("meter-index");
    expect(mapper({ FileType: "OpisenseManualLoad" }, {})?.mapper).toBe("meter-index");
    expect(mapper({ FileType: "OpisenseMasterData" }, {})).toMatchObject({ structure: true });
    expect(mapper(custom, {})?.origin?.unbound).toMatch(/no mapper for its file type CustomFormat/);
    expect(mapper({ ...custom, mapping: "ACME v2" }, {})?.origin?.unbound).toMatch(/names the mapping ACME v2/);
    expect(mapper({ ...custom, mapping: "constructor" })?.mapper).toBe("constructor");
  });

  it("takes metadata as an object, as its JSON text, or none", () => {
    expect(one(listed(1, ".csv", { Metadata: '{"zone":"UTC"}' })).trigger?.metadata).toEqual({ zone: "UTC" });
    expect(one(listed(1, ".csv", { Metadata: null })).trigger?.metadata).toEqual({});
    expect(one(listed(1, ".csv", { Metadata: "" })).trigger?.metadata).toEqual({});
    expect(one(listed(1, ".csv", { Metadata: "zone" })).fault).toMatch(/metadata/);
  });

  it("is malformed with the reason, and harms no other", () => {
    const bad = listed(2, ".csv", { FileNamePatternMatches: [{ FilterType: "Matches", Value: ".*" }] });
    const faults = bindTriggers([null, "x", {}, bad, listed(3, ".csv")], rule());
    expect(faults.map(({ name, trigger, fault }) => [name, trigger !== null, fault?.slice(0, 20) ?? null])).toEqual([
      ["main:(item 1)", false, "it cannot be read: t"],
      ["main:(item 2)", false, "it cannot be read: t"],
      ["main:(item 3)", false, "it cannot be read: i"],
      ["main:2", false, "it cannot be read: f"],
      ["main:3", true, null],
    ]);
    expect(claim("a.csv", bad, listed(3, ".csv")).claimed?.name).toBe("main:3");
  });

  it("is not forgotten by files that no other claims while it cannot be read, unless it is off", () => {
    const bad = (State: string) => listed(2, ".csv", { TriggerType: "Removed", State });
    const open = claim("a.txt", bad("Active"), listed(3, ".csv"));
    expect(open).toMatchObject({ claimed: null, undecided: true });
    expect(whyUnclaimed(open)).toContain("main:2: it cannot be read: triggerType");
    expect(claim("a.txt", bad("Deleted"), listed(3, ".csv"))).toMatchObject({ claimed: null, undecided: false });
  });

  it("claims in the order of the ids, and in the states Active and Updated", () => {
    const names = bindTriggers([listed(10, ".csv"), listed(9, ".csv"), listed(100, ".csv")], rule());
    expect(names.map(({ name }) => name)).toEqual(["main:9", "main:10", "main:100"]);
    for (const State of ["Inactive", "Deleted"])
      expect(claim("a.csv", listed(1, ".csv", { State })).claimed).toBeNull();
    for (const State of ["Active", "Updated"])
      expect(claim("a.csv", listed(1, ".csv", { State })).claimed?.name).toBe("main:1");
  });

  it("keeps its token for SendViaHttp, which needs one", () => {
    const http = { IngestionType: "SendViaHttp", FileNamePatternMatches: null };
    const bound = one(listed(1, ".csv", { ...http, Token: GUID.toUpperCase() })).trigger;
    const registry = createRegistry(bound === null ? [] : [bound]);
    const sent = (service: string) => registry.claim("", "SendViaHttp", "intake", { service, token: GUID }).claimed;
    expect(sent("main")?.name).toBe("main:1");
    expect(sent("other")).toBeNull();
    expect(one(listed(1, ".csv", { ...http, Token: "" })).fault).toMatch(/token is not a GUID/);
    expect(one(listed(1, ".csv", { Token: "" })).trigger?.token).toBeUndefined();
  });
});

describe("triggers that are not known yet", () => {
  it("keep later triggers from their files, and not earlier ones", () => {
    const trigger = one(listed(1, ".csv")).trigger;
    if (trigger === null) throw new Error("nothing is bound");
    const unknown = { name: "triggers of main", unknown: "they are not known yet", blocks: true };
    expect(createRegistry([trigger, unknown]).claim("a.csv", "SendViaFtp").claimed?.name).toBe("main:1");
    const behind = createRegistry([unknown, trigger]).claim("a.csv", "SendViaFtp");
    expect(behind).toMatchObject({ claimed: null, undecided: true, others: [] });
  });
});
