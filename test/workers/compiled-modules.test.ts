/** What is kept of compiled modules between starts: it serves the processes of mappers, and no mapper can change it. */
import { execFile } from "node:child_process";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeEach, describe, expect, it } from "vitest";
import { digestMapper } from "#mapping/mapper-files.ts";
import { temporaryFolder } from "../mapping/kit.ts";
import { startLoneHost } from "./lone-host.ts";
import { GOOD, writeMapper } from "./pool-rig.ts";

const PROGRAM = join(import.meta.dirname, "../../src/headgate.js");
const NOTHING_KEPT = "null undefined";
/** Tells what the process was lent, and what is in its environment of it. */
const TELLING = `const { getCompileCacheDir } = await import("node:module");
  log.info((getCompileCacheDir() ?? null) + " " + process.env.NODE_COMPILE_CACHE); ${GOOD}`;

let site: string;
beforeEach(async () => {
  site = await temporaryFolder();
  for (const folder of ["home", "temporary", "mappers"]) await mkdir(join(site, folder));
  await writeFile(join(site, "a.csv"), "a\n1\n");
});

/** Maps a file by a program of its own, at home in `home`; answers what it says beside the payload. */
async function mapBy(name: string, body: string, environment: Readonly<Record<string, string>> = {}) {
  const mappers = join(site, "mappers");
  await writeMapper(mappers, name, body);
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    [PROGRAM, "map", join(site, "a.csv"), "--mapper", name, "--folder", mappers],
    { env: { HOME: join(site, "home"), TMPDIR: join(site, "temporary"), ...environment } },
  );
  expect(stdout).toContain('"value":1');
  return stderr.trim();
}

describe("the compiled modules", () => {
  it("are lent to the process of a mapper, which cannot write to them by itself or by the runtime", async () => {
    const kept = join(site, "home/.cache/headgate/compiled");
    const [lent = "", variable] = (await mapBy("acme", TELLING)).split(" ");
    expect([lent.startsWith(join(kept, "lent")), variable]).toEqual([true, "undefined"]);
    const before = await readdir(kept, { recursive: true });
    expect(before.length).toBeGreaterThan(100);
    await writeFile(join(site, "mappers/other.mjs"), "export const other = 1;");
    const refused = await mapBy(
      "acme",
      `const { mkdirSync, symlinkSync, writeFileSync } = await import("node:fs");
      const { flushCompileCache, getCompileCacheDir } = await import("node:module");
      const { dirname, join } = await import("node:path");
      const link = dirname(getCompileCacheDir());
      for (const reach of [
        () => writeFileSync(join(${JSON.stringify(kept)}, "planted"), ""),
        () => writeFileSync(join(${JSON.stringify(kept)}, "lent/planted"), ""),
        () => mkdirSync(getCompileCacheDir(), { recursive: true }),
        () => symlinkSync(${JSON.stringify(kept)}, link),
      ]) try { reach(); log.info("reached"); } catch (thrown) { log.info(thrown.code); }
      await import(${JSON.stringify(join(site, "mappers/other.mjs"))});
      flushCompileCache(); ${GOOD}`,
    );
    expect(refused.split("\n")).toEqual(Array(4).fill("ERR_ACCESS_DENIED"));
    expect((await readdir(kept, { recursive: true })).sort()).toEqual(before.sort());
  });

  it("cannot be changed by a thread without a link", async () => {
    const lent = join(site, "home/lent");
    await mkdir(lent, { recursive: true });
    const out = join(site, "temporary");
    await writeMapper(
      site,
      "writer",
      GOOD,
      `import { writeFileSync } from "node:fs"; ${"\n"}writeFileSync(${JSON.stringify(join(lent, "planted"))}, "");`,
    );
    const limits = { bytesMax: Number.MAX_SAFE_INTEGER, threads: 1, heapMax: 100 };
    const start = { parent: process.pid, ...limits, caches: [join(lent, "host")], own: null };
    const flags = ["--permission", "--allow-fs-read=*", "--allow-worker", "--disable-warning=PERM0006"];
    const host = startLoneHost(start, {
      flags: [...flags, `--allow-fs-write=${lent}`, `--allow-fs-write=${out}`],
      env: { TMPDIR: out },
    });
    const modulePath = join(site, "writer.ts");
    const request = { kind: "describe" as const, modulePath, digest: await digestMapper(modulePath) };
    host.send({ kind: "task", number: 1, request });
    expect(JSON.stringify(await host.first("ended"))).toMatch(/cannot be loaded: .*--allow-fs-write/);
    host.child.kill("SIGKILL");
    expect(await readdir(lent)).toEqual([]);
  });

  it.each([
    ["the home is no folder", () => ({ HOME: "/dev/null" })],
    ["mappers may write there", () => ({ XDG_CACHE_HOME: join(site, "temporary") })],
  ])("are not kept, without a message, where %s", async (_, environment) => {
    expect(await mapBy("acme", TELLING, environment())).toBe(NOTHING_KEPT);
    expect(await readdir(join(site, "temporary"))).toEqual([]);
  });
});
