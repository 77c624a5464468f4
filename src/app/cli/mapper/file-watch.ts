/** Repeats work whenever files change, until the command is stopped. */
import { once } from "node:events";
import { watch } from "chokidar";
import { print, styled } from "../output.ts";

/** Editors write in several steps. */
const SETTLE_MS = 150;

/**
 * `work` prints its results and its faults, and must not reject. `paths` are the files that it depends on; they are
 * watched before it reads them, so that no change in between is missed.
 */
export async function repeatOnChange(
  paths: () => Promise<readonly string[]>,
  work: () => Promise<void>,
  stop: AbortSignal,
): Promise<void> {
  const watcher = watch([...(await paths())], {
    ignoreInitial: true,
    awaitWriteFinish: { stabilityThreshold: SETTLE_MS, pollInterval: 50 },
  });
  let changed = Promise.withResolvers<void>();
  const wake = () => changed.resolve();
  watcher.on("all", wake);
  stop.addEventListener("abort", wake, { once: true });
  try {
    await once(watcher, "ready");
    while (!stop.aborted) {
      changed = Promise.withResolvers<void>();
      await work();
      print(styled("dim", "waiting for a change; Ctrl-C ends"));
      if (!stop.aborted) await changed.promise;
      watcher.add([...(await paths())]);
    }
  } finally {
    await watcher.close();
  }
}
