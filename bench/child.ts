/** Runs a measured part in a process of its own, so that nothing else counts into its CPU time and memory. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const COMPILED = join(tmpdir(), "headgate-bench-compiled");

/** Starts `file` with arguments; the first line that it prints is its answer, as JSON. It goes on until `stop`. */
export async function startChild<Answer>(
  file: string,
  args: readonly string[],
): Promise<{ answer: Answer; stop(): Promise<void> }> {
  const child: ChildProcess = spawn(process.execPath, [file, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    // As `headgate` starts: what was compiled before needs neither the time nor the memory again.
    env: { ...process.env, NODE_COMPILE_CACHE: COMPILED },
  });
  const exited = once(child, "exit");
  if (child.stdout === null) throw new Error("the child has no output");
  const lines = createInterface({ input: child.stdout });
  const first = await Promise.race([once(lines, "line"), exited.then(() => null)]);
  if (first === null) throw new Error(`${file} ended without an answer`);
  return {
    answer: JSON.parse(String(first[0])) as Answer,
    stop: async () => {
      child.kill("SIGTERM");
      await exited;
    },
  };
}

/** CPU seconds (user and system) and wall seconds of a piece of work in this process. */
export async function measure(work: () => Promise<unknown>): Promise<{ cpu: number; wall: number }> {
  const cpu = process.cpuUsage();
  const wall = performance.now();
  await work();
  const used = process.cpuUsage(cpu);
  return { cpu: (used.user + used.system) / 1e6, wall: (performance.now() - wall) / 1e3 };
}

/** Largest resident memory of this process so far, in megabytes. */
export function peakMegabytes(): number {
  return process.resourceUsage().maxRSS / 1000;
}
