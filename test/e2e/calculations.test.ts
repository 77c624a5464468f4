/**
 * Chains of calculated variables in a hub that is killed at random: back-fill, then a day is pushed. Each value is
 * compared with a calculation in another language. `HEADGATE_ROUNDS=50` plays the full size: 100 calculated variables
 * over a year of quarters of an hour.
 */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type HubCalls, temporaryDirectory } from "../hub/fixture.ts";
import { HubProcess } from "../hub/hub-process.ts";
import { ChainScene, expectCalculated, idle } from "./calculation-chains.ts";
import { liveAndDie } from "./calculation-lives.ts";
import { chanceOf, roundsOf, seedOf } from "./chance.ts";
import { PATIENTLY } from "./wait.ts";

vi.setConfig(PATIENTLY);

const ORDINARY_ROUNDS = 4;
const rounds = roundsOf(ORDINARY_ROUNDS);
const isFull = rounds >= 50;
const QUARTERS_OF_DAY = 96;
const size = isFull ? { chains: 20, days: 365 } : { chains: 4, days: 12 };
/** So that a change of the clocks is among the days. */
const startMs = Date.parse(isFull ? "2025-01-01T00:00:00+01:00" : "2026-03-20T00:00:00+01:00");

const hubProcess = new HubProcess();
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(async () => {
  await hubProcess.end("SIGKILL");
  await directory.remove();
});

/** Pushes until it is answered; under one operationId it is stored once. */
async function push(hub: HubCalls, operationId: string, body: object[]): Promise<void> {
  const more = { body, query: { operationId }, headers: { "idempotency-key": operationId } };
  await hub.ok("POST", "/push/api/data", more);
}

test(`chains of calculated variables are right after ${rounds} kills`, {
  timeout: isFull ? 7_200_000 : 600_000,
}, async () => {
  const seed = seedOf("calculations");
  const chance = chanceOf(seed);
  const lives: string[] = [];
  const live = async (meanwhile: (hub: HubCalls) => Promise<void>) => {
    const life = { directory: directory.path, chance, lifeMaxMs: isFull ? 8_000 : 1_500, meanwhile };
    lives.push(await liveAndDie(hubProcess, life));
  };
  const scene = new ChainScene({ chains: size.chains, startMs });
  const quarters = size.days * QUARTERS_OF_DAY;
  try {
    const first = await hubProcess.run(directory.path);
    await scene.createInputs(first);
    for (const chain of scene.inputIds.keys()) {
      await push(first, `history ${chain}`, scene.elements(0, quarters, [chain]));
      await first.settled(`history ${chain}`);
    }
    await scene.createCalculated(first);
    await hubProcess.end("SIGKILL");
    for (let round = 1; round < rounds / 2; round += 1) await live(async () => {});
    await idleAgain(scene);

    const slices = Math.ceil(rounds / 2);
    const unanswered = new Map<string, object[]>();
    for (let slice = 0; slice < slices; slice += 1) {
      const [from, to] = [slice, slice + 1].map((one) => quarters + Math.round((one * QUARTERS_OF_DAY) / slices));
      unanswered.set(`day ${slice}`, scene.elements(from ?? 0, to ?? 0));
      await live(async (hub) => {
        for (const [operationId, elements] of unanswered) {
          await push(hub, operationId, elements);
          unanswered.delete(operationId);
        }
      });
    }
    // Values of other days change, too.
    unanswered.set("change", scene.elements(100, 300, scene.changeable(), 3));
    const last = await hubProcess.run(directory.path);
    for (const [operationId, elements] of unanswered) await push(last, operationId, elements);
    await idle(last);
    await expectCalculated(last, scene, directory.path);
  } catch (thrown) {
    process.stderr.write(`${lives.join("\n")}\nHEADGATE_SEED=${seed} HEADGATE_ROUNDS=${rounds}\n`);
    throw thrown;
  }
});

async function idleAgain(scene: ChainScene): Promise<void> {
  const hub = await hubProcess.run(directory.path);
  await idle(hub);
  await expectCalculated(hub, scene, directory.path);
  await hubProcess.end("SIGTERM");
  expect(hubProcess.child?.exitCode).toBe(0);
}
