/** Doing something again whenever files change, until the command is stopped. */
import { watch } from "chokidar";
import { print, styled } from "./output.ts";

/** Editors write in several steps. */
const SETTLE_MS = 150;

/** `work` prints what it did and answers the files that it depends on; it rejects with nothing: faults are printed as well. */
export async function repeatOnChange(
  work: () => Promise<readonly string[]>,
  stop: AbortSignal,
): Promise<void> {
  const watcher = watch([], {
    ignoreInitial: true,
    awaitWriteFinish: { stabilityThreshold: SETTLE_MS, pollInterval: 50 },
  });
  let changed = Promise.withResolvers<void>();
  const wake = () => changed.resolve();
  watcher.on("all", wake);
  stop.addEventListener("abort", wake, { once: true });
  try {
    while (!stop.aborted) {
      changed = Promise.withResolvers<void>();
      watcher.add([...(await work())]);
      print(styled("dim", "waiting for a change; Ctrl-C ends"));
      if (!stop.aborted) await changed.promise;
    }
  } finally {
    await watcher.close();
  }
}
