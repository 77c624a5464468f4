/** Two hubs over one schema share the calculations; each is killed in its turn, and the other takes over. */
import { afterEach, beforeAll, beforeEach, test, vi } from "vitest";
import { type HubCalls, temporaryDirectory, usePostgres } from "../hub/fixture.ts";
import { HubProcess } from "../hub/hub-process.ts";
import { ChainScene, expectCalculated, idle } from "./calculation-chains.ts";
import { liveAndDie } from "./calculation-lives.ts";
import { chanceOf, roundsOf, seedOf } from "./chance.ts";
import { PATIENTLY } from "./wait.ts";

vi.setConfig(PATIENTLY);

const rounds = roundsOf(2);
const QUARTERS = 5 * 96;
const startMs = Date.parse("2026-03-27T00:00:00+01:00");

const staying = new HubProcess();
const dying = new HubProcess();
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeAll(() => usePostgres());
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(async () => {
  await staying.end("SIGKILL");
  await dying.end("SIGKILL");
  await directory.remove();
});

async function push(hub: HubCalls, operationId: string, body: object[]): Promise<void> {
  await hub.ok("POST", "/push/api/data", { body, query: { operationId }, headers: { "idempotency-key": operationId } });
}

test("chains of calculated variables are right beside a hub that is killed", {
  timeout: Math.max(600_000, rounds * 120_000),
}, async () => {
  const chance = chanceOf(seedOf("calculations of two hubs"));
  const scene = new ChainScene({ chains: 4, startMs });
  const hub = await staying.run(directory.path);
  await scene.createInputs(hub);
  await push(hub, "history", scene.elements(0, QUARTERS));
  await hub.settled("history");
  await scene.createCalculated(hub);
  for (let round = 0; round < rounds; round += 1) {
    const elements = scene.elements(QUARTERS + round * 24, QUARTERS + (round + 1) * 24);
    const meanwhile = async (other: HubCalls) => push(other, `round ${round}`, elements);
    await liveAndDie(dying, { directory: directory.path, chance, lifeMaxMs: 1_500, meanwhile });
    await push(hub, `round ${round}`, elements);
  }
  await idle(hub);
  await expectCalculated(hub, scene, directory.path);
});
