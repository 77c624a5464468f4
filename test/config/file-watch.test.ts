/** The files of a configuration, and those that it names. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "#core/clock.ts";
import { FileWatch } from "#core/config/file-watch.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "file-watch-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test("a named file that is written just after it was read as missing is read once more", async () => {
  const [main, secret] = [join(folder, "main"), join(folder, "secret")];
  writeFileSync(main, "one");
  const paths = [main];
  let reads = 0;
  const watch = await FileWatch.start({
    paths: () => paths,
    // Beyond the end of the test: only what was noticed is read again.
    everyMs: () => 3_600_000,
    onChange: async () => {
      reads += 1;
      if (reads > 1) return;
      paths.push(secret);
      writeFileSync(secret, "late");
    },
    clock: systemClock,
  });
  watch.checkNow();
  await expect.poll(() => reads).toBe(2);
  await watch.stop();
  expect(reads).toBe(2);
});
