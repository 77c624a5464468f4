import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "#core/clock.ts";
import type { Gateway } from "#gateway/gateway.ts";
import { type LedgerPlace, openLedger } from "#gateway/ledger/open.ts";
import { ledgerOptions } from "#gateway/ledger/options.ts";
import type { Run } from "#gateway/model.ts";
import { provisionTemplate } from "#gateway/provisioning/options.ts";
import { Provisioner } from "#gateway/provisioning/provisioner.ts";
import { filled, variableOfTarget, wantedByTemplate } from "#gateway/provisioning/template.ts";
import { UNITS } from "#wire/index.ts";
import { GatewayRig, trigger, until } from "../runs/gateway-rig.ts";
import { headgate } from "../runs/in-process.ts";
import { openTestDatabase } from "../support/postgres.ts";
import { FaultyService } from "./faulty-service.ts";

const never = new AbortController().signal;
const PUSH = {
  confirm: { by: "read-back", pollEvery: "50ms" },
  retry: { initial: "50ms", max: "200ms", quickAttempts: 1 },
  guard: { remember: "100ms", recheck: "50ms", recheckMax: "100ms" },
};
const SITE = { name: "Plant {drop}", typeId: 10, timeZoneId: "Europe/Brussels" };
const TEMPLATE = {
  site: SITE,
  source: { name: "Meter {source}", energyTypeId: 1 },
  variable: { name: "{mappingConfig} of {source}", granularity: "15 minutes", quantityType: "Integrated" },
};
const FACTS = { target: { sourceEan: "1", mappingConfig: "a" }, points: 1, fromMs: 0, toMs: 0, untagged: 1 };

let rig: GatewayRig;
let gateway: Gateway;
beforeAll(async () => {
  rig = await GatewayRig.start({
    users: [
      { username: "u", password: "password", accounts: [1], roles: ["Manager", "Datapusher"] },
      { username: "pusher", password: "password", accounts: [1], roles: ["User", "Datapusher"] },
    ],
  });
});
afterAll(() => rig.close());

/** Rows of meters in kilowatt-hours. */
const meters = (provision: object) => ({
  ...trigger("meters", { mapper: "delimited", provision }),
  metadata: {
    timeZone: "UTC",
    date: { column: "when", format: "yyyy-MM-dd" },
    target: { sourceSerialNumber: "{meter}", mappingConfig: "{register}" },
    value: "value",
    unit: "kWh",
  },
});
const rows = (...lines: string[]) => `meter,register,when,value\n${lines.join("\n")}\n`;

async function open(provision: object, more: object = {}): Promise<void> {
  gateway = await rig.open({ triggers: [meters(provision)], push: PUSH, ...more });
}

async function untilState(path: string, ...states: string[]): Promise<Run> {
  let run: Run | undefined;
  await until(`${path} is ${states.join(" or ")}`, async () => {
    run = (await gateway.ledger.trace(path))[0]?.runs.at(-1)?.run;
    return run !== undefined && states.includes(run.state);
  });
  if (run === undefined) throw new Error("no run");
  return run;
}

const structure = async () => ({
  sites: (await rig.client.getSites({}, never)).items,
  sources: (await rig.client.getSources({}, never)).items,
  variables: (await rig.client.getVariables({}, never)).items,
});

describe("a trigger with a template", () => {
  it("creates the structure of its files once, in the declared unit, and delivers", async () => {
    await open(TEMPLATE);
    rig.put("in/a.csv", rows("P-1,kWh,2026-03-01,1", "P-1,export,2026-03-01,2", "P-2,kWh,2026-03-01,3"));
    rig.put("in/b.csv", rows("P-1,kWh,2026-03-02,4", "P-3,kWh,2026-03-02,5"));
    await untilState("a.csv", "confirmed");
    await untilState("b.csv", "confirmed");
    const { sites, sources, variables } = await structure();
    expect(sites.map(({ name }) => name)).toEqual(["Plant in"]);
    expect(sources.map(({ name, serialNumber }) => `${name} ${serialNumber}`).sort()).toEqual(
      ["P-1", "P-2", "P-3"].map((meter) => `Meter ${meter} ${meter}`),
    );
    expect(variables).toHaveLength(4);
    expect(variables[0]).toMatchObject({
      unitId: 8,
      granularity: 15,
      granularityTimeBase: 2,
      quantityType: 2,
    });
    const life = (await gateway.ledger.trace("a.csv"))[0]?.events ?? [];
    expect(life.filter(({ what }) => what === "structure.created")).toMatchObject([
      { detail: expect.stringMatching(/^1 site \(Plant in\), 2 sources .*, 3 variables/) },
    ]);
  });

  it("only reports planned creations in that mode, and creates them on request", async () => {
    await open({ ...TEMPLATE, when: "ordered" });
    rig.put("in/ordered.csv", rows("P-9,kWh,2026-03-01,1"));
    const held = await untilState("ordered.csv", "held");
    const { stdout: offered } = await headgate("quarantine", "-c", rig.config, "--json");
    const [{ next = [] } = {}] = JSON.parse(offered) as { next?: string[] }[];
    expect(next[0]).toContain("headgate trace");
    expect(next[1]).toBe(`headgate provision ${held.id} -c ${rig.config}`);
    const config = `${rig.folder}/gateway.yaml`;
    const before = await structure();
    const dry = await headgate("provision", "-c", config, "--dry-run");
    expect(dry).toMatchObject({ code: 0, stdout: expect.stringContaining("would create source Meter P-9") });
    expect(dry.stdout).toContain("would create variable kWh of P-9");
    expect(await structure()).toEqual(before);
    expect(await gateway.ledger.run(held.id)).toMatchObject({ state: "held" });
    expect(await headgate("provision", held.id, "--yes", "-c", config)).toMatchObject({ code: 0 });
    await untilState("ordered.csv", "confirmed");
    expect((await structure()).sources).toHaveLength(before.sources.length + 1);
  });

  it("holds the run when the user lacks the right, or the file exceeds the template's limit", async () => {
    const credentials = { ...rig.service("hub").credentials, username: "pusher" };
    await open(TEMPLATE, { services: [{ ...rig.service("hub"), credentials }] });
    rig.put("in/refused.csv", rows("P-20,kWh,2026-03-01,1"));
    const refused = await untilState("refused.csv", "held");
    expect(refused.reason).toMatchObject({ code: "HG-GUARD-008", message: expect.stringContaining("403") });
    await open({ ...TEMPLATE, max: 1 });
    // The right is there now, and it goes on by itself.
    await untilState("refused.csv", "confirmed");
    rig.put("in/many.csv", rows("P-21,kWh,2026-03-01,1", "P-22,kWh,2026-03-01,1"));
    expect((await untilState("many.csv", "held")).reason?.message).toContain("`provision.max` (1)");
  });
});

describe("an account with several nodes", () => {
  it("gets each entity once, when two nodes need the same at a time", async () => {
    const database = await openTestDatabase();
    const options = ledgerOptions.parse({ kind: "postgres", url: database.url });
    const ledgers = await Promise.all(
      ["north", "south"].map((node) => openLedger({ ...options, node } as LedgerPlace, { clock: systemClock })),
    );
    const provisioners = ledgers.map(
      ({ fleet }) => new Provisioner(rig.clientOf(rig.hub.url), "the account", fleet.alone),
    );
    const targets = ["P-30", "P-31"].map((serial) => ({
      ...FACTS,
      target: { sourceSerialNumber: serial, mappingConfig: "a" },
      unit: "kWh",
    }));
    const shared = provisionTemplate.parse({ ...TEMPLATE, site: { ...SITE, name: "Shared" } });
    const order = { wanted: wantedByTemplate(shared, targets, {}), dryRun: false, journal: null };
    try {
      const done = await Promise.all(provisioners.map((one) => one.provision(order, never)));
      expect(done.map(({ created }) => created.length).sort()).toEqual([0, 5]);
      const { sites, sources } = await structure();
      expect(sites.filter(({ name }) => name === "Shared")).toHaveLength(1);
      expect(sources.filter(({ serialNumber }) => serialNumber === "P-30")).toHaveLength(1);
    } finally {
      for (const one of [...provisioners, ...ledgers]) await one.close();
      await database.drop();
    }
  });

  it("keeps the list of creations before an outage, and gets the rest afterwards", async () => {
    const service = await FaultyService.before(rig.hub.url);
    try {
      let left = 1;
      service.before = (call, body) => (call === "POST /variables" && body.includes("P-40") && left-- > 0 ? 503 : null);
      await open(TEMPLATE, { services: [{ ...rig.service("hub"), base: service.url }] });
      rig.put("in/away.csv", rows("P-40,kWh,2026-03-01,1"));
      await untilState("away.csv", "confirmed");
      const life = (await gateway.ledger.trace("away.csv"))[0]?.events ?? [];
      const created = life.filter(({ what }) => what === "structure.created").map(({ detail }) => detail);
      expect(created).toEqual(["1 source (Meter P-40)", "1 variable (kWh of P-40)"]);
      expect(life.map(({ what }) => what)).not.toContain("run.held");
    } finally {
      await service.close();
    }
  });

  it("shows in `headgate provision` what was created before the service refused the rest", async () => {
    const service = await FaultyService.before(rig.hub.url);
    try {
      await open({ ...TEMPLATE, when: "ordered" }, { services: [{ ...rig.service("hub"), base: service.url }] });
      rig.put("in/late.csv", rows("P-50,kWh,2026-03-01,1"));
      const { id } = await untilState("late.csv", "held");
      service.before = (call) => (call === "POST /variables" ? 503 : null);
      const config = `${rig.folder}/gateway.yaml`;
      const { code, stdout, stderr } = await headgate("provision", id, "--yes", "-c", config);
      expect(code).toBe(1);
      expect(stdout).toContain("created source Meter P-50 (id");
      expect(stderr).toMatch(/POST \/variables.*\n.*503/);
      service.before = () => null;
      expect((await headgate("provision", id, "--yes", "-c", config)).stdout).toContain(
        "created: 1 variable (kWh of P-50)",
      );
      await untilState("late.csv", "confirmed");
    } finally {
      await service.close();
    }
  });
});

describe("a template", () => {
  const template = provisionTemplate.parse({ site: SITE });

  it("needs a unit of the service, from the mapper or from the template", () => {
    const make = (unit?: string) =>
      variableOfTarget(template, unit === undefined ? FACTS : { ...FACTS, unit }, {}, UNITS);
    expect(make("kWh")).toMatchObject({ unitId: 8, mappingConfig: "a", name: "a" });
    expect(() => make()).toThrow("its unit is not known");
    expect(() => make("furlongs")).toThrow("the service has no unit furlongs");
  });

  it("names time periods in words, on another scale than the granularity of reads", () => {
    const spacing = (granularity: string) =>
      variableOfTarget({ ...template, variable: { ...template.variable, granularity, unit: "kWh" } }, FACTS, {}, UNITS);
    expect(spacing("15 minutes")).toMatchObject({ granularity: 15, granularityTimeBase: 2 });
    expect(spacing("1 day")).toMatchObject({ granularity: 1, granularityTimeBase: 4 });
    expect(spacing("1 month")).toMatchObject({ granularity: 1, granularityTimeBase: 6 });
    expect(provisionTemplate.safeParse({ site: SITE, variable: { granularity: "4" } }).success).toBe(false);
  });

  it("fills in texts from target, run and settings, and refuses unknown names", () => {
    const context = { drop: "north", "metadata.region": "EU" };
    expect(filled("{drop} {source} {mappingConfig} {metadata.region}", FACTS, context)).toBe("north 1 a EU");
    for (const name of ["site", "constructor", "toString", "__proto__"])
      expect(() => filled(`{${name}}`, FACTS, context)).toThrow(`names {${name}}, which is not known`);
  });
});
