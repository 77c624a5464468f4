/**
 * Gateways whose ledger is lost or replaced by an older copy at random instants, and two with ledgers of their own on
 * one drop, all killed now and then: nothing is stored twice, and nothing is missing. Everything random in a round
 * comes from its seed.
 */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { openTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { chanceOf, roundsOf, seedOf } from "./chance.ts";
import { databaseCopies, type Fate, fileCopies, type LedgerCopies, suffer } from "./ledger-copies.ts";
import { expectExactlyStored, layRandomScene } from "./random-scene.ts";
import { localDrop, Rig, type Settings, type Stage } from "./rig.ts";
import { atMost, PATIENTLY, until } from "./wait.ts";

vi.setConfig(PATIENTLY);

/** Milliseconds from when the ledger is open, and from a push. */
const LIFE_MAX_MS = 900;
const AFTER_PUSH_MAX_MS = 60;
const PUSHES_MAX = 15;
/** A gateway that has nothing to push ends after its limit of 60 s. */
const HANG_MS = 240_000;
const LIVES_MAX = 4;
const FINISHES = ["leave", "archive", "delete"] as const;

/** An answer that a restored ledger cannot explain is waited for that long. */
const push: Settings = {
  batch: { points: 30 },
  confirm: { pollEvery: "100ms", webhookWait: "500ms", within: "4s" },
  retry: { initial: "20ms", max: "200ms", quickWait: "500ms" },
};

const seed = seedOf("lost ledgers");
const rounds = Array.from({ length: roundsOf(4) }, (_, round) => seed + round);
const inTurn = atMost(2);

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start();
});
afterAll(() => rig.close());

describe.concurrent("what was delivered is recognised", () => {
  test.each(rounds)("by ledgers that are lost or restored: HEADGATE_SEED=%i", { timeout: 600_000 }, (own) =>
    inTurn(() => playRound(rig, own, "lost")),
  );
  test.each(rounds)("by two gateways on one drop: HEADGATE_SEED=%i", { timeout: 600_000 }, (own) =>
    inTurn(() => playRound(rig, own, "two")),
  );
});

describe("with ledger and hub on PostgreSQL, what was delivered is recognised", () => {
  let [served, kept]: TestDatabase[] = [];
  let onPostgres: Rig;
  beforeAll(async () => {
    [served, kept] = await Promise.all([openTestDatabase(), openTestDatabase()]);
    onPostgres = await Rig.start(undefined, { kind: "postgres", url: served.url, schema: "hub", pool: 4 });
  });
  afterAll(async () => {
    await onPostgres.close();
    await kept?.drop();
    await served?.drop();
  });
  const fates = ["lost", "restored"] as const;
  test.each(fates)(`by a ledger that is %s: HEADGATE_SEED=${seed}`, { timeout: 600_000 }, async (fate) => {
    if (served === undefined || kept === undefined) throw new Error("there is no database");
    const copies = databaseCopies(served, kept.url);
    await copies.lose();
    const ledger = { kind: "postgres", url: kept.url, lease: "900ms", node: "north" };
    await playRound(onPostgres, seed, "lost", { fate, copies, ledger });
  });
});

interface OnPostgres {
  /** Of the ledger after each life. */
  readonly fate: Fate;
  readonly copies: LedgerCopies;
  readonly ledger: Settings;
}

async function playRound(rig: Rig, own: number, what: "lost" | "two", special?: OnPostgres): Promise<void> {
  const chance = chanceOf(own);
  const action = FINISHES[Math.trunc(chance() * FINISHES.length)] ?? "leave";
  const delivered = action === "archive" ? { archive: "archive" } : action;
  const drop = { ...localDrop, finish: { delivered, guard: "0s" } };
  const ledger = special === undefined ? {} : { ledger: special.ledger };
  const stage = await rig.stage(`${special?.fate ?? what}-${own}`, { push, drops: [drop], ...ledger });
  const lives = [`finish: ${action}`];
  try {
    const scene = await layRandomScene(rig, stage, stage.drop, chance, ["plain", "tagged", "lost", "held"]);
    await (what === "lost" ? playLosses(stage, chance, lives, special) : playTwo(stage, own, drop, chance, lives));
    await expectExactlyStored(rig, scene);
    expect(stage.lane.conflicts, "one set of bytes, and another key only for a repeated answer").toEqual([]);
  } catch (thrown) {
    const command = `HEADGATE_SEED=${own} HEADGATE_ROUNDS=1 npx vitest run test/e2e/lost-ledger.test.ts`;
    process.stderr.write(`round ${what} ${own} failed\n${lives.join("\n")}\nreplay it with: ${command}\n`);
    throw thrown;
  }
}

/** Lives that are killed; between them the ledger is kept, lost, or replaced by what it was after an earlier life. */
async function playLosses(
  stage: Stage,
  chance: () => number,
  lives: string[],
  { copies, fate }: Partial<OnPostgres> = {},
): Promise<void> {
  const ledger = copies ?? fileCopies(join(stage.folder, "state"));
  const made: string[] = [];
  const count = 2 + Math.trunc(chance() * (LIVES_MAX - 1));
  for (let life = 1; life <= count; life += 1) {
    lives.push(await liveAndDie(stage, chance));
    const [copied, how, which] = [chance(), chance(), chance()];
    if (copied < 0.5 || fate === "restored") {
      made.push(`copy-${life}`);
      await ledger.copy(`copy-${life}`);
    }
    if (how > 0.8 && fate === undefined) continue;
    const isLost = fate === undefined ? how < 0.4 : fate === "lost";
    const copy = isLost ? undefined : made[Math.trunc(which * made.length)];
    await suffer(copy === undefined ? "lost" : "restored", ledger, copy ?? "");
    lives.push(copy === undefined ? "the ledger is lost" : `the ledger is that of ${copy}`);
  }
  await comeToRest(stage, lives);
}

/** Two gateways with ledgers of their own at one drop, of which one or the other is killed. */
async function playTwo(
  stage: Stage,
  own: number,
  drop: Settings,
  chance: () => number,
  lives: string[],
): Promise<void> {
  const other = await rig.stage(`other-${own}`, { push, drops: [{ ...drop, name: "elsewhere", path: stage.drop }] });
  const count = 1 + Math.trunc(chance() * 3);
  for (let life = 1; life <= count; life += 1) {
    const [one, two] = await Promise.all([liveAndDie(stage, chance), liveAndDie(other, chance)]);
    lives.push(one, two);
  }
  await Promise.all([comeToRest(stage, lives), comeToRest(other, lives)]);
}

/** What cannot be explained, or needs structure, is a matter of its own: what counts is what is stored. */
async function comeToRest(stage: Stage, lives: string[]): Promise<void> {
  const { code, signal, stderr } = await stage.untilIdle();
  lives.push(stderr);
  expect(signal, stderr).toBeNull();
  expect(code, stderr).toBeLessThan(2);
}

async function liveAndDie(stage: Stage, chance: () => number): Promise<string> {
  const [how, one, other] = [chance(), chance(), chance()];
  const atPush = how < 0.6 ? stage.lane.pushes.length + 1 + Math.trunc(one * PUSHES_MAX) : null;
  const gateway = stage.gateway(["--until-idle", "--timeout", "60s"]);
  if (atPush === null) await gateway.said("stderr", /Server listening/);
  else await until("a push", () => stage.lane.pushes.length >= atPush || !gateway.running, HANG_MS);
  const ms = other * (atPush === null ? LIFE_MAX_MS : AFTER_PUSH_MAX_MS);
  await new Promise((resolve) => setTimeout(resolve, ms));
  const { signal, code, stderr } = await gateway.end("SIGKILL");
  if (signal === null) expect(code, stderr).toBeLessThan(2);
  return `killed ${atPush === null ? "at an instant" : `after push ${atPush}`}: ${signal}\n${stderr}`;
}
