import fc from "fast-check";
import { expect, test } from "vitest";
import { createRunIds } from "#core/run-id.ts";
import { planFinish } from "#gateway/drops/finish.ts";
import { archivedSinceMs, keptArchives } from "#gateway/drops/paths.ts";

const leave = { action: "leave" } as const;

test("the name of an archived file contains the time at which its run began", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), fc.integer({ min: 0, max: 2 ** 47 }), (name, atMs) => {
      fc.pre(!/[/\0\r\n]/.test(name) && name !== "." && name !== "..");
      const plan = planFinish({ action: "archive", to: "archive" }, { path: `in/${name}` }, createRunIds()(atMs));
      expect(plan.action === "archive" && archivedSinceMs(plan.to)).toBe(atMs);
    }),
  );
});

test.for(["archive/a.csv", "archive/report.2026-01-01.csv", "archive/a.backup-of-last-years-files.csv"])(
  "the name %s was not given by Headgate, so such a file is never deleted",
  (path) => {
    expect(archivedSinceMs(path)).toBeNull();
  },
);

test("the longer time counts when two rules have one folder", () => {
  const to = (folder: string, keep?: number) => ({ action: "archive" as const, to: folder, keep });
  const finish = {
    delivered: to("a", 10),
    quarantined: to("a", 20),
    unmatched: to("b", 5),
    duplicate: to("b"),
  };
  expect([...keptArchives(finish)]).toEqual([["a", 20]]);
  expect([...keptArchives({ delivered: leave, quarantined: leave, unmatched: leave, duplicate: leave })]).toEqual([]);
});
