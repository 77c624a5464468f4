import { writeFileSync } from "node:fs";
import { appendFile, open, readFile, truncate, writeFile } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "#core/clock.ts";
import { InvariantError } from "#core/errors.ts";
import type { DeliveryResult } from "#gateway/delivery/delivery.ts";
import type { PushElement } from "#gateway/model.ts";
import { json, type Step } from "./scripted-service.ts";
import { element, never, type PushChange, type Setup, setUp } from "./setup.ts";

let setup: Setup;
beforeEach(async () => {
  setup = await setUp();
});
afterEach(() => setup.close());

async function again(push: PushChange, webhookUrl: string | null = null): Promise<void> {
  await setup.close();
  setup = await setUp(push, webhookUrl);
}

async function deliver(...batches: PushElement[][]): Promise<DeliveryResult> {
  const { run, segmentPath } = await setup.run("r1", batches);
  return setup.delivery.deliver(run, segmentPath, never);
}

const values = () => setup.service.stored.map(({ value }) => value).sort((one, other) => one - other);
const range = (count: number) => Array.from({ length: count }, (_, index) => index + 0.5);

/** Refuses a push that holds one of these values. */
function refusing(status: number, ...bad: number[]): Step {
  return (elements) => {
    const hit = elements.some(({ data }) => data.some(({ value }) => bad.includes(value)));
    return hit ? json(status, { title: "Bad Request", status, detail: "a value is refused" }) : "accept";
  };
}

/** The response of a hub to a webhookUrl that it will not call. */
const REFUSING = {
  "x-headgate-warning": "something else; webhookUrl: the outcome will not be sent to 10.0.0.1",
};

describe("a push", () => {
  it("sends bodies of different lengths that share buffers each with its own bytes, also again", async () => {
    await again({ concurrency: 4, retry: { initial: "10ms" } });
    setup.service.pushScript.push(json(503, {}), json(503, {}), json(503, {}));
    // Of 70 to 180 KB.
    const batches = Array.from({ length: 24 }, (_, index) => [element(`S${index}`, 1_500 + ((index * 7) % 24) * 100)]);
    const points = batches.flat().reduce((sum, { data }) => sum + data.length, 0);
    expect(await deliver(...batches)).toEqual({ status: "accepted", points });
    const sent = new Map(setup.service.pushes.map(({ query, body }) => [query.get("operationId"), body.toString()]));
    expect([...sent.values()].sort()).toEqual(batches.map((batch) => JSON.stringify(batch)).sort());
    expect(setup.service.pushes).toHaveLength(27);
  });

  it("sends the slice byte for byte with operation id, timeout, idempotency key, version and token", async () => {
    await again({ concurrency: 1, operationTimeout: "90s" }, "https://gateway.example.com/webhooks/outcome");
    const batches = [[element("A", 3)], [element("B", 2)]];
    expect(await deliver(...batches)).toEqual({ status: "accepted", points: 5 });
    const [first, second] = setup.service.pushes;
    expect(first?.body.toString()).toBe(JSON.stringify(batches[0]));
    expect(second?.body.toString()).toBe(JSON.stringify(batches[1]));
    expect(Object.fromEntries(first?.query ?? [])).toEqual({
      operationId: "r1-1",
      operationTimeoutSec: "90",
      webhookUrl: "https://gateway.example.com/webhooks/outcome",
    });
    expect(first?.headers).toMatchObject({
      "api-version": "1.7",
      "idempotency-key": "r1-1",
      "content-type": "application/json",
      authorization: expect.stringMatching(/^Bearer /),
    });
    expect(setup.journal.log).toEqual([
      "r1-1 ready>sending",
      "r1-1 sending>accepted",
      "r1-2 ready>sending",
      "r1-2 sending>accepted",
    ]);
  });

  it("notes that the service sends no outcomes to its webhook, and that it does so again", async () => {
    await again({}, "http://10.0.0.1/outcome");
    expect(setup.delivery.webhookRefusal).toBeNull();
    setup.service.pushScript.push(json(200, {}, REFUSING), json(200, {}, { "x-headgate-warning": "other" }));
    await deliver([element("A", 1)]);
    expect(setup.delivery.webhookRefusal).toBe("the outcome will not be sent to 10.0.0.1");
    const { run, segmentPath } = await setup.run("r2", [[element("B", 1)]]);
    await setup.delivery.deliver(run, segmentPath, never);
    expect(setup.delivery.webhookRefusal).toBeNull();
  });

  it("sends the batches of one run concurrently, up to the configured number", async () => {
    await again({ concurrency: 2 });
    setup.service.pushDefault = "hang";
    const batches = ["A", "B", "C"].map((serial) => [element(serial, 1)]);
    const { run, segmentPath } = await setup.run("r1", batches);
    const stop = new AbortController();
    const delivered = setup.delivery.deliver(run, segmentPath, stop.signal);
    await expect.poll(() => setup.service.pushes.length).toBe(2);
    stop.abort();
    expect(await delivered).toMatchObject({ status: "kept" });
    expect(setup.service.pushes).toHaveLength(2);
  });

  it("splits batches that are refused at the same time without mixing their bytes", async () => {
    await again({ concurrency: 4 });
    setup.service.pushDefault = (body) => (body.flatMap(({ data }) => data).length > 2 ? { status: 413 } : "accept");
    const batches = ["A", "B", "C", "D"].map((serial) => [element(serial, 8)]);
    expect(await deliver(...batches)).toEqual({ status: "accepted", points: 32 });
    const stored = setup.service.stored.map(
      ({ element: { sourceSerialNumber }, date }) => `${sourceSerialNumber} ${date}`,
    );
    expect(new Set(stored).size).toBe(32);
    expect(stored).toHaveLength(32);
  });

  it("sends nothing for a run that was already delivered", async () => {
    const { run, segmentPath } = await setup.run("r1", [[element("A", 3)]]);
    await setup.delivery.deliver(run, segmentPath, never);
    expect(await setup.delivery.deliver(run, segmentPath, never)).toEqual({ status: "accepted", points: 3 });
    expect(setup.service.pushes).toHaveLength(1);
  });

  it("refuses to send bytes that differ from the recorded digest", async () => {
    const { run, segmentPath } = await setup.run("r1", [[element("A", 3)]]);
    const handle = await open(segmentPath, "r+");
    await handle.write("9", 20);
    await handle.close();
    const sent = setup.delivery.deliver(run, segmentPath, never);
    await expect(sent).rejects.toThrow(InvariantError);
    await expect(sent).rejects.toMatchObject({ code: "HG-PUSH-011" });
    expect(setup.service.calls).toHaveLength(0);
    expect(setup.journal.batch("r1-1").state).toBe("ready");
  });

  it("refuses to send a segment that has lost its end", async () => {
    const { run, segmentPath } = await setup.run("r1", [[element("A", 3)]]);
    await truncate(segmentPath, 30);
    await expect(setup.delivery.deliver(run, segmentPath, never)).rejects.toMatchObject({
      code: "HG-PUSH-011",
    });
    expect(setup.service.calls).toHaveLength(0);
  });
});

describe("a transient failure", () => {
  it.each<[string, Step]>([
    ["503", { status: 503, body: "down" }],
    ["408", { status: 408 }],
    ["a reset", "reset"],
  ])("%s is retried at once, with the same bytes and id", async (_, step) => {
    setup.service.pushScript.push(step);
    expect(await deliver([element("A", 3)])).toEqual({ status: "accepted", points: 3 });
    const [first, second] = setup.service.pushes;
    expect(second?.body.equals(first?.body ?? Buffer.of())).toBe(true);
    expect(second?.query.get("operationId")).toBe(first?.query.get("operationId"));
    expect(setup.journal.batch("r1-1").attempts).toBe(2);
  });

  it("keeps the run after a few quick attempts, with the service's words, and delivers it later", async () => {
    await again({ retry: { breakerFailures: 100 } });
    setup.service.pushScript.push(...Array<Step>(3).fill({ status: 500, body: "out of order" }));
    const { run, segmentPath } = await setup.run("r1", [[element("A", 3)]]);
    const kept = await setup.delivery.deliver(run, segmentPath, never);
    expect(kept).toMatchObject({
      status: "kept",
      reason: "the service answered HTTP 500: out of order",
      wholeService: false,
    });
    expect(setup.journal.batch("r1-1")).toMatchObject({ state: "sending", attempts: 3 });
    expect(await setup.delivery.deliver(run, segmentPath, never)).toMatchObject({ status: "accepted" });
  });

  it("honours Retry-After for the whole service", async () => {
    setup.service.pushScript.push({ status: 429, headers: { "retry-after": "30" } });
    const one = await setup.run("r1", [[element("A", 3)]]);
    const other = await setup.run("r2", [[element("B", 3)]]);
    const kept = await setup.delivery.deliver(one.run, one.segmentPath, never);
    expect(kept).toMatchObject({ status: "kept", wholeService: true });
    expect(kept.status === "kept" && kept.retryAfterMs).toBeGreaterThan(29_000);
    const second = await setup.delivery.deliver(other.run, other.segmentPath, never);
    expect(second).toMatchObject({ status: "kept", wholeService: true });
    expect(setup.service.pushes).toHaveLength(1);
  });

  it("waits for a short Retry-After", async () => {
    setup.service.pushScript.push({ status: 429, headers: { "retry-after": "1" } });
    const startedMs = performance.now();
    expect(await deliver([element("A", 3)])).toMatchObject({ status: "accepted" });
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(990);
  });

  it("ends a call that hangs, by the limit of time", async () => {
    await again({ timeouts: { total: "200ms" }, retry: { quickAttempts: 1 } });
    setup.service.pushScript.push("hang");
    const kept = await deliver([element("A", 3)]);
    expect(kept).toMatchObject({ status: "kept", reason: expect.stringContaining("within 200 ms") });
    expect(setup.journal.batch("r1-1").state).toBe("sending");
  });

  it("of several runs in a row opens the breaker, which lets one run through later", async () => {
    await again({ retry: { quickAttempts: 1, breakerFailures: 2, initial: "100ms" } });
    setup.service.pushScript.push(...Array<Step>(3).fill({ status: 500 }));
    const one = await setup.run("r1", [[element("A", 3)]]);
    const other = await setup.run("r2", [[element("B", 3)]]);
    const failing = { status: "kept", wholeService: false };
    expect(await setup.delivery.deliver(one.run, one.segmentPath, never)).toMatchObject(failing);
    expect(await setup.delivery.deliver(other.run, other.segmentPath, never)).toMatchObject(failing);
    expect(await setup.delivery.deliver(other.run, other.segmentPath, never)).toMatchObject(failing);
    let last = await setup.delivery.deliver(one.run, one.segmentPath, never);
    expect(last).toMatchObject({
      status: "kept",
      reason: "the service answered HTTP 500",
      wholeService: true,
    });
    expect(setup.service.pushes).toHaveLength(3);
    while (last.status === "kept") {
      await systemClock.sleep(last.retryAfterMs);
      last = await setup.delivery.deliver(one.run, one.segmentPath, never);
    }
    expect(last).toEqual({ status: "accepted", points: 3 });
    expect(setup.service.pushes).toHaveLength(4);
  });

  it("of one run alone never closes the gate to others", async () => {
    await again({ retry: { quickAttempts: 3, breakerFailures: 2 } });
    setup.service.pushDefault = (elements) => (elements[0]?.sourceSerialNumber === "bad" ? { status: 500 } : "accept");
    const bad = await setup.run("r1", [[element("bad", 3)]]);
    for (let round = 0; round < 4; round += 1) {
      const kept = await setup.delivery.deliver(bad.run, bad.segmentPath, never);
      expect(kept).toMatchObject({ status: "kept", wholeService: false });
    }
    const good = await setup.run("r2", [[element("good", 3)]]);
    expect(await setup.delivery.deliver(good.run, good.segmentPath, never)).toMatchObject({
      status: "accepted",
    });
  });

  it("that hid an acceptance stores nothing twice, also over a restart", async () => {
    await again({ concurrency: 1, retry: { quickAttempts: 1 } });
    setup.service.pushScript.push("reset-after-accepting");
    const { run, segmentPath } = await setup.run("r1", [[element("A", 3)], [element("B", 2)]]);
    expect(await setup.delivery.deliver(run, segmentPath, never)).toMatchObject({ status: "kept" });
    const restarted = await setup.restart();
    expect(await restarted.deliver(run, segmentPath, never)).toEqual({ status: "accepted", points: 5 });
    const [first, second] = setup.service.pushes;
    expect(second?.body.equals(first?.body ?? Buffer.of())).toBe(true);
    expect(second?.headers["idempotency-key"]).toBe("r1-1");
    expect(setup.service.stored).toHaveLength(5);
  });

  it("does not outlive an abort: the batch stays in sending, and the call returns promptly", async () => {
    setup.service.pushScript.push("hang");
    const { run, segmentPath } = await setup.run("r1", [[element("A", 3)]]);
    const stop = new AbortController();
    const sent = setup.delivery.deliver(run, segmentPath, stop.signal);
    await expect.poll(() => setup.service.pushes.length).toBe(1);
    const stoppedMs = performance.now();
    stop.abort();
    expect(await sent).toMatchObject({ status: "kept", reason: "stopped" });
    expect(performance.now() - stoppedMs).toBeLessThan(500);
    expect(setup.journal.batch("r1-1").state).toBe("sending");
  });
});

describe("a refusal that needs an operator", () => {
  it.each<[string, Step, string, string]>([
    ["403 names the missing right", json(403, { title: "Forbidden", status: 403 }), "Data Pusher", "HG-PUSH-008"],
    ["404 points at the address", { status: 404 }, "Check `push`", "HG-PUSH-009"],
    [
      "a redirect is not followed",
      { status: 302, headers: { location: "http://127.0.0.1:1/" } },
      "Check `push`",
      "HG-PUSH-009",
    ],
    [
      "a web page with 200 is not taken for an acceptance",
      { status: 200, headers: { "content-type": "text/html" }, body: "<h1>Please sign in</h1>" },
      "Please sign in",
      "HG-PUSH-009",
    ],
  ])("%s, and nothing more is sent for a while", async (_, step, words, code) => {
    setup.service.pushScript.push(step);
    const { run, segmentPath } = await setup.run("r1", [[element("A", 4)]]);
    for (let round = 0; round < 3; round += 1) {
      const kept = await setup.delivery.deliver(run, segmentPath, never);
      expect(kept).toMatchObject({
        status: "kept",
        code,
        reason: expect.stringContaining(words),
        wholeService: true,
      });
      expect(kept.status === "kept" && kept.retryAfterMs).toBeGreaterThan(30_000);
    }
    expect(setup.service.pushes).toHaveLength(1);
    expect(setup.journal.batch("r1-1").state).toBe("sending");
  });

  it("distinguishes wrong credentials from a missing scope, and requests no more tokens meanwhile", async () => {
    setup.service.tokenScript.push(json(401, { error: "invalid_grant", error_description: "wrong password" }));
    const { run, segmentPath } = await setup.run("r1", [[element("A", 4)]]);
    for (let round = 0; round < 3; round += 1) {
      const kept = await setup.delivery.deliver(run, segmentPath, never);
      expect(kept).toMatchObject({
        status: "kept",
        reason: expect.stringMatching(/wrong password.*username/),
      });
    }
    expect(setup.service.callsTo("/token")).toHaveLength(1);
  });

  it("keeps a batch whose scope is missing, after one renewed token", async () => {
    setup.service.scope = "datahub-api";
    setup.service.pushDefault = { status: 401 };
    const kept = await deliver([element("A", 4)]);
    expect(kept).toMatchObject({
      status: "kept",
      reason: expect.stringContaining("scope push-data missing"),
    });
    expect(setup.service.callsTo("/token")).toHaveLength(2);
    expect(setup.service.pushes).toHaveLength(2);
  });
});

describe("a batch that the service does not accept as a whole", () => {
  it("is halved by 413 until it fits, and every reading arrives once, in order", async () => {
    setup.service.pushDefault = (elements) =>
      elements.reduce((sum, { data }) => sum + data.length, 0) > 3 ? { status: 413 } : "accept";
    expect(await deliver([element("A", 7), element("B", 3, 7)])).toEqual({ status: "accepted", points: 10 });
    expect(setup.service.stored.map(({ value }) => value)).toEqual(range(10));
    const states = (await setup.journal.batches("r1")).map(({ sequence, state }) => [sequence, state]);
    expect(states).toContainEqual(["1", "split"]);
    expect(states).toContainEqual(["1.1", "split"]);
    expect(states).toContainEqual(["1.1.1", "accepted"]);
  });

  it("is bisected to the one bad reading, and the others arrive exactly once", async () => {
    setup.service.pushDefault = refusing(400, 37.5);
    const result = await deliver([element("A", 30), element("B", 30, 30), element("C", 4, 60)]);
    expect(result).toMatchObject({
      status: "rejected",
      accepted: 63,
      rejected: 1,
      faults: [{ answer: "HTTP 400: Bad Request: a value is refused" }],
      rows: [
        {
          code: "HG-PUSH-012",
          place: { text: "sourceSerialNumber=B mappingConfig=kWh 2026-01-02T13:00:00.000Z 37.5" },
        },
      ],
    });
    expect(values()).toEqual(range(64).filter((value) => value !== 37.5));
    expect(setup.service.pushes.length).toBeLessThan(20);
  });

  it("reports the rejected readings again when the run is delivered again, and sends nothing", async () => {
    setup.service.pushDefault = refusing(422, 1.5);
    const { run, segmentPath } = await setup.run("r1", [[element("A", 4)]]);
    const result = await setup.delivery.deliver(run, segmentPath, never);
    const sent = setup.service.pushes.length;
    const restarted = await setup.restart();
    expect(await restarted.deliver(run, segmentPath, never)).toEqual(result);
    expect(setup.service.pushes).toHaveLength(sent);
  });

  it("is refused as a whole once too many readings were refused, instead of isolating every one", async () => {
    await again({ retry: { refusedReadings: 3 } });
    setup.service.pushDefault = json(400, { title: "Bad Request", status: 400 });
    const result = await deliver([element("A", 1000)]);
    expect(result).toMatchObject({ status: "rejected", accepted: 0, rejected: 1000 });
    expect(setup.service.pushes.length).toBeLessThan(40);
  });

  it("resumes with the halves after a restart, above what a crash left at the end of the segment", async () => {
    await again({ retry: { quickAttempts: 1 } });
    setup.service.pushScript.push({ status: 413 }, "accept", "reset");
    const { run, segmentPath } = await setup.run("r1", [[element("A", 8)]]);
    expect(await setup.delivery.deliver(run, segmentPath, never)).toMatchObject({ status: "kept" });
    await appendFile(segmentPath, "half a child that was never record");
    setup.service.pushScript.push({ status: 413 });
    const restarted = await setup.restart();
    expect(await restarted.deliver(run, segmentPath, never)).toEqual({ status: "accepted", points: 8 });
    expect(values()).toEqual(range(8));
    expect((await setup.journal.batches("r1")).map(({ sequence }) => sequence)).toEqual([
      "1",
      "1.1",
      "1.2",
      "1.2.1",
      "1.2.2",
    ]);
  });
});

it("children are identical when a lost segment was mapped again", async () => {
  await again({ retry: { quickAttempts: 1 } });
  const { run, segmentPath } = await setup.run("r1", [[element("A", 8)], [element("B", 8, 8)]]);
  const asMapped = await readFile(segmentPath);
  setup.service.pushScript.push({ status: 413 }, "accept", { status: 413 }, "reset-after-accepting");
  expect(await setup.delivery.deliver(run, segmentPath, never)).toMatchObject({ status: "kept" });
  const asSplit = await readFile(segmentPath);
  await writeFile(segmentPath, asMapped);
  setup.service.pushScript.push({ status: 413 });
  const restarted = await setup.restart();
  expect(await restarted.deliver(run, segmentPath, never)).toMatchObject({ status: "accepted", points: 16 });
  expect((await readFile(segmentPath)).subarray(0, asSplit.length).equals(asSplit)).toBe(true);
});

describe("a response", () => {
  it("of any size is read only up to a limit", async () => {
    setup.service.pushScript.push({ status: 500, body: "x".repeat(20_000_000) });
    expect(await deliver([element("A", 3)])).toEqual({ status: "accepted", points: 3 });
    expect(setup.journal.batch("r1-1").attempts).toBe(2);
  });
});

it("has only the bytes of batches in memory that are close to their turn", async () => {
  await again({ concurrency: 1 });
  const runs = await Promise.all(
    Array.from({ length: 4 }, (_, index) => setup.run(`r${index}`, [[element(`S${index}`, 2)]])),
  );
  setup.service.pushScript.push(() => {
    for (const { segmentPath } of runs) writeFileSync(segmentPath, "other bytes");
    return "accept";
  });
  const results = await Promise.allSettled(
    runs.map(({ run, segmentPath }) => setup.delivery.deliver(run, segmentPath, never)),
  );
  const [sent, near, ...far] = results;
  expect([sent, near]).toMatchObject([{ value: { status: "accepted" } }, { value: { status: "accepted" } }]);
  expect(far).toMatchObject([{ reason: { code: "HG-PUSH-011" } }, { reason: { code: "HG-PUSH-011" } }]);
});

it("never sends more calls at a time than configured", async () => {
  await again({ concurrency: 2 });
  const open = new Set<string>();
  let most = 0;
  setup.service.pushDefault = (_, call) => {
    open.add(call.query.get("operationId") ?? "");
    most = Math.max(most, open.size);
    return "accept";
  };
  const advance = setup.journal.advanceBatch.bind(setup.journal);
  setup.journal.advanceBatch = async (operationId, from, to, change) => {
    if (to === "accepted") open.delete(operationId);
    return advance(operationId, from, to, change);
  };
  const runs = await Promise.all(
    Array.from({ length: 8 }, (_, index) => setup.run(`r${index}`, [[element(`S${index}`, 2)]])),
  );
  const results = await Promise.all(
    runs.map(({ run, segmentPath }) => setup.delivery.deliver(run, segmentPath, never)),
  );
  expect(results.every(({ status }) => status === "accepted")).toBe(true);
  expect(most).toBeLessThanOrEqual(2);
});

describe("while a service responds quickly", () => {
  const tooLarge = json(413, { title: "Payload Too Large", status: 413 });
  const sendings = () => setup.journal.log.filter((line) => line.endsWith("ready>sending")).length;
  const opened = (...ids: string[]) => Promise.all(ids.map((id) => setup.run(id, [[element(`meter of ${id}`, 2)]])));
  const start = (runs: Awaited<ReturnType<typeof opened>>, signal = never) =>
    runs.map(({ run, segmentPath }) => setup.delivery.deliver(run, segmentPath, signal));

  beforeEach(async () => {
    await setup.close();
    // Every call takes no time by this clock, however busy the machine is.
    const clock = { ...systemClock, monotonicMs: () => 0 };
    setup = await setUp({ concurrency: 1 }, null, { idempotency: false, clock });
    const [first] = await opened("r0");
    if (first === undefined) throw new Error("no run");
    await setup.delivery.deliver(first.run, first.segmentPath, never);
  });

  it("batches are journalled before their turn, and sent in their turn", async () => {
    const journalled: number[] = [];
    setup.service.pushDefault = () => {
      journalled.push(sendings());
      return "accept";
    };
    const results = await Promise.all(start(await opened("r1", "r2", "r3")));
    expect(results.map(({ status }) => status)).toEqual(["accepted", "accepted", "accepted"]);
    expect(journalled).toEqual([4, 4, 4]);
  });

  it("batches that are not sent after all are known not to be stored", async () => {
    setup.service.pushScript.push({ status: 429, headers: { "retry-after": "30" } });
    const runs = await opened("r1", "r2", "r3");
    const results = await Promise.all(start(runs));
    expect(results.map(({ status }) => status)).toEqual(["kept", "kept", "kept"]);
    expect(setup.service.pushes).toHaveLength(2);
    expect(setup.journal.batch("r2-1")).toMatchObject({
      state: "sending",
      answer: expect.stringMatching(/^not sent: the service answered HTTP 429/),
    });
    const after = await setup.restart();
    setup.service.pushScript.push(tooLarge);
    const [, second] = runs;
    if (second === undefined) throw new Error("no run");
    // A batch with an attempt that may be stored would be refused whole.
    expect(await after.deliver(second.run, second.segmentPath, never)).toMatchObject({
      status: "accepted",
      points: 2,
    });
  });

  it("a batch that was journalled and not sent when the gateway stops is known not to be stored", async () => {
    const stop = new AbortController();
    setup.service.pushScript.push(() => {
      stop.abort();
      return "hang";
    });
    await Promise.all(start(await opened("r1", "r2"), stop.signal));
    expect(setup.service.pushes).toHaveLength(2);
    expect(setup.journal.batch("r1-1").answer).toBe("sent, and not answered so far");
    expect(setup.journal.batch("r2-1").answer).toBe("not sent: delivery was stopped");
  });
});

it("rejects a batch as a whole whose operationId the service knows with other bytes", async () => {
  await again({ concurrency: 1 });
  const detail = "this Idempotency-Key came before with another body, as operation r1-1";
  setup.service.pushScript.push(json(422, { title: "Unprocessable Content", status: 422, detail }));
  const result = await deliver([element("A", 8)], [element("B", 2)]);
  expect(result).toMatchObject({
    status: "rejected",
    accepted: 2,
    rejected: 8,
    faults: [{ operationId: "r1-1", answer: expect.stringContaining("knows this operationId") }],
    rows: [{ code: "HG-PUSH-014" }],
  });
  expect(setup.service.pushes.map((call) => call.query.get("operationId"))).toEqual(["r1-1", "r1-2"]);
});

describe("a batch with an unanswered attempt that the service then does not accept as a whole", () => {
  const tooLarge = json(413, { title: "Payload Too Large", status: 413 });
  const impossible = json(400, { title: "Bad Request", status: 400 });
  const prepare = async (idempotency: boolean) => {
    await setup.close();
    setup = await setUp({ concurrency: 1, retry: { quickAttempts: 3 } }, null, { idempotency });
  };

  it.each([["too large", tooLarge] as const, ["impossible", impossible] as const])(
    "is not split when it is %s, since its readings may be stored",
    async (_what, refusal) => {
      await prepare(false);
      setup.service.pushScript.push("reset-after-accepting", { status: 429 }, refusal);
      expect(await deliver([element("A", 8)])).toMatchObject({
        status: "rejected",
        rejected: 8,
        faults: [{ operationId: "r1-1", answer: expect.stringContaining("may be stored") }],
        rows: [{ code: "HG-PUSH-015" }],
      });
      expect(setup.service.stored).toHaveLength(8);
    },
  );

  it("is not split after a restart either", async () => {
    await prepare(false);
    setup.service.pushScript.push("hang", tooLarge);
    const { run, segmentPath } = await setup.run("r1", [[element("A", 8)]]);
    const stop = new AbortController();
    setup.service.pushScript[0] = () => {
      stop.abort();
      return "hang";
    };
    expect(await setup.delivery.deliver(run, segmentPath, stop.signal)).toMatchObject({ status: "kept" });
    const result = await (await setup.restart()).deliver(run, segmentPath, never);
    expect(result).toMatchObject({ status: "rejected", rows: [{ code: "HG-PUSH-015" }] });
  });

  it("is split for a service that recognises its Idempotency-Key, and would have reported it", async () => {
    await prepare(true);
    setup.service.pushScript.push("reset", tooLarge);
    expect(await deliver([element("A", 8)])).toEqual({ status: "accepted", points: 8 });
    expect(values()).toEqual(range(8));
  });

  it("is split after responses and faults that exclude storage", async () => {
    await prepare(false);
    setup.service.pushScript.push({ status: 429 }, { status: 401 }, tooLarge);
    expect(await deliver([element("A", 8)])).toEqual({ status: "accepted", points: 8 });
    expect(setup.service.stored).toHaveLength(8);
  });
});

describe("the probe", () => {
  it("reports account, right to push and right to read", async () => {
    const lines = await setup.delivery.probe(never);
    expect(lines.map(({ level, what }) => `${level} ${what}`)).toEqual([
      "ok token: account 7, scopes datahub-api push-data",
      "ok push: may push",
      "ok read: may read",
      "ok clock: agrees with that of the service, within 1 s",
      "ok api: every call carries Api-Version 1.7",
    ]);
    expect(setup.service.stored).toHaveLength(0);
  });

  it("names variables of which nobody knows whether their values add up", async () => {
    const variable = { sourceId: 1, variableTypeId: 0, unitId: 8 };
    setup.service.variables = [
      { ...variable, id: 4, name: "Energy" },
      { ...variable, id: 5, name: "Power", quantityType: 1 },
      { ...variable, id: 6, name: "Peak", aggregate: 3 },
    ];
    const lines = await setup.delivery.probe(never);
    expect(lines).toContainEqual({
      level: "warning",
      what: "read: 1 of 3 variables have neither quantityType nor aggregate: Energy (4)",
      hint: expect.stringContaining("`quantityType`"),
    });
  });

  it.each([
    ["behind", 300_000],
    ["ahead of", -300_000],
  ])(
    "says that the clock of this machine is %s that of the service, by its Date, with both times",
    async (side, ms) => {
      const date = new Date(Date.now() + ms).toUTCString();
      setup.service.readReply = json(200, [], { date });
      const lines = await setup.delivery.probe(never);
      const there = new Date(date).toISOString().slice(0, 19).replace("T", " ");
      expect(lines).toContainEqual({
        level: "warning",
        what: expect.stringMatching(
          new RegExp(
            `^clock: the clock of this machine is [45] min \\d+ s ${side} that .*: .* UTC here, ${there} UTC there$`,
          ),
        ),
        hint: expect.stringContaining("NTP"),
      });
    },
  );

  it("says nothing of the clock where an answer of a cache is old, or less than a minute off", async () => {
    const date = (ms: number) => new Date(Date.now() - ms).toUTCString();
    for (const headers of [{ date: date(300_000), age: "300" }, { date: date(30_000) }]) {
      setup.service.readReply = json(200, [], headers);
      expect((await setup.delivery.probe(never)).filter(({ level }) => level !== "ok")).toEqual([]);
    }
  });

  it("reports that the service sends no outcomes to the webhook", async () => {
    await again({}, "http://10.0.0.1/outcome");
    setup.service.pushDefault = json(200, {}, REFUSING);
    expect((await setup.delivery.probe(never))[2]).toMatchObject({
      level: "warning",
      what: "webhook: the outcome will not be sent to 10.0.0.1; outcomes are read back instead",
      hint: expect.stringContaining("`webhook.hosts`"),
    });
  });

  it("names no webhook at port 0, which the service would try to reach for minutes", async () => {
    for (const url of ["http://127.0.0.1:0/outcome", "http://127.0.0.1:9/outcome"]) {
      await again({}, url);
      await setup.delivery.probe(never);
      const push = setup.service.calls.find(({ path }) => path.endsWith("/api/data"));
      expect(push?.query.get("webhookUrl")).toBe(url.includes(":0/") ? null : url);
    }
  });

  it("names the missing right", async () => {
    setup.service.pushDefault = { status: 403 };
    const lines = await setup.delivery.probe(never);
    expect(lines[1]).toMatchObject({ level: "failed", what: "push: HTTP 403" });
  });

  it("distinguishes an account that is closed to the user from a wrong password", async () => {
    const refused = (words: string) => json(400, { error: "invalid_grant", error_description: words });
    setup.service.tokenScript.push(refused("the user may not enter the account 7"));
    expect((await setup.delivery.probe(never))[0]?.hint).toMatch(/^The user may not enter account 7: correct/);
    const after = await setup.restart();
    setup.service.tokenScript.push(refused("wrong username or password"));
    expect((await after.probe(never))[0]?.hint).toMatch(/^Correct `credentials\.username`/);
  });

  it("refers to address and network when the service cannot be reached", async () => {
    await setup.service.stop();
    const [line] = await setup.delivery.probe(never);
    expect(line).toMatchObject({ level: "failed", hint: expect.stringContaining("address in `token`") });
    await setup.service.start();
  });

  it("fails where no outcome would be reported, and warns where a webhook reports it", async () => {
    setup.service.readReply = { status: 404 };
    const hint = "Check the address in `base` of the service.";
    expect((await setup.delivery.probe(never))[2]).toMatchObject({ level: "failed", hint });
    await again({}, "http://127.0.0.1:9/outcome");
    setup.service.readReply = { status: 404 };
    expect((await setup.delivery.probe(never))[2]).toMatchObject({ level: "warning", hint });
  });
});

describe("an answer that the service repeats, since its Idempotency-Key came before", () => {
  const repeating = (operationId: string) =>
    json(200, { operationId, status: "accepted" }, { "idempotent-replayed": "true" });
  const reading = element("A", 4);
  const stored = reading.data.map(({ date, value }) => ({ variableId: 11, date, rawValue: value }));
  const prepare = async (change: PushChange = {}) => {
    await again({ concurrency: 1, ...change });
    setup.service.sources = [{ id: 1, name: "A", siteId: 1, serialNumber: "A" }];
    setup.service.variables = [{ id: 11, name: "kWh", sourceId: 1, mappingConfig: "kWh" }];
  };
  const keysSent = () => setup.service.pushes.map(({ headers }) => headers["idempotency-key"]);

  it("is the answer of the attempt before where that had none, and nothing is compared", async () => {
    await prepare();
    setup.service.pushScript.push("reset-after-accepting", repeating("r1-1"));
    expect(await deliver([reading])).toMatchObject({ status: "accepted" });
    expect(setup.journal.batch("r1-1")).toMatchObject({ repeats: null });
    expect(setup.service.callsTo("/base/data")).toHaveLength(0);
  });

  it("is that of an earlier operation at a first attempt, also of the same name: the ledger was restored", async () => {
    await prepare();
    setup.service.rows = stored;
    setup.service.operations.set("r1-1", "stored");
    setup.service.pushScript.push(repeating("r1-1"));
    expect(await deliver([reading])).toMatchObject({ status: "accepted" });
    expect(setup.journal.batch("r1-1")).toMatchObject({ repeats: "r1-1", answer: "already delivered by r1-1" });
  });

  it("is compared once the earlier operation was applied; until then the run waits", async () => {
    await prepare();
    setup.service.pushDefault = repeating("earlier-1");
    setup.service.operations.set("earlier-1", "accepted");
    const { run, segmentPath } = await setup.run("r1", [[reading]]);
    const waits = { status: "kept", code: "HG-PUSH-016", wholeService: false };
    expect(await setup.delivery.deliver(run, segmentPath, never)).toMatchObject(waits);
    setup.service.operations.set("earlier-1", "stored");
    setup.service.rows = stored;
    expect(await (await setup.restart()).deliver(run, segmentPath, never)).toMatchObject({ status: "accepted" });
    expect(setup.journal.batch("r1-1")).toMatchObject({ repeats: "earlier-1" });
    expect(new Set(keysSent())).toEqual(new Set(["r1-1"]));
  });

  it("leads to a new operation where nothing is stored, after the time of an outcome if no state is told", async () => {
    await prepare({ confirm: { within: "1s", pollEvery: "100ms" } });
    setup.service.pushDefault = (_body, { headers }) =>
      headers["idempotency-key"] === "r1-1" ? repeating("earlier-1") : "accept";
    const { run, segmentPath } = await setup.run("r1", [[reading]]);
    const deliverNow = async () => (await setup.delivery.deliver(run, segmentPath, never)).status;
    expect(await deliverNow()).toBe("kept");
    await expect.poll(deliverNow, { timeout: 20_000 }).toBe("accepted");
    expect(setup.journal.batch("r1-1")).toMatchObject({ repeats: null, idempotencyKey: "r1-1 again" });
    expect(setup.service.stored).toHaveLength(4);
  });

  it("is taken at its word for an operation that failed: a person has it applied again, or dropped", async () => {
    await prepare();
    setup.service.operations.set("earlier-1", "failed");
    setup.service.pushScript.push(repeating("earlier-1"));
    expect(await deliver([reading])).toMatchObject({ status: "accepted" });
    expect(setup.journal.batch("r1-1").answer).toBe("already delivered by earlier-1, which failed there");
    expect(keysSent()).toEqual(["r1-1"]);
  });

  it("ends also at a service that repeats one to every key", async () => {
    await prepare();
    setup.service.operations.set("earlier-1", "discarded");
    setup.service.pushDefault = repeating("earlier-1");
    expect(await deliver([reading])).toMatchObject({ status: "accepted" });
    expect(new Set(keysSent()).size).toBe(10);
    expect(setup.journal.batch("r1-1").answer).toBe("already delivered by earlier-1, of which it has nothing now");
  });
});
