/**
 * Every bundled mapper keeps to the contract of mappers, shown with each of its cases that gives readings and
 * refuses nothing.
 */
import { describe, expect, it } from "vitest";
import { listCases } from "#mapping/authoring/case-files.ts";
import { caseSample } from "#mapping/authoring/cases.ts";
import { loadMapper, mapPath, mapperContract } from "#mapping/authoring/kit/index.ts";
import { digestMapper, locateMapper, mapperNames } from "#mapping/mapper-files.ts";
import { BUNDLED_FOLDER } from "#mapping/workers/bundled.ts";

for (const name of await mapperNames([BUNDLED_FOLDER])) {
  const modulePath = (await locateMapper([BUNDLED_FOLDER], name)) ?? "";
  const mapper = await loadMapper(modulePath, await digestMapper(modulePath));
  const samples = await Promise.all((await listCases(modulePath)).map((one) => caseSample(modulePath, one)));
  const good = [];
  for (const sample of samples.filter((one) => one.expectsReadings && !one.hasLookups && one.rows === "strict")) {
    const { points, rejectedCount } = await mapPath(mapper, sample.path, sample);
    if (points > 0 && rejectedCount === 0) good.push(sample);
  }
  const [sample] = good;
  describe(`the mapper ${name}`, () => {
    it("has an example case", () => expect(sample).toBeDefined());
    if (sample === undefined) return;
    it.each(mapperContract(mapper, sample))("$name", (check) => check.run());
  });
}
