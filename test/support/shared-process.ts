/**
 * Files of the quick tests follow each other in a few processes, which saves each the start of one. So each file begins
 * with modules of its own (with what they remember, such as secrets), and leaves the process as it was.
 */
import { afterAll, vi } from "vitest";

vi.resetModules();
const environment = { ...process.env };
const folder = process.cwd();

afterAll(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name];
  Object.assign(process.env, environment);
  process.chdir(folder);
});
