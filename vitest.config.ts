import { fileURLToPath } from "node:url";
import { defaultServerConditions } from "vite";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const report = process.env["HEADGATE_TEST_REPORT"];

// Node itself loads the packages: "module" is for bundlers, and leads it to files that it cannot resolve.
const conditions = defaultServerConditions.filter((condition) => condition !== "module");

const source = (path: string) => fileURLToPath(new URL(`src/${path}`, import.meta.url));

/**
 * Files that take longer than some ten seconds: most of them start many real processes, fill a real database, or wait
 * for limits of time. `npm run test:slow`; in CI all of them run.
 */
const SLOW = ["test/**/*.slow.test.ts", "test/e2e/**/*.test.ts"];
/** Tests against widespread servers, which have to be installed. `npm run test:interop`. */
const INTEROP = ["test/interop/**/*.test.ts"];

/** By size, as usual, except for a small file that runs many others: begun last, it would run alone for minutes. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => moduleId.endsWith("/on-postgres.slow.test.ts");
    return (await super.sort(files)).toSorted((one, other) => Number(isLong(other)) - Number(isLong(one)));
  }
}

const project = (name: string, include: readonly string[], exclude: readonly string[] = [], isolate = true) => ({
  extends: true as const,
  test: { name, include: [...include], exclude: [...exclude], isolate },
});

export default defineConfig({
  // Mappers in a folder of a test, outside of this package, have no way to it of their own.
  resolve: { alias: [{ find: /^headgate\/mapper$/, replacement: source("mapping/mapper.ts") }] },
  // Mappers import the contract by its package name: in tests from the sources, as in a checkout.
  ssr: { resolve: { conditions: ["headgate-source", ...conditions] } },
  test: {
    // Many tests start the real program: compiled once, it starts in a third of the time.
    env: { NODE_COMPILE_CACHE: fileURLToPath(new URL("node_modules/.cache/compile", import.meta.url)) },
    projects: [
      project("quick", ["test/**/*.test.ts"], [...SLOW, ...INTEROP], false),
      project("slow", SLOW),
      project("interop", INTEROP),
    ],
    setupFiles: ["test/support/shared-process.ts", "test/support/leaks.ts"],
    globalSetup: ["test/support/memory-folder.ts", "test/support/postgres-server.ts"],
    pool: "forks",
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // On a busy machine a second is nothing: only what hangs takes so long.
    expect: { poll: { timeout: 60_000 } },
    // The first line of a failure names what it found: summaries show no more than that.
    chaiConfig: { truncateThreshold: 1_000 },
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    reporters: report === undefined ? ["default"] : ["default", "json"],
    ...(report === undefined ? {} : { outputFile: { json: report } }),
  },
});
