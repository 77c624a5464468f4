/** Mappers that misbehave: each ends its own run, with a reason, and nothing else. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { digestMapper } from "#mapping/mapper-files.ts";
import { createCatalogue } from "#mapping/workers/catalogue.ts";
import { createInspector } from "#mapping/workers/inspector.ts";
import { startLoneHost } from "../workers/lone-host.ts";
import { GOOD, poolOf, writeMapper } from "../workers/pool-rig.ts";
import { temporaryFolder } from "./kit.ts";

const SMALL = { memory: 60_000_000 };
/** Waits until a file exists: the run beside must be unharmed while it continues. */
const slow = (marker: string) =>
  `const { existsSync } = await import("node:fs"); while (!existsSync(${JSON.stringify(marker)})) ` +
  `await new Promise((r) => setTimeout(r, 10)); ${GOOD}`;

describe("a mapper ends only its own run", () => {
  const bodies: readonly (readonly [what: string, body: string, code: string, words: RegExp])[] = [
    ["exits", "process.exit(3)", "HG-MAP-011", /ended its thread with exit code 3/],
    ["exits below zero", "process.exit(-1)", "HG-MAP-011", /ended its thread with exit code -1/],
    ["exits well", "process.exit(0)", "HG-MAP-011", /exit code 0/],
    ["kills its process", "process.kill(process.pid, 'SIGKILL')", "HG-MAP-011", /ended its process with SIGKILL/],
    ["aborts", "process.abort()", "HG-MAP-007", /process\.abort\(\) is not supported/],
    ["allocates objects", "const kept = []; for (;;) kept.push({ a: [kept.length] })", "HG-MAP-010", /60 MB/],
    [
      "allocates buffers",
      "const kept = []; for (;;) { kept.push(Buffer.alloc(1e6, 1)); await null; }",
      "HG-MAP-010",
      /60 MB/,
    ],
    [
      "allocates array buffers without a pause",
      "const kept = []; for (;;) kept.push(new Uint8Array(1e6).fill(1))",
      "HG-MAP-010",
      /60 MB/,
    ],
    [
      "writes to the channel of its process",
      "(await import('node:fs')).writeSync(3, 'x'.repeat(10_000)); for (;;);",
      "HG-MAP-011",
      /wrote to the channel between its process and the gateway/,
    ],
    [
      "forges an answer on the channel of its process",
      `const body = (await import('node:v8')).serialize({ kind: 'ended', number: 1, ended: { end: 'answered' } });
        const head = Buffer.alloc(36); head.writeUInt32LE(body.length);
        (await import('node:fs')).writeSync(3, Buffer.concat([head, body])); for (;;);`,
      "HG-MAP-011",
      /wrote to the channel between its process and the gateway/,
    ],
    ["throws undefined", "throw undefined", "HG-MAP-007", /threw: thrown value undefined/],
    ["throws null", "throw null", "HG-MAP-007", /threw: thrown value null/],
    [
      "throws what throws when it is looked at",
      "throw new Proxy(() => {}, new Proxy({}, { get() { throw 'trap'; } }))",
      "HG-MAP-007",
      /threw/,
    ],
    [
      "throws an error whose message throws",
      "throw Object.defineProperty(new Error(), 'message', { get() { throw undefined; } })",
      "HG-MAP-007",
      /threw/,
    ],
    [
      "fails where nobody awaits it",
      "setTimeout(() => { throw new Error('late') }); await new Promise(() => setInterval(() => {}, 1000))",
      "HG-MAP-011",
      /left work behind that failed: late/,
    ],
    ["rejects where nobody awaits it", `Promise.reject(new Error('forgotten')); ${GOOD}`, "HG-MAP-011", /forgotten/],
    [
      "closes its channel",
      "(await import('node:fs')).closeSync(3); for (;;) await new Promise((r) => setTimeout(r, 5))",
      "HG-MAP-011",
      /ended its process/,
    ],
  ];

  it("and does not affect the concurrent run", async () => {
    const marker = join(await temporaryFolder(), "done");
    const bad = Object.fromEntries(bodies.map(([what, body]) => [what.replaceAll(" ", "-"), body]));
    const { map, folder } = await poolOf({ ...bad, beside: slow(marker) }, { ...SMALL, count: 2 });
    const beside = map("beside");
    for (const [what, , code, words] of bodies) {
      const result = await map(what.replaceAll(" ", "-"));
      expect(result, what).toMatchObject({ status: "failed", reason: { code } });
      expect(result.status === "failed" && result.reason.message, what).toMatch(words);
    }
    await writeFile(marker, "");
    expect(await beside).toMatchObject({ status: "mapped", points: 1 });
    const left = (await readdir(folder)).filter((name) => name.includes(".segment"));
    expect(left.sort()).toEqual(["beside.segment"]);
  }, 180_000);
});

/** A reading with this value, and the value in the segment. */
const emitting = (value: string) =>
  `emit({ target: { variableId: 1 }, date: "2026-03-01T00:00:00Z", value: ${value} });`;
const valueIn = async (folder: string, name: string): Promise<unknown> =>
  JSON.parse((await readFile(join(folder, `${name}.segment`), "utf8")).split("\n")[0] ?? "")[0].data[0].value;

describe("a mapper that does not end", () => {
  it("is ended at the time limit, whether it computes or waits", async () => {
    const { map } = await poolOf({ waits: "await new Promise(() => {})" }, { timeLimit: 300 });
    expect(await map("waits")).toMatchObject({ status: "failed", reason: { code: "HG-MAP-009" } });
  });

  it("that logs too much is mapped, and the first lines are kept", async () => {
    const { map, lines } = await poolOf({
      talks: `const { writeSync } = await import("node:fs");
        for (let i = 0; i < 50_000; i += 1) log.warn("line " + i + "x".repeat(2_000));
        console.error("gone"); process.stdout.write("gone too");
        for (let i = 0; i < 500; i += 1) try { writeSync(2, "y".repeat(1_000)); } catch {}
        ${GOOD}`,
    });
    expect(await map("talks")).toMatchObject({ status: "mapped" });
    await expect.poll(() => lines.join("")).toContain("49802 more lines of this mapper about this file were left out");
    expect(lines.filter((line) => !/line \d+x|left out/.test(line))).toEqual([]);
    expect(lines.length).toBe(201);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(1_500);
  });
});

describe("the host of a mapper", () => {
  const counting = `globalThis.count = (globalThis.count ?? 0) + 1; ${emitting("globalThis.count")}`;

  it("is kept for the next file of the same mapper, and never used for another mapper", async () => {
    const poison = `JSON.stringify = () => "poison"; Array.prototype.map = () => []; ${counting}`;
    const { map, folder } = await poolOf({ poison, counting }, { count: 1 });
    for (const name of ["counting", "poison", "counting"]) await map(name);
    expect(await map("counting")).toMatchObject({ status: "mapped", points: 1 });
    expect(await valueIn(folder, "counting")).toBe(3);
  });

  it("is replaced when a file leaves a timer behind", async () => {
    const leave = "setTimeout(() => Promise.reject(new Error('late')), 60_000);";
    const body = `${counting}; log.info("file " + globalThis.count + " of its host"); ${leave}`;
    const { map, lines } = await poolOf({ leaves: body }, { count: 1 });
    for (let files = 0; files < 2; files += 1)
      expect(await map("leaves")).toMatchObject({ status: "failed", reason: { code: "HG-MAP-040" } });
    expect(lines.filter((line) => line.includes("file 1 of its host")).length).toBe(2);
    expect(lines.join("")).toContain("left Timeout behind after in/input.csv");
  });

  it("permits no network, programs, writes to other files, other processes, or threads with more rights", async () => {
    const { map, folder, lines } = await poolOf({
      reaches: `const refused = [];
        const { Worker } = await import("node:worker_threads");
        const module = await import("node:module");
        const program = "process.kill(process.ppid, 0)";
        for (const reach of [
          async () => {
            const { connect } = await import("node:net");
            await new Promise((_, no) => connect(9, "127.0.0.1").on("error", no));
          },
          async () => (await import("node:child_process")).execSync("true"),
          async () => (await import("node:fs")).writeFileSync("/var/headgate-test", ""),
          () => process.kill(process.ppid, 0),
          () => process.kill(0, "SIGTERM"),
          () => process._kill(process.ppid, 0),
          () => process._debugProcess(process.ppid),
          () => process.chdir("/"),
          () => new Worker(program, { eval: true }),
          () => new Worker(program, { eval: true, execArgv: [] }),
          async () => {
            const { DatabaseSync } = await import("node:sqlite");
            new DatabaseSync(":memory:").exec("VACUUM INTO '/var/headgate-db'");
          },
          () => new (process.getBuiltinModule("node:sqlite").DatabaseSync)("/var/headgate-db"),
          () => new (module.createRequire(import.meta.url)("node:sqlite").DatabaseSync)(":memory:"),
          async () => (await import("node:sqlite")).backup(null, "/var/headgate-db"),
          async () => (await import("node:v8")).setFlagsFromString("--redirect-code-traces"),
          () => process.getBuiltinModule("v8").setFlagsFromString("--redirect-code-traces"),
          async () => (await import("node:os")).setPriority(process.ppid, 19),
          () => process.getBuiltinModule("os").setPriority(process.ppid, 19),
          async () => new (await import("node:inspector")).Session().connectToMainThread(),
        ])
          try {
            await reach();
            log.info("not refused: " + reach);
          } catch (thrown) {
            const isRefused = /restricted|a mapper may not|not supported/.test(thrown.message);
            refused.push(isRefused);
            if (!isRefused) log.info(reach + ": " + thrown.message);
          }
        ${emitting("refused.filter(Boolean).length")}`,
    });
    expect(await map("reaches")).toMatchObject({ status: "mapped" });
    expect(lines.map((line) => JSON.parse(line)).filter(({ level }) => level === "info")).toEqual([]);
    expect(await valueIn(folder, "reaches")).toBe(19);
  });

  it("that is killed from outside is not a fault of the file: the file is mapped once more", async () => {
    const note = join(await temporaryFolder(), "pid");
    const { map, lines } = await poolOf({
      once: `const { existsSync, writeFileSync } = await import("node:fs");
        if (!existsSync(${JSON.stringify(note)})) { writeFileSync(${JSON.stringify(note)}, String(process.pid)); for (;;); }
        ${GOOD}`,
    });
    const mapped = map("once");
    process.kill(await pidIn(note), "SIGKILL");
    expect(await mapped).toMatchObject({ status: "mapped", points: 1 });
    expect(lines.join("")).toContain("ended its process with SIGKILL");
  });

  it("ends with its gateway, though a mapper keeps it busy", async () => {
    const folder = await temporaryFolder();
    const note = join(folder, "pid");
    await writeMapper(
      folder,
      "busy",
      `(await import("node:fs")).writeFileSync(${JSON.stringify(note)}, String(process.pid)); for (;;);`,
    );
    const gateway = fork(join(import.meta.dirname, "../workers/lone-pool.ts"), [folder, "busy"], {
      execArgv: [],
    });
    const pid = await pidIn(note);
    await killed(gateway);
    await expect.poll(() => isAlive(pid), { timeout: 60_000 }).toBe(false);
  });

  it("ends itself for its memory where it cannot be measured from outside", async () => {
    const folder = await temporaryFolder();
    await writeMapper(folder, "grows", "", "const kept = []; for (;;) kept.push(new Uint8Array(1e6).fill(1));");
    const limits = { bytesMax: 250_000_000, threads: 1, heapMax: 1_000 };
    const { child, send } = startLoneHost({ parent: process.pid, ...limits, caches: [], own: null });
    let said = "";
    child.stderr?.on("data", (text) => (said += text));
    const modulePath = join(folder, "grows.ts");
    const request = { kind: "describe" as const, modulePath, digest: await digestMapper(modulePath) };
    send({ kind: "task", number: 1, request });
    const [, signal] = await once(child, "close");
    expect([signal, said]).toEqual(["SIGKILL", expect.stringContaining("over the limit of memory")]);
  });
});

it(
  "the catalogue lists mappers that never finish loading, or end their process, with the reason, and " +
    "all the others",
  async () => {
    const folder = await temporaryFolder();
    await writeMapper(folder, "good", GOOD);
    await writeMapper(folder, "hangs", GOOD, "for (;;);");
    await writeMapper(folder, "leaves", GOOD, "process.exit(0);");
    const catalogue = createCatalogue(
      [folder],
      createInspector({ memory: 100_000_000, loadLimit: 1_500, caseLimit: 1_500 }),
    );
    try {
      const summaries = new Map((await catalogue.list()).map(({ identity, summary }) => [identity.name, summary]));
      expect(summaries.get("hangs")).toContain("cannot be loaded: it took longer than 1.5 s");
      expect(summaries.get("leaves")).toContain("cannot be loaded: it ended its thread with exit code 0");
      expect(summaries.get("good")).toBe("of a test");
    } finally {
      await catalogue.close();
    }
  },
);

/** The number that a process writes into a file when it begins. */
async function pidIn(path: string): Promise<number> {
  let text = "";
  await expect
    .poll(async () => (text = await readFile(path, "utf8").catch(() => "")), { timeout: 60_000 })
    .not.toBe("");
  return Number(text);
}

async function killed(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

/** A zombie that nobody has collected yet counts as dead. */
async function isAlive(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return status !== "" && !/^State:\s+Z/m.test(status);
}
