import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { GatewayRig, oneReading, trigger, until } from "./gateway-rig.ts";

let rig: GatewayRig;
beforeEach(async () => {
  rig = await GatewayRig.start();
});
afterEach(() => rig.close());

describe("refused rows", () => {
  it("quarantine the file above the trigger's share, with counts by reason, and otherwise only themselves", async () => {
    const variable = await rig.variable("lenient");
    const bad = (count: number) =>
      Array.from({ length: count }, (_, row) => `${variable},2026-03-02,x${row}\n`).join("");
    rig.put("in/half.csv", oneReading(variable, 1) + bad(3));
    rig.put("in/few_half.csv", oneReading(variable, 2, "2026-03-03T00:00:00Z") + bad(1));
    const gateway = await rig.open({
      triggers: [
        trigger("tolerant", {
          rows: "lenient",
          rejectShare: 0.5,
          fileNamePatternMatches: [{ filterType: "StartsWith", value: "few_" }],
        }),
        trigger("lenient", { rows: "lenient" }),
      ],
    });
    await until("the gateway is idle", () => gateway.isIdle());
    const [quarantined] = await gateway.ledger.recentRuns(1, ["quarantined"]);
    expect(quarantined).toMatchObject({
      path: "half.csv",
      points: { rejected: 3 },
      reason: {
        code: "HG-MAP-031",
        message: expect.stringContaining("3 rows were refused, 75 % of all, where 10 % are tolerated"),
        rejectedByReason: [{ message: expect.stringContaining("…"), count: 3 }],
      },
    });
    const events = await gateway.ledger.events(quarantined?.arrivalId ?? 0);
    expect(events.find(({ what }) => what === "run.quarantined")?.detail).toContain("; 3 refused: 3 × ");
    expect(await rig.stored(variable)).toEqual({ "2026-03-03": 2 });
    const [delivered] = await gateway.ledger.recentRuns(1, ["confirmed", "accepted"]);
    expect(delivered).toMatchObject({ path: "few_half.csv", points: { mapped: 1, rejected: 1 } });
    const life = await gateway.ledger.events(delivered?.arrivalId ?? 0);
    expect(life.map(({ detail }) => detail).join("\n")).toContain("; 1 refused: 1 × ");
  });
});
