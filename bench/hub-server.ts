/**
 * The hub as a process of its own: `hub-server.ts OPTIONS_JSON`. Told `memory` over IPC it tells its peak, and by `cpu`
 * its CPU seconds; it ends with `stop`.
 */
import { startHub } from "../src/hub/hub.ts";
import { hubOptions } from "../src/hub/options.ts";
import { createLog } from "../src/support/log.ts";
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
