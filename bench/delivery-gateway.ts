/**
 * The real command on files that lie at a local drop, watched from outside: its process, those of the
 * mappers, and its ledger.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";

export interface GatewayWork {
  /** Holds `drop`; what the gateway writes comes into `state`. */
  readonly folder: string;
  /** Address of the service. */
  readonly url: string;
  readonly push?: Readonly<Record<string, unknown>>;
  readonly spool?: Readonly<Record<string, unknown>>;
  /** Sections of the configuration that it has instead of the usual ones. */
  readonly sections?: Readonly<Record<string, unknown>>;
  /** A ledger that it continues with a copy of. */
  readonly ledger?: string;
  /** Milliseconds after which it is told to stop; otherwise it ends when nothing is left to do. */
  readonly stopAfterMs?: number;
  /** Told with each look at the processes: seconds since the first poll, and CPU seconds of the gateway. */
  onLook?(seconds: number, cpu: number): void;
  /** Beside what is always given to `node`. */
  readonly nodeFlags?: readonly string[];
}

export interface GatewayAnswer {
  /** When its process was started, and when it ended, in milliseconds of the epoch. */
  readonly spawnedMs: number;
  readonly endedMs: number;
  /** When its drops were polled first, in milliseconds of the epoch. */
  readonly startedMs: number;
  /** Seconds from the first poll to the last acceptance. */
  readonly wall: number;
  /** Seconds from the first poll to the end, when sources are archived and inputs are kept. */
  readonly untilEnd: number;
  /** CPU seconds of the gateway, and of its mappers. */
  readonly cpu: number;
  readonly workersCpu: number;
  /** Largest resident memory in megabytes: of the gateway, and of all processes together as seen at one time. */
  readonly peak: number;
  readonly peakTogether: number;
  /** The same, where a page that processes share is divided among them. */
  readonly peakProportional: number;
  readonly runs: Readonly<Record<string, number>>;
  readonly points: number;
  /** Lines in the lives of the files. */
  readonly events: number;
  /** Why a run waits, or rests undelivered. */
  readonly reasons: readonly string[];
}

/** Of the sources, or of an installed package. */
export const PROGRAM = join(
  process.env["HEADGATE_BENCH_PACKAGE"] ?? join(import.meta.dirname, ".."),
  "src/headgate.js",
);

/** Between two looks at the processes, in milliseconds. */
const LOOK_MS = 50;

export async function runGateway(work: GatewayWork): Promise<GatewayAnswer> {
  mkdirSync(join(work.folder, "state"));
  if (work.ledger !== undefined) copyFileSync(work.ledger, join(work.folder, "state/ledger.sqlite"));
  const config = writeConfig(work);
  const untilIdle = work.stopAfterMs === undefined ? ["--until-idle"] : [];
  const args = [...(work.nodeFlags ?? []), PROGRAM, "gateway", "-c", config, ...untilIdle];
  const spawnedMs = Date.now();
  const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"] });
  const exited = once(child, "exit");
  let startedMs = Number.POSITIVE_INFINITY;
  const watched = watchProcesses(child, (cpu) => work.onLook?.((Date.now() - startedMs) / 1e3, cpu));
  startedMs = await startOf(child, exited);
  if (work.stopAfterMs !== undefined) {
    await new Promise((resolve) => setTimeout(resolve, work.stopAfterMs));
    child.kill("SIGTERM");
  }
  await exited;
  const endedMs = Date.now();
  clearInterval(watched.timer);
  const { lastMs, ...told } = readLedger(join(work.folder, "state/ledger.sqlite"));
  return {
    ...{ spawnedMs, startedMs, endedMs },
    wall: (lastMs - startedMs) / 1e3,
    untilEnd: (endedMs - startedMs) / 1e3,
    ...watched.seen,
    ...told,
  };
}

/** Answers its path. */
export function writeConfig({
  folder,
  url,
  push = {},
  spool = {},
  sections = {},
}: Pick<GatewayWork, "folder" | "url" | "push" | "spool" | "sections">): string {
  const who = { clientId: "bench", clientSecret: "bench", username: "bench", password: "bench" };
  const config = {
    services: [{ name: "sink", base: `${url}/base`, push: `${url}/push`, token: `${url}/token`, credentials: who }],
    ledger: { kind: "sqlite", path: join(folder, "state/ledger.sqlite") },
    spool: { path: join(folder, "state/spool"), ...spool },
    mappers: { folders: [] },
    workers: { count: 2 },
    drops: [{ kind: "local", name: "bench", path: join(folder, "drop"), settle: { observations: 1 } }],
    triggers: [
      {
        name: "bench",
        fileNamePatternMatches: [{ filterType: "EndsWith", value: ".csv" }],
        mapper: "standard",
        // The sink has no structure to look at.
        guard: "push",
      },
    ],
    // The sink tells no outcomes.
    push: { confirm: { by: "none" }, ...push },
    operations: { listen: "127.0.0.1:0" },
    ...sections,
  };
  const path = join(folder, "state/gateway.yaml");
  // JSON is YAML.
  writeFileSync(path, JSON.stringify(config));
  return path;
}

/** When the gateway said that it started, which is when its drops are polled first; milliseconds of the epoch. */
async function startOf(child: ChildProcess, exited: Promise<unknown>): Promise<number> {
  if (child.stderr === null) throw new Error("the gateway has no log");
  const said: string[] = [];
  const started = Promise.withResolvers<number>();
  createInterface({ input: child.stderr }).on("line", (line) => {
    if (!line.startsWith("{")) said.push(line);
    else if (line.includes('"gateway started"'))
      started.resolve(Date.parse((JSON.parse(line) as { time: string }).time));
    else if (/"level":"(?:warn|error)"/.test(line)) said.push(line);
  });
  const first = await Promise.race([started.promise, exited.then(() => null)]);
  if (first === null) throw new Error(`the gateway did not start: ${said.join("\n")}`);
  return first;
}

/** Those of the child and its mappers, until the timer is cleared. */
export function watchProcesses(child: ChildProcess, onLook: (cpu: number) => void) {
  const seen = { cpu: 0, workersCpu: 0, peak: 0, peakTogether: 0, peakProportional: 0 };
  const perWorker = new Map<number, number>();
  const timer = setInterval(() => {
    if (child.pid === undefined) return;
    try {
      const own = usageOf(child.pid);
      seen.cpu = own.cpu;
      seen.peak = Math.max(seen.peak, own.peak);
      let together = own.resident;
      let proportional = proportionalOf(child.pid);
      for (const worker of childrenOf(child.pid)) {
        const { cpu, resident } = usageOf(worker);
        perWorker.set(worker, cpu);
        together += resident;
        proportional += proportionalOf(worker);
      }
      seen.workersCpu = [...perWorker.values()].reduce((sum, cpu) => sum + cpu, 0);
      seen.peakTogether = Math.max(seen.peakTogether, together);
      seen.peakProportional = Math.max(seen.peakProportional, proportional);
      onLook(seen.cpu);
    } catch {
      // A process that has just ended has nothing more to tell.
    }
  }, LOOK_MS);
  return { seen, timer };
}

function childrenOf(pid: number): readonly number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").split(" ").filter(Boolean).map(Number),
  );
}

/** CPU seconds, and megabytes now and at most. */
function usageOf(pid: number): { cpu: number; resident: number; peak: number } {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [user = 0, system = 0] = stat.slice(stat.lastIndexOf(")")).split(" ").slice(12, 14).map(Number);
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const megabytes = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1] ?? 0) / 1000;
  return { cpu: (user + system) / 100, resident: megabytes("VmRSS"), peak: megabytes("VmHWM") };
}

/** Megabytes, where a page that processes share counts in parts: those of Node's program are in each process. */
function proportionalOf(pid: number): number {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  return Number(/^Pss:\s+(\d+) kB/m.exec(rollup)?.[1] ?? 0) / 1000;
}

export function readLedger(path: string) {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    const one = (sql: string) => db.prepare(sql).get() as Record<string, number | string | null>;
    const states = db.prepare("SELECT state, count(*) AS count FROM runs GROUP BY state").all();
    const reasons = db.prepare("SELECT DISTINCT reason FROM runs WHERE reason IS NOT NULL LIMIT 3").all();
    const last = one("SELECT max(at) AS at FROM events WHERE what = 'run.accepted'")["at"];
    return {
      lastMs: Date.parse(String(last)),
      runs: Object.fromEntries(states.map((row) => [String(row["state"]), Number(row["count"])])),
      points: Number(one("SELECT sum(accepted) AS points FROM runs")["points"] ?? 0),
      events: Number(one("SELECT count(*) AS count FROM events")["count"]),
      reasons: reasons.map((row) => String(row["reason"])),
    };
  } finally {
    db.close();
  }
}
