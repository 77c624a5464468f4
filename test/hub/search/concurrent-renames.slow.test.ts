/**
 * Renames of sites, sources and variables at one time, on PostgreSQL by two hubs. Triggers write the words of what is
 * below as well; the lane of the account keeps two changes from waiting for each other.
 */
import { expect, test } from "vitest";
import { silentLog as log } from "#core/log.ts";
import { startHub } from "#hub/hub.ts";
import { hubOptions } from "#hub/options.ts";
import type { Found } from "#wire/search.ts";
import { LITTLE_HASHING as hashCost } from "../../support/hash-cost.ts";
import { callsOf, rawOptions, temporaryDirectory, usePostgres } from "../fixture.ts";

const ROUNDS = 15;

test("leave the words of the last names, and none of them fails", async () => {
  await usePostgres();
  const directory = await temporaryDirectory();
  const options = hubOptions.parse(rawOptions(directory.path));
  const running = [await startHub(options, { log, hashCost }), await startHub(options, { log, hashCost })];
  try {
    const [first, second] = running.map((one) => callsOf(() => one.url));
    if (first === undefined || second === undefined) throw new Error("no hubs");
    const siteId = await first.post("/sites", { name: "Site", typeId: 3, timeZoneId: "UTC" });
    const sourceIds: number[] = [];
    const variableIds: number[] = [];
    for (let at = 0; at < 4; at += 1) {
      const { id: sourceId } = await first.post("/sources", { name: `Source ${at}`, siteId, sourceTypeId: 1 });
      sourceIds.push(sourceId);
      for (let nth = 0; nth < 4; nth += 1)
        variableIds.push(await first.post("/variables", { name: "Energy", sourceId, variableTypeId: 0, unitId: 8 }));
    }
    const rename = (hub: typeof first, path: string, name: string) => hub.ok("PATCH", path, { body: { name } });
    for (let round = 0; round < ROUNDS; round += 1)
      await Promise.all([
        rename(first, `/sites/${siteId}`, `site${round}`),
        ...sourceIds.map((id) => rename(second, `/sources/${id}`, `source${round}`)),
        ...sourceIds.map((id) => rename(first, `/sources/${id}`, `source${round}`)),
        ...variableIds.map((id) => rename(second, `/variables/${id}`, `variable${round}`)),
        second.post("/variables", { name: "New", sourceId: sourceIds[0], variableTypeId: 0, unitId: 8 }),
      ]);
    const last = ROUNDS - 1;
    const found = async (words: string) => {
      const all: Found[] = await second.get("/search", { SearchText: words, "Paging.ItemsPerPage": 200 });
      return all.filter(({ entity }) => entity === "Variable");
    };
    expect(await found(`site${last} source${last}`)).toHaveLength(variableIds.length + ROUNDS);
    expect(await found(`site${last} source${last} variable${last}`)).toHaveLength(variableIds.length);
    expect(await found(`site${last - 1}`)).toEqual([]);
  } finally {
    for (const one of running) await one.close();
    await directory.remove();
  }
});
