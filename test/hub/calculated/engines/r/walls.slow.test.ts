/**
 * The walls around scripts, from inside: everything is tried from R itself, and by JavaScript as a script that found a
 * way to it could. Each script ends its own calculation alone; the next one runs, and finds nothing of it.
 */
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { Worker } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { CalculationEngine } from "#hub/calculated/engines/engine.ts";
import { WebrEngine } from "#hub/calculated/engines/r/r-engine.ts";
import { PATIENTLY } from "../../../../e2e/wait.ts";
import { engineNames, messageOf, openEngine, run } from "./engines.ts";

vi.setConfig(PATIENTLY);

const GOOD = "list(TimeSeries = data.frame(Dates = 0L, Values = sum(c(20, 22))))";
const FORTY_TWO = { kind: "computed", values: Float64Array.of(42) };

describe.each(engineNames())("wild scripts on %s", (name) => {
  let engine: CalculationEngine;
  beforeAll(() => {
    engine = openEngine(name, { timeout: "20s", memory: "200MB", outputRows: 1_000, outputBytes: "4MB" });
  });
  afterAll(() => engine.close());

  test.each([
    ["an error", 'f <- function() {\n  stop("ouch")\n}\nf()', /^line 2: ouch$/],
    ["code that is no R", "x <- 1\na b", /^line 2, column 3: unexpected symbol$/],
    ["a vector of 10 GB", "x <- numeric(1.25e9)", /cannot allocate|negative|too large/],
    ["memory in small parts", "x <- list(); for (i in 1:1e4) x[[i]] <- numeric(1e6) + i", /cannot allocate|memory/],
    ["quit()", "quit()", /quit\(\) would end R/],
    ["quit() of base", "base::quit()", /ended R/],
    ["calls without end", "f <- function(x) f(x + 1)\nf(1)", /nested too deeply|stack/],
    ["no list", "42", /must be a list with `TimeSeries`.*class numeric/],
    ["no rows at all", "list()", /gave no TimeSeries/],
    ["errors alone", 'list(Errors = "no data")', /the script reports: no data/],
    ["no dates", "list(TimeSeries = data.frame(Values = 1))", /has no column Dates/],
    ["dates as text", 'list(TimeSeries = data.frame(Dates = "2026-01-01", Values = 1))', /Dates.*class character/],
    ["dates that are missing", "list(TimeSeries = data.frame(Dates = c(1, NA), Values = 1))", /no date in row 2/],
    ["dates in milliseconds", "list(TimeSeries = data.frame(Dates = 1.7e12, Values = 1))", /milliseconds/],
    ["values as factors", 'list(TimeSeries = data.frame(Dates = 1, Values = factor("a")))', /Values.*class factor/],
    ["versions as numbers", "list(TimeSeries = data.frame(Dates = 1, Values = 1, Version = 1.1))", /Version.*numeric/],
    ["too many rows", "list(TimeSeries = data.frame(Dates = 1:2000, Values = 1))", /2000 rows, more than the 1000/],
    ["too many bytes", "list(TimeSeries = data.frame(Dates = 1:1e6, Values = 1))", /output.*over the limit/],
    ["commands", 'writeLines(system("id", intern = TRUE)); stop("ran")', /unsupported|^line 1: ran$/],
  ])("%s", async (_, script, words) => {
    expect(await messageOf(run(engine, script))).toMatch(words);
    expect(await run(engine, GOOD)).toMatchObject(FORTY_TWO);
  });

  test("a script without end is ended at its time, also inside of compiled code", async () => {
    const hasty = openEngine(name, { timeout: "3s" });
    for (const script of ["repeat 1", "Sys.sleep(60)"])
      expect(await messageOf(run(hasty, script))).toContain("took longer than 3 s");
    await hasty.close();
  });

  test("a cancelled run ends, and the next one runs", async () => {
    const stop = new AbortController();
    const running = engine.run({ ...EMPTY, formula: "repeat 1" }, stop.signal);
    stop.abort(new Error("no longer wanted"));
    await expect(running).rejects.toThrow("no longer wanted");
    expect(await run(engine, GOOD)).toMatchObject(FORTY_TWO);
  });

  test("nothing of a script is there for the next one", async () => {
    const traces = [
      "left <<- 1",
      'sum <- function(...) 13; assign("sum", sum, envir = globalenv())',
      'unlockBinding("c", baseenv()); assign("c", function(...) 13, envir = baseenv())',
      'options(digits = 3, OutDec = ",")',
      'Sys.setenv(LEFT = "1"); set.seed(1)',
      'setwd(tempdir()); writeLines("left", "left.txt"); writeLines("left", "/tmp/left.txt")',
      'setwd("/tmp")',
      "library(tools); library(splines)",
      'attach(list(left = 1)); con <- file("/dev/null", "r")',
    ];
    const clean = `stopifnot(!exists("left"), is.primitive(c), is.primitive(sum), getOption("digits") == 7,
      getOption("OutDec") == ".", Sys.getenv("LEFT") == "", !exists(".Random.seed", globalenv()),
      !file.exists("left.txt"), !file.exists(file.path(tempdir(), "left.txt")), !file.exists("/tmp/left.txt"),
      !("package:tools" %in% search()), nrow(showConnections()) == 0)
      ${GOOD}`;
    const place = "list(TimeSeries = data.frame(Dates = 0L, Values = 42), Errors = c(getwd(), format(Sys.umask())))";
    const begun = await run(engine, place);
    for (const trace of traces) {
      await run(engine, `${trace}\n${GOOD}`);
      expect(await run(engine, clean), trace).toMatchObject(FORTY_TWO);
      expect(await run(engine, place), trace).toEqual(begun);
    }
  });

  test("nothing of the machine is seen: no file of it, no environment, no network", async () => {
    const server = createServer((socket) => socket.end("reached"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    let reached = 0;
    server.on("connection", () => (reached += 1));
    const { port } = server.address() as AddressInfo;
    const here = import.meta.filename;
    const script = `stopifnot(!file.exists("${here}"), !file.exists("/root"), !file.exists("/etc/passwd"))
      seen <- tryCatch(readLines(socketConnection("127.0.0.1", ${port}, timeout = 2)), error = function(e) "none")
      page <- tryCatch(suppressWarnings(readLines("http://127.0.0.1:${port}/")), error = function(e) "none")
      stopifnot(identical(seen, "none"), identical(page, "none"))
      stopifnot(Sys.getenv("NODE_ENV") == "", Sys.getenv("VITEST") == "")
      ${GOOD}`;
    expect(await run(engine, script)).toMatchObject(FORTY_TWO);
    expect(reached).toBe(0);
    await new Promise((resolve) => server.close(resolve));
  });
});

const EMPTY = {
  accountId: 1,
  formula: "",
  defaultVersion: "",
  zone: "UTC",
  window: { fromMs: 0, toMs: 0 },
  variables: [],
  forms: [],
  constants: [],
};

describe("JavaScript under R", () => {
  const limits = {
    memory: 200e6,
    outputBytes: 4e6,
    outputRows: 1_000,
    timeoutMs: 60_000,
    processes: 1,
    idleMs: 60_000,
  };
  const built = (module: string) => `process.getBuiltinModule("${module}")`;
  let engine: WebrEngine;
  beforeAll(() => {
    engine = new WebrEngine({ ...limits, javaScript: true });
  });
  afterAll(() => engine.close());
  const javaScript = (code: string) => messageOf(run(engine, `webr::eval_js(${JSON.stringify(code)})`));

  test("is not there for scripts", async () => {
    const usual = openEngine("webr");
    expect(await messageOf(run(usual, 'webr::eval_js("1 + 1")'))).toContain("webr::eval_js is not there");
    await usual.close();
    expect(await javaScript("1 + 1")).toContain("JavaScript gave: 2");
  });

  test("reaches no file, program, thread, environment or other process", async () => {
    const fs = built("fs");
    const refused = [
      `${fs}.readFileSync("/etc/passwd")`,
      `${fs}.readFileSync("/proc/self/environ")`,
      `${fs}.readFileSync("/proc/" + process.ppid + "/environ")`,
      `${fs}.readdirSync("/")`,
      `${fs}.readFileSync(${JSON.stringify(import.meta.filename)})`,
      `${fs}.writeFileSync("${tmpdir()}/headgate-left", "")`,
      `${fs}.symlinkSync("/etc/passwd", "left")`,
      `${built("child_process")}.execSync("id")`,
      'process.execve("/bin/true", ["true"])',
      `new (${built("worker_threads")}.Worker)("1", { eval: true })`,
      `${built("inspector")}.open(0)`,
      'process.dlopen({ exports: {} }, "/lib/x.node")',
      `new (${built("wasi")}.WASI)({ version: "preview1", preopens: { "/": "/" } })`,
      `process.report.writeReport("${tmpdir()}/headgate-left")`,
      `${built("v8")}.writeHeapSnapshot("${tmpdir()}/headgate-left")`,
      `${built("v8")}.setHeapSnapshotNearHeapLimit(1)`,
      `${built("v8")}.setFlagsFromString("--trace-gc")`,
      `${built("trace_events")}.createTracing({ categories: ["node"] }).enable()`,
      "process.kill(process.ppid, 0)",
      "process.kill(0, 0)",
      "process._debugProcess(process.ppid)",
      `${built("net")}.createServer().listen(0)`,
      'new (process.getBuiltinModule("node:sqlite").DatabaseSync)(":memory:")',
    ];
    const words = /restricted|requires full|may not|disabled/;
    // All in one process: each of its own would take minutes. An error of R has a thousand characters at most.
    const notRefused = `${JSON.stringify([...refused, "1 + 1"])}.filter((code) => {
      try { (0, eval)(code); return true; } catch (thrown) { return !${words}.test(String(thrown)); }
    })`;
    expect(await javaScript(`JSON.stringify(${notRefused})`)).toContain('JavaScript gave: ["1 + 1"]');
    expect(await javaScript("JSON.stringify(process.env)")).toContain("JavaScript gave: {}");
    expect(readdirSync(tmpdir())).not.toContain("headgate-left");
  });

  test("reaches no server, also when the process stays for a while", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    let reached = 0;
    server.on("connection", () => (reached += 1));
    const { port } = server.address() as AddressInfo;
    // The answer of the run is replaced by what became of the connection.
    const code = `{
      const write = process.stdout.write.bind(process.stdout);
      process.stdout.write = () => true;
      const say = (text) => {
        const head = Buffer.alloc(5);
        head.writeUInt8(3);
        head.writeUInt32LE(Buffer.byteLength(text), 1);
        write(Buffer.concat([head, Buffer.from(text)]));
      };
      process.kill = () => true;
      const socket = ${built("net")}.connect(${port}, "127.0.0.1");
      socket.on("error", (error) => say("refused: " + error.code));
      socket.on("connect", () => say("connected"));
    }`;
    expect(await javaScript(code)).toBe("refused: ERR_ACCESS_DENIED");
    expect(reached).toBe(0);
    await new Promise((resolve) => server.close(resolve));
    expect(await run(engine, GOOD)).toMatchObject(FORTY_TWO);
  });

  test("that disturbs the channel ends its own calculation", async () => {
    expect(await javaScript(`${built("fs")}.writeSync(1, Buffer.alloc(64, 255))`)).toMatch(/disturbed|killed twice/);
    expect(await run(engine, GOOD)).toMatchObject(FORTY_TWO);
  });
});

test("a process serves one account, and ends for another account, when idle, and with the engine", async () => {
  const limits = {
    memory: 200e6,
    outputBytes: 4e6,
    outputRows: 1_000,
    timeoutMs: 60_000,
    processes: 1,
    javaScript: false,
  };
  const engine = new WebrEngine({ ...limits, idleMs: 60_000 });
  await run(engine, GOOD);
  const [first] = engine.pids;
  await run(engine, GOOD);
  expect(engine.pids).toEqual([first]);
  await run(engine, GOOD, { accountId: 2 });
  const [second] = engine.pids;
  expect(second).not.toBe(first);
  await expect.poll(() => isAlive(first)).toBe(false);
  await engine.close();
  await expect.poll(() => isAlive(second)).toBe(false);

  const brief = new WebrEngine({ ...limits, idleMs: 1 });
  await run(brief, GOOD);
  await expect.poll(() => brief.pids).toEqual([]);
  await brief.close();
});

test.each([
  ["interpreted", "repeat 1"],
  ["compiled", "x <- matrix(1, 3000, 3000); repeat x %*% x"],
])("a script that never ends, in %s code, ends with the thread that started it", async (_, script) => {
  const thread = new Worker(new URL("./script-thread.ts", import.meta.url), { workerData: script });
  const [pid] = await once(thread, "message");
  const begun = ticksOf(pid);
  // The script keeps its process busy.
  await expect.poll(() => ticksOf(pid)).toBeGreaterThan(begun + 50);
  await thread.terminate();
  // Its parent, this process, did not wait for it: what is left is the record of its end.
  await expect.poll(() => stateOf(pid)).toMatch(/^[ZX]?$/);
});

/** Hundredths of a second that a process has worked. */
function ticksOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return Number(fields[11]) + Number(fields[12]);
}

/** `Z`: it has ended, and its parent has not asked how; empty: it is gone. */
function stateOf(pid: number): string {
  try {
    return /^State:\s+(\S)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? "";
  } catch {
    return "";
  }
}

function isAlive(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(pid, 0);
  } catch {
    return false;
  }
}
