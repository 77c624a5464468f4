/** `/health/ready` of a hub while it starts. */
import { expect, test } from "vitest";
import { type Platform, startPlatform } from "#app/platform.ts";
import { silentLog } from "#core/log.ts";
import { hubOptions } from "#hub/options.ts";
import { rawOptions, temporaryDirectory } from "../hub/fixture.ts";
import { LITTLE_HASHING as hashCost } from "../support/hash-cost.ts";

interface Readiness {
  readonly status: number;
  readonly parts: readonly { readonly part: string }[];
}

async function readinessAt(url: string): Promise<Readiness> {
  const response = await fetch(`${url}/health/ready`);
  return { status: response.status, parts: ((await response.json()) as Readiness).parts };
}

test("a hub that listens is not ready before its gateway is, and says so", async () => {
  const { path, remove } = await temporaryDirectory();
  const options = hubOptions.parse(rawOptions(path, { metrics: { listen: "127.0.0.1:0" } }));
  const answers: Promise<Readiness>[] = [];
  const log = Object.assign(Object.create(silentLog), {
    info(facts: { metricsUrl?: string }, words: string) {
      if (words === "hub listens") answers.push(readinessAt(facts.metricsUrl ?? ""));
    },
  });
  let platform: Platform | undefined;
  try {
    platform = await startPlatform(options, { log, hashCost });
    expect(answers).toHaveLength(1);
    // Either it was asked in time, or it shows what its gateway is ready with.
    // It was asked in time, or shows what its gateway is ready with.
    for (const answer of await Promise.all(answers))
      expect(answer).toSatisfy(({ status, parts }: Readiness) => status === 503 || parts.length > 1);
    await expect.poll(async () => (await readinessAt(platform?.metricsUrl ?? "")).status).toBe(200);
  } finally {
    await platform?.close();
    await remove();
  }
});
