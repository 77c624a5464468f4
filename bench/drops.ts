/**
 * What polling a folder of 100,000 files costs: the first poll, and the second with nothing new, beside a
 * bare listing.
 */
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startChild } from "./child.ts";
import type { FieldAnswer } from "./field-server.ts";
import type { PollAnswer } from "./poll.ts";

const FILES = Number(process.env["HEADGATE_BENCH_FILES"] ?? 100_000);

export async function benchDrops(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-"));
  try {
    const root = join(folder, "drop");
    mkdirSync(root);
    for (let index = 0; index < FILES; index++)
      closeSync(openSync(join(root, `meter_${String(index).padStart(6, "0")}.csv`), "w"));
    process.stdout.write(`drops: ${FILES} files in one folder; CPU seconds of the polling process alone\n`);
    process.stdout.write(
      `${row("kind", "bare listing", "first poll", "second poll", "second/bare", "bare peak MB", "peak MB")}\n`,
    );
    for (const kind of ["local", "sftp", "ftp"]) {
      const server =
        kind === "local"
          ? null
          : await startChild<FieldAnswer>(join(import.meta.dirname, "field-server.ts"), [kind, root]);
      const access = JSON.stringify(server?.answer ?? {});
      const bare = await startChild<PollAnswer>(join(import.meta.dirname, "poll.ts"), [kind, root, access, "bare"]);
      await bare.stop();
      const polled = await startChild<PollAnswer>(join(import.meta.dirname, "poll.ts"), [
        kind,
        root,
        access,
        join(folder, `${kind}.sqlite`),
      ]);
      await polled.stop();
      await server?.stop();
      const { first, second, peak } = polled.answer;
      const base = bare.answer.first;
      const seconds = [base, first, second, second / base].map((value) => value.toFixed(2));
      const peaks = [bare.answer.peak, peak].map((value) => value.toFixed(0));
      process.stdout.write(`${row(kind, ...seconds, ...peaks)}\n`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function row(...cells: readonly string[]): string {
  return cells.map((cell, index) => (index === 0 ? cell.padEnd(7) : cell.padStart(14))).join("");
}
