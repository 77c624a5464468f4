/**
 * `headgate map` with mappers that their authors are still writing: it tells what the gateway would, and can
 * always be stopped.
 */
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { workersOptions } from "#mapping/options.ts";
import { WORKERS_DEFAULT } from "#mapping/workers/dry-run.ts";
import { captureShown } from "./shown.ts";

const shown = captureShown();
let site: string;

beforeAll(async () => {
  site = await mkdtemp(join(tmpdir(), "headgate-"));
  await mkdir(join(site, "mappers"));
  await writeFile(join(site, "a.csv"), "a\n1\n");
});
afterAll(() => rm(site, { recursive: true, force: true }));

async function map(body: string, stop?: AbortSignal, more: readonly string[] = []): Promise<number> {
  await writeFile(
    join(site, "mappers/acme.ts"),
    `import { defineMapper } from "headgate/mapper";
export default defineMapper({ name: "acme", summary: "Files of ACME", async map({ file, emit, finding }) {
  ${body}
  emit({ target: { variableId: 7 }, date: "2026-03-01T00:00:00Z", value: 1 });
} });
`,
  );
  return shown.headgate(
    ["map", join(site, "a.csv"), "--mapper", "acme", "--folder", join(site, "mappers"), ...more],
    stop,
  );
}

const PAYLOAD = '[{"variableId":7,"data":[{"date":"2026-03-01T00:00:00Z","value":1}]}]\n';

it("has the limits of a configuration without workers", () => {
  expect({ ...WORKERS_DEFAULT, count: "auto" }).toEqual(workersOptions.parse({}));
});

it("keeps the output of a mapper out of the payload", async () => {
  expect(await map('console.log("debugging"); process.stdout.write("more of it\\n");'), shown.stderr).toBe(0);
  expect(shown).toMatchObject({ stdout: PAYLOAD, stderr: "debugging\nmore of it\n" });
});

it("tells what was found in the file beside the payload, and in the summary, what needs attention first", async () => {
  const found = `for await (const rows of file.csv()) for (const row of rows)
    finding({ kind: "skipRows", message: "rows were left out", where: row, text: row.join(",") });
  finding({ kind: "clock", message: "the clock was reset", attention: true });`;
  const lines = 'found 1 × the clock was reset\nfound 2 × rows were left out (row 1 "a" to row 2 "1")\n';
  expect(await map(found), shown.stderr).toBe(0);
  expect(shown).toMatchObject({ stdout: PAYLOAD, stderr: lines });
  expect(await map(found, undefined, ["--summary"])).toBe(0);
  expect(shown.stdout).toContain(lines);
  const before = shown.stdout.length;
  expect(await map(found, undefined, ["--json"])).toBe(0);
  expect(JSON.parse(shown.stdout.slice(before)).findings).toMatchObject([
    { kind: "skipRows", count: 2, first: { row: 1, text: "a" }, last: { row: 2, text: "1" } },
    { kind: "clock", count: 1, attention: true },
  ]);
});

it("takes a mapper of the named folder before that of ./mappers, and says that there are two", async () => {
  const other = join(site, "elsewhere");
  await mkdir(join(other, "mappers"), { recursive: true });
  await writeFile(
    join(other, "mappers/acme.ts"),
    'import { defineMapper } from "headgate/mapper";\n' +
      'export default defineMapper({ name: "acme", summary: "x", map() {} });\n',
  );
  vi.spyOn(process, "cwd").mockReturnValue(other);
  expect(await map(""), shown.stderr).toBe(0);
  expect(shown.stdout).toBe(PAYLOAD);
  expect(shown.stderr).toContain(`is that of ${join(site, "mappers/acme.ts")}; there is another in ${other}`);
});

it("does not treat a mapper that exits as a success", async () => {
  expect(await map("process.exit(0);")).toBe(1);
  expect(shown.stdout).toBe("");
  expect(shown.stderr).toContain("the mapper acme ended its thread with exit code 0");
});

it("stops a looping mapper on a signal, and leaves nothing behind", async () => {
  const temporary = join(site, "temporary");
  await mkdir(temporary);
  vi.stubEnv("TMPDIR", temporary);
  const stop = new AbortController();
  const ended = map('console.log("here"); await new Promise((go) => setTimeout(go, 20)); for (;;);', stop.signal);
  await expect.poll(() => shown.stderr, { timeout: 60_000 }).toContain("here");
  stop.abort();
  expect(await ended).toBe(1);
  expect(shown.stderr).toContain("mapping was cancelled");
  expect(await readdir(temporary)).toEqual([]);
  vi.unstubAllEnvs();
});

it.each([
  ["const n: number = ;", "(mappers/acme.ts:3)"],
  ["enum Kind { one }", "(mappers/acme.ts:3)"],
  ["throw new Error('no');", "(at Object.map (mappers/acme.ts:3:9))"],
])("names the line of %j", async (body, place) => {
  await map(body);
  expect(shown.stderr).toContain(place);
});
