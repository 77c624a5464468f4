/** Every golden case of every bundled mapper. */
import { describe, expect, it } from "vitest";
import { listCases } from "#mapping/authoring/case-files.ts";
import { runCase } from "#mapping/authoring/cases.ts";
import { locateMapper, mapperNames } from "#mapping/mapper-files.ts";
import { BUNDLED_FOLDER } from "#mapping/workers/bundled.ts";

for (const name of await mapperNames([BUNDLED_FOLDER])) {
  const modulePath = (await locateMapper([BUNDLED_FOLDER], name)) ?? "";
  const cases = await listCases(modulePath);
  describe(`the mapper ${name}`, () => {
    it("has at least six cases", () => expect(cases.length).toBeGreaterThanOrEqual(6));
    it.each(cases)("maps the case %s as expected", async (one) => {
      const outcome = await runCase(modulePath, one);
      expect(outcome.expected, `expected file of ${one}`).toBeDefined();
      expect(outcome.actual).toEqual(outcome.expected);
    });
  });
}
