import { get } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Clock, systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import type { DropState } from "#gateway/model.ts";
import type { StreamClient } from "#gateway/operations/api/endpoint.ts";
import { LiveUpdates } from "#gateway/operations/live.ts";
import { until } from "../runs/gateway-rig.ts";
import { openBrowser, startConsole, type TestConsole } from "./console/fixture.ts";

const ADA = { name: "ada", role: "viewer" } as const;

let live: LiveUpdates;
let nowMs: number;
let wake: ((more: boolean) => void) | null;
let attention: number;
let counts: number;
let countTakesMs: number;
let drops: DropState[];

const clock: Clock = {
  now: () => Temporal.Instant.fromEpochMilliseconds(nowMs),
  monotonicMs: () => nowMs,
  sleep: (_ms, signal) =>
    new Promise((resolve) => {
      wake = resolve;
      signal?.addEventListener("abort", () => resolve(false));
    }),
};

beforeEach(() => {
  nowMs = 1_000_000;
  wake = null;
  attention = 0;
  counts = 0;
  countTakesMs = 0;
  drops = [];
  live = new LiveUpdates({ clock, log: silentLog });
  live.connectTo({
    attention: async () => {
      counts += 1;
      nowMs += countTakesMs;
      return attention;
    },
    drops: () => drops,
  });
});

class Client implements StreamClient {
  texts = "";
  isGone = false;
  mayStay = true;
  readonly #reactions: (() => void)[] = [];

  write(text: string): void {
    this.texts += text;
  }
  end(): void {
    this.isGone = true;
    for (const react of this.#reactions) react();
  }
  onGone(react: () => void): void {
    this.#reactions.push(react);
  }
  isAdmitted(): boolean {
    return this.mayStay;
  }
  /** Names and data of the events since the last call. */
  take(): readonly (readonly [string, unknown])[] {
    const found = [...this.texts.matchAll(/event: (\w+)\ndata: (.*)\n\n/g)];
    this.texts = "";
    return found.map(([, name = "", data = ""]) => [name, JSON.parse(data)]);
  }
}

function join(name = "ada"): Client {
  const client = new Client();
  live.add(client, { ...ADA, name });
  return client;
}

/** Lets a second pass, and the work of that second be done. */
async function tick(): Promise<void> {
  nowMs += 1_000;
  await until("the loop waits", async () => wake !== null);
  const go = wake;
  wake = null;
  go?.(true);
  for (let turns = 0; turns < 20; turns += 1) await Promise.resolve();
}

const event = (arrivalId: number, what: string) => ({
  ...{ at: "", arrivalId, runId: null, operationId: null, what, detail: "" },
  ...{ drop: "in", path: `${arrivalId}.csv` },
});

describe("a client of the live updates", () => {
  it("gets the state at once, and changes of files with their last state", async () => {
    const client = join();
    expect(client.take()).toEqual([["state", { attention: null, overviewAt: "1970-01-01T00:16:40.000Z" }]]);
    await tick();
    client.take();
    live.note(event(1, "arrival.matched"));
    live.note(event(2, "run.claimed"));
    live.note(event(1, "run.quarantined"));
    live.note(event(1, "source.archived"));
    attention = 1;
    await tick();
    const files = [
      { id: 2, path: "2.csv", drop: "in", state: "claimed" },
      { id: 1, path: "1.csv", drop: "in", state: "quarantined" },
    ];
    expect(client.take()).toEqual([
      ["files", { files, isCut: false }],
      ["attention", { total: 1 }],
      ["state", { attention: 1, overviewAt: expect.any(String) }],
    ]);
    await tick();
    expect(client.texts).toBe("");
  });

  it("gets the changes of all nodes that share a ledger, each once", async () => {
    const events = [event(1, "run.claimed")];
    live.connectTo({
      attention: async () => attention,
      drops: () => drops,
      changes: async (after) => ({ events: after === null ? [] : events.slice(after), last: events.length }),
    });
    const client = join();
    await tick();
    client.take();
    // This node noted it, and another one did not: both are in the ledger.
    live.note(event(2, "run.mapped"));
    events.push(event(2, "run.mapped"), event(3, "run.quarantined"));
    await tick();
    const files = [
      { id: 2, path: "2.csv", drop: "in", state: "mapped" },
      { id: 3, path: "3.csv", drop: "in", state: "quarantined" },
    ];
    expect(client.take()).toContainEqual(["files", { files, isCut: false }]);
    await tick();
    expect(client.texts).not.toContain("event: files");
  });

  it("gets the newest fifty of many files, and that there were more", async () => {
    const client = join();
    await tick();
    client.take();
    for (let id = 1; id <= 500; id += 1) live.note(event(id, "run.mapped"));
    await tick();
    const [, data] = client.take().find(([name]) => name === "files") ?? [];
    const { files, isCut } = data as { files: { id: number }[]; isCut: boolean };
    expect(files.map(({ id }) => id)).toEqual(Array.from({ length: 50 }, (_, at) => 451 + at));
    expect(isCut).toBe(true);
  });

  it("is sent drops when one of them changes, in words", async () => {
    const state = { drop: "in", paused: null, lastError: null, settlingCount: 2, leftCount: 1 } as DropState;
    drops = [state];
    const client = join();
    await tick();
    expect(client.take()).toContainEqual(["drops", { drops: [{ name: "in", state: "ok", words: null, waiting: 3 }] }]);
    drops = [{ ...state, lastCompletePoll: "2026-03-01T00:00:00.000Z" }];
    await tick();
    expect(client.take()).toEqual([]);
    drops = [{ ...state, lastError: { code: null, message: "no route to host", hint: null } }];
    await tick();
    expect(client.take()).toContainEqual([
      "drops",
      { drops: [{ name: "in", state: "trouble", words: "no route to host", waiting: 3 }] },
    ]);
  });

  it("is one of many that share one count, which takes a small part of the time", async () => {
    const clients = [join(), join(), join("eve")];
    countTakesMs = 500;
    for (let seconds = 0; seconds < 30; seconds += 1) {
      live.note(event(seconds, "run.confirmed"));
      await tick();
    }
    expect(counts).toBeLessThanOrEqual(4);
    expect(counts).toBeGreaterThanOrEqual(2);
    expect(new Set(clients.map(({ texts }) => texts)).size).toBe(1);
  });

  it("gets what changed during the pause of the count afterwards", async () => {
    const client = join();
    countTakesMs = 200;
    await tick();
    attention = 7;
    live.note(event(1, "run.quarantined"));
    for (let seconds = 0; seconds < 9; seconds += 1) await tick();
    expect(client.take()).toContainEqual(["attention", { total: 7 }]);
  });

  it("learns of concerns that no file announces", async () => {
    const client = join();
    await tick();
    attention = 3;
    for (let seconds = 0; seconds < 11; seconds += 1) await tick();
    expect(client.take()).toContainEqual(["attention", { total: 3 }]);
  });

  it("is disconnected when its session has ended", async () => {
    const client = join();
    client.mayStay = false;
    for (let seconds = 0; seconds < 16 && !client.isGone; seconds += 1) await tick();
    expect(client.isGone).toBe(true);
  });

  it("is one of at most eight of a person, and 64 in all", () => {
    const own = Array.from({ length: 8 }, () => join());
    expect(() => join()).toThrow("8 pages of ada");
    own[0]?.end();
    join();
    for (let other = 0; other < 56; other += 1) join(`p${other % 10}`);
    expect(() => join("eve")).toThrow("64 in all");
  });

  it("is not waited for at the end", async () => {
    const client = join();
    await live.close();
    expect(client.isGone).toBe(true);
    expect(() => join()).toThrow();
  });
});

describe("the stream of a browser", () => {
  let console: TestConsole;
  let stream: LiveUpdates;
  beforeEach(async () => {
    stream = new LiveUpdates({ clock: systemClock, log: silentLog });
    console = await startConsole({}, [], stream);
  });
  afterEach(async () => {
    await console.close();
    await stream.close();
  });

  it("brings the events of a session, and is refused without one", async () => {
    expect((await fetch(`${console.server.url}/operations/live`)).status).toBe(401);
    const browser = openBrowser(console.server.url);
    await browser.ask(console.server.consoleLink("ada") ?? "");
    const answer = await browser.ask("/operations/live");
    expect(answer.headers.get("content-type")).toContain("text/event-stream");
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader?.read())?.value).toMatch(/^event: state\ndata: \{.*\}\n\n$/);
    stream.note(event(7, "run.held"));
    expect((await reader?.read())?.value).toContain('"id":7');
    await reader?.cancel();
  });

  it("is refused in words when a person has too many", async () => {
    const browser = openBrowser(console.server.url);
    await browser.ask(console.server.consoleLink("ada") ?? "");
    const answers = await Promise.all(Array.from({ length: 8 }, () => browser.ask("/operations/live")));
    const refused = await browser.ask("/operations/live");
    expect(refused.status).toBe(409);
    expect(await refused.json()).toMatchObject({ code: "HG-OPS-009" });
    await answers[0]?.body?.cancel();
    await until("one has gone", async () => {
      const again = await browser.ask("/operations/live");
      await again.body?.cancel();
      return again.status === 200;
    });
    for (const answer of answers.slice(1)) await answer.body?.cancel();
  });

  it("ends for a client that does not read", async () => {
    const browser = openBrowser(console.server.url);
    await browser.ask(console.server.consoleLink("ada") ?? "");
    let isOver = false;
    const add = stream.add.bind(stream);
    stream.add = (client, person) => {
      client.onGone(() => {
        isOver = true;
      });
      add(client, person);
    };
    const asked = get(`${console.server.url}/operations/live`, { headers: { cookie: browser.cookie } }, (answer) => {
      answer.pause();
    });
    const path = "x".repeat(200_000);
    await until("it is disconnected", async () => {
      for (let id = 0; id < 50; id += 1) stream.note({ ...event(id, "run.mapped"), path });
      return isOver;
    });
    asked.destroy();
  });
});
