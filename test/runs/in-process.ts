/** Commands in this process, which start at once; what they print is caught. */
import { vi } from "vitest";
import { runCli } from "#app/cli/program.ts";

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export async function headgate(...args: string[]): Promise<Ran> {
  const out = { stdout: "", stderr: "" };
  const spies = (["stdout", "stderr"] as const).map((stream) =>
    vi.spyOn(process[stream], "write").mockImplementation((text) => {
      out[stream] += String(text);
      return true;
    }),
  );
  try {
    const code = await runCli(["node", "headgate", ...args], new AbortController().signal);
    return { code, ...out };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}
