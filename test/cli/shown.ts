/** Runs a command in this process, and keeps what it would show. */
import { afterEach, beforeEach, vi } from "vitest";
import { runCli } from "#app/cli/program.ts";

export interface Shown {
  stdout: string;
  stderr: string;
  /** Answers the exit code. */
  headgate(args: readonly string[], stop?: AbortSignal): Promise<number>;
}

/** For the tests of one file; empty again before each of them. */
export function captureShown(): Shown {
  const shown: Shown = {
    stdout: "",
    stderr: "",
    headgate: (args, stop = new AbortController().signal) => runCli(["node", "headgate", ...args], stop),
  };
  beforeEach(() => {
    for (const stream of ["stdout", "stderr"] as const) {
      shown[stream] = "";
      vi.spyOn(process[stream], "write").mockImplementation((text, ...rest) => {
        shown[stream] += String(text);
        for (const given of rest) if (typeof given === "function") given();
        return true;
      });
    }
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });
  return shown;
}
