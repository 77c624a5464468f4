/**
 * `npm run test:long`: what takes longer than a test run may: many rounds of random kills, the soak of polls,
 * malformed requests by the ten thousand, and calculations, alarms and events under 50 kills. Resumable: finished
 * parts are noted in `.headgate/long.json`, and the next call goes on after them; `--fresh` begins anew. Seeds are
 * printed; a failing round prints the command that replays it. `HEADGATE_SEED` is the first seed of a fresh start, and
 * `HEADGATE_ROUNDS` as `--rounds`.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

interface Progress {
  readonly firstSeed: number;
  rounds: number;
  soaked: boolean;
  pushed?: boolean;
  migrated?: boolean;
  fuzzed?: boolean;
  derived?: boolean;
  failed: string[];
}

const ROUNDS_AT_ONCE = 10;
const root = join(import.meta.dirname, "..");
const notes = join(root, ".headgate/long.json");

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: process.env["HEADGATE_ROUNDS"] ?? "200" },
    fresh: { type: "boolean", default: false },
  },
});
if (values.fresh) rmSync(notes, { force: true });
const progress: Progress = existsSync(notes)
  ? (JSON.parse(readFileSync(notes, "utf8")) as Progress)
  : {
      firstSeed: Number(process.env["HEADGATE_SEED"] ?? Math.floor(Math.random() * 1e9)),
      rounds: 0,
      soaked: false,
      failed: [],
    };

function note(): void {
  mkdirSync(join(root, ".headgate"), { recursive: true });
  writeFileSync(notes, JSON.stringify(progress));
}

function run(file: string, environment: Readonly<Record<string, string>>): boolean {
  const command = ["--no-install", "vitest", "run", file];
  return (
    spawnSync("npx", command, { cwd: root, stdio: "inherit", env: { ...process.env, ...environment } }).status === 0
  );
}

const rounds = Number(values.rounds);
process.stdout.write(
  `random kills: seeds ${progress.firstSeed} to ${progress.firstSeed + rounds - 1}, ` +
    `${progress.rounds} of ${rounds} rounds done before\n`,
);
while (progress.rounds < rounds) {
  const count = Math.min(ROUNDS_AT_ONCE, rounds - progress.rounds);
  const seed = String(progress.firstSeed + progress.rounds);
  if (!run("test/e2e/random-kills.test.ts", { HEADGATE_SEED: seed, HEADGATE_ROUNDS: String(count) })) {
    progress.failed.push(`random kills from seed ${seed}, ${count} rounds`);
  }
  if (!run("test/e2e/two-nodes.test.ts", { HEADGATE_SEED: seed, HEADGATE_ROUNDS: String(count) })) {
    progress.failed.push(`two nodes from seed ${seed}, ${count} rounds`);
  }
  progress.rounds += count;
  note();
}
if (!progress.soaked) {
  if (!run("test/drops/soak.slow.test.ts", { HEADGATE_SOAK: "10000" })) progress.failed.push("soak of 10000 polls");
  progress.soaked = true;
  note();
}
if (progress.fuzzed !== true) {
  if (!run("test/hub/fuzz.test.ts", { HEADGATE_FUZZ_ROUNDS: "50000" }))
    progress.failed.push("50000 malformed requests");
  progress.fuzzed = true;
  note();
}
if (progress.pushed !== true) {
  if (!run("test/hub/concurrent.test.ts", { HEADGATE_POINTS: "10000000" }))
    progress.failed.push("10000000 points with concurrent reads");
  progress.pushed = true;
  note();
}
if (progress.migrated !== true) {
  const history = { HEADGATE_HISTORY_FILES: "2000", HEADGATE_HISTORY_POINTS: "10000000" };
  if (!run("test/migration/large.slow.test.ts", { ...history, HEADGATE_HISTORY_MINUTES: "60" }))
    progress.failed.push("a history of 10000000 points in 2000 files");
  progress.migrated = true;
  note();
}
if (progress.derived !== true) {
  const environment = { HEADGATE_SEED: String(progress.firstSeed), HEADGATE_ROUNDS: "50" };
  for (const file of ["calculations", "calculations-two-hubs", "derived-kills"])
    if (!run(`test/e2e/${file}.test.ts`, environment)) progress.failed.push(`50 kills of ${file}`);
  progress.derived = true;
  note();
}
process.stdout.write(
  progress.failed.length === 0 ? "all passed\n" : `failed:\n${progress.failed.map((line) => `  ${line}`).join("\n")}\n`,
);
process.exitCode = progress.failed.length === 0 ? 0 : 1;
