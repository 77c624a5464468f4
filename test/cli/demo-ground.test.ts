import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { prepareGround } from "../../src/cli/demo/ground.ts";

const folder = mkdtempSync(join(tmpdir(), "headgate-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("a second demo in the same folder is refused and changes nothing, until the first has ended", async () => {
  const state = join(folder, "demo");
  const kept = join(state, "kept");
  const first = await prepareGround(state, false);
  try {
    writeFileSync(kept, "");
    const refused = { code: "HG-CLI-007", hint: expect.stringContaining("--state") };
    for (const keep of [false, true]) await expect(prepareGround(state, keep)).rejects.toMatchObject(refused);
    expect(existsSync(kept)).toBe(true);
  } finally {
    await first.close();
  }
  const next = await prepareGround(state, false);
  await next.close();
  expect(existsSync(kept)).toBe(false);
});
