import { access, mkdir, readFile, writeFile } from "node:fs/promises";
import { constants, getPriority } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { silentLog } from "#core/log.ts";
import { onlyOne } from "#core/promises.ts";
import { createCatalogue } from "#mapping/workers/catalogue.ts";
import { createMappingPool } from "#mapping/workers/pool.ts";
import { temporaryFolder } from "../mapping/kit.ts";
import { GOOD, OPTIONS, poolOf, writeMapper } from "./pool-rig.ts";

describe("the pool", () => {
  it("maps a file by a mapper of an external folder into a segment, and passes on its log lines", async () => {
    const { map, folder, lines } = await poolOf({
      good: `log.info("hello"); console.log("from the console"); console.log(5, { a: [1.5] }, "%"); ${GOOD}`,
    });
    const result = await map("good");
    expect(result).toMatchObject({ status: "mapped", points: 1, batches: [{ sequence: "1", points: 1 }] });
    expect(JSON.parse((await readFile(join(folder, "good.segment"), "utf8")).split("\n")[0] ?? "")).toEqual([
      { variableId: 1, data: [{ date: "2026-03-01T00:00:00Z", value: 1 }] },
    ]);
    await expect.poll(() => lines.join("")).toContain("from the console");
    expect(lines.join("\n")).toContain("5 { a: [ 1.5 ] } %");
    expect(lines.join("")).toContain("hello");
  });

  it("ends an endless loop at the time limit, which does not count the wait for a free worker", async () => {
    const { map, folder } = await poolOf({ loop: "for (;;);", good: GOOD }, { count: 1, timeLimit: 1_000 });
    const [loop, second, good] = await Promise.all([map("loop"), map("loop"), map("good")]);
    for (const result of [loop, second])
      expect(result).toMatchObject({ status: "failed", reason: { code: "HG-MAP-009" } });
    expect(good).toMatchObject({ status: "mapped" });
    await expect(access(join(folder, "loop.segment"))).rejects.toThrow();
  });

  it("maps the file of a drop after at most one of another drop's, which has many", async () => {
    const { pool, job } = await poolOf({ good: GOOD }, { count: 1 });
    const done: string[] = [];
    const files = await Promise.all(["a", "a", "a", "a", "b"].map(async (drop) => ({ ...(await job("good")), drop })));
    await Promise.all(
      files.map(async (file) => {
        expect(await onlyOne(pool.map([file], new AbortController().signal))).toMatchObject({ status: "mapped" });
        done.push(file.drop);
      }),
    );
    expect(done.indexOf("b")).toBeLessThan(3);
  });

  it("maps the files of a drop of which one ran to the limit apart from those of others, and behind them", async () => {
    const own = `log.info("in process " + process.pid); if (file.name === "slow.csv") for (;;);`;
    const { pool, job, lines } = await poolOf({ own: own + GOOD }, { timeLimit: 1_000 }, 1);
    const map = async (drop: string, fileName: string) =>
      await onlyOne(pool.map([{ ...(await job("own")), drop, fileName }], new AbortController().signal));
    const processes = () => [...lines.join("").matchAll(/in process (\d+)/g)].map(([, id]) => Number(id));
    expect(await map("a", "slow.csv")).toMatchObject({ reason: { code: "HG-MAP-009" } });
    for (const drop of ["b", "a", "b"]) expect(await map(drop, "quick.csv")).toMatchObject({ status: "mapped" });
    await expect.poll(processes).toHaveLength(4);
    const [, first, apart, second] = processes();
    expect([first === second, first === apart]).toEqual([true, false]);
    const slow = map("a", "slow.csv");
    await expect.poll(processes).toHaveLength(5);
    const priority = getPriority(processes().at(-1));
    expect(priority).toBeGreaterThanOrEqual(constants.priority.PRIORITY_BELOW_NORMAL);
    await slow;
  });

  it("closes when a cancelled check of a version has ended, since it may write to the kept versions", async () => {
    const ended: string[] = [];
    const found = Promise.withResolvers<null>();
    const locate = () => found.promise.finally(() => ended.push("look"));
    const pool = createMappingPool(OPTIONS, [], silentLog, { locate });
    pool.prepare({ name: "good", digest: "0" });
    const closed = pool.close().then(() => ended.push("pool"));
    setImmediate(() => found.resolve(null));
    await closed;
    expect(ended).toEqual(["look", "pool"]);
  });

  it("cancels an endless loop at once, and the tasks that wait behind it", async () => {
    const { map, lines } = await poolOf({ loop: `log.info("in the loop"); for (;;);` }, { count: 1 });
    const stop = new AbortController();
    const running = map("loop", stop.signal);
    const waiting = map("loop", stop.signal);
    const outcomes = Promise.allSettled([running, waiting]);
    await expect.poll(() => lines.length, { timeout: 60_000 }).toBeGreaterThan(0);
    stop.abort();
    for (const outcome of await outcomes)
      expect(outcome).toMatchObject({
        status: "rejected",
        reason: { name: "TransientError", code: "HG-MAP-013" },
      });
    await expect(map("loop", stop.signal)).rejects.toMatchObject({ code: "HG-MAP-013" });
  });

  it("cancels running tasks when it is closed", async () => {
    const { pool, map, lines } = await poolOf({ loop: `log.info("in the loop"); for (;;);` });
    const outcome = Promise.allSettled([map("loop")]);
    await expect.poll(() => lines.length, { timeout: 60_000 }).toBeGreaterThan(0);
    await pool.close();
    expect((await outcome)[0]).toMatchObject({ status: "rejected", reason: { code: "HG-MAP-013" } });
  });

  it.each(["first", "second"])("cancels a file on its %s try when it is closed, and tries no more", async (nth) => {
    const notes = join(await temporaryFolder(), "notes");
    const { pool, map, lines } = await poolOf({
      loop: `const { appendFileSync, readFileSync } = await import("node:fs");
        appendFileSync(${JSON.stringify(notes)}, "x");
        const isFirst = readFileSync(${JSON.stringify(notes)}, "utf8") === "x";
        if (${nth === "second"} && isFirst) process.kill(process.pid, "SIGKILL");
        for (;;);`,
    });
    let outcome: unknown = null;
    map("loop").then(
      (result) => (outcome = result),
      (thrown) => (outcome = thrown),
    );
    const tries = nth === "second" ? "xx" : "x";
    await expect.poll(() => readFile(notes, "utf8").catch(() => ""), { timeout: 60_000 }).toBe(tries);
    await pool.close();
    // The handlers above have then received what has been settled.
    await new Promise((resolve) => setImmediate(resolve));
    expect(outcome).toMatchObject({ code: "HG-MAP-013" });
    expect(lines.filter((line) => line.includes("tried once more")).length).toBe(tries.length - 1);
  });

  it("limits the memory of a lone file to that of one, also after several side by side", async () => {
    const notes = await temporaryFolder();
    const { pool, job } = await poolOf(
      {
        varied: `const { existsSync, readdirSync, writeFileSync } = await import("node:fs");
          const notes = ${JSON.stringify(notes)};
          if (file.name === "large.csv") {
            const kept = Array.from({ length: 260 }, () => Buffer.alloc(1e6, 1));
            while (kept.length > 0) await new Promise((r) => setTimeout(r, 10));
          }
          writeFileSync(notes + "/" + file.name, "");
          while (readdirSync(notes).length < 3) await new Promise((r) => setTimeout(r, 5));
          ${GOOD}`,
      },
      { count: 3, memory: 60_000_000, timeLimit: 10_000 },
    );
    const map = async (name: string) => {
      const one = {
        ...(await job("varied")),
        fileName: `${name}.csv`,
        segmentPath: join(notes, "../", name),
      };
      return await onlyOne(pool.map([one], new AbortController().signal));
    };
    for (const result of await Promise.all(["a", "b", "c"].map(map)))
      expect(result).toMatchObject({ status: "mapped" });
    expect(await map("large")).toMatchObject({ status: "failed", reason: { code: "HG-MAP-010" } });
  });

  it("maps by the mapper that the run is bound to, or not at all", async () => {
    const { pool, map, job, mappers } = await poolOf({ good: GOOD });
    const bound = await job("good");
    await writeMapper(mappers, "good", GOOD.replace("value: 1", "value: 2"));
    expect(await onlyOne(pool.map([bound], new AbortController().signal))).toMatchObject({
      status: "failed",
      reason: { code: "HG-MAP-002" },
    });
    expect(await map("good")).toMatchObject({ status: "mapped" });
    const unknown = {
      ...bound,
      binding: { ...bound.binding, mapper: { name: "unheard-of", version: "0.0.0", digest: "" } },
    };
    expect(await onlyOne(pool.map([unknown], new AbortController().signal))).toMatchObject({
      reason: { code: "HG-MAP-001" },
    });
  });

  it("reports the author's own lines for thrown errors, and why a module does not load", async () => {
    const { map, mappers } = await poolOf({ thrower: "\nnull.x" });
    await writeFile(join(mappers, "broken.ts"), "export default {");
    const thrown = await map("thrower");
    expect(thrown.status === "failed" && thrown.reason.message).toMatch(/the mapper thrower threw: .*thrower\.ts:3/);
    expect(await map("broken")).toMatchObject({ status: "failed", reason: { code: "HG-MAP-003" } });
  });

  it("uses a changed mapper together with the files that it imports", async () => {
    const { mappers, folder, map } = await poolOf({}, { count: 1 });
    await mkdir(join(mappers, "parted"));
    await writeFile(
      join(mappers, "parted", "mapper.ts"),
      `import { defineMapper } from "headgate/mapper"; import { value } from "./value.ts";
      export default defineMapper({ name: "parted", summary: "", map({ emit }) { ${GOOD.replace("value: 1", "value")} } });`,
    );
    for (const value of [1, 2]) {
      await writeFile(join(mappers, "parted", "value.ts"), `export const value = ${value};`);
      expect(await map("parted")).toMatchObject({ status: "mapped" });
      expect(await readFile(join(folder, "parted.segment"), "utf8")).toContain(`"value":${value}}`);
    }
  });

  it("hides the environment from mappers", async () => {
    process.env["HEADGATE_TEST_SECRET"] = "s3cret";
    const { map } = await poolOf({
      env: `if (process.env.HEADGATE_TEST_SECRET) throw new Error("seen"); ${GOOD}`,
    });
    expect(await map("env")).toMatchObject({ status: "mapped" });
    delete process.env["HEADGATE_TEST_SECRET"];
  });

  it("names the resource that a mapper may not use, in words of mappers and not of the runtime", async () => {
    const { map } = await poolOf({
      net: `await fetch("http://127.0.0.1:8070/");`,
      programs: `(await import("node:child_process")).execFileSync("id");`,
    });
    for (const [name, what] of [
      ["net", "the network"],
      ["programs", "other programs"],
    ]) {
      const result = await map(name ?? "");
      const message = result.status === "failed" ? result.reason.message : "";
      expect(message).toContain(`it tried to access ${what}`);
      expect(message).not.toContain("--allow");
    }
  });

  it("requests a repetition when the input is missing", async () => {
    const { pool, job } = await poolOf({ good: GOOD });
    const gone = { ...(await job("good")), inputPath: "/nowhere/input.csv" };
    await expect(onlyOne(pool.map([gone], new AbortController().signal))).rejects.toMatchObject({
      name: "TransientError",
      code: "HG-MAP-016",
    });
  });
});

describe("the catalogue", () => {
  it("finds single files and folders, prefers configured ones, and lists the bundled ones too", async () => {
    const { mappers } = await poolOf({ "acme-hourly": GOOD });
    await mkdir(join(mappers, "standard"));
    await writeFile(
      join(mappers, "standard", "mapper.ts"),
      `import { defineMapper, z } from "headgate/mapper"; import { summary } from "./text.ts";
      export default defineMapper({ name: "standard", summary, version: "9.1.0", settings: z.object({ zone: z.string() }), map() {} });`,
    );
    await writeFile(join(mappers, "standard", "text.ts"), `export const summary = "first";`);
    const catalogue = createCatalogue([mappers, join(mappers, "absent")]);
    const names = (await catalogue.list()).map(({ identity }) => identity.name);
    expect(names).toEqual([...new Set(names)].sort());
    expect(names).toEqual(expect.arrayContaining(["acme-hourly", "helios-logger", "standard"]));
    const first = await catalogue.find("standard");
    expect(first).toMatchObject({
      summary: "first",
      identity: { version: "9.1.0", digest: expect.stringMatching(/^[0-9a-f]{64}$/) },
    });
    expect(await first?.checkSettings({ zone: "UTC" })).toBeNull();
    expect(await first?.checkSettings({ zone: 5 })).toContain("zone: ");
    expect(first?.settingsSchema).toMatchObject({
      properties: { zone: { type: "string" } },
      required: ["zone"],
    });
    await writeFile(join(mappers, "standard", "text.ts"), `export const summary = "second";`);
    const second = await catalogue.find("standard");
    expect(second?.identity.digest).not.toBe(first?.identity.digest);
    expect(await catalogue.find("../standard")).toBeNull();
    expect(await catalogue.find("unheard-of")).toBeNull();
  });

  it("lists a mapper that cannot be loaded with the reason, and throws it on a query", async () => {
    const { mappers } = await poolOf({ misnamed: GOOD });
    await writeMapper(mappers, "other", GOOD);
    await writeFile(join(mappers, "misnamed.ts"), await readFile(join(mappers, "other.ts"), "utf8"));
    const catalogue = createCatalogue([mappers]);
    const listed = (await catalogue.list()).find(({ identity }) => identity.name === "misnamed");
    expect(listed?.summary).toContain('its name is "other"');
    expect(await listed?.checkSettings({})).toContain("cannot be loaded");
    await expect(catalogue.find("misnamed")).rejects.toMatchObject({
      name: "ConfigError",
      code: "HG-MAP-003",
    });
  });
});
