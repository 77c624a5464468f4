/** The package as authors get it: packed, installed into an empty folder, and used from there. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const run = promisify(execFile);
const root = resolve(import.meta.dirname, "..");
// The package brings no runtime of its own: what a user has in front is ours here.
const env = {
  ...process.env,
  PATH: `${dirname(process.execPath)}:${process.env["PATH"]}`,
  npm_config_prefer_offline: "true",
  npm_config_audit: "false",
  npm_config_fund: "false",
};
let site: string;

beforeAll(async () => {
  site = await realpath(await mkdtemp(join(tmpdir(), "headgate-")));
  await run("npm", ["pack", "--pack-destination", site], { cwd: root, env });
  const tarball = (await readdir(site)).find((name) => name.endsWith(".tgz")) ?? "";
  await writeFile(join(site, "package.json"), '{ "private": true, "type": "module" }\n');
  await run("npm", ["install", `./${tarball}`], { cwd: site, env });
  await mkdir(join(site, "mappers"));
  await writeFile(join(site, "mappers/acme-hourly.ts"), MAPPER);
  await writeFile(join(site, "hourly.csv"), "meter;register;when;value\nM-1;A+;01/02/2026 00:00;1,5\n");
}, 240_000);
afterAll(() => rm(site, { recursive: true, force: true }));

const MAPPER = `
import { defineMapper, z } from "headgate/mapper";

export default defineMapper({
  name: "acme-hourly",
  summary: "Hourly CSV exports of ACME loggers",
  settings: z.object({ timeZone: z.string() }),
  async map({ file, settings, emit, time, number }) {
    for await (const rows of file.csv({ columns: true, delimiter: ";" })) {
      for (const { meter = "", register = "", when = "", value = "" } of rows) {
        emit({
          target: { sourceSerialNumber: meter, mappingConfig: register },
          date: time.local(when, "dd/MM/yyyy HH:mm", settings.timeZone),
          value: number(value, { decimal: "," }),
        });
      }
    }
  },
});
`;

describe("the package, installed into an empty folder", () => {
  it("maps a file with a mapper written against it", async () => {
    const { stdout, stderr } = await headgate("map", "hourly.csv", "--mapper", "acme-hourly", "--settings", ZONE);
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual([
      {
        sourceSerialNumber: "M-1",
        mappingConfig: "A+",
        data: [{ date: "2026-01-31T23:00:00Z", value: 1.5 }],
      },
    ]);
  });

  it("creates and runs mappers beside a package.json that says commonjs", async () => {
    const cwd = join(site, "plain");
    await mkdir(join(cwd, "mappers"), { recursive: true });
    await writeFile(join(cwd, "package.json"), '{ "private": true, "type": "commonjs" }\n');
    await writeFile(join(cwd, "own.csv"), "meter,when,kWh\nM-1,2026-03-01T00:00:00Z,1.5\n");
    await writeFile(join(cwd, "standard.csv"), "date,value,variable_id\n2026-03-01T00:00:00Z,2.5,7\n");
    const headgateThere = async (...args: string[]) =>
      (await run(join(site, "node_modules/.bin/headgate"), args, { cwd, env, timeout: 120_000 })).stdout;
    expect(await headgateThere("mapper", "new", "own", "--sample", "own.csv")).toContain("1 point of 1 target");
    const data = (value: number) => [{ data: [{ date: "2026-03-01T00:00:00Z", value }] }];
    for (const [mapper, value] of [
      ["own", 1.5],
      ["standard", 2.5],
    ] as const)
      expect(JSON.parse(await headgateThere("map", `${mapper}.csv`, "--mapper", mapper))).toMatchObject(data(value));
    expect(await headgateThere("mapper", "test", "own")).toContain("ok");
  });

  it("reads an encoding whose library is loaded when it is named", async () => {
    const csv = "date;value;sourceSerialNumber;mappingConfig\n2026-03-01T00:00:00Z;2;Z\u00e4hler;kWh\n";
    await writeFile(join(site, "latin.csv"), Buffer.from(csv, "latin1"));
    const settings = JSON.stringify({ delimiter: ";", encoding: "windows-1252" });
    const { stdout } = await headgate("map", "latin.csv", "--mapper", "standard", "--settings", settings);
    expect(JSON.parse(stdout)).toMatchObject([{ sourceSerialNumber: "Z\u00e4hler" }]);
  });

  it("starts a mapping host without the code that maps, and `map` begins so", () => {
    const dist = join(site, "node_modules/headgate/dist");
    const has = (words: string) => (path: string) => readFileSync(path, "utf8").includes(words);
    const mapping = has("function createMapperFile(");
    expect(imported(join(dist, "src/mapping/workers/host-thread.js")).filter(mapping)).toHaveLength(1);
    expect(imported(join(dist, "src/mapping/workers/host-main.js")).filter(mapping)).toEqual([]);
    const [command = ""] = globSync(join(dist, "chunks/*.js")).filter(has('command("map"'));
    expect(imported(command).filter(mapping)).toEqual([]);
  });

  it("contains the bundled mappers, and sources only in JavaScript", async () => {
    const { stdout } = await headgate("mapper", "list", "--json");
    const names = (JSON.parse(stdout) as { name: string }[]).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["standard", "push-body", "acme-hourly"]));
    const files = await readdir(join(site, "node_modules/headgate"), { recursive: true });
    const own = files.filter((path) => !path.startsWith("node_modules"));
    expect(own.filter((path) => path.endsWith(".ts") && !path.endsWith(".d.ts"))).toEqual([]);
  });

  it("says why a row is refused, by the classes that authors import", async () => {
    await writeFile(join(site, "mappers/refuses.ts"), REFUSES);
    await expect(headgate("map", "hourly.csv", "--mapper", "refuses")).rejects.toThrow("no such register [HG-MAP-005");
  });

  it("has each thread as a file at its place", () => {
    const names = globSync("src/**/*.ts", { cwd: root }).flatMap((path) =>
      [...readFileSync(join(root, path), "utf8").matchAll(/besideModule\(import\.meta\.url, "([^"]+)"\)/g)].map(
        ([, name = ""]) => join(dirname(path), `${name}.js`),
      ),
    );
    expect(names.length).toBeGreaterThan(8);
    const dist = join(site, "node_modules/headgate/dist");
    expect(names.filter((name) => !existsSync(join(dist, name)))).toEqual([]);
  });

  it("lets the process of R scripts start with its few rights", async () => {
    const dist = join(site, "node_modules/headgate/dist");
    const folder = join(dist, "src/hub/calculated/engines/r");
    const webr = join(site, "node_modules/webr/dist");
    const readable = [folder, join(dist, "package.json"), webr].map((path) => `--allow-fs-read=${path}`);
    const start = { folder: webr, limits: { memory: 2 ** 28, outputBytes: 1_000_000, javaScript: false } };
    const words = [
      "--permission",
      ...readable,
      "--allow-worker",
      join(folder, "webr-worker.js"),
      JSON.stringify(start),
    ];
    const r = spawn(process.execPath, words, { env: {}, cwd: webr, stdio: ["pipe", "pipe", "pipe", "pipe"] });
    const said = text(r.stderr);
    const answered = await Promise.race([once(r.stdout, "data"), once(r, "exit").then(() => null)]);
    r.kill("SIGKILL");
    expect({ answered: answered !== null, said: answered === null ? await said : "" }).toEqual({
      answered: true,
      said: "",
    });
  });

  it("has the places of sources for traces", async () => {
    await writeFile(join(site, "fault.mjs"), FAULT);
    const { stdout } = await run(process.execPath, ["fault.mjs"], { cwd: site });
    expect(stdout).toMatch(/at [^\n]*startGateway \([^\n]*src\/gateway\/gateway\.ts:\d+:\d+\)/);
  });

  it("has chunks of characters that take one byte each, without the messages of zod in other languages", async () => {
    const chunks = globSync(join(site, "node_modules/headgate/dist/chunks/*.js"));
    const texts = chunks.map((path) => readFileSync(path, "latin1"));
    expect(chunks.length).toBeGreaterThan(20);
    expect(chunks.filter((_, index) => /[^\0-\x7f]/.test(texts[index] ?? ""))).toEqual([]);
    expect(texts.filter((one) => one.includes("locales/fr.js"))).toEqual([]);
    await writeFile(join(site, "french.mjs"), FRENCH);
    const { stdout } = await run(process.execPath, ["french.mjs"], { cwd: site });
    expect(stdout).toBe("Entrée invalide : chaîne de caractères attendu, nombre reçu\n");
  });

  it("has types for every entry", async () => {
    await writeFile(join(site, "use.ts"), USE);
    await writeFile(join(site, "tsconfig.json"), JSON.stringify(TSCONFIG));
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    await run(process.execPath, [tsc, "-p", site], { cwd: site }).catch((thrown: { stdout: string }) =>
      expect(thrown.stdout).toBe(""),
    );
  });

  it("runs its demo to the end", async () => {
    const { stdout } = await headgate("demo", "--until-idle", "--json");
    expect(JSON.parse(stdout)).toMatchObject({ files: { delivered: 7, quarantined: 1, unmatched: 1 } });
  });
});

const REFUSES = `
import { defineMapper, RowError, z } from "headgate/mapper";

export default defineMapper({
  name: "refuses",
  summary: "Refuses each file",
  settings: z.object({}),
  async map() {
    throw new RowError("no such register", { column: "register" });
  },
});
`;
const FAULT = `
import { setSourceMapsSupport } from "node:module";
setSourceMapsSupport(true, { nodeModules: true });
const { startGateway } = await import("headgate");
await startGateway().catch((thrown) => console.log(thrown.stack));
`;
const FRENCH = `
import { z } from "headgate/mapper";
z.config(z.locales.fr());
console.log(z.string().safeParse(1).error.issues[0].message);
`;
const ZONE = '{ "timeZone": "Europe/Paris" }';
const USE = `
import { ConfigError, startGateway } from "headgate";
import { mapText } from "headgate/mapper/testing";
import { pushBody } from "headgate/wire";
export const used: readonly unknown[] = [ConfigError, mapText, startGateway, pushBody];
// @ts-expect-error a gateway is not started without its configuration
startGateway();
`;
const TSCONFIG = {
  compilerOptions: {
    module: "nodenext",
    target: "esnext",
    lib: ["esnext", "esnext.temporal"],
    types: [],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
  },
  include: ["mappers", "use.ts"],
};

/** A module with all that it loads at once. */
function imported(path: string): string[] {
  const found = new Set([path]);
  for (const one of found)
    for (const [, name = ""] of readFileSync(one, "utf8").matchAll(/^import .*"(\.{1,2}\/[^"]+)";$/gm))
      found.add(join(dirname(one), name));
  return [...found];
}

function headgate(...args: string[]) {
  return run(join(site, "node_modules/.bin/headgate"), args, { cwd: site, env, timeout: 120_000 }).catch(
    (thrown: Error & { stdout?: string; stderr?: string }) => {
      throw new Error(`${thrown.message}\n${thrown.stdout}\n${thrown.stderr}`);
    },
  );
}
