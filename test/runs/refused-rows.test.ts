import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkTriggers, type Finding } from "#app/cli/check.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { cancelNow } from "#gateway/runs/commands/cancel.ts";
import { get } from "../operations/console/console-rig.ts";
import { GatewayRig, oneReading, trigger, until } from "./gateway-rig.ts";

let rig: GatewayRig;
beforeEach(async () => {
  rig = await GatewayRig.start();
});
afterEach(() => rig.close());

describe("findings of mapping", () => {
  it("are stored with the run, in its history, in the log, and on its page", async () => {
    const variable = await rig.variable("a");
    const rows = (values: readonly string[]) =>
      values.map((value, day) => `2026-03-0${day + 1}T00:00:00Z,${value}\n`).join("");
    rig.put("in/some.csv", `date,value\n${rows(["1", "", "3"])}`);
    rig.put("in/none.csv", `date,value\n${rows(["", ""])}`);
    rig.put("in/header.csv", "date,value\n");
    rig.put("in/usual_none.csv", `date,value\n${rows(["", ""])}`);
    const metadata = { date: { column: "date" }, target: { variableId: variable }, value: "value", missing: [""] };
    const usual = [{ filterType: "StartsWith", value: "usual_" }];
    const gateway = await rig.open({
      triggers: [
        trigger("usual", { mapper: "delimited", metadata, empty: "expected", fileNamePatternMatches: usual }),
        trigger("delimited", { mapper: "delimited", metadata }),
      ],
    });
    await until("the gateway is idle", () => gateway.isIdle());
    const [delivered] = await gateway.ledger.recentRuns(1, ["confirmed", "accepted"]);
    const finding = { kind: "missing", message: "cells stand for no value, as `missing` says", count: 1 };
    expect(delivered).toMatchObject({ path: "some.csv", findings: [finding] });
    const life = await gateway.ledger.events(delivered?.arrivalId ?? 0);
    expect(life.find(({ what }) => what === "run.mapped")?.detail).toContain("; 1 × cells stand for no value");
    const page = await get(gateway, `files/${delivered?.arrivalId}`);
    expect(page.runs[0].run.findings).toEqual([finding]);
    const [emptied, ...others] = await gateway.ledger.recentRuns(9, ["emptied"]);
    expect(others).toEqual([]);
    const message = "the file holds no readings; 2 × cells stand for no value, as `missing` says";
    const reason = { code: "HG-RUN-018", message, hint: expect.stringContaining("empty: expected") };
    expect(emptied).toMatchObject({ path: "none.csv", findings: [{ ...finding, count: 2 }], reason });
    const empty = await gateway.ledger.recentRuns(9, ["empty"]);
    expect(empty.map(({ path }) => path).sort()).toEqual(["header.csv", "usual_none.csv"]);
    // It stays in the lists wherever its file is, until a person has seen to it.
    await until("the file is finished", async () => (await gateway.ledger.run(emptied?.id ?? ""))?.finishedAt !== null);
    const groups = async () => (await get(gateway, "attention")).groups as readonly { kind: string; count: number }[];
    expect(await groups()).toMatchObject([{ kind: "emptied", count: 1 }]);
    await cancelNow(emptied?.id ?? "", "a test", "a holiday", gateway.ledger);
    await until("nothing needs attention", async () => (await groups()).length === 0);
  });
});

describe("a file that was cut off", () => {
  const metadata = (variable: number) => ({
    ...{ headerRows: 0, date: { column: 1 }, target: { variableId: variable }, value: 2 },
  });
  const day = (nth: number) => `2026-03-0${nth}T00:00:00Z,${nth}.25\n`;

  it("within its last row is refused where a header is lacking too, and nothing of it is stored", async () => {
    const variable = await rig.variable("cut");
    rig.put("in/cut.csv", "2026-03-01T00:00:00Z,12.25,OK\n2026-03-02T00:00:00Z,12");
    const gateway = await rig.open({
      triggers: [trigger("delimited", { mapper: "delimited", metadata: metadata(variable) })],
    });
    await until("the gateway is idle", () => gateway.isIdle());
    const [refused] = await gateway.ledger.recentRuns(1, ["quarantined"]);
    expect(refused?.reason).toMatchObject({
      message: "the row has 2 cells where the first row has 3",
      place: { row: 2 },
    });
    expect(await rig.stored(variable)).toEqual({});
  });

  it("within its last value needs attention where the files before ended with a line end", async () => {
    const variable = await rig.variable("open");
    const gateway = await rig.open({
      triggers: [trigger("delimited", { mapper: "delimited", metadata: metadata(variable) })],
    });
    const delivered = async (path: string) =>
      (await gateway.ledger.recentRuns(9, ["confirmed", "accepted"])).find((run) => run.path === path);
    const put = async (path: string, text: string) => {
      rig.put(`in/${path}`, text);
      await until(`${path} is delivered`, async () => (await delivered(path)) !== undefined);
    };
    await put("first.csv", day(1).trimEnd());
    const open = { kind: "lineEnd", message: "the last line has no line end", count: 1 };
    expect((await delivered("first.csv"))?.findings).toMatchObject([open]);
    expect((await delivered("first.csv"))?.findings[0]).not.toHaveProperty("attention");
    for (const nth of [2, 3, 4]) await put(`${nth}.csv`, day(nth));
    expect(await gateway.ledger.acceptedFindings("delimited", { limit: 3 })).toEqual([[], [], []]);
    // The first file had none either, so it is a habit of this trigger.
    await put("5.csv", day(5).trimEnd());
    expect((await delivered("5.csv"))?.findings[0]).not.toHaveProperty("attention");
    expect(await gateway.ledger.acceptedFindings("none", { limit: 3 })).toEqual([]);
  });

  it("within its last value is shown, with its text, beside a habit of line ends", async () => {
    const variable = await rig.variable("habit");
    for (const nth of [1, 2, 3]) rig.put(`in/${nth}.csv`, day(nth));
    const gateway = await rig.open({
      triggers: [trigger("delimited", { mapper: "delimited", metadata: metadata(variable) })],
    });
    await until("the gateway is idle", () => gateway.isIdle());
    rig.put("in/cut.csv", "2026-03-04T00:00:00Z,12");
    const cut = async () =>
      (await gateway.ledger.recentRuns(9, ["confirmed", "accepted"])).find(({ path }) => path === "cut.csv");
    await until("the cut file is delivered", async () => (await cut()) !== undefined);
    const run = await cut();
    expect(run?.findings).toMatchObject([
      {
        ...{ kind: "lineEnd", attention: true, first: { text: "2026-03-04T00:00:00Z,12" } },
        message: "the last line has no line end, and those of the files before have one: was the file cut off?",
      },
    ]);
    const life = await gateway.ledger.events(run?.arrivalId ?? 0);
    expect(life.find(({ what }) => what === "run.mapped")?.detail).toContain("the last line has no line end");
  });
});

describe("headgate check", () => {
  it("suggests to require the line end that all files of a trigger have, until it is set", async () => {
    const variable = await rig.variable("ends");
    for (let nth = 10; nth < 20; nth += 1) rig.put(`in/${nth}.csv`, `2026-03-${nth}T00:00:00Z,1\n`);
    const metadata = { headerRows: 0, date: { column: 1 }, target: { variableId: variable }, value: 2 };
    const triggers = [trigger("ends", { mapper: "delimited", metadata })];
    const gateway = await rig.open({ triggers });
    await until("the gateway is idle", () => gateway.isIdle());
    const suggestions = async () => {
      const said: Finding[] = [];
      const { signal } = new AbortController();
      await checkTriggers(loadGatewayConfig(rig.config), gateway.ledger, (one) => said.push(one), signal);
      return said.filter(({ about }) => about === "line end");
    };
    expect(await suggestions()).toMatchObject([
      {
        what: "the last lines of its newest 10 files have their line end",
        hint: expect.stringContaining("`lineEnd: required`"),
      },
    ]);
    rig.configure({ triggers: [trigger("ends", { mapper: "delimited", metadata: { ...metadata, lineEnd: "any" } })] });
    expect(await suggestions()).toEqual([]);
  });
});

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
