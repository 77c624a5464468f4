/** An operator's day, played by a script: what happens at drops and services while nobody looks. */
import { once } from "node:events";
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createLog } from "#core/log.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { type Gateway, startGateway } from "#gateway/gateway.ts";
import { Reloading } from "#gateway/reload.ts";
import { drop, GatewayRig, oneReading, trigger } from "../runs/gateway-rig.ts";
import { headgate } from "../runs/in-process.ts";
import { ReadableBase } from "../runs/readable-base.ts";
import { JumpingClock } from "../support/jumping-clock.ts";
import { PATIENTLY, until } from "./wait.ts";

vi.setConfig(PATIENTLY);

let rig: GatewayRig;
beforeAll(async () => {
  rig = await GatewayRig.start();
});
afterAll(() => rig.close());

interface Day {
  readonly gateway: Gateway;
  readonly clock: JumpingClock;
  /** Lines of the log that warn. */
  readonly warnings: readonly string[];
}

/** A gateway on a clock that is set forward where the operator's day is long. */
async function startDay(drops: readonly object[], more: object = {}): Promise<Day> {
  for (const { name } of drops as readonly { readonly name: string }[])
    mkdirSync(join(rig.folder, name), { recursive: true });
  rig.configure({ drops, ...more });
  const clock = new JumpingClock();
  const warnings: string[] = [];
  const log = createLog("warn", { write: (line) => void warnings.push(line) });
  const gateway = await startGateway(loadGatewayConfig(rig.config), { log, clock });
  return { gateway, clock, warnings };
}

async function eventsOf({ gateway }: Day, path: string): Promise<readonly string[]> {
  const files = await gateway.ledger.trace(path);
  return files.flatMap(({ events }) => events.map(({ what }) => what));
}

async function statesOf({ gateway }: Day, path: string): Promise<readonly string[]> {
  const files = await gateway.ledger.trace(path);
  return files.flatMap(({ runs }) => runs.map(({ run }) => run.state));
}

describe("a writer that pauses", () => {
  const ROWS = 48;

  function rowsFrom(variable: number, from: number, to: number): string {
    return Array.from({ length: to - from }, (_, index) => {
      const day = new Date(Date.UTC(2026, 0, 1 + from + index)).toISOString();
      return `${variable},${day},${from + index}\n`;
    }).join("");
  }

  const pauses = [
    ["5 s", 5],
    ["15 s", 15],
    ["2 min", 120],
    ["10 min", 600],
  ] as const;
  const cases = pauses.flatMap(([words, seconds]) =>
    (["archive", "delete"] as const).map((ending) => ({ words, seconds, ending })),
  );

  test.each(cases)("with $words loses no reading, with delivered: $ending", async ({ seconds, ending }) => {
    const name = `pauses-${seconds}-${ending}`;
    const variable = await rig.variable(name);
    const delivered = ending === "delete" ? "delete" : { archive: "archive" };
    const day = await startDay([drop(name, { settle: {}, finish: { delivered } })]);
    try {
      const path = `${name}.csv`;
      const file = openSync(join(rig.folder, name, path), "a");
      writeSync(file, `variable_id,date,value\n${rowsFrom(variable, 0, ROWS / 2)}`);
      await until("the file is seen", async () => (await day.gateway.ledger.trace(path)).length > 0);
      await passTime(day, seconds);
      writeSync(file, rowsFrom(variable, ROWS / 2, ROWS));
      closeSync(file);
      await until("all readings are stored", async () => {
        await passTime(day, 30);
        return Object.keys(await rig.stored(variable)).length === ROWS;
      });
      await until("all runs are at rest", async () =>
        (await statesOf(day, path)).every((state) => state === "confirmed"),
      );
      const events = await eventsOf(day, path);
      const grewLater = events.includes("source.changed-later");
      // A slow start of the mapper lets the file grow before the end of its run, which its own event says.
      const grew = grewLater || events.includes("source.changed");
      // What pauses for less than the default waits is one file; the rest is noticed, and said.
      expect(grew).toBe((await day.gateway.ledger.trace(path)).length > 1);
      expect(day.warnings.some((line) => line.includes("after it was finished"))).toBe(grewLater);
      if (seconds > 15) return;
      expect(grew).toBe(false);
      // For `headgate check`.
      const pause = await day.gateway.ledger.finishedFiles.growthPause(name);
      expect(pause?.pauseMs).toBeGreaterThanOrEqual(seconds * 1000);
    } finally {
      await day.gateway.stop();
    }
  });

  /** In steps, so that polls and looks happen in between. */
  async function passTime({ clock, gateway }: Day, seconds: number): Promise<void> {
    for (let left = seconds; left > 0; left -= 5) {
      clock.jump(Math.min(5, left) * 1000);
      await gateway.pulse();
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
});

describe("an archive that is moved", () => {
  const list = (folder: string) => readdirSync(join(rig.folder, folder), { recursive: true }).map(String).sort();

  test("causes no repeated push, after a live change of its place, a renamed folder and a restart", async () => {
    const name = "moved";
    const variable = await rig.variable(name);
    const dropAt = (archive: string) => drop(name, { finish: { delivered: { archive } } });
    let day = await startDay([dropAt("archive")]);
    const delivered = () =>
      until("the file is archived", async () => (await eventsOf(day, "moved.csv")).includes("source.archived"));
    try {
      rig.put(join(name, "moved.csv"), `variable_id,date,value\n${variable},2026-03-01T00:00:00Z,1\n`);
      await delivered();
      const archived = list(`${name}/archive`);
      rig.configure({ drops: [dropAt("done")] });
      await day.gateway.exchange(loadGatewayConfig(rig.config));
      await lookedThrough(day, name);
      await day.gateway.stop();
      day = await startDay([dropAt("done")]);
      await lookedThrough(day, name);
      renameSync(join(rig.folder, name, "archive"), join(rig.folder, name, "of-last-year"));
      await lookedThrough(day, name);
      expect(list(`${name}/of-last-year`)).toEqual(archived);
      const runs = await day.gateway.ledger.recentRuns(10);
      expect(runs.filter((run) => run.drop === name)).toHaveLength(1);
      // Every file that is seen is in a visible state, with the reason for it.
      const [seen] = await day.gateway.ledger.arrivalsIn(name, ["skipped"]);
      expect(seen).toMatchObject({ reason: expect.stringContaining("run") });
      expect(dirname(seen?.path ?? "")).toBe("of-last-year");
    } finally {
      await day.gateway.stop();
    }
  });

  /** A file that came afterwards was taken, so whatever else lay there had its turn. */
  async function lookedThrough(day: Day, name: string): Promise<void> {
    const path = `later-${performance.now()}.txt`;
    rig.put(join(name, path), "no trigger claims this");
    for (const round of [1, 2])
      await until(`a later file is seen, ${round}`, async () =>
        (await day.gateway.ledger.trace(path)).some(({ arrival }) => arrival.state === "unmatched"),
      );
  }
});

describe("an outage of the service longer than confirm.within", () => {
  test("loses no reading, confirms none falsely, and is logged", async () => {
    const name = "away";
    const variable = await rig.variable(name);
    const base = await ReadableBase.start(rig.hub.url);
    const services = [{ ...rig.service("hub"), base: base.url }];
    const day = await startDay([drop(name)], {
      services,
      triggers: [trigger("standard", { guard: "push" })],
    });
    try {
      base.state = "away";
      rig.put(join(name, "away.csv"), oneReading(variable, 1));
      const isIn = async (state: string) => {
        await day.gateway.pulse();
        return (await statesOf(day, "away.csv")).includes(state);
      };
      await until("it is accepted", () => isIn("accepted"));
      await until("it is unconfirmed", async () => {
        day.clock.jump(60_000);
        return await isIn("unconfirmed");
      });
      await until("the log tells", () => day.warnings.some((line) => line.includes("away.csv at away is unconfirmed")));
      base.state = "there";
      await until("it is confirmed", async () => {
        day.clock.jump(60_000);
        return await isIn("confirmed");
      });
      expect(await rig.stored(variable)).toEqual({ "2026-03-01": 1 });
    } finally {
      await day.gateway.stop();
      await base.close();
    }
  });
});

describe("a release without structure", () => {
  test("is refused with the number of readings that would be discarded, and the file stays held", async () => {
    const name = "structureless";
    const day = await startDay([drop(name)]);
    try {
      rig.put(join(name, "nowhere.csv"), oneReading(99_999_999, 1));
      await until("it is held", async () => (await statesOf(day, "nowhere.csv")).includes("held"));
      const [file] = await day.gateway.ledger.trace("nowhere.csv");
      const refused = await headgate("release", file?.runs[0]?.run.id ?? "", "-c", rig.config);
      expect(refused).toMatchObject({
        code: 1,
        stderr: expect.stringContaining("1 of its 1 readings would be discarded"),
      });
      expect(await statesOf(day, "nowhere.csv")).toEqual(["held"]);
      await until("the log tells", () =>
        day.warnings.some((line) => line.includes("nowhere.csv at structureless is held")),
      );
    } finally {
      await day.gateway.stop();
    }
  });
});

describe("what needs a person", () => {
  const name = "matters";
  const told: string[] = [];
  const receiver = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (part) => {
      body += part;
    });
    request.on("end", () => {
      told.push(...JSON.parse(body).items.map(({ kind }: { kind: string }) => kind));
      response.end();
    });
  });
  beforeAll(async () => {
    await once(receiver.listen(0, "127.0.0.1"), "listening");
  });
  afterAll(() => void receiver.close());

  test("is shown by console, command, health, metrics, log and notification, each matter by its kind", async () => {
    const { port } = receiver.address() as AddressInfo;
    const receivers = [{ name: "programs", kind: "webhook", url: `http://127.0.0.1:${port}/` }];
    const sections = { drops: [drop(name)], notifications: { receivers, every: "0s", group: "0s" } };
    const variable = await rig.variable(name);
    mkdirSync(join(rig.folder, name), { recursive: true });
    rig.configure(sections);
    const lines: string[] = [];
    const log = createLog("warn", { write: (line) => void lines.push(line) });
    const clock = new JumpingClock();
    const running = await Reloading.start({
      load: (files) => loadGatewayConfig(rig.config, files),
      start: (config, configuration) => startGateway(config, { log, clock, configuration }),
      ...{ log, clock },
    });
    const { operationsUrl: url, operationsToken: token } = running.gateway;
    const ask = async (path: string) =>
      (await fetch(url + path, { headers: { authorization: `Bearer ${token}` } })).text();
    const wanted = ["configuration", "finish", "unmatched"];
    const ofDay = (all: readonly string[]) => [...new Set(all)].filter((kind) => wanted.includes(kind));
    const attention = async () =>
      JSON.parse(await ask("/operations/attention")) as { total: number; groups: { kind: string }[] };
    const kinds = async () => ofDay((await attention()).groups.map(({ kind }) => kind));
    const listed = async () => {
      const { stdout } = await headgate("quarantine", "-c", kept, "--json");
      return ofDay((JSON.parse(stdout) as { state: string }[]).map(({ state }) => state));
    };
    const kept = join(rig.folder, "kept.yaml");
    copyFileSync(rig.config, kept);
    try {
      // No trigger claims it.
      rig.put(`${name}/what-is-this.txt`, "a note");
      // The archive cannot be made.
      rig.put(`${name}/archive`, "a file of this name");
      rig.put(`${name}/delivered.csv`, oneReading(variable, 1));
      // A configuration with a fault.
      writeFileSync(rig.config, `${readFileSync(rig.config, "utf8")}\nnonsense: true\n`);
      running.recheck();
      await until("the console shows all", async () => isDeepStrictEqual(await kinds(), wanted));
      expect((await listed()).toSorted()).toEqual(wanted);
      const health = await ask("/health/ready");
      for (const words of ["unknown key nonsense", `delivered.csv at ${name} cannot be archived`, "what-is-this.txt"]) {
        expect(health).toContain(words);
        expect(lines.join("")).toContain(words.replace(` at ${name} cannot`, ` in drop ${name} could not`));
      }
      const metrics = await ask("/metrics");
      expect(metrics).toContain("headgate_configuration_valid 0");
      expect(metrics).toContain(`headgate_files_unfinished{drop="${name}"} 1`);
      expect(metrics).toContain(`headgate_files_unmatched{drop="${name}"} 2`);
      expect(JSON.parse(await ask("/operations/overview")).attention).toBe((await attention()).total);
      await until("they are notified", async () => {
        clock.jump(15_000);
        return wanted.every((kind) => told.includes(kind));
      });

      // Each is over when its cause is.
      rmSync(join(rig.folder, name, "archive"));
      rmSync(join(rig.folder, name, "what-is-this.txt"));
      copyFileSync(kept, rig.config);
      running.recheck();
      await until("nothing needs attention", async () => {
        clock.jump(60_000);
        return (await kinds()).length === 0;
      });
      expect(await listed()).toEqual([]);
    } finally {
      await running.stop();
    }
  });
});
