/** `headgate gateway`: the daemon; with `--until-idle` for cron. */
import { environmentVariable } from "#core/config/document.ts";
import { invalidOption } from "#core/errors.ts";
import { createLog, type Logger } from "#core/log.ts";
import { parseDuration } from "#core/quantities.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { type Gateway, startGateway } from "#gateway/gateway.ts";
import { ServiceManager } from "#gateway/operations/service-manager.ts";
import { Reloading } from "#gateway/reload.ts";
import { type CommandFrame, configOption, userName } from "./command.ts";
import { controlMigrations } from "./migrate/lazy-control.ts";
import { passingAsFailure, print, printConcern, printJson, summaryLine } from "./output.ts";
import { limitHeapGrowth, waitUntilIdle } from "./until-idle.ts";

interface GatewayOptions {
  readonly config: string;
  readonly untilIdle?: boolean;
  readonly timeout: string;
  readonly json?: boolean;
}

export function addGateway({ command, stop, action }: CommandFrame): void {
  command("gateway", [
    "headgate gateway -c /etc/headgate/gateway.yaml",
    "headgate gateway -c gateway.yaml --until-idle --timeout 30m",
  ])
    .addOption(configOption())
    .option(
      "--until-idle",
      "take and deliver the files that are there, then exit; exit 1 when a run is quarantined, held or unsent",
    )
    .option("--timeout <duration>", "with --until-idle: give up after this", "10m")
    .option("--json", "with --until-idle: print the summary as one JSON object")
    .action(action((options: GatewayOptions) => runGateway(options, stop)));
}

async function runGateway(options: GatewayOptions, stop: AbortSignal): Promise<number> {
  const timeoutMs = parseDuration(options.timeout);
  if (timeoutMs === undefined)
    throw invalidOption("--timeout", `${options.timeout} is not a duration such as 30s or 10m`);
  if (options.untilIdle !== true) return await runDaemon(options.config, stop);
  const config = loadGatewayConfig(options.config);
  const log = createLog(config.log.level);
  const gateway = await startGateway(config, { log, configFile: options.config });
  limitHeapGrowth();
  try {
    const idle = await waitUntilIdle(gateway, stop, timeoutMs);
    return await reportEnd(gateway, idle, options);
  } finally {
    await gateway.stop();
  }
}

/** Runs until it is stopped. A changed configuration takes effect while it runs, at once with SIGHUP. */
async function runDaemon(path: string, stop: AbortSignal): Promise<number> {
  return await startAndServe(path, stop).catch(passingAsFailure);
}

async function startAndServe(path: string, stop: AbortSignal): Promise<number> {
  const log = createLog("info");
  const manager = new ServiceManager({
    program: "systemd-notify",
    socket: environmentVariable("NOTIFY_SOCKET"),
    watchdogUsec: environmentVariable("WATCHDOG_USEC"),
    log,
  });
  let recheck = () => {};
  const onHangUp = () => recheck();
  process.on("SIGHUP", onHangUp);
  // Migrations continue while the configuration is loaded again.
  const migrations = controlMigrations(path);
  const daemon = await Reloading.start({
    load(files) {
      const config = loadGatewayConfig(path, files);
      return config;
    },
    start(config, configuration) {
      log.level = config.log.level;
      return startGateway(config, { log, configuration, configFile: path, migrations }).then((gateway) => {
        limitHeapGrowth();
        reportConsole(gateway, log);
        return gateway;
      });
    },
    onReload: (phase) => void (phase === "begins" ? manager.reloading() : manager.reloaded(daemon.health().reason)),
    log,
  });
  recheck = () => daemon.recheck();
  try {
    await manager.ready(daemon.health().reason);
    manager.watch(() => daemon.pulse());
    if (!stop.aborted) {
      const stopped = new Promise((resolve) => stop.addEventListener("abort", resolve, { once: true }));
      await Promise.race([stopped, daemon.failed]);
    }
    return 0;
  } finally {
    process.off("SIGHUP", onHangUp);
    await manager.stopping();
    await daemon.stop();
    await migrations.close();
  }
}

/** A console without users is for all who can read the gateway's log. */
function reportConsole({ consoleUrl, consoleLink }: Gateway, log: Logger): void {
  const link = consoleLink(userName());
  if (link !== null)
    log.info({ console: link }, `console: ${link} (it works once; \`headgate console link\` renews it)`);
  else if (consoleUrl !== null) log.info({ console: consoleUrl }, `console: ${consoleUrl}`);
}

async function reportEnd(
  gateway: Gateway,
  idle: "idle" | "timeout" | "stopped",
  options: GatewayOptions,
): Promise<number> {
  const summary = await gateway.summary();
  const concerns = await gateway.concerns();
  if (idle === "timeout")
    concerns.unshift(`not everything is done after ${options.timeout}; the next start resumes the work`);
  for (const concern of concerns) printConcern(concern);
  if (options.json === true) printJson(summary);
  else print(summaryLine(summary));
  return idle === "idle" && concerns.length === 0 ? 0 : 1;
}
