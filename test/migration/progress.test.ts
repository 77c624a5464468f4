/** What a person at a terminal sees of a migration, and is asked. */
import { PassThrough, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { leftAlone } from "#app/cli/migrate/migrate.ts";
import { linesView, Pace } from "#app/cli/migrate/progress.ts";
import { barsView } from "#app/cli/migrate/progress-bars.ts";
import { systemClock } from "#core/clock.ts";
import type { Reached } from "#gateway/migration/run/progress.ts";
import { Throttle } from "#gateway/migration/run/throttle.ts";

const total = { files: 12, bytes: 1_200_000 };
const start: Reached = {
  ...{ files: 0, bytes: 0, mapped: 0, accepted: 0, rejected: 0, retries: 0, held: 0 },
  ...{ waits: [], runs: [] },
};
const half: Reached = {
  ...{ files: 6, bytes: 600_000, mapped: 5_000_000, accepted: 4_000_000, rejected: 0, retries: 3, held: 0 },
  waits: ["the service hub: connect ECONNREFUSED 127.0.0.1:9000, and it is tried again in a while"],
  runs: ["one", "two"].map((name) => ({
    path: `north/${"a_long_folder_".repeat(6)}/${name}.csv`,
    state: "delivering",
    points: { mapped: 1000, accepted: 250, rejected: 0, stored: 0, read: 0 } as never,
    waits: name === "two" ? "behind a run that shares a target with it, and that is waiting itself" : null,
  })),
};

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date", "performance"] }));
afterEach(() => void vi.useRealTimers());

/** A terminal of so many columns, and what it was sent, frame by frame. */
function terminal(columns: number) {
  const frames: string[] = [];
  const screen = new Writable({
    decodeStrings: false,
    write: (text, _encoding, done) => {
      frames.push(String(text));
      done();
    },
    writev: (pieces, done) => {
      frames.push(pieces.map(({ chunk }) => String(chunk)).join(""));
      done();
    },
  });
  return { frames, screen: Object.assign(screen, { columns, isTTY: true }) };
}

function linesOf(frame: string | undefined): readonly string[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what moves the cursor begins with one
  return (frame ?? "").replace(/\u001b\[[?\d;]*[A-Za-z]/g, "\r").split(/[\r\n]+/);
}

it.each([60, 80, 120])("fits into %i columns, each frame in one piece", (columns) => {
  const { frames, screen } = terminal(columns);
  const view = barsView(total, new Pace(total, systemClock), screen);
  view.show(start);
  vi.advanceTimersByTime(10_000);
  frames.length = 0;
  view.show(half);
  vi.advanceTimersByTime(200);
  expect(frames).toHaveLength(1);
  const lines = linesOf(frames[0]);
  for (const line of lines) expect(line.length, line).toBeLessThanOrEqual(columns);
  const words = lines.join("\n");
  expect(words).toMatch(/^all files +\[█+░+\] +50 % 10 s left/m);
  expect(words).toMatch(/^6\/12 files · 4,000,000 of 5,000,000 mapped points accepted/m);
  expect(words).toMatch(/^3 calls made again · waits: the service hub: connect/m);
  expect(words).toMatch(/^…\S*one\.csv \[█+░+\] +25 % delivering/m);
  expect(words).toMatch(/^…\S*two\.csv \[█+░+\] +25 % behind/m);
  view.end(half);
});

it("prints lasting lines above the bars, and restores the cursor at the end", () => {
  const { frames, screen } = terminal(120);
  const view = barsView(total, new Pace(total, systemClock), screen);
  view.show(half);
  view.note("stopping: running calls end first");
  vi.advanceTimersByTime(200);
  const lines = linesOf(frames.at(-1)).filter((line) => line !== "");
  expect(lines[0]).toBe("stopping: running calls end first");
  expect(lines[1]).toMatch(/^all files/);
  view.end({ ...half, waits: [] });
  const end = frames.at(-1) ?? "";
  expect(end).toContain("\u001b[?25h");
  const last = linesOf(end).filter((line) => line !== "");
  expect(last.at(-3)).toMatch(/^all files .* 50 %/);
  expect(last.at(-2)).toMatch(/^6\/12 files .* points\/s$/);
  expect(last.at(-1)).toBe("3 calls made again");
  const count = frames.length;
  vi.advanceTimersByTime(10_000);
  expect(frames).toHaveLength(count);
});

it("shows the recent rate while it runs, and the total rate at the end", () => {
  const said: string[] = [];
  const view = linesView(total, new Pace(total, systemClock), systemClock, (line) => said.push(line));
  view.show(start);
  for (let second = 1; second <= 100; second += 1) {
    vi.advanceTimersByTime(1_000);
    view.show({ ...start, files: 1, bytes: 100_000, accepted: Math.min(second, 50) * 1000 });
  }
  expect(said.find((line) => line.includes(" 50,000 accepted"))).toMatch(/ 1,000 points\/s/);
  expect(said.at(-1)).toMatch(/ 0 points\/s/);
  view.end({ ...start, files: 1, bytes: 100_000, accepted: 50_000 });
  expect(said.at(-1)).toMatch(/ 500 points\/s/);
});

it("counts repeated calls, also those of an earlier process", async () => {
  const never = new AbortController().signal;
  const throttle = new Throttle({ rate: null, window: null, isLive: () => false }, systemClock, never);
  const batch = { points: 1, length: 1, attempts: 0 };
  await throttle.admit(batch, "hub", never);
  expect(throttle.retries).toBe(0);
  await throttle.admit(batch, "hub", never);
  await throttle.admit({ ...batch, attempts: 1 }, "hub", never);
  expect(throttle.retries).toBe(2);
});

it.each([
  ["again", []],
  ["s", ["two.csv"]],
  ["skip", ["two.csv"]],
  ["", null],
  ["never", null],
])("asks at a terminal what happens to changed files, and accepts %j as an answer", async (answer, left) => {
  const changed = [{ drop: "history", path: "two.csv", size: 1, mtime: "" }];
  const [input, output] = [Object.assign(new PassThrough(), { isTTY: true }), new PassThrough()];
  input.end(`${answer}\n`);
  const never = new AbortController().signal;
  const decided = leftAlone({ changed }, undefined, never, { input, output });
  if (left === null) await expect(decided).rejects.toMatchObject({ code: "HG-MIGR-004" });
  else expect((await decided).map(({ path }) => path)).toEqual(left);
  output.end();
  expect(await text(output)).toMatch(/^1 file changed since the delivery: two\.csv\.\n.*\[again\/skip\/STOP\] $/);
});
