/** `headgate hub`: the measurement data service. */

import { armedFault } from "#core/faults.ts";
import { createLog } from "#core/log.ts";
import { loadHubOptions } from "#hub/config.ts";
import { startPlatform } from "../platform.ts";
import { type CommandFrame, configOption } from "./command.ts";
import { passingAsFailure, print } from "./output.ts";

export function addHub({ command, stop, action }: CommandFrame): void {
  command("hub", ["headgate hub -c /etc/headgate/hub.yaml"])
    .addOption(configOption("hub"))
    .action(
      action(async ({ config }: { config: string }) => {
        const options = loadHubOptions(config);
        const fault = armedFault();
        const log = createLog(options.log.level);
        const parts = { log, ...(fault === undefined ? {} : { fault }) };
        const hub = await startPlatform(options, parts).catch(passingAsFailure);
        if (typeof hub === "number") return hub;
        print(`hub: base ${hub.url} · push ${hub.url}/push · token ${hub.url}/connect/token`);
        if (!stop.aborted) await new Promise((resolve) => stop.addEventListener("abort", resolve, { once: true }));
        await hub.close();
        return 0;
      }),
    );
}
