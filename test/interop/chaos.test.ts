/**
 * The real gateway at real file servers over a line that cuts, stalls and refuses, killed at random, while
 * files come, are corrected, replaced, and moved away for a moment. Nothing is lost, nothing is stored twice,
 * the newest file that brought a date stands last, and every file ends visibly. Everything random in a round
 * comes from its seed.
 */
import { chown, mkdir, rename, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { chanceOf, roundsOf, seedOf } from "../e2e/chance.ts";
import { ALWAYS, expectNothingArchivedEarly } from "../e2e/kill-scenario.ts";
import { readingsOf } from "../e2e/readings.ts";
import { Rig, type Settings, type Stage, type StoredPoint } from "../e2e/rig.ts";
import { PATIENTLY, until } from "../e2e/wait.ts";
import { CuttingProxy } from "./cutting-proxy.ts";
import { describeWith, type PROGRAMS } from "./installed.ts";
import { startOpenSsh } from "./openssh.ts";
import { startProftpd } from "./proftpd.ts";
import type { RealServer } from "./real-server.ts";
import { startVsftpd } from "./vsftpd.ts";

vi.setConfig(PATIENTLY);

const SERVERS: readonly (readonly [keyof typeof PROGRAMS, () => Promise<RealServer>])[] = [
  ["sshd", () => startOpenSsh({ jail: false })],
  ["vsftpd", () => startVsftpd(null)],
  ["proftpd", () => startProftpd({ speaks: "ftp" })],
];

/** Short waits, so that a round meets many mishaps in little time. */
const push: Settings = {
  batch: { points: 30 },
  confirm: { pollEvery: "100ms", webhookWait: "500ms", within: "60s" },
  retry: { initial: "20ms", max: "200ms" },
};
const drop: Settings = {
  name: "field",
  every: "200ms",
  settle: { observations: 1 },
  timeouts: { connect: "2s", data: "1s", idle: "5s" },
};

const ROUNDS_EACH = 2;
const LIVES_MAX = 3;
const LIFE_MAX_MS = 3_500;
const STEP_MAX_MS = 150;
/** Chance after each file that all connections break. */
const CUT_ALL = 0.15;
const FILES_OF_EACH = 4;

const seed = seedOf("chaos at file servers");

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start();
});
afterAll(() => rig.close());

for (const [program, start] of SERVERS)
  describeWith(
    program,
    `a gateway at ${program} over a bad line loses nothing, doubles nothing and keeps the order`,
    () => {
      let server: RealServer;
      beforeAll(async () => {
        server = await start();
      });
      afterAll(() => server.close());
      const seeds = Array.from({ length: roundsOf(ROUNDS_EACH) }, (_, round) => seed + round);
      test.each(seeds)("HEADGATE_SEED=%i", { timeout: 300_000 }, async (own) => {
        await playRound(own, program, server);
      });
    },
  );

interface Round {
  readonly stage: Stage;
  readonly server: RealServer;
  readonly proxy: CuttingProxy;
  readonly chance: () => number;
  /** The folder of this machine that the drop shows. */
  readonly folder: string;
  /** Files are older the earlier they are put. */
  clockMs: number;
}

async function playRound(own: number, program: string, server: RealServer): Promise<void> {
  const chance = chanceOf(own);
  const stage = await rig.stage(`chaos-${program}-${own}`);
  const folder = join(server.shows, `round-${own}`);
  await mkdir(folder);
  await chown(folder, server.owner.uid, server.owner.gid);
  const { port: targetPort, kind } = server.settings as { port: number; kind: string };
  const proxy = await CuttingProxy.start({ targetPort, isFtp: kind === "ftp", chance });
  const path = `${server.seenAs}/round-${own}`.replace("//", "/");
  const drops = [{ ...drop, ...server.settings, port: proxy.port, path }];
  await stage.configure({ drops, push });
  const lives: string[] = [];
  try {
    await play({ stage, server, proxy, chance, folder, clockMs: Date.UTC(2026, 3, 1) }, lives);
  } catch (thrown) {
    const command = `HEADGATE_SEED=${own} HEADGATE_ROUNDS=1 npx vitest run test/interop/chaos.test.ts -t ${program}`;
    process.stderr.write(
      `round ${own} at ${program} failed\n${lives.join("\n")}\nthe line: ` +
        `${proxy.played.join("; ")}\nreplay it with: ${command}\n`,
    );
    throw thrown;
  } finally {
    await proxy.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function play(round: Round, lives: string[]): Promise<void> {
  const { stage, proxy, chance } = round;
  const scene = await Scene.lay(round);
  const count = 1 + Math.trunc(chance() * LIVES_MAX);
  for (let life = 0; life < count; life += 1) {
    const gateway = stage.gateway([]);
    const deadline = performance.now() + chance() * LIFE_MAX_MS;
    // Until it has had its time after it was ready: a busy machine takes long to start one.
    await until("it is ready or gone", () => /gateway started/.test(gateway.stderr) || !gateway.running);
    do {
      await scene.step();
      await new Promise((resolve) => setTimeout(resolve, chance() * STEP_MAX_MS));
      if (chance() < CUT_ALL) proxy.cutAll();
    } while (performance.now() < deadline);
    const { signal, stderr } = await gateway.end("SIGKILL");
    lives.push(`killed: ${signal}\n${stderr}`);
    await expectNothingArchivedEarly(stage, round.folder);
  }
  await scene.rest();
  proxy.isBad = false;
  proxy.cutAll();
  const { code, stderr } = await stage.untilIdle();
  lives.push(stderr);
  expect(code, stderr).toBe(0);
  await scene.expectAll();
}

/** The files of a round, put one after another while gateways live and die. */
class Scene {
  readonly #round: Round;
  readonly #steps: (() => Promise<void>)[] = [];
  /** What must be stored of variables whose later files correct earlier ones, by date. */
  readonly #newest = new Map<number, Map<string, number>>();
  /**
   * All versions that must be there, and those that may be there once: of files that were replaced before
   * they were seen, perhaps.
   */
  readonly #versions = new Map<number, { must: StoredPoint[]; may: StoredPoint[] }>();
  #put = 0;
  #replaced = 0;

  private constructor(round: Round) {
    this.#round = round;
  }

  static async lay(round: Round): Promise<Scene> {
    const scene = new Scene(round);
    const name = round.stage.name;
    const corrected = await rig.variable(`${name}-corrected`, false);
    const history = await rig.variable(`${name}-history`, true);
    const replaced = await rig.variable(`${name}-replaced`, true);
    const moved = await rig.variable(`${name}-moved`, true);
    for (let nth = 0; nth < FILES_OF_EACH; nth += 1) {
      scene.#steps.push(() => scene.#putCorrection(corrected, nth, false));
      scene.#steps.push(() => scene.#putCorrection(history, nth, true));
      scene.#steps.push(() => scene.#putReplaced(replaced, nth));
      scene.#steps.push(() => scene.#putMoved(moved, nth));
    }
    return scene;
  }

  /** The next file, or nothing when all were put. */
  async step(): Promise<void> {
    await this.#steps.shift()?.();
  }

  async rest(): Promise<void> {
    while (this.#steps.length > 0) await this.step();
  }

  /** Each goes over a part of the dates of the one before. */
  async #putCorrection(variableId: number, nth: number, isVersioned: boolean): Promise<void> {
    const count = 40 + Math.trunc(this.#round.chance() * 40);
    const { csv, points } = readingsOf(variableId, count, 1_000 * (nth + 1), nth * 20);
    const newest = this.#newest.getOrInsertComputed(variableId, () => new Map());
    for (const { date, value } of points) newest.set(date, value);
    if (isVersioned) this.#versionsOf(variableId).must.push(...points);
    await this.#write(`standard_${isVersioned ? "h" : "c"}${nth}.csv`, csv);
  }

  /** Another content comes in the place of the first, which may have been seen or not. */
  async #putReplaced(variableId: number, nth: number): Promise<void> {
    const first = readingsOf(variableId, 30, 10_000 * (nth + 1), nth * 100);
    const second = readingsOf(variableId, 35, 10_000 * (nth + 1) + 5_000, nth * 100);
    const versions = this.#versionsOf(variableId);
    versions.may.push(...first.points);
    versions.must.push(...second.points);
    await this.#write(`standard_r${nth}.csv`, first.csv);
    await new Promise((resolve) => setTimeout(resolve, this.#round.chance() * 4 * STEP_MAX_MS));
    await this.#write(`standard_r${nth}.csv`, second.csv);
    this.#replaced += 1;
  }

  /** Away for a moment, and back as it was; unless the gateway has archived it before. */
  async #putMoved(variableId: number, nth: number): Promise<void> {
    const { csv, points } = readingsOf(variableId, 60, 10_000 * (nth + 1), nth * 100);
    this.#versionsOf(variableId).must.push(...points);
    await this.#write(`standard_m${nth}.csv`, csv);
    const { folder, server, chance } = this.#round;
    const path = join(folder, `standard_m${nth}.csv`);
    const away = join(server.shows, `away-${this.#round.stage.name}-${nth}`);
    await new Promise((resolve) => setTimeout(resolve, chance() * 4 * STEP_MAX_MS));
    const isThere = await rename(path, away).then(
      () => true,
      () => false, // It was archived meanwhile.
    );
    if (!isThere) return;
    await new Promise((resolve) => setTimeout(resolve, chance() * 4 * STEP_MAX_MS));
    await rename(away, path);
  }

  #versionsOf(variableId: number): { must: StoredPoint[]; may: StoredPoint[] } {
    return this.#versions.getOrInsertComputed(variableId, () => ({ must: [], may: [] }));
  }

  /** As careful senders do: complete, with its time, and only then under its name. */
  async #write(name: string, content: string): Promise<void> {
    const round = this.#round;
    const { folder, server } = round;
    const temporary = join(server.shows, `writing-${round.stage.name}`);
    await writeFile(temporary, content);
    await chown(temporary, server.owner.uid, server.owner.gid);
    round.clockMs += 60_000;
    await utimes(temporary, round.clockMs / 1000, round.clockMs / 1000);
    await rename(temporary, join(folder, name));
    this.#put += 1;
  }

  async expectAll(): Promise<void> {
    const { stage, folder } = this.#round;
    expect(stage.lane.conflicts, "every operation was only ever sent with one set of bytes").toEqual([]);
    for (const [variableId, newest] of this.#newest) {
      const shown = await rig.stored(variableId, false);
      expect(new Map(shown.map(({ date, value }) => [date, value])), "the newest file stands last").toEqual(newest);
    }
    for (const [variableId, { must, may }] of this.#versions) {
      const stored = (await rig.stored(variableId)).map(keyOf);
      expect(stored.length, "nothing is stored twice").toBe(new Set(stored).size);
      expect(new Set(stored), "nothing is lost").toEqual(new Set(stored).union(new Set(must.map(keyOf))));
      const known = new Set([...must, ...may].map(keyOf));
      expect(stored.filter((key) => !known.has(key))).toEqual([]);
    }
    await expectNothingArchivedEarly(stage, folder);
    await stage.inspect(async (ledger) => {
      const { files } = await ledger.tally(ALWAYS);
      const { delivered = 0, cancelled = 0, duplicate = 0, ...others } = files;
      expect(others, "every file ends visibly").toEqual({});
      // A first content that was replaced may never have been seen, or was given up.
      expect(delivered).toBeGreaterThanOrEqual(this.#put - this.#replaced);
      expect(delivered + cancelled + duplicate).toBeLessThanOrEqual(this.#put + duplicate);
      for (const run of await ledger.recentRuns(500, ["accepted", "mapped", "held", "delivering"]))
        expect.fail(`run ${run.id} of ${run.path} is ${run.state}`);
    });
    const left = (await stage.files(folder)).filter((path) => !path.startsWith("archive/"));
    expect(left, "delivered files are archived").toEqual([]);
  }
}

function keyOf({ date, value }: StoredPoint): string {
  return `${date} ${value}`;
}
