/** The triggers in force, and which would claim a name, through a running gateway. */
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Gateway } from "#gateway/gateway.ts";
import { triggerEndpoints as endpoints } from "#gateway/operations/api/triggers.ts";
import { drop, GatewayRig, trigger, until } from "../../runs/gateway-rig.ts";
import { call, refusal } from "./calls.ts";

let rig: GatewayRig;
let gateway: Gateway;

beforeEach(async () => {
  rig = await GatewayRig.start();
  gateway = await rig.open({
    drops: [drop("in"), drop("other")],
    triggers: [
      trigger("acme", {
        drops: ["in"],
        expect: { by: "07:00", timeZone: "Europe/Brussels" },
        fileNamePatternMatches: [{ filterType: "StartsWith", value: "acme_" }],
      }),
      trigger("rest"),
      trigger("broken", { mapper: "no-such-mapper" }),
    ],
  });
});
afterEach(() => rig.close());

it("lists the triggers in their order, with the reason why one cannot be used", async () => {
  rig.put("in/acme_1.csv", "x\n");
  await until("the file is claimed", async () => (await gateway.ledger.latestRunOf("acme")) !== null);
  const triggers = await call(gateway, endpoints.triggers);
  expect(triggers).toMatchObject([
    {
      name: "acme",
      state: "Active",
      mapper: "standard",
      drops: ["in"],
      patterns: [{ filterType: "StartsWith", value: "acme_" }],
      expect: { by: "07:00", every: "day" },
      problem: null,
      lastFileAt: expect.any(String),
    },
    { name: "rest", drops: null, expect: null, lastFileAt: null },
    { name: "broken", problem: "there is no mapper no-such-mapper" },
  ]);
});

it("says which trigger would claim a name, and why the others would not", async () => {
  const test = (name: string, drop?: string) => call(gateway, endpoints.test, { query: { name, drop } });
  expect(await test("acme_1.csv")).toMatchObject({ claimedBy: "acme", mapper: "standard", others: ["rest", "broken"] });
  const elsewhere = await test("acme_1.csv", "other");
  expect(elsewhere).toMatchObject({ claimedBy: "rest" });
  expect(elsewhere.verdicts[0]).toMatchObject({
    trigger: "acme",
    matches: false,
    words: expect.stringContaining("at in"),
  });
  expect(await test("notes.txt")).toMatchObject({ claimedBy: null, container: null });
  expect(await test("all.zip")).toMatchObject({ claimedBy: null, container: expect.stringContaining("ZIP") });
  expect(await test("acme_1.csv.gz")).toMatchObject({ claimedBy: "acme", container: "unpacked to acme_1.csv" });
  const unknown = { query: { name: "a.csv", drop: "none" } };
  expect(await refusal(gateway, endpoints.test, unknown)).toMatchObject({ status: 404 });
});
