/** Exports for readers that are slow, and for readers that leave: of a variable whose points have no end. */
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { HubStore, PointStore } from "#hub/store/store.ts";
import { createChain, startTestHub, type TestHub, until } from "../fixture.ts";

const CHUNK = 1_000;
const STEP_MS = 900_000;
const BEGIN_MS = Date.parse("2020-01-01T00:00:00Z");
/** So often seen without a change, a number has come to rest. */
const SEEN = 20;

let hub: TestHub;
let variableId: number;
/** Chunks that exports have read so far, and those reads that have not ended. */
const read = { chunks: 0, open: 0 };
beforeAll(async () => {
  hub = await startTestHub();
  const { variableIds } = await createChain(hub, { variables: [{}] });
  [variableId = 0] = variableIds;
  const { points } = hub.inside().store as HubStore;
  Object.assign(points, { read: endless } satisfies Partial<PointStore>);
});
afterAll(() => hub.close());

async function* endless(): ReturnType<PointStore["read"]> {
  read.open += 1;
  try {
    for (let first = 0; ; first += CHUNK) {
      await setImmediate();
      read.chunks += 1;
      const more = { version: null, versionUs: null, tags: null, batchTags: null };
      yield Array.from({ length: CHUNK }, (_, at) => ({
        ...{ atMs: BEGIN_MS + (first + at) * STEP_MS, value: Math.sin(first + at) * 1_000, ...more },
      }));
    }
  } finally {
    read.open -= 1;
  }
}

/** Resolves when the answer has begun; none of it is taken. */
async function ask(path: string): Promise<IncomingMessage> {
  const request = get(hub.url() + path, { headers: { authorization: `Bearer ${await hub.token()}` } });
  // What ends it is the test.
  request.on("error", () => undefined);
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  answer.on("error", () => undefined);
  return answer;
}

async function atRest(): Promise<number> {
  let [seen, before] = [0, -1];
  return until(async () => {
    seen = read.chunks === before ? seen + 1 : 0;
    before = read.chunks;
    return seen >= SEEN && before > 0 ? before : undefined;
  });
}

for (const format of ["csv", "xlsx", "json"])
  test(`${format} waits for a reader that takes nothing, goes on when it does, and ends when it leaves`, async () => {
    read.chunks = 0;
    const answer = await ask(`/data/export?VariableIds=${variableId}&TimeZoneId=UTC&Format=${format}`);
    expect([answer.statusCode, read.open]).toEqual([200, 1]);
    const held = await atRest();
    let taken = 0;
    answer.on("data", (part: Buffer) => {
      taken += part.length;
    });
    await until(async () => (read.chunks > held + 100 && taken > 0) || undefined);
    answer.pause();
    await atRest();
    answer.destroy();
    await until(async () => read.open === 0 || undefined);
  });
