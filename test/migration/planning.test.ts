import { expect, it } from "vitest";
import { Plan } from "../../src/migration/planning.ts";

it("names the file that declares a target in another unit than the files before it, and asks the service about both", () => {
  const plan = new Plan();
  const take = (path: string, unit: string, month: number) => {
    const [fromMs, toMs] = [Date.UTC(2025, month, 1), Date.UTC(2025, month, 20)];
    const facts = { target: { variableId: 7 }, points: 20, fromMs, toMs, untagged: 20, unit };
    const file = { drop: "d", path, size: 1, mtime: "" };
    plan.add({ file, mapper: "m", points: 20, rejected: 0, fault: null, targets: [facts], sha256: path });
  };
  take("1.csv", "kWh", 0);
  take("2.csv", "Wh", 1);
  take("3.csv", "kWh", 2);
  const units = plan.findings().filter(({ kind }) => kind === "unit");
  expect(units.map(({ words }) => words)).toEqual([
    "2.csv declares variableId=7 in Wh, files before it in kWh",
  ]);
  expect(plan.samples().map(({ unit }) => unit)).toEqual(["kWh", "Wh"]);
});
