/**
 * The real gateway killed at random instants and points, while files come from drops of every kind and the
 * service misbehaves on a schedule. Everything random in a round comes from its seed.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { Door } from "./breakable-link.ts";
import { chanceOf, roundsOf, seedOf } from "./chance.ts";
import { POINTS } from "./kill-list.ts";
import { ALWAYS, expectNothingArchivedEarly, lyingPaths } from "./kill-scenario.ts";
import { misbehave } from "./misbehaviour.ts";
import { expectExactlyStored, layRandomScene, type RandomScene } from "./random-scene.ts";
import { Rig, type Settings, type Stage } from "./rig.ts";
import { type Drops, KINDS, type Kind, layOneDrop } from "./three-drops.ts";
import { atMost, PATIENTLY, until } from "./wait.ts";

vi.setConfig(PATIENTLY);

/** Of the lives that are killed, so many have another after them that is killed. */
const ANOTHER = 0.3;
/** Points that hardly any of the files of a round come to. */
const RARE =
  /arrival\.(duplicate|unmatched)|arrivals\.pruned|run\.(empty|cancelled|discarded|held|quarantined)|batch\.rejected/;
const points = POINTS.filter((point) => !RARE.test(point));
/** Milliseconds from when the ledger is open, and from a push. */
const LIFE_MAX_MS = 900;
const AFTER_PUSH_MAX_MS = 40;
const PUSHES_MAX = 15;

/** Short waits, so that a round meets many mishaps in little time. */
const push: Settings = {
  batch: { points: 30 },
  confirm: { pollEvery: "100ms", webhookWait: "500ms", within: "60s" },
  retry: { initial: "20ms", max: "200ms", retryAfterMax: "300ms", refused: "200ms", quickWait: "500ms" },
  timeouts: { connect: "1s", headers: "1s", body: "1s", total: "3s" },
};

const seed = seedOf("random kills");
const rounds = Array.from({ length: roundsOf(4) }, (_, round) => seed + round);
const inTurn = atMost(2);

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start();
});
afterAll(() => rig.close());

describe.concurrent("a gateway killed at random beside a misbehaving service loses and repeats nothing", () => {
  test.each(rounds)("HEADGATE_SEED=%i", { timeout: 600_000 }, (own) => inTurn(() => playRound(own)));
});

async function playRound(own: number): Promise<void> {
  const chance = chanceOf(own);
  const kind = KINDS[Math.trunc(chance() * KINDS.length)] ?? "local";
  const drops = await layOneDrop(rig, `round-${own}`, kind, { push });
  const door = await Door.before(rig.proxy.url);
  const lives: string[] = [];
  try {
    drops.stage.entrance = door.url;
    await drops.stage.configure();
    await playLives(drops, kind, door, chance, lives);
  } catch (thrown) {
    const command = `HEADGATE_SEED=${own} HEADGATE_ROUNDS=1 npx vitest run test/e2e/random-kills.test.ts`;
    process.stderr.write(`round ${own} failed (${kind})\n${lives.join("\n")}\nreplay it with: ${command}\n`);
    throw thrown;
  } finally {
    await drops.close();
    await door.close();
  }
}

async function playLives(
  { stage, folders }: Drops,
  kind: Kind,
  door: Door,
  chance: () => number,
  lives: string[],
): Promise<void> {
  const folder = folders[kind];
  const scene = await layRandomScene(rig, stage, folder, chance);
  // What is not there shows by reading back only after `within`.
  const losesWebhooks = !scene.hasUnknown;
  const { played } = misbehave(stage.lane, door, chance, { large: scene.large, losesWebhooks });
  try {
    do {
      lives.push(await liveAndDie(stage, chance));
      await expectNothingArchivedEarly(stage, folder);
    } while (chance() < ANOTHER);
    const { code, stderr } = await stage.untilIdle();
    lives.push(stderr);
    expect(scene.codes, stderr).toContain(code);
    await expectExactly(stage, scene, folder, kind);
  } finally {
    lives.push(`the service's part: ${played.join("; ")}`);
  }
}

/** Killed at a named point that it passes, near a push, or at any instant. What it said. */
async function liveAndDie(stage: Stage, chance: () => number): Promise<string> {
  const [how, one, other] = [chance(), chance(), chance()];
  if (how < 0.5) return dieAt(stage, `${points[Math.trunc(one * points.length)]}#${1 + Math.trunc(other * 4)}`);
  const atPush = how < 0.8 ? stage.lane.pushes.length + 1 + Math.trunc(one * PUSHES_MAX) : null;
  const gateway = stage.gateway(["--until-idle", "--timeout", "60s"]);
  if (atPush === null) await gateway.said("stderr", /Server listening/);
  else await until("a push", () => stage.lane.pushes.length >= atPush || !gateway.running);
  const ms = other * (atPush === null ? LIFE_MAX_MS : AFTER_PUSH_MAX_MS);
  await new Promise((resolve) => setTimeout(resolve, ms));
  const { signal, stderr } = await gateway.end("SIGKILL");
  return `killed ${atPush === null ? "at an instant" : `after push ${atPush}`}: ${signal}\n${stderr}`;
}

/** Not every life passes every point so often: then it comes to its end. */
async function dieAt(stage: Stage, fault: string): Promise<string> {
  const { signal, code, stderr } = await stage.untilIdle(fault);
  if (signal === null) expect(code, stderr).toBeLessThan(2);
  return `killed at ${fault}: ${signal}\n${stderr}`;
}

async function expectExactly(stage: Stage, scene: RandomScene, folder: string, drop: string): Promise<void> {
  expect(stage.lane.conflicts, "every operation was only ever sent with one set of bytes").toEqual([]);
  await expectExactlyStored(rig, scene);
  await expectNothingArchivedEarly(stage, folder);
  await stage.inspect(async (ledger) => {
    expect((await ledger.tally(ALWAYS)).files).toEqual(scene.files);
    const lying = await lyingPaths(ledger, drop);
    expect(new Set(lying).size, `each path once: ${lying}`).toBe(lying.length);
    for (const run of await ledger.recentRuns(100, ["confirmed", "accepted"]))
      expect(run, run.path).toMatchObject({ state: "confirmed", points: { stored: run.points.mapped } });
  });
  expect(await stage.files(folder)).toHaveLength(Object.values(scene.files).reduce((sum, count) => sum + count, 0));
}
