/** Mappers that do what they should not: each ends its own run, with a reason, and nothing else. */
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "./kit.ts";
import { GOOD, poolOf } from "./pool-rig.ts";

const SMALL = { memory: 60_000_000 };
/** Waits until a file is there: the run beside must be unharmed while it goes on. */
const slow = (marker: string) =>
  `const { existsSync } = await import("node:fs"); while (!existsSync(${JSON.stringify(marker)})) await new Promise((r) => setTimeout(r, 10)); ${GOOD}`;

describe("a mapper ends only its own run", () => {
  const bodies: readonly (readonly [what: string, body: string, code: string, words: RegExp])[] = [
    ["exits", "process.exit(3)", "HG-MAP-011", /ended its process with exit code 3/],
    ["exits well", "process.exit(0)", "HG-MAP-011", /exit code 0/],
    [
      "kills its process",
      "process.kill(process.pid, 'SIGKILL')",
      "HG-MAP-011",
      /ended its process with SIGKILL/,
    ],
    ["aborts", "process.abort()", "HG-MAP-011", /SIGABRT/],
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
    [
      "rejects where nobody awaits it",
      `Promise.reject(new Error('forgotten')); ${GOOD}`,
      "HG-MAP-011",
      /forgotten/,
    ],
    [
      "closes its channel",
      "process.channel.unref(); (await import('node:fs')).closeSync(3); for (;;) await new Promise((r) => setTimeout(r, 5))",
      "HG-MAP-011",
      /ended its process/,
    ],
  ];

  it("and leaves the run beside it alone, whatever it does", async () => {
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
    expect(left.sort()).toEqual(["beside.segment", "beside.segment.rows"]);
  }, 60_000);
});
