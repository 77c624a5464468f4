/**
 * The hub as a process of its own, for tests that kill it: `node run-hub.ts OPTIONS_JSON [platform]`, then with a
 * gateway inside; prints its addresses as JSON.
 */

import { startPlatform } from "#app/platform.ts";
import { armFault } from "#core/faults.ts";
import { createLog } from "#core/log.ts";
import { startHub } from "#hub/hub.ts";
import { hubOptions } from "#hub/options.ts";

const fault = process.env["HEADGATE_FAULT"];
if (fault !== undefined) armFault(fault);
const start = process.argv[3] === "platform" ? startPlatform : startHub;
const hub = await start(hubOptions.parse(JSON.parse(process.argv[2] ?? "")), {
  log: createLog("error"),
  fault,
});
process.stdout.write(`${JSON.stringify({ url: hub.url, transfer: hub.transfer })}\n`);
process.once("SIGTERM", () => hub.close());
