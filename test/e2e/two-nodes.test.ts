/**
 * Two real gateways on one ledger in PostgreSQL and one shared drop, beside a service that misbehaves: one
 * after the other they are killed, or put to sleep for longer than their lease and woken up. Everything
 * random in a round comes from its seed.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { openTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { Door } from "./breakable-link.ts";
import { chanceOf, roundsOf, seedOf } from "./chance.ts";
import { ALWAYS, expectNothingArchivedEarly, lyingPaths } from "./kill-scenario.ts";
import { misbehave } from "./misbehaviour.ts";
import { Node } from "./node.ts";
import { headgate } from "./processes.ts";
import { expectExactlyStored, layRandomScene, type RandomScene } from "./random-scene.ts";
import { localDrop, Rig, type Settings, type Stage } from "./rig.ts";
import { PATIENTLY, until } from "./wait.ts";

vi.setConfig(PATIENTLY);

const LEASE = "900ms";
/** Blows to the one or the other in a round. */
const BLOWS_MAX = 3;
const INSTANT_MAX_MS = 400;
const PUSHES_MAX = 6;
const NAMES = ["north", "south"] as const;

const push: Settings = {
  batch: { points: 30 },
  confirm: { pollEvery: "100ms", webhookWait: "500ms", within: "60s" },
  retry: { initial: "20ms", max: "200ms", retryAfterMax: "300ms", refused: "200ms", quickWait: "500ms" },
  timeouts: { connect: "1s", headers: "1s", body: "1s", total: "3s" },
};

const seed = seedOf("two nodes");
const rounds = Array.from({ length: roundsOf(3) }, (_, round) => seed + round);

let rig: Rig;
let database: TestDatabase;
beforeAll(async () => {
  [rig, database] = await Promise.all([Rig.start(), openTestDatabase()]);
});
afterAll(async () => {
  await rig.close();
  await database.drop();
});

describe("two nodes, killed and put to sleep in turn, lose nothing and deliver nothing twice", () => {
  test.each(rounds)("HEADGATE_SEED=%i", { timeout: 300_000 }, async (own) => {
    const chance = chanceOf(own);
    const stage = await rig.stage(`nodes-${own}`);
    const door = await Door.before(rig.proxy.url);
    const nodes = NAMES.map((name) => new Node(stage, name));
    const blows: string[] = [];
    try {
      stage.entrance = door.url;
      const ledger = { kind: "postgres", url: database.url, schema: `round_${own}`, lease: LEASE };
      await stage.configure({ ledger, drops: [{ ...localDrop, name: "local" }], push });
      const scene = await layRandomScene(rig, stage, stage.drop, chance);
      misbehave(stage.lane, door, chance, { large: scene.large, losesWebhooks: !scene.hasUnknown });
      for (const node of nodes) await node.start();
      const isJoined = async (node: Node) => {
        const sql = `SELECT 1 FROM round_${own}.sessions WHERE node = $1 AND ended_at IS NULL`;
        return (await database.query(sql, [node.name])).length > 0;
      };
      await strike(stage, nodes, isJoined, chance, blows);
      await expectExactly(stage, scene);
      // On a busy machine a node may just have missed its short lease, and begins again.
      await until("both nodes to be up", async () => {
        const { stdout } = await headgate(["runs", "-c", stage.config]);
        return nodes.every(({ name }) => new RegExp(`^node +${name}: up since`, "m").test(stdout));
      });
      for (const node of nodes) expect((await node.end("SIGTERM")).code).toBe(0);
    } catch (thrown) {
      const command = `HEADGATE_SEED=${own} HEADGATE_ROUNDS=1 npx vitest run test/e2e/two-nodes.test.ts`;
      const said = nodes.map(({ name, said }) => `── ${name}\n${said.join("\n── again\n")}`);
      process.stderr.write(`${blows.join("; ")}\n${said.join("\n")}\nreplay it with: ${command}\n`);
      throw thrown;
    } finally {
      for (const node of nodes) await node.end("SIGKILL");
      await door.close();
    }
  });
});

async function strike(
  stage: Stage,
  nodes: readonly Node[],
  isJoined: (node: Node) => Promise<boolean>,
  chance: () => number,
  blows: string[],
): Promise<void> {
  for (let left = 1 + Math.trunc(chance() * BLOWS_MAX); left > 0; left -= 1) {
    const [which, how, when, later] = [chance(), chance(), chance(), chance()];
    const victim = nodes[Math.trunc(which * nodes.length)];
    const other = nodes.find((node) => node !== victim);
    if (victim === undefined || other === undefined) return;
    await moment(stage, victim, when);
    const sleeps = how < 0.5;
    blows.push(`${victim.name} ${sleeps ? "sleeps" : "is killed"} after push ${stage.lane.pushes.length}`);
    if (sleeps) victim.process.send("SIGSTOP");
    else await victim.end("SIGKILL");
    // The words of a node tell less: on a busy machine it may have missed its lease just before the blow.
    if (sleeps || later < 0.5)
      await until(`${other.name} misses ${victim.name}`, async () => !(await isJoined(victim)));
    if (!sleeps) await victim.start();
    else {
      victim.process.send("SIGCONT");
      // Before it begins again, there is nothing that the other could miss again.
      await until(`${victim.name} knows that it slept`, () => isJoined(victim));
    }
  }
}

/** Near a push, or at any instant. */
async function moment(stage: Stage, victim: Node, when: number): Promise<void> {
  if (when < 0.3) await new Promise((resolve) => setTimeout(resolve, when * INSTANT_MAX_MS));
  else {
    const wanted = stage.lane.pushes.length + Math.trunc(when * PUSHES_MAX);
    // Perhaps nothing is left to be pushed.
    await until("a push", () => stage.lane.pushes.length >= wanted || !victim.process.running, 3_000).catch(
      () => undefined,
    );
  }
}

async function expectExactly(stage: Stage, scene: RandomScene): Promise<void> {
  await until("all to be at rest", () => stage.inspect((ledger) => isAtRest(ledger, scene)), 60_000);
  expect(stage.lane.conflicts, "every operation was only ever sent with one set of bytes").toEqual([]);
  await expectExactlyStored(rig, scene);
  await expectNothingArchivedEarly(stage);
  await stage.inspect(async (ledger) => {
    const lying = await lyingPaths(ledger, "local");
    expect(new Set(lying).size, `each path once: ${lying}`).toBe(lying.length);
    expect(await ledger.check()).toEqual([]);
    for (const run of await ledger.recentRuns(100, ["confirmed", "accepted"]))
      expect(run, run.path).toMatchObject({ state: "confirmed", points: { stored: run.points.mapped } });
  });
  const count = Object.values(scene.files).reduce((sum, files) => sum + files, 0);
  expect(await stage.files()).toHaveLength(count);
}

async function isAtRest(ledger: Ledger, scene: RandomScene): Promise<boolean> {
  const { files } = await ledger.tally(ALWAYS);
  const open = await ledger.runsIn(["claimed", "fetched", "mapping", "mapped", "delivering", "accepted"], {
    unsettled: true,
  });
  const unfinished = await ledger.runsIn(["confirmed", "discarded", "quarantined"], { unfinished: true });
  const sum = (counts: Readonly<Record<string, number>>) => Object.values(counts).reduce((a, b) => a + b, 0);
  if (open.length > 0 || unfinished.length > 0 || sum(files) < sum(scene.files)) return false;
  // All may be listed before the first has a run.
  if ((files["settling"] ?? 0) > 0) return false;
  // The reads see no one moment: what was accepted in the first may have been discarded before the second.
  expect((await ledger.tally(ALWAYS)).files).toEqual(scene.files);
  return true;
}
