import { describe, expect, it } from "vitest";
import { Plan } from "#gateway/migration/plan/plan.ts";
import { DeliveredFindings } from "#gateway/migration/report/report.ts";
import type { Run, TargetFacts } from "#gateway/model.ts";

it("names the file with a target in another unit than the files before it, and queries the service", () => {
  const plan = new Plan();
  const take = (path: string, unit: string, month: number) => {
    const [fromMs, toMs] = [Date.UTC(2025, month, 1), Date.UTC(2025, month, 20)];
    const facts = { target: { variableId: 7 }, points: 20, fromMs, toMs, untagged: 20, unit };
    const file = { drop: "d", path, size: 1, mtime: "" };
    plan.add({ file, mapper: "m", points: 20, rejected: 0, fault: null, targets: [facts], sha256: path, found: [] });
  };
  take("1.csv", "kWh", 0);
  take("2.csv", "Wh", 1);
  take("3.csv", "kWh", 2);
  const units = plan.findings().filter(({ kind }) => kind === "unit");
  expect(units.map(({ words }) => words)).toEqual(["2.csv declares variableId=7 in Wh, files before it in kWh"]);
  expect(plan.samples().map(({ unit }) => unit)).toEqual(["kWh", "Wh"]);
});

describe("the findings of a migration's report", () => {
  const run = (path: string, sha256: string, mapped = 24) =>
    ({
      drop: "history",
      path,
      state: "accepted",
      sha256,
      points: { mapped },
      reason: null,
      findings: [] as const,
    }) as unknown as Run;
  const facts = (from: string, to: string): TargetFacts => ({
    ...{ target: { variableId: 7 }, points: 24, untagged: 24 },
    ...{ fromMs: Date.parse(from), toMs: Date.parse(to) },
  });

  it("are those of a plan: files in another time zone, and the same content twice", () => {
    const findings = new DeliveredFindings();
    findings.take(run("1.csv", "a"))([facts("2026-03-01T00:00:00Z", "2026-03-01T23:00:00Z")]);
    findings.take(run("2.csv", "b"))([facts("2026-03-01T23:00:00Z", "2026-03-02T22:00:00Z")]);
    findings.take(run("3.csv", "b"))([]);
    expect(findings.found().map(({ kind, words }) => `${kind}: ${words}`)).toEqual([
      expect.stringContaining("or one of the two is in another time zone (1 h)"),
      "duplicate: 3.csv has the same content as 2.csv",
    ]);
  });

  it("are of the latest attempt of each file, and none of files that follow each other", () => {
    const findings = new DeliveredFindings();
    for (const sha of ["a", "a"])
      findings.take(run("1.csv", sha))([facts("2026-03-01T00:00:00Z", "2026-03-01T23:00:00Z")]);
    findings.take(run("2.csv", "b"))([facts("2026-03-02T00:00:00Z", "2026-03-02T23:00:00Z")]);
    expect(findings.found()).toEqual([]);
  });
});
