/** The hub as a process of its own, for tests that kill it: `node run-hub.ts OPTIONS_JSON`; prints its URL. */
import { startHub } from "../../src/hub/hub.ts";
import { hubOptions } from "../../src/hub/options.ts";
import { armFault } from "../../src/support/faults.ts";
import { createLog } from "../../src/support/log.ts";

const fault = process.env["HEADGATE_FAULT"];
if (fault !== undefined) armFault(fault);
const hub = await startHub(hubOptions.parse(JSON.parse(process.argv[2] ?? "")), {
  log: createLog("error"),
  fault,
});
process.stdout.write(`${hub.url}\n`);
process.once("SIGTERM", () => hub.close());
