/**
 * Memory of a process and of those that it started: their proportional set sizes added up, so that pages
 * which several of them share count once (on other systems than Linux nothing is told). The largest sum that
 * was seen at one time counts.
 */
import type { ChildProcess } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

const LOOK_MS = 100;

export function watchMemory(child: ChildProcess): { end(): number } {
  let peak = 0;
  const timer = setInterval(() => {
    if (child.pid !== undefined) peak = Math.max(peak, megabytesOf(child.pid));
  }, LOOK_MS);
  return {
    end() {
      clearInterval(timer);
      return peak;
    },
  };
}

function megabytesOf(pid: number): number {
  try {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
    const own = Number(/^Pss:\s+(\d+) kB/m.exec(rollup)?.[1] ?? 0) / 1000;
    const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").split(" ").filter(Boolean).map(Number),
    );
    return children.reduce((sum, one) => sum + megabytesOf(one), own);
  } catch {
    return 0; // It has just ended.
  }
}
