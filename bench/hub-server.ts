/**
 * The hub as a process of its own: `hub-server.ts OPTIONS_JSON`. Told `memory` over IPC it tells its peak, and by `cpu`
 * its CPU seconds; it ends with `stop`.
 */

import { createLog } from "#core/log.ts";
import { startHub } from "#hub/hub.ts";
import { hubOptions } from "#hub/options.ts";
import { peakMegabytes } from "./child.ts";

const hub = await startHub(hubOptions.parse(JSON.parse(process.argv[2] ?? "")), { log: createLog("error") });
process.on("message", (message) => {
  if (message === "memory") tell({ peak: peakMegabytes() });
  else if (message === "cpu") tell({ seconds: cpuSeconds() });
  else void hub.close().then(() => process.disconnect?.());
});
tell({ url: hub.url });

function tell(message: object): void {
  process.send?.(message);
}

/** Of all its threads, user and system. */
function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
