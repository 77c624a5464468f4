/** Files that threads of one mapping host map side by side: what becomes of the others when one of them misbehaves. */
import { existsSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { onlyOne } from "#core/promises.ts";
import type { MapResult } from "#mapping/contract.ts";
import type { WorkersOptions } from "#mapping/options.ts";
import { temporaryFolder } from "../mapping/kit.ts";
import { GOOD, poolOf } from "./pool-rig.ts";

const SCRIPTS = {
  exits: "process.exit(3);",
  fills: "const kept = []; for (;;) kept.push({ a: [kept.length] });",
  buffers: "const kept = []; for (;;) kept.push(new Uint8Array(1e6).fill(1));",
  loops: "for (;;);",
  /** On the first try only. */
  stalls: `if (readFileSync(own, "utf8").split("\\n").length === 2) for (;;);`,
  kills: "process.kill(process.pid, 'SIGKILL');",
  fails: "setTimeout(() => { throw new Error('late') }); await new Promise(() => {});",
};
type Script = keyof typeof SCRIPTS;

/** A good file that waits for a marker, beside a file of the same mapper with another script. */
async function sideBySide(script: Script, options: Partial<WorkersOptions> = {}) {
  const notes = await temporaryFolder();
  const marker = join(notes, "marker");
  const begun = (name: string) => join(notes, name);
  const rig = await poolOf(
    {
      mixed: `const { appendFileSync, existsSync, readFileSync } = await import("node:fs");
        const name = file.name.replace(".csv", "");
        const own = ${JSON.stringify(notes)} + "/" + name;
        appendFileSync(own, process.pid + "\\n");
        const scripts = { ${Object.entries(SCRIPTS)
          .map(([name, body]) => `${name}: async () => { ${body} }`)
          .join(", ")} };
        if (name in scripts) {
          // Its line, and not only its file.
          const hasBegun = (path) => existsSync(path) && readFileSync(path, "utf8").endsWith("\\n");
          while (!hasBegun(${JSON.stringify(begun("good"))})) await new Promise((r) => setTimeout(r, 5));
          await scripts[name]();
        }
        while (!existsSync(${JSON.stringify(marker)})) await new Promise((r) => setTimeout(r, 5));
        ${GOOD}`,
    },
    { count: 2, ...options },
  );
  const map = async (name: string, signal = new AbortController().signal): Promise<MapResult> => {
    const fileName = `${name}.csv`;
    const segmentPath = join(rig.folder, `${name}.segment`);
    const inputPath = join(rig.folder, "input.csv");
    const job = { ...(await rig.job("mixed")), inputPath, fileName, filePath: fileName, segmentPath };
    return await onlyOne(rig.pool.map([job], signal));
  };
  const cancel = new AbortController();
  const other = map(script, cancel.signal);
  const hasBegun = (name: string) => existsSync(begun(name)) && readFileSync(begun(name), "utf8").endsWith("\n");
  await expect.poll(() => hasBegun(script), { timeout: 60_000 }).toBe(true);
  const good = map("good");
  await expect.poll(() => hasBegun("good"), { timeout: 60_000 }).toBe(true);
  const processes = (name: string) => readFileSync(begun(name), "utf8").trim().split("\n");
  expect(processes("good"), "both in one process").toEqual(processes(script).slice(0, 1));
  return { rig, cancel, other, good, processes, release: () => writeFile(marker, "") };
}

const MAPPED = { status: "mapped", points: 1 };

describe("a file beside another one of the same mapper", () => {
  it.each<[Script, string, RegExp]>([
    ["exits", "HG-MAP-011", /ended its thread with exit code 3/],
    ["fills", "HG-MAP-010", /60 MB/],
    ["fails", "HG-MAP-011", /left work behind that failed: late/],
  ])("stays in its thread when the other one %s", async (script, code, words) => {
    const { other, good, processes, release } = await sideBySide(script, { memory: 60_000_000 });
    const result = await other;
    expect(result).toMatchObject({
      status: "failed",
      reason: { code, message: expect.stringMatching(words) },
    });
    await release();
    expect(await good).toMatchObject(MAPPED);
    expect(processes("good").length).toBe(1);
    expect(new Set(processes(script)).size, "tried once more, alone").toBe(2);
  });

  it.each<[Script, string]>([
    ["buffers", "HG-MAP-010"],
    ["kills", "HG-MAP-011"],
  ])("is mapped once more, alone, when the host ended because the other one %s", async (script, code) => {
    const { other, good, processes, release } = await sideBySide(script, { memory: 60_000_000 });
    expect(await other).toMatchObject({ status: "failed", reason: { code } });
    await release();
    expect(await good).toMatchObject(MAPPED);
    const all = [...processes("good"), ...processes(script).slice(1)];
    expect([processes("good").length, new Set(all).size], "each alone").toEqual([2, 3]);
  });

  it("is mapped once more, alone, when the host ended because the other one took too long", async () => {
    const { rig, other, good, processes, release } = await sideBySide("loops", { timeLimit: 2_000 });
    await expect.poll(() => processes("good").length, { timeout: 60_000 }).toBe(2);
    await release();
    expect(await other).toMatchObject({ status: "failed", reason: { code: "HG-MAP-009" } });
    expect(await good).toMatchObject(MAPPED);
    expect([new Set(processes("good")).size, new Set(processes("loops")).size], "each alone").toEqual([2, 2]);
    expect(rig.lines.join("")).toContain("was mapped beside a file for which its process was ended");
  });

  it("that takes too long is mapped once more, alone: the other one may have delayed it", async () => {
    const { other, good, processes, release } = await sideBySide("stalls", { timeLimit: 2_000 });
    await expect.poll(() => processes("stalls").length, { timeout: 60_000 }).toBe(2);
    await release();
    expect([await other, await good]).toMatchObject([MAPPED, MAPPED]);
    expect(new Set([...processes("stalls"), ...processes("good")]).size, "each alone").toBe(3);
  });

  it("stays in its thread when the other one is cancelled", async () => {
    const { cancel, other, good, processes, release } = await sideBySide("loops");
    cancel.abort();
    await expect(other).rejects.toMatchObject({ name: "TransientError", code: "HG-MAP-013" });
    await release();
    expect(await good).toMatchObject(MAPPED);
    expect(processes("good").length).toBe(1);
  });
});
